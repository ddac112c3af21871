"""Values that the engine hands to a store, and gets back."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from redrive.engine.ports.sealing import Sealer
from redrive.model.delivery import DeadLetterReason, Delivery, Limits, Outcome
from redrive.model.entering import as_redriven, as_set_aside
from redrive.model.queue import CopyTarget


@dataclass(slots=True)
class NewDelivery:
    """A delivery about to enter a queue.

    Attributes:
        ordered: Whether the queue keeps the order of groups.
        deduplication_key: What a repetition is recognised by in this queue; None: not deduplicated.
        deduplicate_until: How long (ms since the epoch) the key is remembered.
        origin: For a dead letter that could not even be tried: the queue it would have stood in.
        attempts: How many attempts it has behind it.
        note: What came of the last of them.
        sealer: Encrypts it on its way into the store; None: it is stored as it is.
        The others are those of Delivery.
    """

    queue_id: int
    message_id: bytes
    body: str
    headers: bytes | None
    available_at: int
    enqueued_at: int
    group_id: str | None = None
    ordered: bool = False
    deduplication_id: str | None = None
    deduplication_key: str | None = None
    deduplicate_until: int = 0
    origin: int | None = None
    attempts: int = 0
    note: "AttemptNote | None" = None
    sealer: Sealer | None = None

    def row(self, seq: int) -> tuple[Any, ...]:
        """The attributes of its `Delivery`, in their order; nobody has claimed it."""
        return (
            self.queue_id,
            seq,
            self.available_at,
            self.attempts,
            None,
            self.enqueued_at,
            self.enqueued_at,
            None,
            self.message_id,
            self.group_id,
            self.deduplication_id,
            self.origin,
            self.headers,
            self.body,
            self.failure,
        )

    @property
    def failure(self) -> str | None:
        """The cause of its death, if it is a dead letter."""
        return None if self.origin is None or self.note is None else self.note.failure


@dataclass(frozen=True, slots=True)
class OrderedPublication:
    """One publication to an ordered topic: its deliveries enter their queues unless it is a repetition.

    Attributes:
        topic_id: What the key is unique within.
        key: What a repetition is recognised by.
        now: ms.
        until: How long (ms since the epoch) the key is remembered.
        message_id: Of the publication.
        new_deliveries: Its deliveries. Their headers, which are JSON objects, get the publication's own place as a first
            member, `"sequence"`.
    """

    topic_id: int
    key: str
    now: int
    until: int
    message_id: bytes
    new_deliveries: Sequence[NewDelivery]

    def opened(self, seq: int) -> list[NewDelivery]:
        """The deliveries, told the publication's place; new ones, since a store may have to begin again."""
        return [
            replace(new_delivery, headers=_with_sequence(new_delivery.headers, seq))
            for new_delivery in self.new_deliveries
        ]


def _with_sequence(headers: bytes | None, seq: int) -> bytes:
    members = (headers or b"{}")[1:]
    return b'{"sequence":%d%b%b' % (seq, b"" if members == b"}" else b",", members)


class Cause(NamedTuple):
    """The common cause of several dead letters of a queue.

    Attributes:
        origin: The number of the queue they failed in.
        failure: Why: see `Delivery.failure`.
    """

    origin: int
    failure: str


class AttemptNote(NamedTuple):
    """The note of an attempt that failed.

    Attributes:
        number: Which attempt it was, from 1.
        at: When it ended (ms).
        duration_ms: How long it took.
        reason: Why it failed; see `redrive.model.attempt.Reason`.
        status: The endpoint's status code, or 0.
        response: What the endpoint said, shortened.
    """

    number: int
    at: int
    duration_ms: int
    reason: str
    status: int
    response: str

    @property
    def failure(self) -> str:
        """The cause of death of a dead letter whose last attempt this was: `server_error 503`, or `timed_out` alone."""
        return f"{self.reason} {self.status}" if self.status else self.reason


class Enqueued(NamedTuple):
    """The result of enqueueing a delivery; for a repetition, the id and sequence number of the original."""

    message_id: bytes
    seq: int
    repeated: bool


@dataclass(frozen=True, slots=True)
class MoveTarget:
    """A queue that deliveries are moved to.

    Attributes:
        queue_id: Which.
        ordered: Whether it keeps the order of groups.
        copies: For dead letters: where a copy of each goes as well, see `redrive.model.entering.as_copy`. For ends that
            the store itself decides, in a claim; why `Settlement.follow_ups` does not do for them: decision 0009.
    """

    queue_id: int
    ordered: bool
    copies: CopyTarget | None = None


_UNLIMITED = Limits()


@dataclass(slots=True)
class ClaimRequest:
    """A request for deliveries of one queue.

    Attributes:
        limit: At most so many.
        lease_ms: How long the claim holds.
        token: Fresh; all deliveries of one claim carry it.
        limits: Retention, and how many claims a delivery may have.
        dead_letters_to: Where a delivery goes that has had all its claims.
        attempt_id: An ordered queue's receiver may repeat a claim whose answer got lost: the same id within
            five minutes gets the same deliveries under the same token, if none of them changed.
        resumes: A claim that ran out unsettled is tried again as the same attempt, uncounted: for deliveries that
            Redrive pushes, whose node died. Without it every claim counts, as SQS counts receives.
        rate_max: Claims a second over all nodes; None: no limit.
        looks_ahead: Where fewer than `limit` were claimed, the answer says when the next delivery falls due: for a
            consumer who need not claim again to learn it. Not with `rate_max`.
        claims_nothing: Only what is exhausted or expired among the `limit` first of the line is sent where it goes:
            for queues that nobody receives from.
    """

    queue_id: int
    ordered: bool
    limit: int
    now: int
    lease_ms: int
    token: int
    limits: Limits = _UNLIMITED
    dead_letters_to: MoveTarget | None = None
    attempt_id: str | None = None
    resumes: bool = False
    rate_max: int | None = None
    claims_nothing: bool = False
    looks_ahead: bool = False


class Claim(NamedTuple):
    """A claim that a caller says it holds.

    Attributes:
        seq: Of which delivery.
        token: The claim's.
        until: Where it is to hold on: until when (ms).
    """

    seq: int
    token: int
    until: int = 0


class Settlement(NamedTuple):
    """The end of one claim.

    Attributes:
        seq: Which delivery.
        token: The claim's token.
        outcome: What `decide` said; RETRY needs `available_at`, DEAD_LETTERED needs `target`. DELIVERED with a
            `target` hands the message to that queue as a new delivery.
        note: What to remember of the attempt; what is remembered goes when the delivery ends otherwise than in a
            dead-letter queue.
        follow_ups: Deliveries that enter their queues in the same transaction, if the claim is met; never for RETRY.
        as_new: A dead letter is sent to its queue like any message; else its age and its attempts go on there.
        content: The body and the headers that it enters its target with; None: those that it has in the store.
        reason: The reason that it is a dead letter now, where no attempt's note says it.
    """

    seq: int
    token: int
    outcome: Outcome = Outcome.DELIVERED
    available_at: int = 0
    target: MoveTarget | None = None
    note: AttemptNote | None = None
    follow_ups: Sequence[NewDelivery] = ()
    as_new: bool = False
    content: tuple[str, bytes | None] | None = None
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
    """The result of a move.

    Attributes:
        per_queue: How many arrived in which queue.
        left: Whether deliveries remain that could be moved now.
        became: Where each is now, by the place it left.
    """

    per_queue: Mapping[int, int]
    left: bool
    became: Mapping[int, MovedTo] = MappingProxyType({})

    @property
    def total(self) -> int:
        """The number that moved in all."""
        return sum(self.per_queue.values())


class Occupied(NamedTuple):
    """A number under which something is stored, and the times from which a sweep may find something there.

    Attributes:
        queue_id: The number: of a queue, of a subscription's backlog, of a topic's archive.
        oldest_at: When the oldest of its first deliveries entered (ms); None: it has none.
        memories_end_at: When the first memory kept beside its deliveries is of no more use (ms); None: it has none.
    """

    queue_id: int
    oldest_at: int | None
    memories_end_at: int | None


def merge_occupied(
    oldest: Sequence[tuple[int, int]], memories: Sequence[Sequence[tuple[int, int]]], limit: int
) -> list[Occupied]:
    """Merges what was found under numbers in several tables into one list, in the order of the numbers.

    Args:
        oldest: Numbers in their order, with the moment of their oldest delivery.
        memories: The same of each table of memories, with the moment at which the first of them ends.
        limit: A table that gave so many may have more: what follows its last number is left to the next look.
    """
    last = min((occupied[-1][0] for occupied in (oldest, *memories) if len(occupied) >= limit), default=None)
    entered = dict(oldest)
    ended: dict[int, int] = {}
    for queue_id, moment in itertools.chain(*memories):
        ended[queue_id] = min(moment, ended.get(queue_id, moment))
    numbers = sorted(entered.keys() | ended.keys())
    return [
        Occupied(queue_id, entered.get(queue_id), ended.get(queue_id))
        for queue_id in numbers
        if last is None or queue_id <= last
    ]


class Swept(NamedTuple):
    """The result of a sweep.

    Attributes:
        deliveries: How many went.
        left: Whether there may be more to remove, of deliveries or of what is remembered beside them.
    """

    deliveries: int
    left: bool


@dataclass(slots=True)
class MoveRequest:
    """A request to take deliveries out of a queue and send them as new ones to another, or each to its origin.

    Attributes:
        queue_id: From here.
        limit: At most so many, oldest first; claimed and delayed ones stay.
        seq_max: None that arrived later than this.
        destination: Where to; None: to `origins[delivery.origin]`; a delivery whose origin is not there stays.
        message_ids: Fresh ids, `limit` of them: what moves is a new message.
        seqs: Only these, also from behind others of their group; None: whatever is in the line.
        cause: Only dead letters of this cause, in order of arrival, also from behind others of their message group.
        excepted: Of a cause, all but these; at most a hundred.
        bodies: Other bodies for some of `seqs`.
        keeps_origin: They stay dead letters, with their ids: they are set aside, not sent.
    """

    queue_id: int
    ordered: bool
    limit: int
    now: int
    seq_max: int
    message_ids: Sequence[bytes]
    destination: MoveTarget | None = None
    origins: Mapping[int, MoveTarget] = field(default_factory=dict)
    seqs: Sequence[int] | None = None
    cause: Cause | None = None
    excepted: Sequence[int] = ()
    bodies: Mapping[int, str] = field(default_factory=dict)
    keeps_origin: bool = False

    @property
    def chooses(self) -> bool:
        """True if the messages are chosen, and not whatever the line has at its front."""
        return self.seqs is not None or self.cause is not None

    def goes_home(self, origin: int | None) -> bool:
        """True if a delivery of that origin has somewhere to go."""
        return self.destination is not None or (origin or 0) in self.origins

    def target(self, origin: int | None) -> MoveTarget:
        """The queue that a delivery of that origin goes to; it has one."""
        return self.destination or self.origins[origin or 0]

    def moved(self, delivery: Delivery, seq: int, fresh_id: bytes) -> Delivery:
        """The delivery as it enters its new queue."""
        queue_id = self.target(delivery.origin).queue_id
        if self.keeps_origin:
            return as_set_aside(delivery, queue_id, seq, self.now)
        return as_redriven(delivery, queue_id, seq, self.now, fresh_id, self.bodies.get(delivery.seq))
