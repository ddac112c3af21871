"""`schemas/` holds what all migrations together must make: a step that was released is never edited, only followed.

After adding one, `REDRIVE_WRITE_SCHEMAS=1 pytest tests/contracts/stores/test_migrations.py` writes the files anew.
"""

import asyncio
import os
import re
import time
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

import apsw
import asyncpg
import pytest

from redrive.engine.ports import Put
from redrive.model.errors import StoreUnavailable
from redrive.stores import steps
from redrive.stores.postgres import migrate
from redrive.stores.postgres import store as postgres_store
from redrive.stores.postgres.distributing import COLUMN, COPIED, DISTRIBUTED
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores import homes
from tests.contracts.stores.bench import Bench, bodies
from tests.contracts.stores.homes import Home, Rows
from tests.services.citus import CitusCluster

SCHEMAS = Path(__file__).parent / "schemas"

_SQLITE = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name"
# Of the public schema: Citus has tables of its own in another, and hides its shards from who reads pg_class.
# NOT NULL is told with the columns: from PostgreSQL 18 on it is a constraint as well.
_POSTGRES = (
    """
    SELECT format('%s.%s %s%s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
        ' COLLATE ' || nullif(o.collname, 'default'), CASE WHEN a.attnotnull THEN ' NOT NULL' END,
        ' STATISTICS ' || nullif(a.attstattarget, -1))
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_collation o ON o.oid = a.attcollation
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY c.relname, a.attnum
    """,
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname",
    """
    SELECT format('%s %s', conrelid::regclass, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND contype <> 'n' AND conrelid IN (SELECT oid FROM pg_class)
    ORDER BY conrelid::regclass::text COLLATE "C", conname
    """,
    """
    SELECT format('%s CACHE %s', sequencename, cache_size) FROM pg_sequences
    WHERE schemaname = 'public' ORDER BY sequencename
    """,
    """
    SELECT format('%s %s', relname, option) FROM pg_class CROSS JOIN unnest(reloptions) AS option
    WHERE relnamespace = 'public'::regnamespace ORDER BY relname, option
    """,
)


@pytest.fixture
def emptied_database(postgres_database: str) -> str:
    """Without the schema: the stores of these tests make it themselves."""
    return postgres_database


# As docs/how-to/postgresql.md has them.
SERVING_ROLE = (
    "CREATE ROLE redrive_serving LOGIN",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO redrive_serving",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO redrive_serving",
)

# What a version leaves that has a thousand steps.
_NEWER = {
    "sqlite-file": "PRAGMA user_version = 1000",
    "postgres": "INSERT INTO schema_steps (number) VALUES (1000)",
    "citus": "INSERT INTO schema_steps (number) VALUES (1000)",
}


async def described(home: Home) -> str:
    """The schema, one line for each thing in it."""
    statements = (_SQLITE,) if home.kind.startswith("sqlite") else _POSTGRES
    lines = [_line(row) for statement in statements for row in await home.query(statement)]
    return "".join(f"{line}\n" for line in lines)


def _line(row: tuple[str]) -> str:
    without_comments = re.sub(r"--.*", "", row[0])
    return " ".join(without_comments.split())


def kept(home: Home, made: str) -> str:
    """The schema as it is checked in."""
    file = SCHEMAS / ("sqlite.txt" if home.kind.startswith("sqlite") else "postgres.txt")
    if "REDRIVE_WRITE_SCHEMAS" in os.environ:
        file.write_text(made)
    return file.read_text()


async def test_all_steps_together_make_the_schema(home: Home) -> None:
    await home.open()
    made = await described(home)
    assert made == kept(home, made)


async def test_a_second_start_changes_nothing(lasting_home: Home) -> None:
    await lasting_home.close(await lasting_home.open())
    before = await traces(lasting_home)
    await lasting_home.open()
    assert await traces(lasting_home) == before


async def test_a_store_of_a_newer_version_is_refused_and_left_unchanged(lasting_home: Home) -> None:
    await lasting_home.close(await lasting_home.open())
    await lasting_home.query(_NEWER[lasting_home.kind])
    before = await traces(lasting_home)
    with pytest.raises(StoreUnavailable, match=r"newer version of Redrive .*step 1000,"):
        await lasting_home.make("old").open()
    assert await traces(lasting_home) == before


async def traces(home: Home) -> Rows:
    """Return everything that a change to the schema would change."""
    if home.kind.startswith("sqlite"):
        return [*await home.query("PRAGMA schema_version"), *await home.query("PRAGMA user_version")]
    return await home.query("SELECT oid, relname, xmin::text FROM pg_class WHERE relkind IN ('r', 'i', 'S')")


async def test_nodes_that_start_together_wait_for_each_other(shared_home: Home) -> None:
    stores = await asyncio.gather(*(shared_home.open(str(number)) for number in range(5)))
    assert len({await store.new_id() for store in stores}) == 5
    steps = await shared_home.query("SELECT number FROM schema_steps ORDER BY number")
    assert [number for (number,) in steps] == list(range(1, len(steps) + 1))


@pytest.mark.parametrize("package", ["sqlite", "postgres"])
def test_steps_are_numbered_without_gaps(package: str) -> None:
    folder = resources.files(f"redrive.stores.{package}") / "migrations"
    numbers = sorted(int(file.name[:4]) for file in folder.iterdir() if file.name.endswith(".sql"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_no_step_keeps_writers_out_or_takes_what_older_nodes_need() -> None:
    """Indexes are made CONCURRENTLY, but those of a new table: it has no rows, and nobody who writes."""
    for number, statements in enumerate(steps.read("redrive.stores.postgres"), start=1):
        made = set(re.findall(r"CREATE TABLE (\w+)", statements))
        now, _, afterwards = statements.partition(migrate.AFTERWARDS)
        assert "DROP INDEX" not in now, (
            f"step {number}: what nodes of the version before look at goes afterwards"
        )
        assert afterwards.count(";") == len(migrate.outdated_by(statements))
        locking = re.findall(r"CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY)\w+ ON (\w+)", statements)
        assert not set(locking) - made, (
            f"step {number}: -- online, and CREATE INDEX CONCURRENTLY IF NOT EXISTS"
        )
        assert ("CONCURRENTLY" in statements) == statements.startswith("-- online\n")


async def test_deliveries_that_lay_by_queue_are_all_there_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    _lay_by_queue(file)
    store = SqliteStore(file)
    await store.open()
    first, second, line = (Bench(store, queue_id, ordered=True) for queue_id in (1, 2, 3))
    assert bodies(await line.peek(10)) == ["c1", "c2", "c3"]
    assert bodies(await line.claim()) == ["c1", "c2", "c3"]
    assert bodies(await second.claim()) == ["b1", "b2"]
    assert bodies(await first.claim()) == ["a1"]
    await store.close()


def _lay_by_queue(file: Path) -> None:
    """A file as the first two steps made it, with three queues, one of which has a group with a turn."""
    connection = apsw.Connection(str(file))
    for statements in steps.read("redrive.stores.sqlite")[:2]:
        connection.execute(statements)
    connection.execute("PRAGMA user_version = 2")
    connection.executemany(
        "INSERT INTO deliveries (queue_id, seq, available_at, attempts, enqueued_at, sent_at, message_id, group_id,"
        " place, body) VALUES (?, ?, 1, 0, 1, 1, ?, ?, ?, ?)",
        [
            (1, 20, b"a1", None, 1, "a1"),
            (2, 10, b"b1", None, 1, "b1"),
            (2, 30, b"b2", None, 1, "b2"),
            (3, 15, b"c1", "g", 2, "c1"),
            (3, 25, b"c2", "g", 0, "c2"),
            (3, 35, b"c3", "g", 0, "c3"),
        ],
    )
    connection.close()


# ---- beside nodes of the version before --------------------------------------------------------------------------

OLD_NODE = {"application_name": "redrive some.host-4711-0a1b2c3d"}
OLD_LINE = "SELECT FROM pg_indexes WHERE indexname = 'deliveries_line'"
OLD_SEND = (
    "INSERT INTO deliveries (queue_id, seq, available_at, attempts, enqueued_at, sent_at, message_id, body, place)"
    " VALUES (7, nextval('delivery_seq'), 1, 0, 1, 1, 'id', 'sent by an old node', 1)"
)
OLD_CLAIM = (
    "SELECT seq FROM deliveries WHERE queue_id = 7 AND place > 0 AND available_at <= 5 ORDER BY available_at, seq"
    " LIMIT 1 FOR UPDATE SKIP LOCKED"
)


async def test_the_oldest_schema_is_brought_up_to_date_beside_old_nodes(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "_DROP_PAUSE_MS", 1)
    connection = await asyncpg.connect(postgres_database, server_settings=OLD_NODE)
    await connection.execute("CREATE TABLE schema_steps (number integer PRIMARY KEY)")
    for number, statements in enumerate(steps.read("redrive.stores.postgres")[:2], start=1):
        await connection.execute(statements)
        await connection.execute("INSERT INTO schema_steps VALUES ($1)", number)
    # As a node left it that was killed while it made an index.
    await connection.execute('ALTER TABLE deliveries ADD COLUMN failure text COLLATE "C"')
    await connection.execute("CREATE INDEX deliveries_failures ON deliveries (seq)")
    await connection.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'deliveries_failures'::regclass"
    )
    upgraded, slowest, sent = asyncio.Event(), 0.0, 0
    claiming = await asyncpg.connect(postgres_database)

    async def old_node() -> None:
        nonlocal slowest, sent
        while not upgraded.is_set():
            began = time.monotonic()
            await connection.execute(OLD_SEND)
            assert await connection.fetchval(OLD_CLAIM) is not None
            slowest, sent = max(slowest, time.monotonic() - began), sent + 1

    reading = (
        claiming.transaction()
    )  # which keeps the tables for longer than others are made to wait for them
    await reading.start()
    await claiming.fetch("SELECT * FROM deliveries")
    old = asyncio.create_task(old_node())
    home = homes.in_postgres(postgres_database)
    opening = asyncio.create_task(home.open())
    while not await home.query(
        "SELECT FROM pg_locks WHERE NOT granted AND relation = 'deliveries'::regclass"
    ):
        assert not opening.done()
    await reading.rollback()
    store = await opening
    upgraded.set()
    await old
    assert await home.query(OLD_LINE)  # by which an old node claims, while it is there
    assert store.has_older_nodes
    await connection.close()
    await claiming.close()
    await store._drop_task
    assert not await home.query(OLD_LINE)
    assert not store.has_older_nodes
    made = await described(home)
    assert made == kept(home, made)
    assert len(await Bench(store, 7).claim(limit=1000)) == min(sent, 1000)
    assert slowest < 5  # 0.5 s for a lock, and whatever the machine is busy with
    await home.leave()


async def test_the_oldest_schema_is_brought_up_to_date_where_its_tables_are_distributed(
    citus_cluster: CitusCluster,
) -> None:
    with citus_cluster.database() as url:
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TABLE schema_steps (number integer PRIMARY KEY)")
        for number, statements in enumerate(steps.read("redrive.stores.postgres")[:2], start=1):
            await connection.execute(statements)
            await connection.execute("INSERT INTO schema_steps VALUES ($1)", number)
        for name in DISTRIBUTED:
            await connection.execute("SELECT create_distributed_table($1, $2)", name, COLUMN)
        for name in COPIED:
            await connection.execute("SELECT create_reference_table($1)", name)
        await connection.execute(OLD_SEND)
        home = homes.in_postgres(url, "citus")
        store = await home.open()
        made = await described(home)
        assert made == kept(home, made)
        assert bodies(await Bench(store, 7).claim()) == ["sent by an old node"]
        await home.leave()
        await connection.close()


async def test_a_role_without_rights_to_the_schema_serves_it_and_does_not_upgrade_it(
    direct_database: str,
) -> None:
    home = homes.in_postgres(direct_database)
    owner = await home.open()
    await owner.write([Put("queue", "q", {})])
    for statement in SERVING_ROLE:
        await home.query(statement)
    name = urlsplit(direct_database)
    serving = name._replace(netloc=f"redrive_serving@{name.netloc.rpartition('@')[2]}").geturl()
    try:
        store = await homes.in_postgres(serving).open("two")
        queue = Bench(store, await store.new_id())
        await queue.send("sent")
        await queue.settle(await queue.claim_one())
        await store.check()
        await store.close()
        await home.query("DELETE FROM schema_steps WHERE number = (SELECT max(number) FROM schema_steps)")
        with pytest.raises(
            StoreUnavailable, match="role redrive_serving may not change it: run redrive store upgrade"
        ):
            await homes.in_postgres(serving).open("three")
    finally:
        await home.query("DROP OWNED BY redrive_serving")
        await home.query("DROP ROLE redrive_serving")
    await home.leave()
