"""The writing connection's transaction: its cursor, the numbers it gives, and the rows it writes at its end.

Plain arrivals are inserted at the end of their transaction, all by one statement. SQLite takes a row in 3 us. To find,
bind and reset its statement for each call that sends a single row took half as long again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final, TypeVar

import apsw

from redrive.engine.ports import ClaimRequest, Enqueued, NewDelivery
from redrive.model.claiming import ClaimShare
from redrive.model.delivery import LinePosition

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Numbers are handed out from memory; their reserved end is on disk, so they grow over restarts though every message
# may be gone. After a crash the rest of the block is skipped, and people see the gap: the ids of dead letters are these
# numbers. Reserving takes 10 us, so every 10,000 numbers it takes nothing.
BLOCK: Final = 10_000

_INSERT: Final = (
    "INSERT INTO deliveries (queue_id, seq, available_at, attempts, enqueued_at, sent_at, message_id, deduplication_id,"
    f" origin, headers, body, sealed, place) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,{int(LinePosition.READY)})"
)


class IdSequences:
    """Numbers that grow and are never given twice, over restarts and crashes."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        row = connection.execute("SELECT value FROM counters WHERE name = 'seq'").fetchone()
        self.last: int = row[0] if row else 0
        self._reserved = self.last
        self._kept = self.last  # reserved on disk, not only in a transaction that may be undone

    def next(self, count: int = 1) -> int:
        """Draw `count` numbers in a transaction; the first of them."""
        first = self.last + 1
        self.last += count
        if self.last > self._reserved:
            self._reserve(self.last + BLOCK)
        return first

    def reserve(self) -> None:
        """Reserve a block now, outside of transactions."""
        self._reserve(self.last + BLOCK)
        self._kept = self._reserved

    def drawn(self) -> int | None:
        """One more without a transaction, as far as the reserve is on disk."""
        if self.last >= self._kept:
            return None
        self.last += 1
        return self.last

    def next_to_keep(self) -> tuple[int, int]:
        """One more, in a transaction; also the end of the reserve, which is on disk once this is committed."""
        return self.next(), self._reserved

    def keep(self, reserved: int) -> None:
        """Numbers up to there are reserved on disk."""
        self._kept = reserved

    def undo(self) -> None:
        """The transaction was undone, and with it what it may have reserved."""
        self._reserved = self.last

    def give_back_unused(self) -> None:
        """Let the next start go on where this one ends; where the disk is full it skips what was reserved."""
        if self._reserved > self.last:
            with contextlib.suppress(apsw.Error):
                self._reserve(self.last)

    def _reserve(self, end: int) -> None:
        self._connection.execute("INSERT OR REPLACE INTO counters VALUES ('seq', ?)", (end,))
        self._reserved = end


# An arrival and its answer, which is changed to the original's where it turns out to be a repetition.
Grouped = tuple[NewDelivery, Enqueued]


class Transaction:
    """The transaction under way; the same object serves one after the other.

    Attributes:
        cursor: Runs statements in it.
        next_seq: Gives the next places of arrival, and returns the first.
        lapses: Which queues' claims may have run out.
        grouped: Arrivals that depend on others, being of a group or deduplicated, to be inserted in their order.
        orders: Claims that are filled at its end, by their queue: one look at its line for all of them.
    """

    __slots__ = ("_id_sequences", "_rows", "cursor", "grouped", "lapses", "next_seq", "orders")

    def __init__(self, cursor: apsw.Cursor, numbers: IdSequences) -> None:
        self.cursor = cursor
        self.next_seq = numbers.next
        self.lapses = Lapses()
        self._id_sequences = numbers
        self._rows: list[tuple[Any, ...]] = []  # arrivals, to be inserted together
        self.grouped: list[Grouped] = []
        self.orders: dict[int, list[ClaimShare[ClaimRequest]]] = {}

    def append(self, new_delivery: NewDelivery, seq: int) -> None:
        """Keep the row of a delivery without a group until the transaction ends.

        Statements of this transaction do not see it: its sender has had no answer yet, either.
        """
        enqueued_at = new_delivery.enqueued_at
        self._rows.append(
            (
                new_delivery.queue_id,
                seq,
                new_delivery.available_at,
                new_delivery.attempts,
                enqueued_at,
                enqueued_at,
                new_delivery.message_id,
                new_delivery.deduplication_id,
                new_delivery.origin,
                new_delivery.headers,
                new_delivery.body,
                new_delivery.sealed,
            )
        )

    def finish(self) -> None:
        """Insert the rows that were taken along, in the order they came in."""
        if self._rows:
            these, self._rows = self._rows, []
            self.cursor.executemany(_INSERT, these)

    def undo(self) -> None:
        """Forget what was remembered outside the database of a transaction that was undone."""
        self._rows = []
        self.grouped = []
        self.orders = {}
        self._id_sequences.undo()
        self.lapses.forget()


# Claims that may have run out: for each queue a moment before which none does, so that a claim need not look for any.
#
# To look takes 4 us, of a claim's 30. Where claims are ended before they run out, it is done once in as many seconds as
# they last for.

_REMEMBERED_MAX: Final = 10_000  # queues; forgetting them all costs each one look
_UNKNOWN: Final = 0
_NEVER: Final = 2**63 - 1


class Lapses:
    """The moments before which no claims of a process's store end."""

    def __init__(self) -> None:
        self._none_before: dict[int, int] = {}

    def possible(self, queue_id: int, now: int) -> bool:
        """True if a claim of this queue may have run out, or may have been given back."""
        return self._none_before.get(queue_id, _UNKNOWN) <= now

    def claimed(self, queue_id: int, until: int) -> None:
        """Something of this queue is claimed until then (ms), perhaps no longer than that."""
        if self._none_before.get(queue_id, _UNKNOWN) > until:
            self._none_before[queue_id] = until

    def found_none(self, queue_id: int, next_at: int | None) -> None:
        """No claim of this queue had run out; the first of them does at `next_at` (ms), if there is any."""
        if len(self._none_before) >= _REMEMBERED_MAX:
            self._none_before.clear()
        self._none_before[queue_id] = _NEVER if next_at is None else next_at

    def forget_queue(self, queue_id: int) -> None:
        """Know nothing of a queue any more, which costs the next claim a look."""
        self._none_before.pop(queue_id, None)

    def forget(self) -> None:
        """Begin anew: a transaction was undone, and what was learnt in it may be wrong."""
        self._none_before.clear()


# Deferral: calls that need not be on disk when they are answered share a transaction, which stays open between them.
#
# A simulated clock answers once, when all that fell due is done: 100,000 attempts one after the other would be 200,000
# commits, each of ten pages and an fsync. Whoever wants more ends the open transaction first: a call that is to be on
# disk when it is answered, the connection that reads, and other processes, which wait for a moment.

CALLS_MAX: Final = 1_000  # of one transaction: a crash of the process loses so many of them at most
# Commands of other processes that write wait as long, and give up after five seconds.
OPEN_SECONDS: Final = 0.05

#: True in the task that defers, and in all that it sets off.
_DEFERS: Final[ContextVar[bool]] = ContextVar("defers", default=False)


class Deferral:
    """The open transaction of one connection."""

    def __init__(
        self, connection: apsw.Connection, loop: asyncio.AbstractEventLoop, on_undo: Callable[[], None]
    ) -> None:
        """Begin with none; `loop` ends it in time, and `on_undo` is called when all that was done in it was undone."""
        self._on_undo = on_undo
        self._connection = connection
        self._cursor = connection.cursor()
        self._loop = loop
        self._deferring = 0
        self._calls = 0
        self._timer: asyncio.TimerHandle | None = None  # Ends the open transaction; None: none is open

    @property
    def applies(self) -> bool:
        """True if a call that is made now is deferred."""
        return self._deferring > 0 and _DEFERS.get()

    @contextlib.contextmanager
    def defer(self) -> Iterator[None]:
        """Defer what this task does, and what it sets off, until this is left."""
        token = _DEFERS.set(True)
        self._deferring += 1
        try:
            yield
        finally:
            self._deferring -= 1
            _DEFERS.reset(token)

    def run(self, work: Callable[[], T]) -> T:
        """Do some work in the open transaction; where it fails, what it changed is undone, and nothing else."""
        if self._timer is None:
            self._open()
        self._cursor.execute("SAVEPOINT work")
        try:
            result = work()
        except BaseException:
            if self._connection.in_transaction:
                self._cursor.execute("ROLLBACK TO work")
            self.commit()  # before `GroupCommit` undoes what is open: earlier calls in it were answered
            raise
        self._cursor.execute("RELEASE work")
        self._calls += 1
        if self._calls >= CALLS_MAX:
            self.commit()
        return result

    def commit(self) -> None:
        """End the open transaction, if there is one.

        Raises:
            apsw.Error: It was undone. What was answered meanwhile happens again, as after a crash.
        """
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        try:
            if self._connection.in_transaction:
                self._cursor.execute("COMMIT")
        except apsw.Error:
            if self._connection.in_transaction:
                self._cursor.execute("ROLLBACK")
            self._on_undo()
            raise
        finally:
            self._cursor.execute("PRAGMA synchronous = FULL")

    def _open(self) -> None:
        """Open a transaction whose commit does not wait for the disk, for `OPEN_SECONDS` at most."""
        # the log is not synced, until a commit that is FULL
        self._cursor.execute("PRAGMA synchronous = NORMAL")
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except apsw.Error:
            self._cursor.execute("PRAGMA synchronous = FULL")
            raise
        self._calls = 0
        self._timer = self._loop.call_later(OPEN_SECONDS, self._open_for_long)

    def _open_for_long(self) -> None:
        try:
            self.commit()
        except apsw.Error as error:
            logger.warning("store.deferred_undone calls=%d error=%s", self._calls, error)
