"""What the engine needs of the world: a store, a clock and chance.

A store speaks in the engine's verbs, in batches, and never asks the time: every verb that depends on it takes
`now` (milliseconds since the epoch, UTC). Three promises hold for each verb that changes something:

* it is one transaction: all of it or nothing;
* when its awaitable is done, the change is on disk;
* a delivery that was claimed is only touched by the claim's own token.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from redrive.model.attempt import Attempt
from redrive.model.delivery import Delivery, Ending, Limits, Schedule
from redrive.model.queue import Queue, ResourceName
from redrive.model.topic import Subscription, Topic

# ---- the runtime -----------------------------------------------------------------------------------------


class Timer(Protocol):
    """A call that was asked for at a later moment."""

    def cancel(self) -> None:
        """Do not make the call; harmless after it was made."""
        ...


class Clock(Protocol):
    """The time, as a thing that can be handed over and simulated."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def call_at(self, at: int, call: Callable[[], None]) -> Timer:
        """Make a call at that moment (ms), or at the next turn of the loop when it has passed."""
        ...

    async def sleep_until(self, at: int) -> None:
        """Return at that moment (ms)."""
        ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """Time, chance and the name of this node, handed to every part that needs one."""

    clock: Clock
    chance: random.Random
    node: str

    def message_id(self) -> bytes:
        """A fresh message id: 16 random bytes with the marks of a version 4 UUID."""
        raw = self.chance.randbytes(16)
        return raw[:6] + _VERSION[raw[6]] + raw[7:8] + _VARIANT[raw[8]] + raw[9:]

    def token(self) -> int:
        """A fresh claim token, 63 random bits."""
        return self.chance.getrandbits(63)


# What a random byte becomes at the two places where a UUID says of what kind it is: looked up, since an id is made
# for every message and arithmetic on 128 bits takes four times as long.
_VERSION = [bytes((byte & 0x0F | 0x40,)) for byte in range(256)]
_VARIANT = [bytes((byte & 0x3F | 0x80,)) for byte in range(256)]

# ---- documents: topics, subscriptions, queues' attributes, tasks, keys … ------------------------------------


class Resource(NamedTuple):
    """One small configuration document.

    Attributes:
        kind: `queue`, `task`, `access_key` …
        key: Unique within the kind; listed in byte order.
        version: Grows by one with every change; 0 for one that is not stored yet.
        document: JSON-ready.
    """

    kind: str
    key: str
    version: int
    document: Mapping[str, Any]


# ---- deliveries ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Arrival:
    """A delivery about to enter a queue.

    Attributes:
        ordered: Whether the queue keeps the order of groups.
        deduplication_key: What a repetition is recognised by in this queue; None: not deduplicated.
        deduplicate_until: How long (ms since the epoch) the key is remembered.
        origin: For a dead letter that could not even be tried: the queue it would have stood in.
        attempts: How many attempts it has behind it.
        note: What came of the last of them.
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


@dataclass(frozen=True, slots=True)
class Gate:
    """One publication to an ordered topic: its deliveries enter their queues unless it is a repetition.

    Attributes:
        topic_id: What the key is unique within.
        key: What a repetition is recognised by.
        now: ms.
        until: How long (ms since the epoch) the key is remembered.
        message_id: Of the publication.
        arrivals: Its deliveries. Their headers, which are JSON objects, get the publication's own place as a first
            member, `"sequence"`.
    """

    topic_id: int
    key: str
    now: int
    until: int
    message_id: bytes
    arrivals: Sequence[Arrival]

    def opened(self, seq: int) -> list[Arrival]:
        """The deliveries, told the publication's place; new ones, since a store may have to begin again."""
        return [replace(one, headers=_with_sequence(one.headers, seq)) for one in self.arrivals]


def _with_sequence(headers: bytes | None, seq: int) -> bytes:
    members = (headers or b"{}")[1:]
    return b'{"sequence":%d%b%b' % (seq, b"" if members == b"}" else b",", members)


class AttemptNote(NamedTuple):
    """What is remembered of an attempt that failed.

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


class Enqueued(NamedTuple):
    """What became of an arrival; for a repetition, the id and place of the original."""

    message_id: bytes
    seq: int
    repeated: bool


@dataclass(frozen=True, slots=True)
class Target:
    """A queue that deliveries are moved to."""

    queue_id: int
    ordered: bool


_UNLIMITED = Limits()


@dataclass(slots=True)
class ClaimOrder:
    """A wish for deliveries of one queue.

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
    """

    queue_id: int
    ordered: bool
    limit: int
    now: int
    lease_ms: int
    token: int
    limits: Limits = _UNLIMITED
    dead_letters_to: Target | None = None
    attempt_id: str | None = None
    resumes: bool = False
    rate_max: int | None = None


@dataclass(slots=True)
class Claimed:
    """What a claim brought.

    Attributes:
        deliveries: Claimed now, in the queue's order.
        dead_lettered: How many went to the dead-letter queue on the way.
        expired: How many were out of their retention period.
        next_at: When nothing was claimed: the moment (ms) the next waiting delivery falls due, if there is one.
    """

    deliveries: list[Delivery] = field(default_factory=list)
    dead_lettered: int = 0
    expired: int = 0
    next_at: int | None = None


class Settlement(NamedTuple):
    """The end of one claim.

    Attributes:
        seq: Which delivery.
        token: The claim's token.
        ending: What `decide` said; RETRY needs `available_at`, DEAD_LETTERED needs `target`. DELIVERED with a
            `target` hands the message to that queue as a new delivery.
        note: What to remember of the attempt; what is remembered goes when the delivery ends otherwise than in a
            dead-letter queue.
    """

    seq: int
    token: int
    ending: Ending = Ending.DELIVERED
    available_at: int = 0
    target: Target | None = None
    note: AttemptNote | None = None


class Settled(NamedTuple):
    """How a settlement or an extension was met."""

    done: bool
    reason: str = (
        ""  # "gone": no such delivery; "superseded": claimed anew since; "lapsed": the claim ran out
    )


class Counts(NamedTuple):
    """How many deliveries of a queue may be claimed now, are in flight, and wait for a later moment."""

    available: int
    claimed: int
    delayed: int


class Moved(NamedTuple):
    """What a move brought.

    Attributes:
        per_queue: How many arrived in which queue.
        left: Whether deliveries remain that could be moved now.
    """

    per_queue: Mapping[int, int]
    left: bool

    @property
    def total(self) -> int:
        """How many moved in all."""
        return sum(self.per_queue.values())


@dataclass(slots=True)
class MoveOrder:
    """Take deliveries out of a queue and send them as new ones to another, or each to its origin.

    Attributes:
        queue_id: From here.
        limit: At most so many, oldest first; claimed and delayed ones stay.
        seq_max: None that arrived later than this.
        destination: Where to; None: to `origins[delivery.origin]`; a delivery whose origin is not there stays.
        message_ids: Fresh ids, `limit` of them: what moves is a new message.
        seqs: Only these, also from behind others of their group; None: whatever is in the line.
    """

    queue_id: int
    ordered: bool
    limit: int
    now: int
    seq_max: int
    message_ids: Sequence[bytes]
    destination: Target | None = None
    origins: Mapping[int, Target] = field(default_factory=dict)
    seqs: Sequence[int] | None = None


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


class Store(Protocol):
    """Everything that must survive. The contract suite (`tests/contracts/stores`) is its full promise."""

    async def open(self) -> None:
        """Connect, and bring the schema up to date."""
        ...

    async def close(self) -> None:
        """Finish what was begun and let go."""
        ...

    async def flush(self) -> None:
        """Return when every call made before this one has been answered."""
        ...

    def listen(self, arrived: Callable[[int], None], changed: Callable[[str, str], None]) -> None:
        """Hear of other nodes: `arrived(queue_id)` of deliveries, `changed(kind, key)` of resources.

        Where it may have missed news, it says so: `arrived(0)` is any queue, `changed("", "")` any resource.
        Called before `open`. A store that serves one node never calls back.
        """
        ...

    # documents

    async def put(self, resource: Resource) -> int:
        """Write a document whose stored version is `resource.version` (0: not there yet); its new version.

        Raises:
            Conflict: Another version is stored.
        """
        ...

    async def get(self, kind: str, key: str) -> Resource | None:
        """The document, or None."""
        ...

    async def find(self, kind: str, prefix: str, after: str = "", limit: int | None = None) -> list[Resource]:
        """Documents whose key begins with `prefix` and is greater than `after`, in byte order of the key."""
        ...

    async def remove(self, kind: str, key: str) -> bool:
        """Forget a document; whether it was there."""
        ...

    async def new_id(self) -> int:
        """A number never given before, for a queue."""
        ...

    # deliveries

    def enqueue(self, arrivals: Sequence[Arrival]) -> Awaitable[list[Enqueued]]:
        """Add deliveries, to one queue or several: all of them or none."""
        ...

    def publish(self, gates: Sequence[Gate]) -> Awaitable[list[Enqueued]]:
        """Publish to ordered topics, all or nothing; for a repetition, the original's id and place."""
        ...

    def claim(self, order: ClaimOrder) -> Awaitable[Claimed]:
        """Claim what is due, oldest first; what is exhausted or expired on the way is moved or removed."""
        ...

    def settle(
        self, queue_id: int, settlements: Sequence[Settlement], now: int, *, ordered: bool
    ) -> Awaitable[list[Settled]]:
        """End claims. In an ordered queue a claim that ran out can no longer be settled ("lapsed").

        In an unordered one it can until the delivery is claimed anew: the work was done, and nobody else began.
        """
        ...

    def extend(
        self, queue_id: int, claims: Sequence[tuple[int, int, int]], now: int, *, ordered: bool
    ) -> Awaitable[list[Settled]]:
        """Let claims `(seq, token, until)` hold until then (ms); `until <= now` gives the delivery back."""
        ...

    def move(self, order: MoveOrder) -> Awaitable[Moved]:
        """See MoveOrder."""
        ...

    async def peek(self, queue_id: int, limit: int, after_seq: int = 0) -> list[Delivery]:
        """Look, without touching: deliveries in order of arrival, waiting and claimed."""
        ...

    async def notes(self, queue_id: int, message_id: bytes) -> list[AttemptNote]:
        """What is remembered of a message's attempts in that queue, in their order: the first 10, the last 90."""
        ...

    async def count(self, queue_id: int, now: int) -> Counts:
        """How many there are."""
        ...

    async def oldest(self, queue_id: int) -> Delivery | None:
        """The delivery that arrived first."""
        ...

    async def last_seq(self) -> int:
        """The largest seq given so far."""
        ...

    async def purge(self, queue_id: int, seq_max: int, limit: int) -> int:
        """Remove up to `limit` deliveries that arrived no later than `seq_max`; how many went."""
        ...

    async def sweep(self, queue_id: int, enqueued_before: int, now: int, limit: int) -> int:
        """Remove deliveries whose retention ended among the `limit` oldest, and what deduplication may forget.

        A claim checks the retention period as well; sweeping is for queues that nobody receives from.
        """
        ...
