"""The way to the database: a few connections, each made when it is first needed and made anew when it was lost.

Whatever goes wrong comes out as StoreUnavailable, and nothing is tried again but what the database itself rolled
back to end a deadlock. A commit whose answer never came may have happened; trying it again could do it twice, and
only the caller knows whether that matters.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import asyncpg

from redrive.engine.ports import UNMEASURED, Clock, CommitMeter
from redrive.model.errors import RedriveError, StoreUnavailable
from redrive.stores.postgres import connecting
from redrive.stores.postgres.connecting import TURNED_AWAY, connect, describe

logger = logging.getLogger(__name__)
T = TypeVar("T")
P = ParamSpec("P")

# Our transactions do not wait for each other in a circle (`rows`). Those of other programs may be part of one, and Citus
# may see one where there is none: then it ends the same call several times in a row.
_DEADLOCK_TRIES: Final = 10

# Only the ways that statements are written for, and plans made without the values: see `access_paths`.
PLANNER: Final = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}
_IS_CITUS: Final = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
# The coordinator plans with the values, by which Citus finds the shard; its nodes do without (`distributing`). And it
# does not look through all that a session reads for shards to hide: asyncpg asks for the types of arrays on each
# connection, which took 12 s with that on a busy machine, and 0.1 s without.
_ON_CITUS: Final = "SET plan_cache_mode = auto; SET citus.override_table_visibility = off"

_SERVERS: Final = """
    SELECT DISTINCT application_name FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'redrive %'
        AND application_name <> current_setting('application_name')
    ORDER BY application_name
"""

LOST: Final = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # it was cut off in the midst of an answer, and asyncpg has lost its place
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.OperatorInterventionError,  # it shuts down or starts up
    asyncpg.ReadOnlySQLTransactionError,  # it became a standby: the next connection may find the new primary
)
_TOLD_AGAIN_MS: Final = 10_000  # between two lines that say the same
_ROLLED_BACK: Final = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


class NotTaken(StoreUnavailable):
    """The database is there, but would not do this: alone, another call may fare better."""


async def refuse_servers(connection: asyncpg.Connection, advice: str) -> None:
    """Let a command have the database for itself.

    Raises:
        StoreUnavailable: Servers, or other commands, use it; `advice` ends the message.
    """
    servers = [name for (name,) in await connection.fetch(_SERVERS)]
    if servers:
        raise StoreUnavailable(f"the database is in use by {', '.join(servers)}: {advice}")


class Connections:
    """A bounded pool of connections.

    Attributes:
        pooled: True if a pooler in session mode gives them; see `pooling`.
    """

    def __init__(
        self, url: str, clock: Clock, name: str, number: int, meter: CommitMeter = UNMEASURED
    ) -> None:
        """Name the database; nothing is connected yet. The meter is for those who commit on these connections."""
        self._url = url
        self._clock = clock
        self.meter = meter
        self.pooled = False
        self._name = name
        self._room = asyncio.Semaphore(number)
        self._free: list[asyncpg.Connection] = []
        self._number = number
        self._closed = False
        # A database that was never there cannot be lost: who opens the store hears of it.
        self._was_reached = False
        self._is_lost = False
        self._told_at: dict[str, int] = {}
        self._is_citus: bool | None = None  # not asked yet
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_citus(self) -> bool:
        """True if the database distributes its tables; known once there was a connection."""
        return bool(self._is_citus)

    async def another(self) -> asyncpg.Connection:
        """A connection of the caller's own, without the settings of a session."""
        return await connect(self._url, self._name)

    async def idle(self) -> None:
        """Return when nothing is under way."""
        await self._idle.wait()

    async def close(self) -> None:
        """Refuse new callers, and let those that began finish."""
        self._closed = True
        for _ in range(self._number):
            await self._room.acquire()
        while self._free:
            await self._free.pop().close()
        for _ in range(self._number):
            self._room.release()

    async def run(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Do some work on its own connection.

        Args:
            work: Statements that commit for themselves, or one transaction. It may be called again when the
                database rolled it back in favour of another.

        Raises:
            StoreUnavailable: The database did not answer, or not as hoped (NotTaken).
        """
        self._under_way += 1
        self._idle.clear()
        try:
            return await self._try(work)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def _try(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Run some work, again while the database rolls it back; errors of the driver become the store's."""
        for tries_left in reversed(range(_DEADLOCK_TRIES)):
            try:
                async with self._one() as connection:
                    result = await work(connection)
            except _ROLLED_BACK as error:
                logger.warning("store.rolled_back error=%s tries_left=%d", describe(error), tries_left)
            except TURNED_AWAY as error:
                raise self._unavailable(error, "no connection to the database can be made") from error
            except LOST as error:
                if _is_cancelled():  # by which the driver lost its connection, and it tells of that alone
                    raise asyncio.CancelledError from error
                if _is_of_another_node(error):
                    raise self._node_unavailable(error) from error
                raise self._unavailable(error) from error
            except asyncpg.PostgresError as error:
                raise _not_taken(error) from error
            else:
                self._note_success()
                return result
        raise NotTaken("the store did not take it: others were in its way each time")

    @asynccontextmanager
    async def _one(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection that nobody else uses; it is closed after an error that leaves its state unknown."""
        await self._wait_for_room()
        try:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            connection = await self._connection()
            try:
                yield connection
            except BaseException as error:
                is_lost = isinstance(error, LOST) and not _is_of_another_node(error)
                if is_lost or not isinstance(error, asyncpg.PostgresError | RedriveError):
                    connection.terminate()  # in the midst of something: nobody knows what it would answer next
                if is_lost:
                    self._forget_others()
                raise
            finally:
                if not connection.is_closed():
                    self._free.append(connection)
        finally:
            self._room.release()

    def _forget_others(self) -> None:
        """Let go of what leads to the same server: it is gone, silent, or a standby now, whoever noticed first."""
        while self._free:
            self._free.pop().terminate()

    async def _wait_for_room(self) -> None:
        """Wait for a connection; the time limit costs a timer, and is only set where one has to wait."""
        if self._room.locked():
            async with asyncio.timeout(connecting.PATIENCE_SECONDS):
                await self._room.acquire()
        else:
            await self._room.acquire()

    async def _connection(self) -> asyncpg.Connection:
        """A free connection, or a new one, set up for Citus where the database has that."""
        while self._free:
            connection = self._free.pop()
            if not connection.is_closed():
                return connection
        connection = await self._new_connection()
        try:
            if self._is_citus is None:
                self._is_citus = await connection.fetchval(_IS_CITUS)
            if self._is_citus:
                await connection.execute(_ON_CITUS)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _new_connection(self) -> asyncpg.Connection:
        """A connection of the pool; through a pooler a time-out means that it has no session left."""
        try:
            return await connect(self._url, self._name, **PLANNER)
        except TimeoutError as error:
            if not self.pooled:
                raise
            raise self._no_session() from error

    def _unavailable(self, error: Exception, what: str = "the database did not answer") -> StoreUnavailable:
        if self._was_reached and not self._is_lost:
            self._is_lost = True
            logger.error("store.lost error=%s: calls fail until the database answers again", describe(error))
        return StoreUnavailable(f"{what}: {describe(error)}")

    def _node_unavailable(self, error: Exception) -> StoreUnavailable:
        """The error where a node of a Citus cluster does not answer; logged now and then."""
        if self._is_due("store.node_lost"):
            logger.error(
                "store.node_lost error=%s: calls for its queues fail until it answers", describe(error)
            )
        return StoreUnavailable(f"a node of the database's cluster did not answer: {describe(error)}")

    def _no_session(self) -> StoreUnavailable:
        what = f"the pooler gave no session within {connecting.PATIENCE_SECONDS} s"
        if self._is_due("store.no_session"):
            logger.error("store.no_session: %s: its pool is too small, or the database is busy", what)
        return StoreUnavailable(what)

    def _is_due(self, event: str) -> bool:
        """True if an event was not logged for a while; it counts as logged then."""
        now = self._clock.now()
        is_due = event not in self._told_at or now >= self._told_at[event] + _TOLD_AGAIN_MS
        if is_due:
            self._told_at[event] = now
        return is_due

    def _note_success(self) -> None:
        self._was_reached = True
        if self._is_lost:
            self._is_lost = False
            logger.warning("store.back: the database answers again")


def on_connection(
    work: Callable[Concatenate[asyncpg.Connection, P], Awaitable[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The verb of a store, which has `connections`, that does this work on one of them and nothing else."""

    async def verb(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        connections: Connections = self.connections
        return await connections.run(lambda connection: work(connection, *args, **kwargs))

    return verb


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _is_of_another_node(error: BaseException) -> bool:
    """True if the session goes on, and a worker that Citus asked on its behalf did not answer."""
    behind = asyncpg.PostgresConnectionError, asyncpg.exceptions.OperatorInterventionError
    return isinstance(error, behind) and error.severity_en == "ERROR"


def _not_taken(error: asyncpg.PostgresError) -> NotTaken:
    logger.error("store.not_taken error=%s: nothing of it was stored", describe(error))
    return NotTaken(f"the store did not take it: {describe(error)}")
