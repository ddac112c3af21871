"""Homes of the tests' stores: a file, memory, or a database, and a way to look behind a store's back."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import asyncpg

from redrive.engine.ports import NodeStore
from redrive.model.delivery import LinePosition
from redrive.runtime.machine import SystemClock
from redrive.stores.postgres.store import PostgresStore
from redrive.stores.sqlite.store import SqliteStore

Rows = list[tuple[Any, ...]]

PLACES = "SELECT queue_id, group_id, place FROM deliveries WHERE group_id IS NOT NULL"


@dataclass
class Home:
    """One place that deliveries are kept in.

    Attributes:
        kind: As the test's parameter names it.
        make: Makes a store here, for a node of that name; not open yet.
        query: Asks the database itself.
        opened: The stores to close in the end.
    """

    kind: str
    make: Callable[[str], NodeStore]
    query: Callable[[str], Awaitable[Rows]]
    opened: list[NodeStore] = field(default_factory=list)

    async def open(self, node: str = "one") -> NodeStore:
        """One more store in this place: a further node, or the same one after a restart."""
        store = self.make(node)
        await store.open()
        self.opened.append(store)
        return store

    async def close(self, store: NodeStore) -> None:
        """Close one of the stores now."""
        self.opened.remove(store)
        await store.close()

    async def check_turns(self) -> None:
        """Nothing waits behind a turn that nobody has, and no group has two."""
        places = Counter(await self.query(PLACES))
        for queue_id, group_id in {(queue_id, group_id) for queue_id, group_id, _ in places}:
            turns = places[queue_id, group_id, LinePosition.HEAD]
            behind = places[queue_id, group_id, LinePosition.BEHIND]
            assert turns == 1 if behind else turns <= 1, (queue_id, group_id, turns, behind)

    async def leave(self) -> None:
        """Close what is open, once the turns are found to be right."""
        await self.check_turns()
        for store in self.opened:
            await store.close()


def in_memory() -> Home:
    """A SQLite store in memory: one only, gone when it is closed."""
    store = SqliteStore(None)

    async def query(statement: str) -> Rows:
        return store.connection.execute(statement).fetchall()

    return Home("sqlite-memory", lambda _: store, query)


def in_file(path: Path) -> Home:
    """SQLite stores in one file."""

    async def query(statement: str) -> Rows:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    return Home("sqlite-file", lambda _: SqliteStore(path), query)


def in_postgres(url: str, kind: str = "postgres") -> Home:
    """PostgreSQL stores on one database, which may be spread over a cluster (`citus`)."""

    async def query(statement: str) -> Rows:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    return Home(kind, lambda node: PostgresStore(url, SystemClock(), node), query)
