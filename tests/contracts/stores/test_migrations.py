"""`schemas/` holds what all migrations together must make: a step that was released is never edited, only followed.

After adding one, `REDRIVE_WRITE_SCHEMAS=1 pytest tests/contracts/stores/test_migrations.py` writes the files anew.
"""

import asyncio
import os
import re
from importlib import resources
from pathlib import Path

import apsw
import pytest

from redrive.model.errors import StoreUnavailable
from redrive.stores import steps
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.bench import Bench, bodies
from tests.contracts.stores.homes import Home, Rows

SCHEMAS = Path(__file__).parent / "schemas"

_SQLITE = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name"
# Of the public schema: Citus has tables of its own in another, and hides its shards from who reads pg_class.
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
    WHERE connamespace = 'public'::regnamespace AND conrelid IN (SELECT oid FROM pg_class)
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
