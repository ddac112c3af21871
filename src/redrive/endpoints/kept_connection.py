"""Connections of our own that outlive a push: rested while idle, left with a goodbye, aborted without an answer."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, Generic, TypeVar, cast

from typing_extensions import override

_GOODBYE_SECONDS: Final = 1


class KeptConnection(asyncio.Protocol, ABC):
    """One connection that serves many pushes.

    A kind says what is under way over it, how it says goodbye, and what it tells those who wait when it is lost. The
    connection has one timer: the end of its rest, of its patience with the other end, or of its goodbye. A timer that was
    set for an earlier moment than is due now stays, and is set anew when it rings: a busy connection sets one in seconds
    and not two a push.

    Args:
        peer: What the other end is called in errors: "broker".
    """

    def __init__(self, peer: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0  # when the timer rings
        self._due_at = 0.0  # when the time is over; the timer may ring before
        self._action: Callable[[], None] | None = None  # what is due then
        self._leaving = False
        self._failure: Exception = ConnectionResetError(f"The {peer} closed the connection")
        #: Whether more may be sent over it; what is under way ends as it may.
        self.usable = True
        #: Done when the socket is closed; the result is the failure.
        self.closed: asyncio.Future[Exception] = self._loop.create_future()

    async def close(self) -> None:
        """Say goodbye, and close whether it is answered or not."""
        self._leave()
        await asyncio.shield(self.closed)

    def abort(self) -> None:
        """Close at once."""
        if self._socket is not None:
            self._socket.abort()

    @abstractmethod
    def _is_busy(self) -> bool:
        """True if anything is under way."""

    @abstractmethod
    def _say_goodbye(self) -> None:
        """Tell the other end; the socket stands."""

    @abstractmethod
    def _fail(self, failure: Exception) -> None:
        """Tell those who still wait that the connection is lost."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._socket = cast("asyncio.Transport", transport)

    @override
    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._socket = None
        self.usable = False
        self._stop_timer()
        failure = error or self._failure
        self._fail(failure)
        self.closed.set_result(failure)

    def _rest(self, seconds: float) -> None:
        """Begin to rest, if nothing is under way; a connection that is not usable any more is left instead."""
        if self._is_busy():
            return
        if self.usable:
            self._after(seconds, self._leave)
        else:
            self._leave()

    def _leave(self) -> None:
        """Say goodbye, once; if the peer does not close in time, the connection is cut off."""
        self.usable = False
        if self._socket is not None and not self._leaving:
            self._after(_GOODBYE_SECONDS, self._socket.abort)
            self._leaving = True
            self._say_goodbye()

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        """Set the timer, unless it is the goodbye's."""
        if self._leaving:
            return
        self._action = action
        self._due_at = self._loop.time() + seconds
        if self._timer is None or self._due_at < self._rings_at:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = self._due_at
        self._timer = self._loop.call_at(self._rings_at, self._ring)

    def _ring(self) -> None:
        """Act if that is due by now; the timer may have been set for an earlier action."""
        self._timer = None
        action = self._action
        if action is not None and self._loop.time() < self._due_at:
            self._set_timer()
        elif action is not None:
            self._action = None
            action()

    def _stay(self) -> None:
        """End a rest."""
        if not self._leaving:
            self._action = None

    def _stop_timer(self) -> None:
        self._action = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_socket(self) -> None:
        """Close when what is written has gone."""
        if self._socket is not None:
            self._socket.close()


K = TypeVar("K", bound=Hashable)
C = TypeVar("C", bound=KeptConnection)


class ConnectionPool(Generic[K, C]):
    """One connection for each destination, opened by the push that needs it first."""

    def __init__(self) -> None:
        self._current: SingleFlight[K, C] = SingleFlight(lambda connection: connection.usable)
        #: Those whose socket is open, also such as are not usable any more and still have something under way.
        self.connections: set[C] = set()

    async def of(self, key: K, connect: Callable[[], Coroutine[Any, Any, C]]) -> C:
        """The connection to a destination; what `connect` raises is raised to all who wait for it."""
        return await self._current.of(key, lambda: self._opened(connect))

    async def close(self) -> None:
        """Close all of them."""
        await self._current.close()
        await asyncio.gather(*(connection.close() for connection in self.connections))

    async def _opened(self, connect: Callable[[], Coroutine[Any, Any, C]]) -> C:
        connection = await connect()
        self.connections.add(connection)
        connection.closed.add_done_callback(lambda _: self.connections.discard(connection))
        return connection


# Values that many pushes wait for together: a connection, an access token.

Key = TypeVar("Key")
Value = TypeVar("Value")


class SingleFlight(Generic[Key, Value]):
    """One connection attempt, shared by all callers: a cancelled caller does not cancel it.

    Args:
        usable: Whether it can be used still; otherwise the next caller makes a new one.
    """

    def __init__(self, usable: Callable[[Value], bool]) -> None:
        self._usable = usable
        self._tasks: dict[Key, asyncio.Task[Value]] = {}

    async def of(self, key: Key, make: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """The value of a key, made if it is absent; an error of `make` is raised to all who wait."""
        task = self._tasks.get(key)
        if task is None or self._is_over(task):
            self._forget_old()
            task = self._tasks[key] = asyncio.create_task(make())
            task.add_done_callback(self._is_over)  # reads the error, which asyncio would log if nobody did
        return task.result() if task.done() else await asyncio.shield(task)

    def forget(self, key: Key, value: Value) -> None:
        """Drop the value of a key, if it is still the given one."""
        task = self._tasks.get(key)
        if task is not None and task.done() and not self._is_over(task) and task.result() == value:
            del self._tasks[key]

    async def close(self) -> None:
        """Make no more."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _forget_old(self) -> None:
        """So that no more is remembered than is of use, of however many keys."""
        for key, task in list(self._tasks.items()):
            if self._is_over(task):
                del self._tasks[key]

    def _is_over(self, task: "asyncio.Task[Value]") -> bool:
        if not task.done():
            return False
        return task.cancelled() or task.exception() is not None or not self._usable(task.result())
