"""The pooler between a node and its database, if there is one.

A node needs sessions of its own: for LISTEN, without which it would trust documents that others have changed, and
for its planner's settings. A pooler in transaction mode gives each transaction another session of the database; one in
statement mode knows no transactions at all. One in session mode gives sessions as long as its pool lasts, and lets
whoever asks for more wait.
"""

import asyncio
import enum
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

import asyncpg

from redrive.model.errors import StoreUnavailable
from redrive.stores.postgres.connections import Connections

logger = logging.getLogger(__name__)
Connect = Callable[[], Coroutine[Any, Any, asyncpg.Connection]]

SESSIONS: Final = 5  # of each node or worker: four for its calls, and one that listens
# A pooler that has room for a session gives it within milliseconds.
_GIVEN_SECONDS: Final = 2


class Pooling(enum.Enum):
    """The kind of way to the database."""

    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"
    STATEMENT = "statement"

    @property
    def refusal(self) -> str:
        """The reason why no server can use this way, and what to do; empty if it can."""
        if self in (Pooling.NONE, Pooling.SESSION):
            return ""
        return (
            f"the database is behind a pooler in {self.value} mode, which carries no LISTEN: set the pooler to session"
            " mode (pool_mode = session), or name the database itself"
        )


async def session_of(connection: asyncpg.Connection) -> int:
    """The number of the session that answers; `get_server_pid` knows one that a pooler makes up."""
    session: int = await connection.fetchval("SELECT pg_backend_pid()")
    return session


async def pooling_of(connection: asyncpg.Connection, another: Connect) -> Pooling:
    """The mode of the pooler on the way, by the sessions that two connections get: in session mode each keeps its own.

    Args:
        connection: Idle, and of no transaction.
        another: Makes a second one, where it is needed.

    Raises:
        StoreUnavailable: A pooler gives no second session.
    """
    first = await session_of(connection)
    if first == connection.get_server_pid():
        return Pooling.NONE  # a pooler makes up what it says at a connection's start
    other = await another()
    try:
        async with other.transaction():
            second_session = await session_of(other)
            # Between transactions the second may have taken the very session of the first, which then has another.
            last = await session_of(connection)
    except TimeoutError as error:
        raise StoreUnavailable(_too_small(1)) from error
    except asyncpg.InvalidSQLStatementNameError:  # prepared in one session, executed in another
        return Pooling.TRANSACTION
    except asyncpg.PostgresConnectionError as error:
        if "statement pooling mode" not in str(error):
            raise
        return Pooling.STATEMENT
    finally:
        other.terminate()
    each_keeps_its_own = last == first and second_session != first
    return Pooling.SESSION if each_keeps_its_own else Pooling.TRANSACTION


async def shortage(another: Connect) -> str:
    """A complaint if a pooler has too few sessions for a node, the caller's own among them; empty if it has enough."""
    attempts = (asyncio.wait_for(_with_session(another), _GIVEN_SECONDS) for _ in range(SESSIONS - 1))
    answers = await asyncio.gather(*attempts, return_exceptions=True)
    connections = [answer for answer in answers if isinstance(answer, asyncpg.Connection)]
    for connection in connections:
        connection.terminate()
    return _too_small(1 + len(connections)) if len(connections) < SESSIONS - 1 else ""


async def _with_session(another: Connect) -> asyncpg.Connection:
    """A connection that has its session: PgBouncer lets a client connect, and wait with its first statement."""
    connection = await another()
    try:
        await session_of(connection)
    except BaseException:
        connection.terminate()
        raise
    return connection


def _too_small(sessions: int) -> str:
    return (
        f"the pooler gave {sessions} of the {SESSIONS} sessions that a node or worker needs: raise default_pool_size to"
        f" {SESSIONS} for each of them and {SESSIONS} to spare, or calls wait for a session until they time out"
    )


async def examine_way(connections: Connections) -> None:
    """Keep away from a database behind a pooler that gives no sessions, and tell of one that gives too few.

    Raises:
        StoreUnavailable: The pooler is in another mode than session mode, or gives one session alone.
    """
    mode = await connections.run(lambda connection: pooling_of(connection, connections.another))
    if mode.refusal:
        raise StoreUnavailable(mode.refusal)
    connections.pooled = mode is Pooling.SESSION
    if connections.pooled and (short := await shortage(connections.another)):
        logger.error("store.pool_too_small: %s", short)
