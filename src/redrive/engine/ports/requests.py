"""Values that the engine hands to a store, and gets back."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from redrive.engine.ports.sealing import Sealer, StoredContent
from redrive.model.delivery import DeadLetterReason, Delivery, Limits, Outcome, as_redriven, as_set_aside
from redrive.model.queue import CopyTarget


@dataclass(slots=True)
class NewDelivery:
    """A delivery about to enter a queue."""

    queue_id: int
    message_id: bytes
    body: str
    headers: bytes | None
    available_at: int
    enqueued_at: int
    group_id: str | None = None
    ordered: bool = False  # Whether the queue keeps the order of groups
    deduplication_id: str | None = None
    # What a repetition is recognised by in this queue; None: not deduplicated.
    deduplication_key: str | None = None
    deduplicate_until: int = 0  # How long (ms since the epoch) the key is remembered
    # For a dead letter that could not even be tried: the queue it would have stood in.
    origin: int | None = None
    attempts: int = 0  # Number of earlier attempts
    note: "AttemptNote | None" = None  # Outcome of the last attempt
    # Encrypts it on its way into the store; None: it is stored as it is. The others are those of Delivery.
    sealer: Sealer | None = None
    sealed: bytes | None = None  # See Delivery

    def row(self, seq: int) -> tuple[Any, ...]:
        """The attributes of its `Delivery`, in their order; it is unclaimed."""
        return (
            self.queue_id,
            seq,
            self.available_at,
            self.attempts,
            None,  # token
            self.enqueued_at,
            self.enqueued_at,  # sent_at
            None,  # first_claimed_at
            self.message_id,
            self.group_id,
            self.deduplication_id,
            self.origin,
            self.headers,
            self.body,
            self.failure,
            self.sealed,
        )

    @property
    def failure(self) -> str | None:
        """The cause of its death, if it is a dead letter."""
        return None if self.origin is None or self.note is None else self.note.failure


@dataclass(frozen=True, slots=True)
class OrderedPublication:
    """One publication to an ordered topic: its deliveries enter their queues unless it is a repetition."""

    topic_id: int  # Topic within which the key is unique
    key: str  # Deduplication key
    now: int  # ms
    until: int  # How long (ms since the epoch) the key is remembered
    message_id: bytes  # Message id of the publication
    # Its deliveries. Their headers, which are JSON objects, get the publication's own place as a first
    # member, `"sequence"`.
    new_deliveries: Sequence[NewDelivery]

    def deliveries_at(self, seq: int) -> list[NewDelivery]:
        """Copies of the deliveries with the publication's place in their headers; a store may need them twice."""
        return [
            replace(new_delivery, headers=_with_sequence(new_delivery.headers, seq))
            for new_delivery in self.new_deliveries
        ]


def _with_sequence(headers: bytes | None, seq: int) -> bytes:
    members = (headers or b"{}")[1:]
    return b'{"sequence":%d%b%b' % (seq, b"" if members == b"}" else b",", members)


class Cause(NamedTuple):
    """The common cause of several dead letters of a queue."""

    origin: int  # The number of the queue they failed in
    failure: str  # Why: see `Delivery.failure`


class AttemptNote(NamedTuple):
    """The note of an attempt that failed."""

    number: int  # Number of the attempt, from 1
    at: int  # When it ended (ms)
    duration_ms: int  # How long it took
    reason: str  # Why it failed; see `redrive.model.attempt.Reason`
    status: int  # The endpoint's status code, or 0
    response: str  # Answer of the endpoint, shortened

    @property
    def failure(self) -> str:
        """The cause of death of a dead letter whose last attempt this was: `server_error 503`, or `timed_out` alone."""
        return f"{self.reason} {self.status}" if self.status else self.reason


# Neither frozen nor a tuple, which take twice as long to make, and each message makes one.
@dataclass(slots=True)
class Enqueued:
    """The result of enqueueing a delivery; for a repetition, the id and sequence number of the original."""

    message_id: bytes
    seq: int
    repeated: bool


@dataclass(frozen=True, slots=True)
class MoveTarget:
    """A queue that deliveries are moved to."""

    queue_id: int  # Queue to claim from
    ordered: bool  # Whether it keeps the order of groups
    # For dead letters: where a copy of each goes as well, see `redrive.model.delivery.as_copy`. For ends that
    # the store itself decides, in a claim; why `Settlement.follow_ups` does not do for them: decision 0009.
    copies: CopyTarget | None = None


_UNLIMITED = Limits()


@dataclass(slots=True)
class ClaimRequest:
    """A request for deliveries of one queue."""

    queue_id: int
    ordered: bool
    limit: int  # At most so many
    now: int
    lease_ms: int  # How long the claim holds
    token: int  # Fresh; all deliveries of one claim carry it
    limits: Limits = _UNLIMITED  # Retention, and how many claims a delivery may have
    dead_letters_to: MoveTarget | None = None  # Where a delivery goes that has had all its claims
    # An ordered queue's receiver may repeat a claim whose answer got lost: the same id within five minutes
    # gets the same deliveries under the same token, if none of them changed.
    attempt_id: str | None = None
    # A claim that ran out unsettled is tried again as the same attempt, uncounted: for deliveries that
    # Redrive pushes, whose node died. Without it every claim counts, as SQS counts receives.
    resumes: bool = False
    rate_max: int | None = None  # Claims a second over all nodes; None: no limit
    # Only what is exhausted or expired among the `limit` first of the line is sent where it goes: for queues
    # without receivers.
    claims_nothing: bool = False
    # Where fewer than `limit` were claimed, the answer says when the next delivery falls due: for a consumer
    # who need not claim again to learn it. Not with `rate_max`.
    looks_ahead: bool = False


class Claim(NamedTuple):
    """A claim that a caller says it holds."""

    seq: int  # Sequence number of the delivery
    token: int  # The claim's
    until: int = 0  # Where it is to hold on: until when (ms)


class Settlement(NamedTuple):
    """The end of one claim."""

    seq: int  # Sequence number of the delivery
    token: int  # The claim's token
    # What `decide` said; RETRY needs `available_at`, DEAD_LETTERED needs `target`. DELIVERED with a `target`
    # hands the message to that queue as a new delivery.
    outcome: Outcome = Outcome.DELIVERED
    available_at: int = 0
    target: MoveTarget | None = None
    # What to remember of the attempt; what is remembered goes when the delivery ends otherwise than in a
    # dead-letter queue.
    note: AttemptNote | None = None
    # Deliveries that enter their queues in the same transaction, if the claim is met; never for RETRY.
    follow_ups: Sequence[NewDelivery] = ()
    # A dead letter is sent to its queue like any message; else its age and its attempts go on there.
    as_new: bool = False
    # The content that it enters its target with; None: that which it has in the store.
    content: StoredContent | None = None
    # The reason that it is a dead letter now, where no attempt's note says it.
    reason: DeadLetterReason = DeadLetterReason.REJECTED

    @property
    def failure(self) -> str:
        """The cause of its death, if it is a dead letter now."""
        return self.reason if self.note is None else self.note.failure


class Settled(NamedTuple):
    """The answer to a settlement or an extension."""

    done: bool
    # "gone": no such delivery; "superseded": claimed anew since; "lapsed": the claim ran out.
    reason: str = ""


class Counts(NamedTuple):
    """The numbers of deliveries of a queue that can be claimed now, are in flight, and wait for a later time."""

    available: int
    claimed: int
    delayed: int


class MovedTo(NamedTuple):
    """The new queue of a delivery that was moved, and its id there."""

    queue_id: int
    seq: int
    message_id: bytes


class Moved(NamedTuple):
    """The result of a move."""

    per_queue: Mapping[int, int]  # Number of arrivals by queue
    has_more: bool  # Whether deliveries remain that could be moved now
    became: Mapping[int, MovedTo] = MappingProxyType({})  # New location of each, by its old sequence number

    @property
    def total(self) -> int:
        """The number that moved in all."""
        return sum(self.per_queue.values())


class Occupied(NamedTuple):
    """A number under which something is stored, and the times from which a sweep may find something there."""

    queue_id: int  # Id of a queue, a subscription's backlog or a topic's archive
    oldest_at: int | None  # Arrival of the oldest of its first deliveries (ms); None: it is empty
    # When the first memory kept beside its deliveries is of no more use (ms); None: it has none.
    memories_end_at: int | None


def merge_occupied(
    oldest: Sequence[tuple[int, int]], memories: Sequence[Sequence[tuple[int, int]]], limit: int
) -> list[Occupied]:
    """Merge what several tables have under numbers into one list, in the order of the numbers.

    Args:
        oldest: Numbers in their order, with the moment of their oldest delivery.
        memories: The same of each table of memories, with the moment at which the first of them ends.
        limit: A table that gave so many may have more: what follows its last number is left to the next look.
    """
    cut_tables = [table for table in (oldest, *memories) if len(table) >= limit]
    complete_to = min((table[-1][0] for table in cut_tables), default=None)
    oldest_at = dict(oldest)
    memories_end_at: dict[int, int] = {}
    for queue_id, moment in itertools.chain(*memories):
        memories_end_at[queue_id] = min(moment, memories_end_at.get(queue_id, moment))
    numbers = sorted(oldest_at.keys() | memories_end_at.keys())
    return [
        Occupied(queue_id, oldest_at.get(queue_id), memories_end_at.get(queue_id))
        for queue_id in numbers
        if complete_to is None or queue_id <= complete_to
    ]


class Swept(NamedTuple):
    """The result of a sweep."""

    deliveries: int  # Number of deliveries moved
    has_more: bool  # Whether there may be more to remove, of deliveries or of what is remembered beside them


@dataclass(slots=True)
class MoveRequest:
    """A request to take deliveries out of a queue and send them as new ones to another, or each to its origin."""

    queue_id: int  # Source queue
    ordered: bool
    limit: int  # At most so many, oldest first; claimed and delayed ones stay
    now: int
    seq_max: int  # None that arrived later than this
    message_ids: Sequence[bytes]  # Fresh ids, `limit` of them: what moves is a new message
    # Where to; None: to `origins[delivery.origin]`; a delivery whose origin is not there stays.
    destination: MoveTarget | None = None
    origins: Mapping[int, MoveTarget] = field(default_factory=dict)
    # Only these, also from behind others of their group; None: whatever is in the line.
    seqs: Sequence[int] | None = None
    # Only dead letters of this cause, in order of arrival, also from behind others of their message group.
    cause: Cause | None = None
    excepted: Sequence[int] = ()  # For one cause: all but these; at most a hundred
    bodies: Mapping[int, str] = field(default_factory=dict)  # Other bodies for some of `seqs`
    keeps_origin: bool = False  # They stay dead letters, with their ids: they are set aside, not sent

    @property
    def chooses(self) -> bool:
        """True if particular messages are to move, and not whatever the line has at its front."""
        return self.seqs is not None or self.cause is not None

    def goes_home(self, origin: int | None) -> bool:
        """True if a delivery of that origin has somewhere to go."""
        return self.destination is not None or (origin or 0) in self.origins

    def target(self, origin: int | None) -> MoveTarget:
        """The queue that a delivery of that origin goes to; it has one."""
        return self.destination or self.origins[origin or 0]

    def as_moved(self, delivery: Delivery, seq: int, fresh_id: bytes) -> Delivery:
        """The delivery as it enters its new queue."""
        queue_id = self.target(delivery.origin).queue_id
        if self.keeps_origin:
            return as_set_aside(delivery, queue_id, seq, self.now)
        return as_redriven(delivery, queue_id, seq, self.now, fresh_id, self.bodies.get(delivery.seq))
