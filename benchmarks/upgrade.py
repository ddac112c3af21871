"""The slowest call of a node of the version before while PostgreSQL's schema is upgraded, and how long that takes."""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import asyncpg
from tests.services.postgres import end_run, own_server

from benchmarks.bench import Bench
from benchmarks.figures import Figure, under
from redrive.runtime.machine import SystemClock
from redrive.stores import steps
from redrive.stores.postgres.store import PostgresStore

ROWS_PER_BACKLOG: Final = 10  # of the scale's messages
WAIT_SECONDS_MAX: Final = 1.0
_OLD_STEPS: Final = 2
_FILL: Final = (
    "INSERT INTO deliveries (queue_id, seq, available_at, attempts, enqueued_at, sent_at, token, message_id, body, place)"
    " SELECT n % 100, nextval('delivery_seq'), n, 0, n, n, CASE WHEN n % 50 = 0 THEN n END, 'id', repeat('m', 100), 1"
    " FROM generate_series($1::bigint, $2::bigint) AS n"
)
_SEND: Final = (
    "INSERT INTO deliveries (queue_id, seq, available_at, attempts, enqueued_at, sent_at, message_id, body, place)"
    " VALUES (1000, nextval('delivery_seq'), 1, 0, 1, 1, 'id', 'm', 1)"
)
_CLAIM: Final = (
    "UPDATE deliveries SET available_at = available_at + 1 WHERE queue_id = 1000 AND seq = (SELECT seq FROM deliveries"
    " WHERE queue_id = 1000 AND place > 0 AND available_at <= 9 ORDER BY available_at, seq LIMIT 1 FOR UPDATE)"
)
_INDEXES: Final = (
    "SELECT indexdef FROM pg_indexes WHERE tablename = 'deliveries' AND indexname <> 'deliveries_pkey'"
)
_BATCH: Final = 500_000


def counters(bench: Bench) -> Iterator[Figure]:
    """The slowest send and claim of an old node, and the time of the upgrade."""
    directory = bench.directory / "upgrade"
    directory.mkdir()
    for each in (bench.directory, directory):
        each.chmod(0o755)  # the database's server may run as another user and has to pass through
    try:
        rows = bench.scale.backlog_messages * ROWS_PER_BACKLOG
        slowest, calls, seconds = asyncio.run(_upgrade(own_server(directory).url(), rows))
        yield Figure(f"upgrade of {rows:,} rows", seconds, "s", "three indexes made beside senders")
        detail = f"of {calls:,} sends and claims of a node of the version before"
        yield Figure("slowest call beside it", slowest, "s", detail, under(WAIT_SECONDS_MAX))
    finally:
        end_run(directory)


async def _upgrade(url: str, rows: int) -> tuple[float, int, float]:
    old = await asyncpg.connect(url)
    await old.execute("CREATE TABLE schema_steps (number integer PRIMARY KEY)")
    for number, statements in enumerate(steps.read("redrive.stores.postgres")[:_OLD_STEPS], start=1):
        await old.execute(statements)
        await old.execute("INSERT INTO schema_steps VALUES ($1)", number)
    indexes = [text for (text,) in await old.fetch(_INDEXES)]
    for name in [text.split()[2] for text in indexes]:
        await old.execute(f"DROP INDEX {name}")
    for first in range(1, rows + 1, _BATCH):
        await old.execute(_FILL, first, min(first + _BATCH - 1, rows))
    for text in indexes:
        await old.execute(text)
    await old.execute("ANALYZE deliveries")
    done = asyncio.Event()
    working = asyncio.create_task(_old_node(old, done))
    store = PostgresStore(url, SystemClock(), "new")
    began = time.perf_counter()
    await store.open()
    seconds = time.perf_counter() - began
    done.set()
    slowest, calls = await working
    await store.close()
    await old.close()
    return slowest, calls, seconds


async def _old_node(connection: asyncpg.Connection, done: asyncio.Event) -> tuple[float, int]:
    slowest, calls = 0.0, 0
    while not done.is_set():
        for statement in (_SEND, _CLAIM):
            began = time.perf_counter()
            await connection.execute(statement)
            slowest, calls = max(slowest, time.perf_counter() - began), calls + 1
    return slowest, calls
