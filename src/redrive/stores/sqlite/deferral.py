"""Deferral: calls that need not be on disk when they are answered share a transaction, which stays open between them.

A simulated clock answers once, when all that fell due is done: 100,000 attempts one after the other would be 200,000
commits, each of ten pages and an fsync. Whoever wants more ends the open transaction first: a call that is to be on disk
when it is answered, the connection that reads, and other processes, which wait for a moment.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Final, TypeVar

import apsw

logger = logging.getLogger(__name__)
T = TypeVar("T")

CALLS_MAX: Final = 1_000  # of one transaction: a crash of the process loses so many of them at most
OPEN_SECONDS: Final = (
    0.05  # commands of other processes that write wait as long, and give up after five seconds
)

#: True in the task that defers, and in all that it sets off.
_DEFERS: Final[ContextVar[bool]] = ContextVar("defers", default=False)


class Deferral:
    """The open transaction of one connection."""

    def __init__(
        self, connection: apsw.Connection, loop: asyncio.AbstractEventLoop, undone: Callable[[], None]
    ) -> None:
        """Begin with none.

        Args:
            connection: Whose transaction it is.
            loop: Ends it in time.
            undone: Called when all that was done in it was undone.
        """
        self._undone = undone
        self._connection = connection
        self._cursor = connection.cursor()
        self._loop = loop
        self._deferring = 0
        self._calls = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def applies(self) -> bool:
        """True if a call that is made now is deferred."""
        return self._deferring > 0 and _DEFERS.get()

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
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
            self.commit()
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
            self._undone()
            raise
        finally:
            self._cursor.execute("PRAGMA synchronous = FULL")

    def _open(self) -> None:
        self._cursor.execute(
            "PRAGMA synchronous = NORMAL"
        )  # the log is not synced, until a commit that is FULL
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
