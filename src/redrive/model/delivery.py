"""A delivery: one message owed to one consumer, and the one decision that moves it.

A delivery waits (`available_at`), is claimed (a token, until `available_at`), and ends in one final outcome.
There is no other state: a delayed message, a message in flight and a retry on its way are all rows whose
`available_at` lies ahead.
"""

import enum
import random
from dataclasses import dataclass
from typing import Protocol

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

    def ended(self, enqueued_at: int, now: int) -> bool:
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
    """Say what becomes of a delivery whose attempt ended like this.

    A message out of its retention period is gone whatever the schedule says, and never dead-lettered. What is
    refused or spent goes to the dead letters, or is dropped where there are none. A retry waits `floor_ms` at least.
    """
    if result is AttemptResult.DELIVERED:
        return DELIVERED
    if limits.ended(delivery.enqueued_at, now):
        return EXPIRED
    delay_ms = None if result is AttemptResult.REFUSED else schedule.delay_ms(delivery.attempts, rng)
    if delay_ms is None:
        return DEAD_LETTERED if limits.dead_letters else DROPPED
    due_at = now + max(delay_ms, floor_ms)
    if limits.attempts_until is None or due_at <= limits.attempts_until:
        return Transition(Outcome.RETRY, due_at)
    return Transition(Outcome.DEAD_LETTERED if limits.dead_letters else Outcome.DROPPED, too_old=True)
