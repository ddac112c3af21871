"""A PostgreSQL store read from end to end, and filled with the contents of another store."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

import asyncpg

from redrive.model.errors import StoreUnavailable
from redrive.model.queue import DEDUPLICATION_MS
from redrive.stores.contents import (
    DEDUPLICATION,
    DELIVERIES,
    TABLES,
    ContentsTally,
    Row,
    StoreContents,
    StoreTable,
    TableDigest,
)
from redrive.stores.postgres import outbox
from redrive.stores.postgres.connecting import PATIENCE_SECONDS, describe
from redrive.stores.postgres.connections import LOST, refuse_servers
from redrive.stores.postgres.migrate import migrate

_BATCH_ROWS: Final = 5000  # read at a time, of a few hundred bytes each
_SEQUENCES: Final = ("delivery_seq", "resource_ids", "log_seq")
_HAS_SCHEMA: Final = "SELECT to_regclass('schema_steps') IS NOT NULL"


async def look_through(url: str) -> StoreContents:
    """Read a store from end to end, at one moment; servers may go on using it.

    Raises:
        StoreUnavailable: There is no store, or no way to it.
    """
    async with _connection(url, "redrive store verify") as connection:
        if not await connection.fetchval(_HAS_SCHEMA):
            raise StoreUnavailable("the database has no store of Redrive")
        tally = ContentsTally()
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            for table in TABLES:
                await _pass_through(connection, table, tally)
        return tally.contents


async def fill(
    url: str,
    rows_of: Callable[[StoreTable], Iterable[Row]],
    last_number: int,
    filled: Callable[[TableDigest], None],
) -> StoreContents:
    """Make a store in an empty database and fill it, all in one transaction: another's contents are there, or nothing is.

    Args:
        url: The database's.
        rows_of: The rows of a table, in the order of its columns.
        last_number: Numbers given from now on are greater.
        filled: Told of each table when all of its rows are there.

    Raises:
        StoreUnavailable: The database is in use, not empty or not there, or what arrived is not what was sent.
    """
    async with _connection(url, "redrive store migrate") as connection, connection.transaction():
        await migrate(connection)
        await refuse_servers(connection, "stop the servers, and migrate then")
        await connection.execute(f"SET LOCAL lock_timeout = '{PATIENCE_SECONDS}s'")
        await connection.execute(f"LOCK TABLE {', '.join(table.name for table in TABLES)} IN EXCLUSIVE MODE")
        await _refuse_used(connection)
        sent, arrived = ContentsTally(), ContentsTally()
        for table in TABLES:
            await _copy(connection, table, sent.through(table, rows_of(table)))
            await _pass_through(connection, table, arrived)
            _refuse_difference(sent.tables[-1], arrived.tables[-1])
            filled(arrived.tables[-1])
        if last_number:
            for sequence in _SEQUENCES:
                await connection.execute("SELECT setval($1::text::regclass, $2)", sequence, last_number)
        return arrived.contents


async def _copy(connection: asyncpg.Connection, table: StoreTable, rows: Iterable[Row]) -> None:
    """Copy the rows into a table; `since`, of the memories, is for people alone."""
    columns = table.columns
    if table is DEDUPLICATION:  # which remembers here, for people, since when a key is known
        columns = (*columns, "since")
        rows = ((*row, row[-1] - DEDUPLICATION_MS) for row in rows)
    await connection.copy_records_to_table(table.name, records=rows, columns=columns, timeout=None)


async def _pass_through(connection: asyncpg.Connection, table: StoreTable, tally: ContentsTally) -> None:
    """Count all rows of a table, which are read a batch at a time."""
    tally.begin(table)
    selects = (table.select, outbox.AS_DELIVERIES) if table is DELIVERIES else (table.select,)
    for select in selects:
        cursor = await connection.cursor(select)
        while batch := await cursor.fetch(_BATCH_ROWS):
            for row in batch:
                tally.add(row)
    tally.end()


async def _refuse_used(connection: asyncpg.Connection) -> None:
    """Raise StoreUnavailable if one of the store's tables has rows."""
    nonempty_tables = [
        table.name
        for table in TABLES
        if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {table.name})")
    ]
    if nonempty_tables:
        raise StoreUnavailable(
            f"the database has a store already, with rows in {', '.join(nonempty_tables)}: migrate into an empty database"
        )


def _refuse_difference(sent: TableDigest, arrived: TableDigest) -> None:
    """Raise StoreUnavailable if other rows arrived than were sent."""
    if sent != arrived:
        raise StoreUnavailable(
            f"{arrived.rows} rows of {sent.name} with the digest {arrived.digest} arrived of {sent.rows} with"
            f" {sent.digest}: nothing was kept"
        )


@asynccontextmanager
async def _connection(url: str, name: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection without a time limit for statements, as servers' have one; what goes wrong is StoreUnavailable."""
    try:
        connection = await asyncpg.connect(
            url, timeout=PATIENCE_SECONDS, server_settings={"application_name": name}
        )
        try:
            yield connection
        finally:
            await connection.close()
    except (*LOST, asyncpg.PostgresError) as error:
        raise StoreUnavailable(f"the database failed: {describe(error)}") from error
