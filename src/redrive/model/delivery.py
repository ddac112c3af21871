"""A delivery: one message owed to one consumer, the one decision that moves it, and how it enters its next queue.

A delivery waits (`available_at`), is claimed (a token, until `available_at`), and ends in one final outcome.
There is no other state: a delayed message, a message in flight and a retry on its way are all rows whose
`available_at` lies ahead.
"""

import enum
import random
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from redrive.model.attempt import AttemptResult
from redrive.model.names import id_text


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
    """One message owed to one consumer, as the store returns it from a claim or a look."""

    queue_id: int  # The queue it stands in
    seq: int  # Sequence number, assigned on arrival; grows over the whole store and over restarts
    available_at: int  # Not before this moment (ms); while claimed, the moment the claim runs out
    attempts: int  # How often it was claimed, this claim included
    token: int | None  # Token of the latest claim; None: never claimed
    enqueued_at: int  # When the retention period began (ms)
    sent_at: int  # When the message was sent (ms), kept through dead-lettering by a queue
    first_claimed_at: int | None  # When it was claimed for the first time (ms)
    message_id: bytes  # 16 bytes
    group_id: str | None  # Its message group, if any
    deduplication_id: str | None  # As given or derived, if any
    origin: int | None  # The id of the queue it was dead-lettered from, if it was
    # What the facade that accepted the message keeps beside the body, in that facade's own encoding.
    headers: bytes | None
    body: str  # The message
    # Why it died, if it is a dead letter: the reason and status of its last attempt (`server_error 503`), or
    # a `DeadLetterReason`; None of dead letters from before this was written down.
    failure: str | None = None
    # The encrypted content of a message whose body is `SEAL_MARK` alone; None of all others.
    sealed: bytes | None = None


def own_id(delivery: Delivery) -> str:
    """The message's id as its publisher knows it, where that is the delivery's own."""
    return id_text(delivery.message_id)


class Outcome(enum.Enum):
    """The outcome of a delivery after an attempt."""

    DELIVERED = "delivered"
    RETRY = "retry"
    DEAD_LETTERED = "dead_lettered"
    EXPIRED = "expired"
    DROPPED = "dropped"


class DeadLetterReason(enum.StrEnum):
    """The reason for which a delivery of a queue became a dead letter."""

    EXHAUSTED = "exhausted"  # it had all its claims
    EXPIRED = "expired"  # it was kept too long
    REJECTED = "rejected"  # its consumer will never take it


@dataclass(frozen=True, slots=True)
class Transition:
    """The decision: what becomes of the delivery."""

    outcome: Outcome  # Result of the decision
    available_at: int = 0  # For a retry: not before this moment (ms)
    # It ends though its schedule had another attempt: that would have come later than it may.
    too_old: bool = False


class Schedule(Protocol):
    """A retry schedule: the times at which the next attempts are due."""

    def delay_ms(self, attempt: int, rng: random.Random) -> int | None:
        """The wait after failed attempt number `attempt` (from 1), or None when the schedule is spent."""
        ...

    def expired(self, published_at: int, now: int) -> bool:
        """True if what was published then (ms) may no longer be attempted now (ms)."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a delivery besides its schedule."""

    retention_ms: int | None = None  # How long after `enqueued_at` the message is kept; None for ever
    attempts_max: int = 0  # Claims allowed before it is given up; 0: unlimited
    dead_letters: bool = False  # Whether a dead-letter queue stands ready
    # What had its claims and finds no dead-letter queue is dropped, and not offered for ever.
    drops_exhausted: bool = False
    buries_expired: bool = False  # Expired messages become dead letters, like those that ran out of claims
    attempts_until: int | None = None  # The last moment (ms) that a further attempt may fall due; None: any

    @property
    def ends_exhausted(self) -> bool:
        """True if a delivery is offered no more once it had `attempts_max` claims."""
        return self.attempts_max > 0 and (self.dead_letters or self.drops_exhausted)

    def is_expired(self, enqueued_at: int, now: int) -> bool:
        """True if what was enqueued then (ms) is out of its retention period."""
        return self.retention_ms is not None and enqueued_at + self.retention_ms <= now


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
    rng: random.Random,
    floor_ms: int = 0,
) -> Transition:
    """The transition of a delivery whose attempt had this result.

    A message out of its retention period ends whatever the schedule says, and never dead-lettered. What is
    refused or spent goes to the dead letters, or is dropped where there are none. A retry waits `floor_ms` at least.
    """
    if result is AttemptResult.DELIVERED:
        return DELIVERED
    if limits.is_expired(delivery.enqueued_at, now):
        return EXPIRED
    delay_ms = None if result is AttemptResult.REFUSED else schedule.delay_ms(delivery.attempts, rng)
    if delay_ms is None:
        return DEAD_LETTERED if limits.dead_letters else DROPPED
    due_at = now + max(delay_ms, floor_ms)
    if limits.attempts_until is None or due_at <= limits.attempts_until:
        return Transition(Outcome.RETRY, due_at)
    return Transition(Outcome.DEAD_LETTERED if limits.dead_letters else Outcome.DROPPED, too_old=True)


def enter(
    delivery: Delivery,
    outcome: Outcome,
    queue_id: int,
    seq: int,
    now: int,
    *,
    ordered: bool,
    as_new: bool = False,
    failure: str | None = None,
) -> Delivery:
    """The delivery as it enters the queue `queue_id` after this outcome in its own queue.

    Args:
        delivery: As it left its queue.
        outcome: DEAD_LETTERED, or any other that hands it over to that queue.
        queue_id: Where it goes.
        seq: Its place of arrival there.
        now: ms.
        ordered: Whether that queue keeps the order of groups.
        as_new: A dead letter is sent there like any message; else its age and its attempts go on.
        failure: Why a dead letter died.
    """
    if outcome is not Outcome.DEAD_LETTERED:
        return as_handed_over(delivery, queue_id, seq, now)
    if as_new:
        return as_sent_dead_letter(delivery, queue_id, seq, now, failure)
    return as_dead_letter(delivery, queue_id, seq, now, ordered=ordered, failure=failure)


def as_dead_letter(
    delivery: Delivery, queue_id: int, seq: int, now: int, *, ordered: bool, failure: str | None = None
) -> Delivery:
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
        failure=failure,
    )


def as_handed_over(delivery: Delivery, queue_id: int, seq: int, now: int, **others: Any) -> Delivery:
    """The delivery as it enters the queue that it was pushed to, at `now` (ms): new there, and never received yet.

    `seq` is its place of arrival there; `others` are attributes that change besides.
    """
    new: dict[str, Any] = {
        "queue_id": queue_id,
        "seq": seq,
        "available_at": now,
        "attempts": 0,
        "token": None,
        "enqueued_at": now,
        "sent_at": now,
        "first_claimed_at": None,
        "failure": None,
    }
    return replace(delivery, **new | others)


def as_sent_dead_letter(
    delivery: Delivery, queue_id: int, seq: int, now: int, failure: str | None = None
) -> Delivery:
    """The delivery as it enters the dead-letter queue `queue_id` where dead letters are sent like any message.

    It is new there, and never received yet; what it went through is in the notes of its attempts. So SNS does
    (recorded), and so it must be: a schedule of 23 days outlasts the 14 that a queue may keep a message for.
    """
    return as_handed_over(delivery, queue_id, seq, now, origin=delivery.queue_id, failure=failure)


def as_copy(
    delivery: Delivery, queue_id: int, seq: int, now: int, delay_ms: int, end: DeadLetterReason
) -> Delivery:
    """The copy of a dead letter that enters the backlog `queue_id`, to be pushed from there.

    Its headers, a JSON object, get a first member that says how it ended:
    `"ended":{"how":"exhausted","attempts":3,"at":1700000000000}`. `at` is when its consumer had it last, as far as
    that is known: at the first claim where there was one alone, else by the end of the last.
    """
    if delivery.first_claimed_at is None:
        at = delivery.sent_at
    elif delivery.attempts == 1:
        at = delivery.first_claimed_at
    else:
        at = min(delivery.available_at, now)
    other_members = (delivery.headers or b"{}")[1:]
    comma = b"" if other_members == b"}" else b","
    ended = b'{"ended":{"how":"%b","attempts":%d,"at":%d}' % (end.encode(), delivery.attempts, at)
    return as_handed_over(
        delivery,
        queue_id,
        seq,
        now,
        available_at=now + delay_ms,
        group_id=None,
        deduplication_id=None,
        headers=ended + comma + other_members,
    )


def as_redriven(
    delivery: Delivery, queue_id: int, seq: int, now: int, message_id: bytes, body: str | None = None
) -> Delivery:
    """The delivery as it enters `queue_id` by a redrive: a new message with the old content, or with another body."""
    text = delivery.body if body is None else body
    return as_handed_over(delivery, queue_id, seq, now, message_id=message_id, origin=None, body=text)


def as_set_aside(delivery: Delivery, queue_id: int, seq: int, now: int) -> Delivery:
    """The dead letter as it enters `queue_id` beside its dead-letter queue: what it is and why it died stays with it.

    Its retention begins anew: it was set aside so that it is not lost yet.
    """
    return replace(delivery, queue_id=queue_id, seq=seq, available_at=now, token=None, enqueued_at=now)


# What is encrypted in the store is known by its body; what is beside it says how to open it, see `ports.sealing`.

SEAL_MARK: Final = "\x02"  # neither XML nor JSON may hold it as it is
_SEALED: Final = b'"sealed":{'


def is_sealed(delivery: Delivery) -> bool:
    """True if nobody has opened the delivery yet."""
    return delivery.body[:1] == SEAL_MARK and (
        delivery.sealed is not None or _SEALED in (delivery.headers or b"")
    )


# Headers are a JSON object, if there are any: a replayed delivery is known by its first member.

_REPLAYED: Final = b'{"replayed":true,'


def as_replayed(headers: bytes) -> bytes:
    """The headers of a delivery, marked as those of a replayed one."""
    return _REPLAYED + headers[1:]


def is_replayed(headers: bytes | None) -> bool:
    """True if these are the headers of a replayed delivery."""
    return headers is not None and headers.startswith(_REPLAYED)
