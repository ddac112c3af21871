"""The store: everything that must survive, as the engine's own verbs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from redrive.engine.ports.documents import Change, Resource
from redrive.engine.ports.requests import (
    AttemptNote,
    Cause,
    Claim,
    ClaimRequest,
    Counts,
    Enqueued,
    Moved,
    MoveRequest,
    NewDelivery,
    Occupied,
    OrderedPublication,
    Settled,
    Settlement,
    Swept,
)
from redrive.model.claiming import ClaimResult
from redrive.model.delivery import Delivery
from redrive.model.log import LogEvent
from redrive.model.queue import DAY_MS

# Values for looking into queues without receiving: pages of deliveries, and why dead letters died.

COUNTED_AT_ONCE: Final = 10_000  # of each kind: 0.8 ms
COUNTED_TOGETHER_MAX: Final = 300_000  # dead letters that one look counts: 30 ms
COUNTED_MIN: Final = 1_000  # of each of what is counted together, however many there are


def fair_share(remaining: int, counts: int, count_max: int) -> int:
    """The number up to which the next of several counts goes, so that all of them come to `remaining` at most."""
    return min(count_max, max(COUNTED_MIN, remaining // max(1, counts)))


class CauseCount(NamedTuple):
    """The number of dead letters of a queue with one cause."""

    cause: Cause
    number: int  # Their number, as far as they were counted
    capped: bool  # Whether there are more than were counted
    first_seq: int  # Sequence number of the earliest one
    last_seq: int  # Sequence number of the latest one


@dataclass(frozen=True, slots=True)
class LookRequest:
    """A request for a page of a queue's deliveries, waiting or claimed, in order of arrival."""

    queue_id: int  # Queue it belongs to
    limit: int  # At most so many
    after_seq: int = 0  # Only what arrived later than this
    before_seq: int | None = None  # Only what arrived earlier than this; None: no bound
    newest_first: bool = False  # The page begins with what arrived last
    cause: Cause | None = None  # Only dead letters of this cause; None: everything
    seqs: Sequence[int] | None = None  # Only these sequence numbers; None: any. Not with `cause`.


class DocumentStore(Protocol):
    """The configuration, as documents; a change of it may let deliveries enter queues in the same transaction."""

    async def write(
        self,
        changes: Sequence[Change],
        new_deliveries: Sequence[NewDelivery] = (),
        log_events: Sequence[LogEvent] = (),
    ) -> list[int]:
        """Change documents, all of them or none, and let deliveries enter their queues in the same transaction.

        So that what log events lead to is owed if they are on disk, they are written down in it as well.

        Args:
            changes: Each names another document.
            new_deliveries: As of `enqueue`; repetitions enter nothing.
            log_events: As of `TelemetryStore.add_events`.

        Returns:
            For each change the version that is stored now; for a removal the one that was (0: there was none), and 0
            for a RequireNone.

        Raises:
            Conflict: A document is not at the version that was asked for. It names the first such; nothing was changed.
        """
        ...

    async def get(self, kind: str, key: str) -> Resource | None:
        """The document, or None."""
        ...

    async def get_each(self, keys: Sequence[tuple[str, str]]) -> list[Resource]:
        """The documents that exist of several, each named by its kind and key, in any order: one read."""
        ...

    async def find(self, kind: str, prefix: str, after: str = "", limit: int | None = None) -> list[Resource]:
        """Documents whose key begins with `prefix` and is greater than `after`, in byte order of the key."""
        ...

    async def kinds(self) -> set[str]:
        """The kinds that any document is of: one read, which costs a look at the index for each."""
        ...

    async def new_id(self) -> int:
        """A number never given before, for a queue. Drawn from a block that is reserved: most cost no commit."""
        ...


class MessageStore(Protocol):
    """The operations of a store that carry message bodies; `SealedStore` has each of them, and encrypts."""

    def enqueue(self, new_deliveries: Sequence[NewDelivery]) -> Awaitable[list[Enqueued]]:
        """Add deliveries, to one queue or several: all of them or none."""
        ...

    def publish(self, publications: Sequence[OrderedPublication]) -> Awaitable[list[Enqueued]]:
        """Publish to ordered topics, all or nothing; for a repetition, the original's id and place."""
        ...

    def claim(self, request: ClaimRequest) -> Awaitable[ClaimResult]:
        """Claim what is due, oldest first; what is exhausted or expired on the way is moved or removed."""
        ...

    def settle(
        self,
        queue_id: int,
        settlements: Sequence[Settlement],
        now: int,
        *,
        ordered: bool,
        strict_lease: bool = False,
    ) -> Awaitable[list[Settled]]:
        """End claims.

        Args:
            queue_id: Of the deliveries.
            settlements: How each ends.
            now: ms.
            ordered: Whether the queue keeps the order of groups.
            strict_lease: A claim that ran out can no longer be settled ("lapsed"); so it always is in an ordered queue.
                Else it can until the delivery is claimed anew: the work was done, and nobody else began.
        """
        ...

    def extend(
        self, queue_id: int, claims: Sequence[Claim], now: int, *, ordered: bool, strict_lease: bool = False
    ) -> Awaitable[list[Settled]]:
        """Let claims hold until their `until`; one that is over by `now` gives the delivery back. See `settle`.

        A delivery that is given back has its place again, before all that arrived later. One whose claim ran out stands
        where it would had it arrived then: otherwise work that always fails would keep newer deliveries from their turn.
        """
        ...

    def move(self, request: MoveRequest) -> Awaitable[Moved]:
        """See MoveRequest."""
        ...


class QueueStore(Protocol):
    """The contents of queues: read and counted without claims, and removed once unreachable."""

    async def peek(self, queue_id: int, limit: int, after_seq: int = 0) -> list[Delivery]:
        """Look, without touching: deliveries in order of arrival, waiting and claimed."""
        ...

    async def look(self, request: LookRequest) -> list[Delivery]:
        """A page of a queue for a person who asks: it never stands before what the engine reads. See LookRequest."""
        ...

    async def first_of_each(self, queue_ids: Sequence[int]) -> Mapping[int, Delivery]:
        """The delivery that arrived first in each of several queues; empty ones are left out. For a person who asks."""
        ...

    async def causes(
        self,
        queue_id: int,
        limit: int,
        count_max: int,
        together_max: int = COUNTED_TOGETHER_MAX,
        cause: Cause | None = None,
    ) -> list[CauseCount]:
        """The causes that the dead letters of a queue have, by origin and failure.

        Args:
            queue_id: Of the queue.
            limit: At most so many causes.
            count_max: Of each so many dead letters are counted: an index is read, 80 ns each.
            together_max: Of all so many, each of them its fair share of what those before it left (`fair_share`).
            cause: This cause alone; None: all.
        """
        ...

    async def locate(
        self, queue_ids: Sequence[int], message_id: bytes, text: bytes, limit: int
    ) -> tuple[list[Delivery], bool]:
        """Look for a message in several queues, among the `limit` deliveries that arrived first in each.

        A scan, for a person who asks. It finds what has that id, and what has the text in its headers: the deliveries of
        a published message have ids of their own, and the message's id in their headers.

        Returns:
            What was found, queue by queue; whether some queue has more deliveries than were looked at.
        """
        ...

    async def notes(self, queue_id: int, message_id: bytes) -> list[AttemptNote]:
        """The notes of a message's attempts in that queue, in their order: the first 10, the last 90."""
        ...

    async def notes_of_each(
        self, messages: Sequence[tuple[int, bytes]]
    ) -> Mapping[tuple[int, bytes], list[AttemptNote]]:
        """The notes of several messages, each named by its queue and its id; those without any are left out."""
        ...

    async def count(self, queue_id: int, now: int, at_most: int | None = None) -> Counts:
        """The numbers of deliveries by state; with `at_most`, as far as so many of each kind.

        To count a million takes 50 to 80 ms, so nothing but counts as far as `COUNTED_AT_ONCE` stands before what the
        engine reads.
        """
        ...

    async def count_each(self, queue_ids: Sequence[int], now: int, at_most: int) -> Mapping[int, Counts]:
        """The same of several queues, each as far as `at_most`, in one read: for a person who asks."""
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

    async def delay(self, queue_id: int, delay_ms: int, after_seq: int, limit: int) -> int | None:
        """Set the delay of unclaimed deliveries, counted from their arrival.

        Args:
            queue_id: Of the queue.
            delay_ms: What a new delivery waits there.
            after_seq: The deliveries that arrived after this place are looked at.
            limit: So many of them.

        Returns:
            The place of the last that was looked at, to go on after; None: there are no more.
        """
        ...

    async def occupied(self, after: int, limit: int) -> list[Occupied]:
        """The numbers greater than `after` under which anything is kept, in their order: some, as far as there are more.

        An index leads from number to number, so a queue that is empty costs nothing. A dead letter brings its age along,
        so the oldest delivery is looked for among the first `OLDEST_AMONG` by arrival.

        Args:
            after: A number; 0 for the beginning.
            limit: As many are looked for in each table; at most 5 times as many are returned.
        """
        ...

    async def sweep(self, queue_id: int, enqueued_before: int, now: int, limit: int) -> Swept:
        """Remove deliveries whose retention ended among the `limit` oldest, and up to `limit` memories of each kind.

        Memories are what deduplication, repeated claims and failed attempts need no longer.

        A claim checks the retention period as well; sweeping is for queues without receivers.
        """
        ...


class Store(DocumentStore, MessageStore, QueueStore, Protocol):
    """Everything that must survive. The contract suite (`tests/contracts/stores`) is its full promise."""

    async def open(self) -> None:
        """Connect, and bring the schema up to date."""
        ...

    async def close(self) -> None:
        """Finish the calls that have begun, and disconnect."""
        ...

    @property
    def is_idle(self) -> bool:
        """True if every call has been answered; False may be said at any time."""
        ...

    async def flush(self) -> None:
        """Return when every call made before this one has been answered."""
        ...

    def deferring(self) -> AbstractAsyncContextManager[None]:
        """Within it, what the task that entered it writes may be on disk only when it is left; so for tasks it begins.

        For work that has one answer, at its end. What others write meanwhile is on disk when they are answered, and with
        it all that was written before.
        """
        ...

    def listen(self, arrived: Callable[[int], None], changed: Callable[[str, str], None]) -> None:
        """Hear of other nodes: `arrived(queue_id)` of deliveries, `changed(kind, key)` of resources.

        Where it may have missed news, it says so: `arrived(0)` is any queue, `changed("", "")` any resource.
        Called before `open`. A store that serves one node never calls back.
        """
        ...

    async def check(self) -> None:
        """Write something small, the way a message is written: where this succeeds, messages are kept.

        Raises:
            StoreUnavailable: The store does not answer, or has no room.
        """
        ...


# Limits of stores: how much they do at once, and how long they remember; the same in every store.

# One transaction takes at most so many calls. Past some hundreds the fsync is paid for (under 1 µs a call) and a
# longer group only makes its first caller wait.
GROUP_CALLS_MAX: Final = 512

# One claim removes no more expired and exhausted deliveries than this on its way (about 10 ms in SQLite, 50 ms in
# PostgreSQL): whoever asked is told to come again at once, and in between the other callers have their turn.
REMOVALS_MAX: Final = 1000

# Deliveries whose claims ran out first, among which a claim takes those that arrived first.
BACK_AMONG: Final = 100

# Of 100,015 attempts nobody reads all; the first say how it began and the last how it ended.
NOTES_FIRST: Final = 10
NOTES_LAST: Final = 90

NOTES_KEPT_MS: Final = 14 * DAY_MS  # as long as a dead letter may be kept

# Deliveries of a queue, by arrival, among which its oldest is looked for. The first is the oldest but for dead letters.
OLDEST_AMONG: Final = 100
