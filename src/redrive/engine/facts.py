"""Facts: what happened, told once, to whoever keeps count or writes logs.

The engine tells; metrics, delivery logs and the console listen. A listener must be quick and must not fail: it is
called on the hot path, and what it writes it writes later.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from redrive.model.attempt import Attempt
from redrive.model.delivery import Delivery, End, Transition
from redrive.model.filtering import Verdict
from redrive.model.queue import Queue
from redrive.model.replay import is_replayed
from redrive.model.topic import Subscription, Topic


@dataclass(frozen=True, slots=True)
class Attempted:
    """One attempt was made, and its delivery has moved on.

    Attributes:
        topic: Where the message was published.
        subscription: Whose delivery.
        delivery: As it was when it was tried: `attempts` includes this one, `sent_at` is when it was published.
        attempt: What came of it.
        transition: What becomes of the delivery.
        at: When it ended (ms).
        position: Its place among the deliveries of the attempt, from 0.
    """

    topic: Topic
    subscription: Subscription
    delivery: Delivery
    attempt: Attempt
    transition: Transition
    at: int
    position: int = 0

    @property
    def replayed(self) -> bool:
        """Whether what was delivered comes out of an archive."""
        return is_replayed(self.delivery.headers)


class Accepted(NamedTuple):
    """Queues of this server took a publication straight from its topic, each at the first attempt.

    One fact for all of them: a publication to four queues spent a quarter of its time on a fact for each.

    Attributes:
        topic: Where it was published.
        sent: The queues, and how many bytes of body each got.
        attempts: Spells out the attempts, as `Listener.attempted` would have been told of them.
        at: When (ms).
        replayed: See Attempted.
    """

    topic: Topic
    sent: Sequence[tuple[Queue, int]]
    attempts: Callable[[], Sequence[Attempted]]
    at: int
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """A delivery that could not be made was handed to its dead-letter queue, or could not be.

    Attributes:
        topic: Where the message was published.
        subscription: Whose delivery.
        delivery: As it was.
        attempt: Handing it to the dead-letter queue: DELIVERED, or why not.
        at: When (ms).
    """

    topic: Topic
    subscription: Subscription
    delivery: Delivery
    attempt: Attempt
    at: int


class Listener:
    """Somebody who wants to know; who derives from it passes over what they have no method of their own for."""

    def published(self, topic: Topic, messages: int, matched: int, body_bytes: int, now: int) -> None:
        """So many messages were accepted, of so many bytes in all; so many of them somebody wanted."""

    def archived(self, topic: Topic, messages: int, body_bytes: int, now: int) -> None:
        """So many of the messages that were accepted entered the topic's archive: repetitions do not."""

    def filtered(self, topic: Topic, verdict: Verdict, subscriptions: int, now: int) -> None:
        """So many subscriptions did not want a message, for that reason."""

    def asked(self, topic: Topic, asked: Sequence[tuple[Subscription, int]], now: int) -> None:
        """So many advanced filters of subscriptions were asked about a message."""

    def attempted(self, fact: Attempted) -> None:
        """See Attempted."""

    def accepted(self, fact: Accepted) -> None:
        """See Accepted; neither `attempted` nor `sent` tells of it again."""

    def expired(self, fact: Attempted) -> None:
        """A delivery's time was over before it was tried (again): `delivery.attempts` is how often it was."""

    def dead_lettered(self, fact: DeadLettered) -> None:
        """See DeadLettered."""

    def sent(self, queue: Queue, messages: int, body_bytes: int, now: int) -> None:
        """Callers sent messages to a queue, or a topic's dead letters entered it."""

    def received(self, queue: Queue, messages: int, now: int) -> None:
        """A receive was answered, with so many messages; 0 for an empty one."""

    def deleted(self, queue: Queue, messages: int, now: int) -> None:
        """Consumers are done with messages."""

    def dropped(self, queue: Queue, messages: int, why: End, now: int) -> None:
        """Messages of a queue are gone that nobody is done with, and no dead-letter queue has them."""
