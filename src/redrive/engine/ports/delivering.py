"""What pushing a delivery takes: an endpoint to push to, and a dialect that says what, how often and where else."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from redrive.engine.facts import Attempted
from redrive.model.answers import USUAL, AnswerProfile
from redrive.model.attempt import Attempt
from redrive.model.delivery import Delivery, Schedule
from redrive.model.message import Publication
from redrive.model.probation import ProbationPolicy
from redrive.model.queue import Queue, ResourceName
from redrive.model.topic import Subscription, Topic


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is handed to an endpoint.

    Attributes:
        endpoint: Where to, in the form the endpoint's kind wants (a URL, an address).
        body: What it gets.
        content_type: Of the body.
        headers: What goes beside it.
        timeout_ms: How long an answer may take.
        method: The verb, where the endpoint's kind has verbs.
        headers_kept: Names, in lower case, of headers of the answer that become the attempt's identifiers.
        answer_bytes_max: How much of the answer is read; only its beginning is ever shown.
        parts: What it gets of several deliveries, each by itself, where its kind takes them so; the body is empty then.
    """

    endpoint: str
    body: bytes
    content_type: str
    headers: Mapping[str, str]
    timeout_ms: int
    method: str = "POST"
    headers_kept: Sequence[str] = ()
    answer_bytes_max: int = 4096
    parts: Sequence[bytes] = ()


class Endpoint(Protocol):
    """A kind of place that deliveries are pushed to."""

    async def push(self, parcel: Parcel) -> Attempt:
        """Hand it over; every way this can go wrong is an Attempt, never an exception."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """How many deliveries go in one attempt: what is due together, never waited for.

    Attributes:
        deliveries_max: At most so many.
        bytes_target: Bodies of no more than this together; a single larger one goes alone.
    """

    deliveries_max: int = 1
    bytes_target: int = 0


ONE_EACH: Final = Batch()


@dataclass(frozen=True, slots=True)
class Consequence:
    """A message that the end of a delivery leads to, in the transaction that ends it.

    Attributes:
        topic: Where it is published.
        publication: The message.
        subscription_id: The one subscriber who gets it, confirmed or not; None: all who want it.
        delay_ms: How long it waits before it is pushed.
    """

    topic: ResourceName
    publication: Publication
    subscription_id: str | None = None
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """How the deliveries of a subscription are pushed.

    Attributes:
        schedule: When a failed one is tried again.
        throttled_schedule: The same when the endpoint asked for a slower pace: it counts the attempts that ended so, as
            far as they are remembered (`Store.notes`). None: no different.
        rate_max: Deliveries a second; None: as fast as the endpoint takes them.
        concurrency_max: Attempts under way at once.
        lease_ms: How long an attempt may take before another node may repeat it.
        batch: How many deliveries an attempt takes along.
        answers: What the endpoint's status codes mean.
        patience_ms: After this an attempt counts as failed, though its endpoint may answer late: if it then takes the
            message before the next attempt began, there is none. None: the endpoint's own time-out alone.
        probation: When the endpoint is let rest; None: never.
    """

    schedule: Schedule
    throttled_schedule: Schedule | None = None
    rate_max: int | None = None
    concurrency_max: int = 32
    lease_ms: int = 30_000
    batch: Batch = ONE_EACH
    answers: AnswerProfile = USUAL
    patience_ms: int | None = None
    probation: ProbationPolicy | None = None


class Dialect(Protocol):
    """A facade's part in delivering what was published in its words."""

    def headers(self, topic: Topic, subscription: Subscription) -> Callable[[bytes], bytes]:
        """What makes a publication's envelope the headers of this subscription's delivery.

        It is kept while neither topic nor subscription changes, and called at each publication.
        """
        ...

    def queue_of(self, subscription: Subscription) -> ResourceName | None:
        """The queue of this server that the endpoint is, if it is one."""
        ...

    def objection(
        self,
        topic: Topic,
        subscription: Subscription,
        queue: Queue | None,
        body: str,
        headers: bytes | None = None,
    ) -> Attempt | None:
        """Why a queue does not take a message from the topic (it is not there, its policy forbids it); None: it does.

        Asked for the endpoint and for the dead-letter queue alike. That there is none is remembered until a topic,
        subscription or queue changes, for bodies of no more bytes.

        Args:
            topic: Where it was published.
            subscription: Whose.
            queue: The queue; None: it is not there.
            body: The message's.
            headers: Of a delivery that stands already and is handed to its endpoint. What of its headers a queue would
                object to in one that is being published, the publication says (`raw_refusal`).
        """
        ...

    def insists(self, subscription: Subscription) -> bool:
        """Whether what a queue refuses is tried again by the plan; else it is a dead letter when it is published."""
        ...

    def dead_letters_to(self, subscription: Subscription, delivery: Delivery) -> ResourceName | None:
        """Where a delivery goes that cannot be made; None: nowhere."""
        ...

    def plan(self, topic: Topic, subscription: Subscription) -> Plan:
        """How to push to the subscription."""
        ...

    async def parcel(
        self, topic: Topic, subscription: Subscription, deliveries: Sequence[Delivery]
    ) -> Parcel:
        """What to push in one attempt: a single delivery, unless the plan has batches."""
        ...

    def leads_to(self, fact: Attempted) -> Sequence[Consequence]:
        """What else follows from a delivery's end; of a retry, nothing does.

        Where its time was over before it was tried again, the attempt's reason is EXPIRED.
        """
        ...
