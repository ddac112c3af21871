"""The schema, step by step: the table `schema_steps` says which of the numbered files were applied.

A new store is made in one transaction. One that is there is brought up to date while other nodes go on using it, of this
version and of the one before: no statement waits for longer than `_LOCK_TIMEOUT` for a lock that keeps them out, and
indexes are made CONCURRENTLY. A file with such a one begins with `-- online`: its statements run one after the other,
outside of a transaction, and each can be run again where a node was killed between two. What older nodes need goes later:
see the end of this file.
"""

import logging
import re
from collections.abc import Sequence
from typing import Final

import asyncpg
from asyncpg import Connection

from redrive.model.errors import StoreUnavailable
from redrive.stores import steps

logger = logging.getLogger(__name__)

# Nodes that start together wait for each other here: the first applies the steps, the others find them done.
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('redrive schema'))"
# Not waiting in a statement, which has a snapshot: an index that is made CONCURRENTLY waits for the end of all those.
_TRY_LOCK: Final = "SELECT pg_try_advisory_lock(hashtext('redrive schema'))"
_UNLOCK: Final = "SELECT pg_advisory_unlock(hashtext('redrive schema'))"
_PAUSE: Final = "SELECT pg_sleep(0.2)"
_RECORD: Final = "CREATE TABLE IF NOT EXISTS schema_steps (number integer PRIMARY KEY)"
_ADD: Final = "INSERT INTO schema_steps (number) VALUES ($1)"
_HAS_RECORD: Final = "SELECT to_regclass('schema_steps') IS NOT NULL"
_MAY_CHANGE: Final = (
    "SELECT current_user, pg_has_role(current_user, tableowner, 'USAGE') FROM pg_tables"
    " WHERE schemaname = current_schema() AND tablename = 'schema_steps'"
)
# An index whose making was cut off: it is kept up to date and never used.
_IS_INVALID: Final = (
    "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)"
)

# On every node of Citus; elsewhere the first of the two says nothing to anybody.
_LOCK_TIMEOUT: Final = "SET LOCAL citus.propagate_set_commands = 'local'; SET LOCAL lock_timeout = '500ms'"
_TRIES: Final = 600  # with a pause between them: two minutes and more, beside transactions that will not end
_LONG_SECONDS: Final = 24 * 60 * 60.0
_ONLINE: Final = "-- online"
_COMMENT: Final = re.compile(r"--.*")
_CONCURRENTLY: Final = " CONCURRENTLY"
_NEW_INDEX: Final = re.compile(r"CREATE INDEX CONCURRENTLY IF NOT EXISTS (\w+)")


async def migrate(connection: Connection) -> None:
    """Apply the steps that this database has not seen.

    A role that may not change the schema finds it up to date, or is told.

    Raises:
        StoreUnavailable: A newer version of Redrive was here, the role may not apply what is missing, or others did not
            let go of the tables.
    """
    all_steps = steps.read("redrive.stores.postgres")
    applied_numbers = await _applied_steps(connection)
    steps.refuse_newer(max(applied_numbers, default=0), len(all_steps))
    if not applied_numbers or connection.is_in_transaction():
        await _make(connection, all_steps)
        return
    if len(applied_numbers) < len(all_steps):
        await _upgrade(connection, all_steps)


async def _applied_steps(connection: Connection) -> set[int]:
    if not await connection.fetchval(_HAS_RECORD):
        return set()
    return {row["number"] for row in await connection.fetch("SELECT number FROM schema_steps")}


async def _make(connection: Connection, all_steps: Sequence[str]) -> None:
    """Apply all steps or none."""
    async with connection.transaction():
        await connection.execute(_LOCK)
        await connection.execute(_RECORD)
        applied_numbers = await _applied_steps(connection)
        for number, statements in enumerate(all_steps, start=1):
            if number not in applied_numbers:
                for statement in _each(statements):
                    await connection.execute(statement.replace(_CONCURRENTLY, ""), timeout=_LONG_SECONDS)
                await connection.execute(_ADD, number)


async def _upgrade(connection: Connection, all_steps: Sequence[str]) -> None:
    """Apply missing steps, one node at a time; the others try for the lock again and again: see `_TRY_LOCK`."""
    role, may_change = await connection.fetchrow(_MAY_CHANGE)
    if not may_change:
        raise StoreUnavailable(
            f"the schema is of an older version, and the role {role} may not change it: run redrive store upgrade with"
            " the role that owns the tables"
        )
    while not await connection.fetchval(_TRY_LOCK):
        await connection.execute(_PAUSE)
    try:
        applied_numbers = await _applied_steps(connection)
        for number, statements in enumerate(all_steps, start=1):
            if number not in applied_numbers:
                await _apply(connection, number, statements)
    finally:
        if not connection.is_closed():
            await connection.execute(_UNLOCK)


async def drop_outdated(connection: Connection) -> bool:
    """Drop what only older versions look at; False if that is to be tried again, since one of them is there.

    A role that may not change the schema leaves it to those that may.
    """
    outdated = await outdated_indexes(connection)
    if not outdated:
        return True
    _, may_change = await connection.fetchrow(_MAY_CHANGE)
    if not may_change:
        return True
    if await older_node(connection) is not None or not await connection.fetchval(_TRY_LOCK):
        return False
    try:
        for name in outdated:
            await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", timeout=_LONG_SECONDS)
            logger.info("store.index_dropped name=%s: only older versions used it", name)
    finally:
        if not connection.is_closed():
            await connection.execute(_UNLOCK)
    return True


async def _apply(connection: Connection, number: int, statements: str) -> None:
    """Apply one step; one for running nodes holds its locks only briefly, and builds indexes concurrently."""
    if not statements.startswith(_ONLINE):
        await _briefly(connection, _each(statements), number)
        return
    for statement in _each(statements.partition(AFTERWARDS)[0]):
        if _CONCURRENTLY not in statement:
            await _briefly(connection, [statement])
            continue
        new = _NEW_INDEX.match(statement)
        if new is not None and await connection.fetchval(_IS_INVALID, new[1]):
            await connection.execute(f"DROP INDEX CONCURRENTLY {new[1]}", timeout=_LONG_SECONDS)
        await connection.execute(statement, timeout=_LONG_SECONDS)
    await connection.execute(_ADD, number)


def _each(statements: str) -> list[str]:
    """The statements of a file: Citus hands each on to its nodes with all of the text that came with it."""
    return list(filter(None, map(str.strip, _COMMENT.sub("", statements).split(";"))))


async def _briefly(connection: Connection, statements: Sequence[str], number: int | None = None) -> None:
    """Run statements that need a lock for a moment: while they wait for it, all others wait behind them."""
    for _ in range(_TRIES):
        try:
            async with connection.transaction():
                await connection.execute(_LOCK_TIMEOUT)
                for statement in statements:
                    await connection.execute(statement)
                if number is not None:
                    await connection.execute(_ADD, number)
        except asyncpg.LockNotAvailableError:
            await connection.execute(_PAUSE)
        else:
            return
    raise StoreUnavailable("the schema was not brought up to date: others did not let go of the tables")


# Indexes that only older versions look at: they are dropped when no node of such a version is left.
#
# A step of the schema may end with a part that begins with `-- afterwards` and drops such indexes, and nothing else. A
# node, or `redrive store upgrade`, does so once every session of a server says that it knows the step. Until then writers
# keep one index more up to date, and nodes of the version before find what they look for as fast as ever.

AFTERWARDS: Final = "-- afterwards"
_DROPPED: Final = re.compile(r"DROP INDEX CONCURRENTLY IF EXISTS (\w+)")
_LEFT: Final = "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NOT NULL"
# First in the name of a session, of which the database keeps 63 characters, and a node's own name is long.
_MARK: Final = "redrive schema-"
_OLDER: Final = f"""
    SELECT application_name FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'redrive %'
        AND coalesce(substring(application_name FROM '^{_MARK}([0-9]+) ')::integer, 0) < $1
    LIMIT 1
"""


def session_name(node: str) -> str:
    """The name of a node's sessions, by which other versions see what it knows of the schema."""
    return f"{_MARK}{len(_all_steps())} {node}"


async def outdated_indexes(connection: asyncpg.Connection) -> list[str]:
    """The outdated indexes that are there."""
    names = [name for statements in _all_steps() for name in outdated_by(statements)]
    return [name for (name,) in await connection.fetch(_LEFT, names)]


def outdated_by(statements: str) -> Sequence[str]:
    """The indexes that a step makes outdated."""
    return _DROPPED.findall(statements.partition(AFTERWARDS)[2])


async def older_node(connection: asyncpg.Connection) -> str | None:
    """The session of a server, or a command, that may know less of the schema than this version."""
    name: str | None = await connection.fetchval(_OLDER, len(_all_steps()))
    return name


def _all_steps() -> Sequence[str]:
    return steps.read("redrive.stores.postgres")
