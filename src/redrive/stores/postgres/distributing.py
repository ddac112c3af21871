"""The tables of a database, spread over the nodes of a Citus cluster.

Every statement that touches a delivery names its queue, so a queue's deliveries, and what is remembered beside them,
live on one node, and the coordinator passes each statement on whole. Documents are few and read everywhere: each node
has a copy. Telemetry, sequences and locks stay with the coordinator, to which all Redrive nodes connect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import asyncpg

from redrive.model.errors import StoreUnavailable
from redrive.stores.postgres.connecting import PATIENCE_SECONDS, describe
from redrive.stores.postgres.connections import LOST, PLANNER, refuse_servers
from redrive.stores.postgres.migrate import migrate

DISTRIBUTED: Final = ("deliveries", "deduplication", "claim_attempts", "paces", "attempts")
COPIED: Final = ("resources",)
COLUMN: Final = "queue_id"

_NAME: Final = "redrive store distribute"
VERSION: Final = "SELECT extversion FROM pg_extension WHERE extname = 'citus'"
NO_PLACE: Final = (
    "no node holds shards: SELECT citus_add_node('worker.example', 5432) on the coordinator, for each worker"
)
PLACES: Final = (
    "SELECT count(*) FROM pg_dist_node WHERE noderole = 'primary' AND isactive AND shouldhaveshards"
)
_IS_COORDINATOR: Final = "SELECT groupid = 0 FROM pg_dist_local_group"
WORKERS: Final = (
    "SELECT count(*), current_user FROM pg_dist_node WHERE noderole = 'primary' AND groupid <> 0 AND isactive"
)
# `resources` has no column to be distributed by: all of it is on each node.
_LAYOUTS: Final = """
    SELECT c.relname AS name, d.partmethod = 'n' AS copied, d.colocationid AS colocation,
        column_to_column_name(d.logicalrelid, d.partkey) AS column,
        (SELECT count(*) FROM pg_dist_shard s WHERE s.logicalrelid = d.logicalrelid) AS shards
    FROM pg_dist_partition d JOIN pg_class c ON c.oid = d.logicalrelid
    WHERE d.logicalrelid = ANY (SELECT to_regclass(name) FROM unnest($1::text[]) AS name)
"""
# A node plans by its own settings, not by those of the session on the coordinator, and has a role's from Citus. Where the
# statistics were of an empty table, ten claims and deletions read 22,000 of a worker's pages without these, 270 with.
_SET_FOR_ROLE: Final = (
    "SELECT format('ALTER ROLE CURRENT_USER IN DATABASE %I SET %I = %L', current_database(), name, value)"
    " FROM unnest($1::text[], $2::text[]) AS planner (name, value)"
)
# Else the copy of `resources` would be refused beside the shards that the same transaction filled in parallel.
_SEQUENTIALLY: Final = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The nodes that the rows of one table are on."""

    name: str  # The table's
    column: str | None  # Distribution column; None: each node has a copy
    shards: int  # Into how many parts it is cut
    rows_moved: int = 0  # Rows that were there before, and moved now
    changed: bool = False  # False: it was so before


@dataclass(frozen=True, slots=True)
class Distribution:
    """A database on a Citus cluster."""

    version: str  # The extension's
    workers: int  # Nodes beside the coordinator
    role: str  # Role whose sessions plan statements on each node as the store needs it
    tables: Sequence[TableLayout]  # Those that are not the coordinator's alone


async def distribute(url: str) -> Distribution:
    """Make the schema if it is absent, and spread its tables; all of it or nothing, and once only.

    Rows that are there already are moved: Citus copies them, their number is compared, and only then are the old ones
    removed. So nobody may change them meanwhile.

    Args:
        url: Of the database on the coordinator, with the role that the servers have.

    Raises:
        StoreUnavailable: There is no way to the database, it is on no coordinator of Citus, servers use it, or its
            tables are laid out in another way.
    """
    try:
        connection = await asyncpg.connect(
            url, timeout=PATIENCE_SECONDS, server_settings={"application_name": _NAME}
        )
        try:
            return await _distribute(connection)
        finally:
            await connection.close()
    except (*LOST, asyncpg.PostgresError) as error:
        raise StoreUnavailable(f"the database could not be distributed: {describe(error)}") from error


async def _distribute(connection: asyncpg.Connection) -> Distribution:
    """Distribute or copy the store's tables, in one transaction; raises StoreUnavailable if Citus cannot."""
    version = await connection.fetchval(VERSION)
    if version is None:
        raise StoreUnavailable(
            "the database has no extension citus: CREATE EXTENSION citus on the coordinator and on each worker first"
        )
    if not await connection.fetchval(_IS_COORDINATOR):
        raise StoreUnavailable("the database is on a worker of its Citus cluster: name the coordinator's")
    if not await connection.fetchval(PLACES):
        raise StoreUnavailable(NO_PLACE)
    async with connection.transaction():
        await migrate(connection)
        before = await layouts(connection)
        refuse_other_layouts(before)
        missing_tables = [name for name in (*DISTRIBUTED, *COPIED) if name not in before]
        rows_moved = await _spread(connection, missing_tables) if missing_tables else {}
        for (statement,) in await connection.fetch(_SET_FOR_ROLE, list(PLANNER), list(PLANNER.values())):
            await connection.execute(statement)
        after = await layouts(connection)
    tables = [_layout(after[name], rows_moved.get(name)) for name in (*DISTRIBUTED, *COPIED)]
    workers, role = await connection.fetchrow(WORKERS)
    return Distribution(version, workers, role, tables)


def _layout(record: asyncpg.Record, moved: int | None) -> TableLayout:
    return TableLayout(record["name"], record["column"], record["shards"], moved or 0, moved is not None)


async def layouts(connection: asyncpg.Connection) -> dict[str, asyncpg.Record]:
    """The layouts of those tables that Citus knows, by name."""
    records = await connection.fetch(_LAYOUTS, [*DISTRIBUTED, *COPIED])
    return {record["name"]: record for record in records}


def refuse_other_layouts(layouts: Mapping[str, asyncpg.Record]) -> None:
    """Refuse tables that were distributed in another way: other programs may rely on it.

    Raises:
        StoreUnavailable: There is such a table.
    """
    colocations = {layouts[name]["colocation"] for name in DISTRIBUTED if name in layouts}
    for name, layout in layouts.items():
        fits = layout["copied"] if name in COPIED else layout["column"] == COLUMN
        if not fits:
            how = f"distributed by {layout['column']}" if layout["column"] else "not distributed by a column"
            raise StoreUnavailable(
                f"the table {name} is {how} already, which Redrive cannot work on: nothing was changed;"
                f" undistribute_table('{name}') makes it the coordinator's again"
            )
    if len(colocations) > 1:
        raise StoreUnavailable(
            "the tables are distributed, but a queue's rows in them are on different nodes: nothing was changed;"
            f" update_distributed_table_colocation(…, colocate_with => '{DISTRIBUTED[0]}') brings them together"
        )


async def _spread(connection: asyncpg.Connection, names: Sequence[str]) -> dict[str, int]:
    """Distribute or copy these tables; how many rows of each were moved.

    Raises:
        StoreUnavailable: Servers use them.
    """
    await refuse_servers(connection, "stop the servers, distribute, and start them again")
    await connection.execute(f"SET LOCAL lock_timeout = '{PATIENCE_SECONDS}s'")
    await connection.execute(f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE")
    await connection.execute(_SEQUENTIALLY)
    return {name: await _move(connection, name) for name in names}


async def _move(connection: asyncpg.Connection, name: str) -> int:
    """Distribute or copy a table, and return its number of rows; raises StoreUnavailable if some got lost."""
    count = f"SELECT count(*) FROM {name}"
    rows: int = await connection.fetchval(count)
    if name in COPIED:
        await connection.execute("SELECT create_reference_table($1)", name)
    else:
        beside = "none" if name == DISTRIBUTED[0] else DISTRIBUTED[0]
        await connection.execute(
            "SELECT create_distributed_table($1, $2, colocate_with => $3)", name, COLUMN, beside
        )
    arrived = await connection.fetchval(count)
    if arrived != rows:
        raise StoreUnavailable(
            f"of {rows} rows of {name} {arrived} arrived on the nodes: nothing was changed"
        )
    await connection.execute("SELECT truncate_local_data_after_distributing_table($1)", name)
    return rows
