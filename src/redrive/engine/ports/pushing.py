"""Pushing: the request, the endpoint that takes it, and the plan that says how often and how fast."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, runtime_checkable

from redrive.engine.ports.facts import Attempted
from redrive.engine.ports.requests import AttemptNote
from redrive.model.attempt import USUAL, AnswerProfile, Attempt, Reason
from redrive.model.circuit import CircuitPolicy
from redrive.model.delivery import Delivery, Schedule, own_id
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.topic import Publication, Subscription, Topic


@dataclass(slots=True)  # frozen, it would take three times as long to make, and each push makes one
class PushRequest:
    """The request that is handed to an endpoint."""

    endpoint: str  # Target address, in the form of the endpoint kind (a URL, an address)
    body: bytes  # The text, encoded
    content_type: str  # Content type of the body
    headers: Mapping[str, str]  # Fields beside the body
    timeout_ms: int  # How long an answer may take
    method: str = "POST"  # The verb, where the endpoint's kind has verbs
    # Names, in lower case, of headers of the answer that become the attempt's identifiers.
    headers_kept: Sequence[str] = ()
    answer_bytes_max: int = 4096  # How much of the answer is read; only its beginning is ever shown
    # The bodies of several deliveries, where the endpoint's kind takes each by itself; `body` is empty then.
    parts: Sequence[bytes] = ()


class Endpoint(Protocol):
    """Pushes deliveries of one protocol."""

    async def push(self, push_request: PushRequest) -> Attempt:
        """Hand a request over; every way this can go wrong is an Attempt, never an exception."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class DirectEndpoint(ABC):
    """An endpoint that begins a push at once where it has to wait for nothing but the answer.

    Such a push takes no task: a task, its future and their turns of the event loop are a third of a push over HTTP.
    """

    @abstractmethod
    def begin(self, push_request: PushRequest, take: Callable[[Attempt], None]) -> Callable[[], None] | None:
        """Hand a request over, as `Endpoint.push` does, and call `take` once, later, with what came of it.

        Returns a function that gives the push up, after which `take` is not called; or None: nothing was sent, since
        there is something to wait for first, and `push` has to be called.
        """


@runtime_checkable
class NeedsSetUp(Protocol):
    """An endpoint for which this server is not set up; it says so of each delivery."""

    @property
    def set_up(self) -> bool:
        """True if this server is set up for it."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """The deliveries of one attempt: those that are due at the same time; none is waited for."""

    deliveries_max: int = 1  # The largest number
    bytes_target: int = 0  # The largest sum of their bodies (bytes); a single larger body goes alone


ONE_EACH: Final = Batch()


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for pushing the deliveries of a subscription."""

    schedule: Schedule  # When a failed delivery is tried again
    # The same when the endpoint asked for a slower pace; it counts the attempts that ended so, as far as they
    # are remembered (`Store.notes`). None: `schedule`.
    throttled_schedule: Schedule | None = None
    # The reasons of attempts that do not count in `schedule`: they go by `throttled_schedule`, as an
    # endpoint's request for a slower pace does. Empty: such requests go by it, and every attempt counts in
    # `schedule`.
    uncounted: frozenset[Reason] = frozenset()
    # How old a delivery may be when a further attempt falls due; one that would be older ends at once. None:
    # it is looked at only by then (`Schedule.expired`).
    age_ms_max: int | None = None
    rate_max: int | None = None  # Deliveries a second; None: as fast as the endpoint takes them
    concurrency_max: int = 32  # Attempts under way at once
    lease_ms: int = 30_000  # How long an attempt may take before another node may repeat it
    batch: Batch = ONE_EACH  # How many deliveries an attempt takes along
    answers: AnswerProfile = USUAL  # The meaning of the endpoint's status codes
    # The soft time-out. After it an attempt counts as failed, though its endpoint may answer late: a success
    # before the next attempt begins makes that unnecessary. None: the endpoint's own time-out alone.
    soft_timeout_ms: int | None = None
    # How long after its start a push still counts that was not answered by its soft time-out, though further
    # attempts have begun; None: until the next attempt.
    late_answer_ms: int | None = None
    circuit: CircuitPolicy | None = None  # When the circuit breaker opens; None: never


# The facade's part in delivering: what one subscription's deliveries go by, and what they look like on the wire.


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A message that results from the end of a delivery, stored in the same transaction."""

    topic: ResourceName  # Topic it is published to
    publication: Publication  # The message
    # The only subscription that gets it, confirmed or not; None: all that match.
    subscription_id: str | None = None
    delay_ms: int = 0  # How long it waits before it is pushed


class DeathRecord(NamedTuple):
    """A delivery that ended without success and continues as a message: the dead letter that such a message is."""

    origin: int  # The number of the queue that the delivery was in, to which a redrive brings it back
    message_id: bytes  # The delivery's, under which its attempts are noted
    note: AttemptNote  # The last of them


def whole_envelope(envelope: bytes) -> bytes:
    """Returns the envelope: the headers of deliveries that take all of it."""
    return envelope


def _never(_: Delivery) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class SubscriptionContext:
    """A subscription, and everything about its deliveries that changes only with a new version of it or of its topic.

    A profile makes it, and the engine remembers it (`redrive.engine.node.memory`): asking for each claim, attempt and
    end took sixteen calls for two attempts.
    """

    topic: Topic  # Topic of its messages
    subscription: Subscription
    profile: "DeliveryProfile"  # Answers what depends on the message
    plan: Plan  # How its deliveries are pushed
    # Makes the headers of its delivery from a publication's envelope; called at each publication.
    headers: Callable[[bytes], bytes]
    queue: ResourceName | None = None  # The queue of this server that its endpoint is; None: it is pushed to
    dead_letter: ResourceName | None = None  # Where deliveries go that cannot be made; None: they are dropped
    # Picks the deliveries that ask the endpoint whether it wants the others; they are not dead-lettered.
    is_confirmation: Callable[[Delivery], bool] = _never
    # A message that `queue` refuses is tried again by the plan; else it is a dead letter as soon as it is
    # published.
    retries_refusals: bool = False
    awaits_confirmation: bool = False  # Its endpoint has not agreed yet to get messages
    # Finds the message's id, as its publisher knows it, in a delivery.
    identify: Callable[[Delivery], str] = own_id
    content_type: str = ""  # Content type of rendered bodies, if the subscription sets it
    # Makes what `profile.render` does where nothing has to be waited for, else None; see `DirectEndpoint`.
    render_at_once: "Callable[[SubscriptionContext, Sequence[Delivery]], PushRequest | None] | None" = None
    # Makes several of them together, where each would have something to wait for. None stands for one that has to be made
    # by itself.
    render_together: "RenderTogether | None" = None


RenderTogether = Callable[
    [SubscriptionContext, Sequence[Sequence[Delivery]]], Awaitable[Sequence[PushRequest | None]]
]


class DeliveryProfile(Protocol):
    """A facade's part in delivering what was published through it."""

    @property
    def name(self) -> str:
        """The name under which listeners are registered for its attempts; see `redrive.engine.node.memory`."""
        ...

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """Everything about a subscription's deliveries that does not depend on the message."""
        ...

    def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        """The reason why a queue does not take a message from the topic; None: it takes it.

        Asked for the endpoint and for the dead-letter queue alike. A None is remembered until a topic, subscription or
        queue changes, for bodies of no more bytes.

        Args:
            context: Whose message.
            queue: The queue; None: it does not exist.
            body: The message's.
            headers: Of a delivery that stands already and is handed to its endpoint. For a message that is being
                published, the publication itself says what of its headers a queue would refuse (`raw_refusal`).
        """
        ...

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        """The request of one attempt: of a single delivery, unless the plan has batches."""
        ...

    def follow_ups(self, fact: Attempted) -> Sequence[FollowUp]:
        """The messages that a delivery's end leads to; a retry leads to none.

        Where the delivery's time was over before it was tried again, the attempt's reason is EXPIRED.
        """
        ...
