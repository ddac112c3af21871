"""The life of a connection that is kept: it rests, leaves with a goodbye, and is aborted where that is not answered."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from redrive.endpoints.kept_connection import ConnectionPool, KeptConnection
from redrive.testing.virtual import VirtualClock, run_virtual

REST_SECONDS = 30


class Socket(asyncio.Transport):
    """A socket that closes its connection when it is told to."""

    def __init__(self, connection: KeptConnection) -> None:
        super().__init__()
        self.aborted = False
        self._connection = connection

    def close(self) -> None:
        asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    def abort(self) -> None:
        self.aborted = True
        self.close()


class Connection(KeptConnection):
    """Has something under way when told so, and a peer that answers a goodbye or does not."""

    def __init__(self, *, answers: bool = True) -> None:
        super().__init__("peer")
        self.busy = False
        self.answers = answers
        self.goodbyes = 0
        self.failed_with: list[Exception] = []
        self.socket = Socket(self)
        self.connection_made(self.socket)

    def rest(self) -> None:
        self._rest(REST_SECONDS)

    def use(self) -> None:
        self._stay()

    def _is_busy(self) -> bool:
        return self.busy

    def _say_goodbye(self) -> None:
        self.goodbyes += 1
        if self.answers:
            self._close_socket()

    def _fail(self, failure: Exception) -> None:
        self.failed_with.append(failure)


def seconds_of(story: Callable[[], Awaitable[None]]) -> int:
    """The virtual seconds that a story takes."""

    async def run(clock: VirtualClock, _rng: random.Random) -> int:
        began = clock.now()
        await story()
        return (clock.now() - began) // 1000

    return run_virtual(run)


def test_an_idle_connection_ends_with_a_goodbye() -> None:
    async def story() -> None:
        connection = Connection()
        connection.rest()
        await connection.closed
        assert (connection.goodbyes, connection.socket.aborted, connection.usable) == (1, False, False)

    assert seconds_of(story) == REST_SECONDS


def test_a_use_restarts_the_idle_time() -> None:
    async def story() -> None:
        connection = Connection()
        connection.rest()
        await asyncio.wait([connection.closed], timeout=REST_SECONDS - 1)
        connection.use()
        connection.rest()
        await connection.closed

    assert seconds_of(story) == 2 * REST_SECONDS - 1


def test_a_busy_connection_is_not_closed_as_idle() -> None:
    async def story() -> None:
        connection = Connection()
        connection.busy = True
        connection.rest()
        await asyncio.wait([connection.closed], timeout=10 * REST_SECONDS)
        assert not connection.closed.done()

    assert seconds_of(story) == 10 * REST_SECONDS


def test_an_unusable_connection_is_closed_at_once() -> None:
    async def story() -> None:
        connection = Connection()
        connection.usable = False
        connection.rest()
        await connection.closed

    assert seconds_of(story) == 0


def test_a_goodbye_without_an_answer_ends_in_an_abort_after_a_second() -> None:
    async def story() -> None:
        connection = Connection(answers=False)
        await connection.close()
        assert (connection.goodbyes, connection.socket.aborted) == (1, True)

    assert seconds_of(story) == 1


def test_a_late_use_does_not_put_off_the_abort() -> None:
    async def story() -> None:
        connection = Connection(answers=False)
        closing = asyncio.ensure_future(connection.close())
        await asyncio.wait([closing], timeout=0.5)
        connection.use()
        connection.rest()
        await closing
        assert connection.goodbyes == 1

    assert seconds_of(story) == 1


def test_a_loss_is_told_with_its_reason() -> None:
    async def story() -> None:
        connection = Connection()
        error = ConnectionError("reset")
        connection.connection_lost(error)
        assert (connection.failed_with, await connection.closed, connection.usable) == ([error], error, False)

    assert seconds_of(story) == 0


def test_a_pool_opens_one_connection_and_closes_all_that_are_open() -> None:
    async def story() -> None:
        pool: ConnectionPool[str, Connection] = ConnectionPool()

        async def connect() -> Connection:
            return Connection()

        first = await pool.of("here", connect)
        assert await pool.of("here", connect) is first
        first.busy, first.usable = True, False  # something is under way still
        second = await pool.of("here", connect)
        assert second is not first
        assert pool.connections == {first, second}
        await pool.close()
        assert (first.goodbyes, second.goodbyes, pool.connections) == (1, 1, set())

    assert seconds_of(story) == 0
