"""A delivery: one message owed to one consumer, and the one decision that moves it.

A delivery waits (`available_at`), is claimed (a token, until `available_at`), and ends in one final outcome.
There is no other state: a delayed message, a message in flight and a retry on its way are all rows whose
`available_at` lies ahead.
"""

import enum
import random
from dataclasses import dataclass, replace
from typing import Protocol

from redrive.model.attempt import AttemptResult
from redrive.model.ids import id_text


class LinePosition(enum.IntEnum):
    """The position of a delivery in its queue's line.

    Only deliveries in the line are looked at by a claim, so that its cost depends on what it takes and never on
    the backlog. Of a group at most one delivery holds the turn: in an ordered queue its oldest one, so that the
    group cannot be overtaken; in a fair queue the next one, so that a long group has one place in the line and
    not a thousand.
    """

    BEHIND = 0  # waits behind another delivery of its group; no claim looks at it
    READY = 1  # in the line on its own account
    HEAD = 2  # in the line for its group


@dataclass(slots=True)
class Delivery:
    """One message owed to one consumer, as the store hands it to whoever claims or peeks at it.

    Attributes:
        queue_id: The queue it stands in.
        seq: Its place of arrival; grows over the whole store and over restarts.
        available_at: Not before this moment (ms); while claimed, the moment the claim runs out.
        attempts: How often it was claimed, this claim included.
        token: The claim's token, None while nobody ever claimed it.
        enqueued_at: When the retention period began (ms).
        sent_at: When the message was sent (ms), kept through dead-lettering by a queue.
        first_claimed_at: When it was claimed for the first time (ms).
        message_id: 16 bytes.
        group_id: Its message group, if any.
        deduplication_id: As given or derived, if any.
        origin: The id of the queue it was dead-lettered from, if it was.
        headers: What the facade that accepted the message keeps beside the body, in that facade's own encoding.
        body: The message.
    """

    queue_id: int
    seq: int
    available_at: int
    attempts: int
    token: int | None
    enqueued_at: int
    sent_at: int
    first_claimed_at: int | None
    message_id: bytes
    group_id: str | None
    deduplication_id: str | None
    origin: int | None
    headers: bytes | None
    body: str


class Outcome(enum.Enum):
    """The outcome of a delivery after an attempt."""

    DELIVERED = "delivered"
    RETRY = "retry"
    DEAD_LETTERED = "dead_lettered"
    EXPIRED = "expired"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Transition:
    """The decision: what becomes of the delivery, and for a retry, not before when (ms)."""

    outcome: Outcome
    available_at: int = 0


class Schedule(Protocol):
    """A retry schedule: the moments that the next attempts are due."""

    def delay_ms(self, attempt: int, chance: random.Random) -> int | None:
        """The wait after failed attempt number `attempt` (from 1), or None when the schedule is spent."""
        ...

    def expired(self, published_at: int, now: int) -> bool:
        """True if what was published then (ms) may no longer be attempted now (ms)."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a delivery besides its schedule.

    Attributes:
        retention_ms: How long after `enqueued_at` the message is kept; None for ever.
        attempts_max: How many claims it may have when nobody says how they ended; 0: without end.
        dead_letters: Whether a dead-letter queue stands ready.
        drops_exhausted: What had its claims and finds no dead-letter queue is dropped, and not offered for ever.
        buries_expired: What is kept too long is a dead letter like what had its claims.
    """

    retention_ms: int | None = None
    attempts_max: int = 0
    dead_letters: bool = False
    drops_exhausted: bool = False
    buries_expired: bool = False

    @property
    def ends_exhausted(self) -> bool:
        """True if a delivery is offered no more once it had `attempts_max` claims."""
        return self.attempts_max > 0 and (self.dead_letters or self.drops_exhausted)


DELIVERED = Transition(Outcome.DELIVERED)
EXPIRED = Transition(Outcome.EXPIRED)
DEAD_LETTERED = Transition(Outcome.DEAD_LETTERED)
DROPPED = Transition(Outcome.DROPPED)


def decide(
    delivery: Delivery,
    result: AttemptResult,
    schedule: Schedule,
    limits: Limits,
    now: int,
    chance: random.Random,
    floor_ms: int = 0,
) -> Transition:
    """Say what becomes of a delivery whose attempt ended like this.

    A message out of its retention period is gone whatever the schedule says, and never dead-lettered. What is
    refused or spent goes to the dead letters, or is dropped where there are none. A retry waits `floor_ms` at least.
    """
    if result is AttemptResult.DELIVERED:
        return DELIVERED
    if _retention_ended(delivery, limits, now):
        return EXPIRED
    delay_ms = None if result is AttemptResult.REFUSED else schedule.delay_ms(delivery.attempts, chance)
    if delay_ms is not None:
        return Transition(Outcome.RETRY, now + max(delay_ms, floor_ms))
    return DEAD_LETTERED if limits.dead_letters else DROPPED


def offer(delivery: Delivery, limits: Limits, now: int) -> Outcome:
    """Say what becomes of a delivery that is due: RETRY when it may be claimed (again).

    Claims that ran out with nobody saying why are counted here, on the attempt that would exceed the limit: that
    is the moment SQS moves a message to its dead-letter queue. Without dead letters it is offered for ever,
    since nobody ever said that it failed; or dropped, where the queue's owner has it so.
    """
    if _retention_ended(delivery, limits, now):
        return Outcome.DEAD_LETTERED if limits.buries_expired and limits.dead_letters else Outcome.EXPIRED
    if limits.ends_exhausted and delivery.attempts >= limits.attempts_max:
        return Outcome.DEAD_LETTERED if limits.dead_letters else Outcome.DROPPED
    return Outcome.RETRY


def _retention_ended(delivery: Delivery, limits: Limits, now: int) -> bool:
    return limits.retention_ms is not None and delivery.enqueued_at + limits.retention_ms <= now


def as_dead_letter(delivery: Delivery, queue_id: int, seq: int, now: int, *, ordered: bool) -> Delivery:
    """The delivery as it enters the dead-letter queue `queue_id`.

    Id, body, send time and the count of attempts stay. The retention period goes on where it was, but begins
    anew in an ordered queue, where also the message id becomes the deduplication id, so that equal contents do
    not swallow each other (SQS developer guide, dead-letter queues).
    """
    return replace(
        delivery,
        queue_id=queue_id,
        seq=seq,
        available_at=now,
        token=None,
        enqueued_at=now if ordered else delivery.enqueued_at,
        deduplication_id=id_text(delivery.message_id) if ordered else delivery.deduplication_id,
        origin=delivery.queue_id,
    )


def as_sent_letter(delivery: Delivery, queue_id: int, seq: int, now: int) -> Delivery:
    """The delivery as it enters the dead-letter queue `queue_id` where letters are sent like any message.

    It is new there, and never received yet; what it went through is in the notes of its attempts. So SNS does
    (recorded), and so it must be: a schedule of 23 days outlasts the 14 that a queue may keep a message for.
    """
    return replace(as_handed_over(delivery, queue_id, seq, now), origin=delivery.queue_id)


class DeadLetterReason(enum.StrEnum):
    """The reason that a delivery of a queue became a dead letter."""

    EXHAUSTED = "exhausted"  # it had all its claims
    EXPIRED = "expired"  # it was kept too long
    REJECTED = "rejected"  # its consumer will never take it


def end_of(delivery: Delivery, limits: Limits, now: int) -> DeadLetterReason:
    """The reason for a delivery that `offer` answers DEAD_LETTERED to."""
    return DeadLetterReason.EXPIRED if _retention_ended(delivery, limits, now) else DeadLetterReason.EXHAUSTED


def as_copy(
    delivery: Delivery, queue_id: int, seq: int, now: int, delay_ms: int, end: DeadLetterReason
) -> Delivery:
    """The copy of a dead letter that enters the backlog `queue_id`, to be pushed from there.

    Its headers, a JSON object, get a first member that says how it ended:
    `"ended":{"how":"exhausted","attempts":3,"at":1700000000000}`. `at` is when its consumer had it last, as far as
    that is known: at the first claim where there was one alone, else by the end of the last.
    """
    first, attempts = delivery.first_claimed_at, delivery.attempts
    at = delivery.sent_at if first is None else first if attempts == 1 else min(delivery.available_at, now)
    rest = (delivery.headers or b"{}")[1:]
    comma = b"" if rest == b"}" else b","
    ended = b'{"ended":{"how":"%b","attempts":%d,"at":%d}' % (end.encode(), attempts, at)
    return replace(
        as_handed_over(delivery, queue_id, seq, now),
        available_at=now + delay_ms,
        group_id=None,
        deduplication_id=None,
        headers=ended + comma + rest,
    )


def as_handed_over(delivery: Delivery, queue_id: int, seq: int, now: int) -> Delivery:
    """The delivery as it enters the queue that it was pushed to: new there, and never received yet."""
    return replace(
        delivery,
        queue_id=queue_id,
        seq=seq,
        available_at=now,
        attempts=0,
        token=None,
        enqueued_at=now,
        sent_at=now,
        first_claimed_at=None,
    )


def as_redriven(delivery: Delivery, queue_id: int, seq: int, now: int, message_id: bytes) -> Delivery:
    """The delivery as it enters `queue_id` by a redrive: a new message with the old content."""
    return replace(
        delivery,
        queue_id=queue_id,
        seq=seq,
        available_at=now,
        attempts=0,
        token=None,
        enqueued_at=now,
        sent_at=now,
        first_claimed_at=None,
        message_id=message_id,
        origin=None,
    )
