"""Facts: events in the life of messages, told once to metrics and logs.

A listener must be quick and must not fail: it is called on the hot path, and what it writes it writes later. Which
listeners hear a fact is decided in `listeners`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redrive.model.attempt import Attempt
from redrive.model.delivery import DeadLetterReason, Delivery, Outcome, Transition, is_replayed, own_id
from redrive.model.filtering.subject import FilterVerdict
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic


@dataclass(slots=True)  # not frozen, as PushRequest
class Attempted:
    """One attempt at a delivery, and the outcome that was decided."""

    topic: Topic  # Topic of the message
    subscription: Subscription  # Subscription of the delivery
    # As it was when it was tried: `attempts` includes this one, `sent_at` is when it was published.
    delivery: Delivery
    attempt: Attempt  # The attempt's result
    transition: Transition  # The delivery's outcome
    at: int  # End of the attempt (ms)
    position: int = 0  # Index of the delivery within the attempt, from 0
    # Finds the message's id, as its publisher knows it, in a delivery.
    identify: Callable[[Delivery], str] = own_id

    @property
    def message_id(self) -> str:
        """The message's id, as its publisher knows it."""
        return self.identify(self.delivery)

    @property
    def replayed(self) -> bool:
        """True if the message comes out of an archive."""
        return is_replayed(self.delivery.headers)


class Accepted(NamedTuple):
    """A publication that queues of this server accepted directly from its topic, each at the first attempt.

    One fact for all that got the same text: a publication to four queues spent a quarter of its time on a fact for each.
    """

    topic: Topic  # Topic of the message
    # The queues. The identical sequence for all publications by one plan, which a listener may count together.
    queues: Sequence[Queue]
    body_bytes: int  # How many bytes of body each of them got
    # Spells out the attempts, as `Listener.attempted` would have been told of them.
    attempts: Callable[[], Sequence[Attempted]]
    at: int  # Time (ms)
    replayed: bool = False  # See Attempted


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """A delivery that failed for good, and the result of handing it to its dead-letter queue."""

    topic: Topic  # Topic of the message
    subscription: Subscription  # Subscription of the delivery
    delivery: Delivery  # As it was
    attempt: Attempt  # The result of handing it to the dead-letter queue
    at: int  # Time (ms)


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A delivery that ended otherwise than delivered, by whatever path."""

    # Its last attempt, or how it was refused before one; the transition says whether it was dead-lettered,
    # dropped or expired.
    last: Attempted
    handover: Attempt | None  # The dead-letter queue's answer; None: it has none
    confirmation: bool  # It asked its endpoint whether that wants the others
    dead_letter: bool = False  # One of it is on its way to a store of dead letters

    @property
    def outcome(self) -> Outcome:
        """The outcome of the delivery; dead-lettered also where not a queue takes it but a store."""
        return Outcome.DEAD_LETTERED if self.dead_letter else self.last.transition.outcome

    @property
    def message_id(self) -> str:
        """The message's id, as its publisher knows it."""
        return self.last.message_id


class Listener:
    """Receives facts. Every method does nothing; override those that are needed."""

    def published(self, topic: Topic, messages: int, matched: int, body_bytes: int, now: int) -> None:
        """Messages were accepted, of so many bytes in all; `matched` of them had a subscription."""

    def archived(self, topic: Topic, messages: int, body_bytes: int, now: int) -> None:
        """Messages entered the topic's archive: those that were accepted, without repetitions."""

    def filtered(self, topic: Topic, verdict: FilterVerdict, subscriptions: int, now: int) -> None:
        """A message did not pass the filters of so many subscriptions, for that reason."""

    def evaluated(self, topic: Topic, filters: Sequence[tuple[Subscription, int]], now: int) -> None:
        """Advanced filters were evaluated for a message: how many, by subscription."""

    def attempted(self, fact: Attempted) -> None:
        """See Attempted."""

    def accepted(self, fact: Accepted) -> None:
        """See Accepted; neither `attempted` nor `sent` tells of it again."""

    def expired(self, fact: Attempted) -> None:
        """A delivery's time was over before it was tried (again): `delivery.attempts` counts those that were made."""

    def dead_lettered(self, fact: DeadLettered) -> None:
        """See DeadLettered."""

    def undelivered(self, fact: Undelivered) -> None:
        """See Undelivered; `attempted` or `expired`, and `dead_lettered`, tell of it as well."""

    def sent(self, queue: Queue, messages: int, body_bytes: int, now: int) -> None:
        """Messages entered a queue: callers sent them, or a topic's dead letters went there."""

    def received(self, queue: Queue, messages: int, now: int) -> None:
        """A receive was answered with so many messages; 0 for an empty one."""

    def deleted(self, queue: Queue, messages: int, now: int) -> None:
        """Consumers deleted messages."""

    def buried(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        """Messages of a queue went to its dead-letter queue."""

    def dropped(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        """Messages of a queue are lost: nobody deleted them, and no dead-letter queue has them."""
