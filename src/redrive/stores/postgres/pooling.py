"""The pooler between a node and its database, if there is one.

A pooler in transaction mode gives each transaction another session of the database. A node needs sessions of its own: for
LISTEN, without which it would believe in documents that others have changed, and for its planner's settings.
"""

import enum
from collections.abc import Awaitable, Callable
from typing import Final

import asyncpg

from redrive.model.errors import StoreUnavailable

ADVICE: Final = (
    "the database is behind a pooler in transaction mode, which carries no LISTEN: set the pooler to session mode"
    " (pool_mode = session), or name the database itself"
)


class Pooling(enum.Enum):
    """The kind of way to the database."""

    NONE = "none"
    SESSION = "session"
    TRANSACTION = "transaction"


async def session_of(connection: asyncpg.Connection) -> int:
    """The number of the session that answers; `get_server_pid` knows one that a pooler makes up."""
    session: int = await connection.fetchval("SELECT pg_backend_pid()")
    return session


async def found(
    connection: asyncpg.Connection, another: Callable[[], Awaitable[asyncpg.Connection]]
) -> Pooling:
    """The pooler on the way.

    Args:
        connection: Idle, and of no transaction.
        another: Makes a second one, where it is needed.
    """
    first = await session_of(connection)
    if first == connection.get_server_pid():
        return Pooling.NONE  # a pooler makes up what it says at a connection's start
    other = await another()
    try:
        async with other.transaction():
            taken = await session_of(other)
            # Between transactions the second may have taken the very session of the first, which then has another.
            now = await session_of(connection)
    except asyncpg.InvalidSQLStatementNameError:  # prepared in one session, executed in another
        return Pooling.TRANSACTION
    finally:
        other.terminate()
    return Pooling.SESSION if now == first != taken else Pooling.TRANSACTION


async def refuse_transactions(
    connection: asyncpg.Connection, another: Callable[[], Awaitable[asyncpg.Connection]]
) -> None:
    """Keep away from a database behind a pooler in transaction mode.

    Raises:
        StoreUnavailable: It is.
    """
    if await found(connection, another) is Pooling.TRANSACTION:
        raise StoreUnavailable(ADVICE)
