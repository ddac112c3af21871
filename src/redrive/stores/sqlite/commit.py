"""Group commit: calls that arrive together share one transaction and one fsync.

Statements run on the event loop's own thread and only COMMIT runs beside it. SQLite's statements are a few
microseconds of CPU under the interpreter's lock wherever they run, so a second thread would win nothing for them
and pay a hand-over of the lock at every one; the fsync waits for the disk (0.2 ms and more) without the lock, and
while it does, the loop reads the next requests. They form the next transaction: the busier, the larger the group,
so the cost of the disk per call falls as load grows.

    waiting calls ──begin, run each──► open transaction ──commit thread──► on disk ──► each caller's answer
         ▲                                                                    │
         └────────────── calls that arrived meanwhile ◄───────────────────────┘

A group of nothing but deferred calls is answered at once, and committed later: see `transaction.Deferral`.
"""

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

import apsw

from redrive.engine.ports import GROUP_CALLS_MAX, UNMEASURED, CommitMeter
from redrive.model.errors import RedriveError, StoreUnavailable
from redrive.stores.sqlite.arrivals import insert_grouped
from redrive.stores.sqlite.claiming import fill_orders
from redrive.stores.sqlite.room import NO_ROOM, DiskReserve
from redrive.stores.sqlite.transaction import Deferral, Transaction

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Turns of the loop between a group and the next one that waits already. Who has just been answered comes again within
# them, and shares the next commit instead of waiting for the one after: 6 % more sends and 4 % more lives of messages a
# second over 32 connections. A turn is about 5 us, and a lone caller has none.
GATHER_TURNS = 10

_TOUCH: Final = "INSERT INTO counters VALUES ('check', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"

_COMMIT, _END = True, False  # what the commit thread may be told


class _WriteCall(NamedTuple):
    run: Callable[[Transaction], Any]
    answer: asyncio.Future[Any]
    deferred: bool
    grows: bool


class GroupCommit:
    """Runs calls on one connection, many to a transaction; each is answered when it is on disk."""

    def __init__(
        self,
        connection: apsw.Connection,
        transaction: Transaction,
        *,
        inline: bool,
        disk_reserve: DiskReserve | None = None,
        meter: CommitMeter = UNMEASURED,
    ) -> None:
        """Take over a connection, which the caller must not use from now on; calls get its transaction.

        A store in memory, which has no disk to wait for, commits `inline`, on the loop's thread. Without `disk_reserve`
        the room on the disk is not checked; `meter` measures the commits that wait for a disk.
        """
        self._connection = connection
        self._transaction = transaction
        self._cursor = transaction.cursor
        self._inline = inline
        self._disk_reserve = disk_reserve
        self._meter = meter
        self._waiting: deque[_WriteCall] = deque()
        self._group: list[tuple[_WriteCall, Any]] = []
        self._busy = False
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._loop = asyncio.get_running_loop()
        self.deferral = Deferral(connection, self._loop, transaction.undo)
        self._jobs: SimpleQueue[bool] = SimpleQueue()
        self._thread = threading.Thread(target=self._commit_forever, name="redrive-commit", daemon=True)
        if not inline:
            self._thread.start()

    def submit(self, run: Callable[[Transaction], T], *, grows: bool = False) -> "asyncio.Future[T]":
        """Run a call in the next transaction; the future is done when that is on disk.

        An exception of the family RedriveError is the call's answer and must come before its first change.

        Args:
            run: The call.
            grows: It makes the store grow, and is refused where there is no room.
        """
        answer: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            answer.set_exception(StoreUnavailable("the store is closed"))
            return answer
        self._waiting.append(_WriteCall(run, answer, self.deferral.applies, grows))
        if not self._busy:
            self._busy = True
            self._idle.clear()
            self._loop.call_soon(self._next_group)
        return answer

    @property
    def is_idle(self) -> bool:
        """True if every call was answered."""
        return not self._busy

    @contextlib.asynccontextmanager
    async def deferring(self) -> AsyncIterator[None]:
        """See `Store.deferring`: the last commit syncs the log, and with it all that was written before."""
        try:
            with self.deferral.defer():
                yield
        finally:
            await self.submit(touch)

    async def close(self) -> None:
        """Finish what is waiting, then refuse."""
        self._closed = True
        await self._idle.wait()
        self.deferral.commit()
        if not self._inline:
            self._jobs.put(_END)
            self._thread.join()

    # ---- one group --------------------------------------------------------------------------------------

    def _next_group(self) -> None:
        """Run the calls that wait in one transaction, and commit it; on the thread, where there is a disk to wait for."""
        calls = [call for call in self._take_calls() if not call.answer.done()]  # the others were given up
        if self._disk_reserve is not None and self._disk_reserve.is_short:
            calls = [call for call in calls if not self._refused(call)]
        if calls and calls[0].deferred and all(call.deferred for call in calls):
            self._run_deferred(calls)
            return
        changes = self._connection.total_changes()
        try:
            self.deferral.commit()
            self._group = self._run_together(calls)
        except apsw.Error as error:
            self._fail(calls, error)
            return
        if self._inline or self._connection.total_changes() == changes:
            self._commit_here(calls)
        else:
            self._jobs.put(_COMMIT)

    def _take_calls(self) -> Iterable[_WriteCall]:
        """Take the calls of the next group out of the line."""
        waiting = self._waiting
        if len(waiting) > GROUP_CALLS_MAX:
            return [waiting.popleft() for _ in range(GROUP_CALLS_MAX)]
        self._waiting = deque()
        return waiting

    def _run_deferred(self, calls: list[_WriteCall]) -> None:
        """Run calls in the open transaction, and answer them before it is on disk."""
        try:
            self._group = self.deferral.run(lambda: self._run_each(calls))
        except apsw.Error as error:
            self._fail(calls, error)
        else:
            self._answer()

    def _run_together(self, calls: list[_WriteCall]) -> list[tuple[_WriteCall, Any]]:
        self._cursor.execute("BEGIN IMMEDIATE")
        return self._run_each(calls)

    def _run_each(self, calls: list[_WriteCall]) -> list[tuple[_WriteCall, Any]]:
        """Run calls one after the other, each with its result, and then what they left to the end of the transaction."""
        transaction = self._transaction
        results: list[tuple[_WriteCall, Any]] = []
        try:
            for call in calls:
                try:
                    results.append((call, call.run(transaction)))
                except RedriveError as answer:
                    results.append((call, answer))
            fill_orders(transaction)
            insert_grouped(transaction)
        except apsw.Error:
            raise
        except Exception:
            logger.exception("store.call_failed alone=%s", len(calls) == 1)
            raise apsw.AbortError("a call of this group failed") from None
        transaction.finish()
        return results

    def _commit_here(self, calls: list[_WriteCall]) -> None:
        """Commit on this thread: nothing was changed, or the store is in memory."""
        try:
            self._cursor.execute("COMMIT")
        except apsw.Error as error:
            self._fail(calls, error)
        else:
            self._answer()

    def _commit_forever(self) -> None:
        """The thread's work: commit whenever it is asked to, and hand the result to the loop."""
        while self._jobs.get():
            error: apsw.Error | None = None
            began = self._meter.begin()
            try:
                self._connection.execute("COMMIT")
            except apsw.Error as caught:
                error = caught
            self._meter.end(began, len(self._group))
            self._loop.call_soon_threadsafe(self._committed, error)

    def _committed(self, error: apsw.Error | None) -> None:
        if error is None:
            self._answer()
        else:
            self._fail([call for call, _ in self._group], error)

    def _answer(self) -> None:
        group, self._group = self._group, []
        for call, result in group:
            _deliver(call, result)
        self._go_on()

    def _fail(self, calls: list[_WriteCall], error: apsw.Error) -> None:
        """Undo the group. Of several calls one may be the culprit: give each its own transaction.

        A single call gets another transaction where room was made for it on the disk.
        """
        self._undo()
        may_retry = (
            self._disk_reserve is not None and isinstance(error, NO_ROOM) and self._disk_reserve.give_up()
        )
        if len(calls) == 1 and not may_retry:
            _refuse(calls[0], error)
        else:
            logger.warning("store.group_undone calls=%d error=%s: each is tried alone", len(calls), error)
            for call in calls:
                self._run_alone(call)
        self._go_on()

    def _refused(self, call: _WriteCall) -> bool:
        """Refuse a call that makes the store grow, where there is no room."""
        refusal = self._disk_reserve.refusal() if self._disk_reserve is not None and call.grows else None
        if refusal is not None:
            _deliver(call, refusal)
        return refusal is not None

    def _run_alone(self, call: _WriteCall) -> None:
        """Run a call in a transaction of its own, and answer it."""
        if self._refused(call):
            return
        try:
            ((_, result),) = self._run_together([call])
            self._cursor.execute("COMMIT")
        except apsw.Error as error:
            self._undo()
            _refuse(call, error)
        else:
            _deliver(call, result)

    def _undo(self) -> None:
        self._group = []
        if self._connection.in_transaction:
            self._cursor.execute("ROLLBACK")
        self._transaction.undo()

    def _gather(self, turns: int) -> None:
        if turns:
            self._loop.call_soon(self._gather, turns - 1)
        else:
            self._next_group()

    def _go_on(self) -> None:
        """Begin the next group some turns later, so that callers just answered can join it: see `GATHER_TURNS`."""
        if self._waiting:
            self._loop.call_soon(self._gather, GATHER_TURNS)
        else:
            self._busy = False
            self._idle.set()


def touch(transaction: Transaction) -> None:
    """Write as little as can be written. It has to change something: a page that stays as it is is not written."""
    transaction.cursor.execute(_TOUCH)


def _deliver(call: _WriteCall, result: object) -> None:
    """Answer a call with its result or refusal, unless its caller has given up."""
    if call.answer.done():
        return
    if isinstance(result, RedriveError):
        call.answer.set_exception(result)
    else:
        call.answer.set_result(result)


def _refuse(call: _WriteCall, error: apsw.Error) -> None:
    logger.error("store.unavailable error=%s: nothing of this call was stored", error)
    _deliver(call, StoreUnavailable(f"the store did not take it: {error}"))
