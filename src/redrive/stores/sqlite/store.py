"""The embedded store: one SQLite file, or memory, for one process.

One connection writes, through group commit (`commit.py`); two others look without touching, each in a thread of its
own: one for what the engine needs to go on, one for what people ask, so that nobody's page stands before a receiver.
Durability is SQLite's own: WAL with `synchronous=FULL`, an fsync before every answer.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import apsw
import orjson
from typing_extensions import override

from redrive.engine.ports import (
    COUNTED_AT_ONCE,
    UNMEASURED,
    Change,
    Claim,
    ClaimRequest,
    ClaimResult,
    CommitMeter,
    Counts,
    Enqueued,
    Moved,
    MoveRequest,
    NewDelivery,
    NodeStore,
    OrderedPublication,
    Resource,
    Settled,
    Settlement,
    Swept,
    refuse_repeated,
)
from redrive.model.delivery import Delivery
from redrive.model.errors import StoreUnavailable
from redrive.model.log import LogEvent
from redrive.stores.seal import UNSEALED, Seal
from redrive.stores.sqlite import arrivals, claiming, documents, inspection, rows, settling
from redrive.stores.sqlite.checkpoint import Checkpointer
from redrive.stores.sqlite.commit import GroupCommit, touch
from redrive.stores.sqlite.file_hold import (
    FileHold,
    make_private,
    migrate,
    refuse_damaged,
    refuse_foreign,
    tighten,
)
from redrive.stores.sqlite.inspection import ReadingThread, as_look, as_read
from redrive.stores.sqlite.room import DiskReserve, grows
from redrive.stores.sqlite.telemetry import SqliteTelemetry, add_log_events
from redrive.stores.sqlite.transaction import IdSequences, Transaction

T = TypeVar("T")

_DAMAGES = (apsw.CorruptError, orjson.JSONDecodeError)

_WRITER_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",  # an fsync of the log at each commit: what is answered is on disk
    "cache_size = -65536",  # 64 MiB of pages: a claim's working set, and the memory bound that holds at any depth
    "temp_store = MEMORY",
)


class SqliteStore(SqliteTelemetry, NodeStore):
    """All that a node keeps, in a SQLite file, or in memory where `path` is None."""

    def __init__(
        self,
        path: Path | None,
        *,
        alone: bool = False,
        seal: Seal = UNSEALED,
        meter: CommitMeter = UNMEASURED,
    ) -> None:
        """Name the file; nothing is opened yet. Documents are kept as `seal` has them, and `meter` measures commits.

        A server has the file `alone`. Commands that read or write documents need no such thing.
        """
        self._path = path
        self._alone = alone
        self._seal = seal
        self._meter = meter
        self._file_hold: FileHold | None = None
        self._disk_reserve: DiskReserve | None = None  # None in memory, and for commands
        self._reads = 0  # under way

    @override
    async def open(self) -> None:
        """Open or create the file and bring its schema up to date.

        Raises:
            StoreUnavailable: It cannot be opened, or another server has it.
        """
        with contextlib.ExitStack() as undo:
            if self._path:
                make_private(self._path)
            if self._path and self._alone:
                self._file_hold = FileHold(self._path)
                undo.callback(self._file_hold.release)
            try:
                self.connection = apsw.Connection(str(self._path) if self._path else ":memory:")
                undo.callback(self.connection.close)
                self._prepare()
            except apsw.Error as error:
                raise self._unavailable(error) from error
            undo.pop_all()
        self._begin()
        if self._path:
            tighten(self._path)

    def _prepare(self) -> None:
        """Set the connection up, bring the schema up to date, and reserve numbers and room for a server."""
        self.connection.set_busy_timeout(5000)
        if self._path:
            refuse_foreign(self.connection, self._path)
        if self._path and self._alone:
            refuse_damaged(self.connection, self._path)
        # Without this, SQLite plans a statement anew for the values bound to it: 20 µs a claim instead of 8.
        self.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        for pragma in _WRITER_PRAGMAS:
            self.connection.execute(f"PRAGMA {pragma}")
        migrate(self.connection)
        if self._alone and self._seal.prefix:
            documents.reseal(self.connection, self._seal)
        self._id_sequences = IdSequences(self.connection)
        if self._alone:  # so that not even the first queue made costs a commit for its number
            self._id_sequences.reserve()
            if self._path:
                self._disk_reserve = DiskReserve(self._path, self.connection)

    def _begin(self) -> None:
        """Start what commits, copies the log and reads; a store in memory has but the one connection."""
        transaction = Transaction(self.connection.cursor(), self._id_sequences)
        self._commit = GroupCommit(
            self.connection,
            transaction,
            inline=self._path is None,
            disk_reserve=self._disk_reserve,
            meter=self._meter,
        )
        if self._path:
            keep_up = None if self._disk_reserve is None else self._disk_reserve.keep_up
            self._checkpointer = Checkpointer(self._path, self.connection, keep_up)
            self._reading_thread = ReadingThread(self._path, "redrive-read")
            self._looking_thread = ReadingThread(self._path, "redrive-look")

    @override
    async def close(self) -> None:
        """Finish the waiting calls and close the file."""
        await self._commit.close()
        self._id_sequences.give_back_unused()
        if self._path:
            self._checkpointer.close()
            self._reading_thread.close()
            self._looking_thread.close()
        self.connection.close()
        if self._disk_reserve is not None:
            self._disk_reserve.close()
        if self._file_hold is not None:
            self._file_hold.release()

    @override
    async def check(self) -> None:
        await self._commit.submit(touch, grows=True)

    @property
    @override
    def is_idle(self) -> bool:
        return self._commit.is_idle and not self._reads

    @override
    async def flush(self) -> None:
        """See `Store.flush`: the groups are answered in order, and so is what is read."""
        if not self._commit.is_idle:
            await self._commit.submit(lambda _: None)
        if self._reads:
            await self._read(lambda _: None)
            await self._look(lambda _: None)

    @override
    def deferring(self) -> contextlib.AbstractAsyncContextManager[None]:
        return self._commit.deferring()

    @override
    def listen(self, arrived: Callable[[int], None], changed: Callable[[str, str], None]) -> None:
        """One process has the file to itself: there is nobody to hear of."""

    # ---- documents --------------------------------------------------------------------------------------

    @override
    async def write(
        self,
        changes: Sequence[Change],
        new_deliveries: Sequence[NewDelivery] = (),
        log_events: Sequence[LogEvent] = (),
    ) -> list[int]:
        refuse_repeated(changes)
        sealed = self._seal.closed(changes)

        def run(transaction: Transaction) -> list[int]:
            versions = documents.write(transaction.cursor, sealed)
            arrivals.enqueue(transaction, new_deliveries)
            if log_events:
                add_log_events(log_events, transaction)
            return versions

        return await self._commit.submit(run, grows=grows(changes, new_deliveries, log_events))

    @override
    async def get(self, kind: str, key: str) -> Resource | None:
        resource = await self._read(functools.partial(documents.get, kind, key))
        return None if resource is None else self._seal.opened(resource)

    @override
    async def get_each(self, keys: Sequence[tuple[str, str]]) -> list[Resource]:
        resources = await self._read(functools.partial(documents.get_each, keys))
        return [self._seal.opened(resource) for resource in resources]

    @override
    async def find(self, kind: str, prefix: str, after: str = "", limit: int | None = None) -> list[Resource]:
        resources = await self._read(functools.partial(documents.find, kind, prefix, after, limit))
        return [self._seal.opened(resource) for resource in resources]

    @override
    async def kinds(self) -> set[str]:
        return await self._read(documents.kinds)

    @override
    async def new_id(self) -> int:
        """See `Store.new_id`: from memory, as far as the reserve is on disk."""
        drawn = self._id_sequences.drawn()
        if drawn is not None:
            return drawn
        number, reserved = await self._commit.submit(lambda _: self._id_sequences.next_to_keep())
        self._id_sequences.keep(reserved)
        return number

    # ---- deliveries -------------------------------------------------------------------------------------

    @override
    def enqueue(self, new_deliveries: Sequence[NewDelivery]) -> asyncio.Future[list[Enqueued]]:
        return self._commit.submit(
            lambda transaction: arrivals.enqueue(transaction, new_deliveries), grows=True
        )

    @override
    def publish(self, publications: Sequence[OrderedPublication]) -> asyncio.Future[list[Enqueued]]:
        return self._commit.submit(
            lambda transaction: arrivals.publish(transaction, publications), grows=True
        )

    @override
    def claim(self, request: ClaimRequest) -> asyncio.Future[ClaimResult]:
        return self._commit.submit(lambda transaction: claiming.claim(transaction, request))

    @override
    def settle(
        self,
        queue_id: int,
        settlements: Sequence[Settlement],
        now: int,
        *,
        ordered: bool,
        strict_lease: bool = False,
    ) -> asyncio.Future[list[Settled]]:
        strict = ordered or strict_lease
        return self._commit.submit(
            lambda transaction: settling.settle(transaction, queue_id, settlements, now, strict_lease=strict)
        )

    @override
    def extend(
        self, queue_id: int, claims: Sequence[Claim], now: int, *, ordered: bool, strict_lease: bool = False
    ) -> asyncio.Future[list[Settled]]:
        strict = ordered or strict_lease
        return self._commit.submit(
            lambda transaction: settling.extend(transaction, queue_id, claims, now, strict_lease=strict)
        )

    @override
    def move(self, request: MoveRequest) -> asyncio.Future[Moved]:
        return self._commit.submit(lambda transaction: arrivals.move(transaction, request))

    peek = as_read(inspection.peek)
    look = as_look(inspection.look)
    first_of_each = as_look(inspection.first_of_each)
    causes = as_look(inspection.causes)
    locate = as_look(inspection.locate)
    notes = as_read(rows.notes_of)
    notes_of_each = as_look(rows.notes_of_each)

    @override
    async def count(self, queue_id: int, now: int, at_most: int | None = None) -> Counts:

        def counting(cursor: apsw.Cursor) -> Counts:
            return inspection.count(cursor, queue_id, now, at_most)

        quick = at_most is not None and at_most <= COUNTED_AT_ONCE  # the engine is not held up by longer ones
        return await (self._read(counting) if quick else self._look(counting))

    count_each = as_look(inspection.count_each)

    @override
    async def oldest(self, queue_id: int) -> Delivery | None:
        first = await self.peek(queue_id, 1)
        return first[0] if first else None

    @override
    async def last_seq(self) -> int:
        return self._id_sequences.last

    @override
    async def purge(self, queue_id: int, seq_max: int, limit: int) -> int:
        return await self._commit.submit(
            lambda transaction: settling.purge(transaction, queue_id, seq_max, limit)
        )

    @override
    async def delay(self, queue_id: int, delay_ms: int, after_seq: int, limit: int) -> int | None:
        delays = functools.partial(arrivals.delay, queue_id, delay_ms, after_seq, limit)
        return await self._commit.submit(delays)

    occupied = as_read(inspection.occupied)

    @override
    async def sweep(self, queue_id: int, enqueued_before: int, now: int, limit: int) -> Swept:
        return await self._commit.submit(
            lambda transaction: settling.sweep(transaction.cursor, queue_id, enqueued_before, now, limit)
        )

    # ---- inside -----------------------------------------------------------------------------------------

    async def _read(self, look: Callable[[apsw.Cursor], T]) -> T:
        """Read what the engine needs to go on."""
        return await self._read_in(None if self._path is None else self._reading_thread, look)

    async def _look(self, look: Callable[[apsw.Cursor], T]) -> T:
        """Read what a person asked for."""
        return await self._read_in(None if self._path is None else self._looking_thread, look)

    async def _read_in(self, thread: ReadingThread | None, look: Callable[[apsw.Cursor], T]) -> T:
        """Run a look on a thread, behind all that was answered; without one, between transactions."""
        if thread is None:
            return await self._commit.submit(lambda transaction: look(transaction.cursor))
        self._reads += 1
        try:
            self._commit.deferral.commit()
            return await thread.run(look)
        except (apsw.Error, orjson.JSONDecodeError) as error:
            raise self._unavailable(error) from error
        finally:
            self._reads -= 1

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        if isinstance(error, _DAMAGES):
            advice = f"restore a backup, or save what can be read: sqlite3 {self._path} .recover"
            return StoreUnavailable(f"{self._path} is damaged ({error}); {advice}")
        return StoreUnavailable(f"cannot open {self._path}: {error}")
