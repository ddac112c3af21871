"""The time in which a SQLite store is backed up, verified, and brought to PostgreSQL."""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
from tests.services.postgres import DatabaseMaker, end_run, own_server
from tests.services.server import REDRIVE

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from redrive.engine.ports import ClaimRequest, NewDelivery
from redrive.stores.sqlite.store import SqliteStore

_QUEUES: Final = 20
_GROUPS: Final = 1000
_BATCH: Final = 1000
_CLAIMED: Final = 1000
_BODY: Final = "m" * 200


def counters(bench: Bench) -> Iterator[Figure]:
    """One figure for each command; the digests of all three are one."""
    messages = bench.scale.backlog_messages
    file, copy = bench.directory / "transfer.db", bench.directory / "copy.db"
    asyncio.run(_fill(file, messages))
    directory = bench.directory / "transfer"
    directory.mkdir()
    for each in (bench.directory, directory):
        each.chmod(0o755)  # the database's server may run as another user and has to pass through
    maker = DatabaseMaker(own_server(directory), prefix="transfer")
    try:
        with maker.database() as url:
            store = f"sqlite:///{file}"
            commands = {
                "backup": ["backup", str(copy), "--store", store],
                "verify": ["verify", "--store", f"sqlite:///{copy}"],
                "migrate": ["migrate", "--store", store, "--to", url],
                "verify in PostgreSQL": ["verify", "--store", url],
            }
            digests = set()
            for name, words in commands.items():
                began = time.perf_counter()
                done = subprocess.run([REDRIVE, "store", *words, "--json"], capture_output=True, check=True)
                seconds = time.perf_counter() - began
                contents = orjson.loads(done.stdout)
                digests.add(orjson.dumps(contents))
                detail = f"{messages / seconds:,.0f} messages a second; {contents['claims']} claims"
                yield Figure(f"{messages:,} messages, {name}", seconds, "s", detail)
            assert len(digests) == 1, "the contents differ"
            digest = next(table["digest"] for table in contents["tables"] if table["name"] == "deliveries")
            yield Figure("digests that differ", len(digests) - 1, "", f"deliveries {digest} in each")
    finally:
        maker.close()
        end_run(directory)


async def _fill(file: Path, messages: int) -> None:
    """Messages of standard and FIFO queues, some of them claimed."""
    store = SqliteStore(file)
    await store.open()
    queues = [await store.new_id() for _ in range(_QUEUES)]
    now = 1_000_000
    for first in range(0, messages, _BATCH):
        await store.enqueue(
            [
                _delivery(queues[number % _QUEUES], number, now)
                for number in range(first, min(first + _BATCH, messages))
            ]
        )
    for claim in range(_CLAIMED):
        queue = queues[claim % _QUEUES]
        await store.claim(ClaimRequest(queue, _is_ordered(queue), 1, now, 30_000, claim + 1))
    await store.close()


def _is_ordered(queue: int) -> bool:
    return queue % 4 == 0


def _delivery(queue: int, number: int, now: int) -> NewDelivery:
    ordered = _is_ordered(queue)
    return NewDelivery(
        queue_id=queue,
        message_id=number.to_bytes(16, "big"),
        body=_BODY,
        headers=None,
        available_at=now,
        enqueued_at=now,
        group_id=f"group {number % _GROUPS}" if ordered else None,
        ordered=ordered,
        deduplication_key=f"key {number}" if ordered else None,
        deduplicate_until=now + 300_000 if ordered else 0,
    )
