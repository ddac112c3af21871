"""What pushing a delivery takes: an endpoint to push to, and a dialect that says what, how often and where else."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from redrive.model.attempt import Attempt
from redrive.model.delivery import Delivery, Schedule
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
    """

    endpoint: str
    body: bytes
    content_type: str
    headers: Mapping[str, str]
    timeout_ms: int


class Endpoint(Protocol):
    """A kind of place that deliveries are pushed to."""

    async def push(self, parcel: Parcel) -> Attempt:
        """Hand it over; every way this can go wrong is an Attempt, never an exception."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How the deliveries of a subscription are pushed.

    Attributes:
        schedule: When a failed one is tried again.
        throttled_schedule: The same when the endpoint asked for a slower pace; None: no different.
        rate_max: Deliveries a second; None: as fast as the endpoint takes them.
        concurrency_max: Attempts under way at once.
        lease_ms: How long an attempt may take before another node may repeat it.
    """

    schedule: Schedule
    throttled_schedule: Schedule | None = None
    rate_max: int | None = None
    concurrency_max: int = 32
    lease_ms: int = 30_000


class Dialect(Protocol):
    """A facade's part in delivering what was published in its words."""

    def headers(self, topic: Topic, subscription: Subscription, envelope: bytes) -> bytes:
        """A delivery's headers: a publication's envelope, made this subscription's."""
        ...

    def queue_of(self, subscription: Subscription) -> ResourceName | None:
        """The queue of this server that the endpoint is, if it is one."""
        ...

    def objection(
        self, topic: Topic, subscription: Subscription, queue: Queue | None, body: str
    ) -> Attempt | None:
        """Why a queue does not take a message from the topic (it is not there, its policy forbids it); None: it does.

        Asked for the endpoint and for the dead-letter queue alike.
        """
        ...

    def dead_letters_to(self, subscription: Subscription, delivery: Delivery) -> ResourceName | None:
        """Where a delivery goes that cannot be made; None: nowhere."""
        ...

    def plan(self, topic: Topic, subscription: Subscription) -> Plan:
        """How to push to the subscription."""
        ...

    async def parcel(self, topic: Topic, subscription: Subscription, delivery: Delivery) -> Parcel:
        """What to push."""
        ...
