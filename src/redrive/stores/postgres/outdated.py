"""Indexes that only older versions look at: they are dropped when no node of such a version is left.

A step of the schema may end with a part that begins with `-- afterwards` and drops such indexes, and nothing else. A
node, or `redrive store upgrade`, does so once every session of a server says that it knows the step. Until then writers
keep one index more up to date, and nodes of the version before find what they look for as fast as ever.
"""

import re
from collections.abc import Sequence
from typing import Final

import asyncpg

from redrive.stores import steps

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
    return f"{_MARK}{len(_known())} {node}"


async def indexes(connection: asyncpg.Connection) -> list[str]:
    """The outdated indexes that are there."""
    names = [name for statements in _known() for name in dropped(statements)]
    return [name for (name,) in await connection.fetch(_LEFT, names)]


def dropped(statements: str) -> Sequence[str]:
    """The indexes that a step makes outdated."""
    return _DROPPED.findall(statements.partition(AFTERWARDS)[2])


async def older_node(connection: asyncpg.Connection) -> str | None:
    """The session of a server, or a command, that may know less of the schema than this version."""
    name: str | None = await connection.fetchval(_OLDER, len(_known()))
    return name


def _known() -> Sequence[str]:
    return steps.read("redrive.stores.postgres")
