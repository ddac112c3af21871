"""The log of a SQLite file is kept short beside the commits, and what it held is in the file."""

import asyncio
import logging
from pathlib import Path

import apsw
import pytest

from redrive.engine.ports import NewDelivery
from redrive.stores.sqlite import checkpoint
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.bench import NOON, Bench, fresh_id

PAGE_BYTES = 4096
PAGES_MAX = 100
BODY = "m" * 20_000  # five pages


@pytest.fixture(autouse=True)
def short_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "LOG_PAGES_MAX", PAGES_MAX)


def new_delivery(number: int) -> NewDelivery:
    return NewDelivery(7, fresh_id(), f"{number} {BODY}", None, NOON, NOON)


async def send(store: SqliteStore, numbers: range) -> None:
    for number in numbers:
        await store.enqueue([new_delivery(number)])


def log_pages(file: Path) -> int:
    return file.with_name(f"{file.name}-wal").stat().st_size // PAGE_BYTES


async def test_a_log_that_grows_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "redrive.db"
    store = SqliteStore(file)
    await store.open()
    await asyncio.gather(*(send(store, range(first, first + 100)) for first in range(0, 800, 100)))
    # 800 messages are 5,000 pages of log, if it were never begun anew.
    assert log_pages(file) < 25 * PAGES_MAX
    await store.close()
    store = SqliteStore(file)
    await store.open()
    kept = await Bench(store, 7).peek(1000)
    assert sorted(int(one.body.partition(" ")[0]) for one in kept) == list(range(800))
    await store.close()


async def test_a_failing_checkpoint_fails_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> int:
        raise apsw.IOError("disk I/O error")

    store = SqliteStore(tmp_path / "redrive.db")
    await store.open()
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(checkpoint, "_copy", fail)
        await send(store, range(60))  # 500 pages of log at most
        await store.close()
    told = [record.message for record in caplog.records if "checkpoint_failed" in record.message]
    assert 1 <= len(told) <= 6  # each 100 pages, not at each of the 60 commits
    assert "disk I/O error" in told[0]
    store = SqliteStore(tmp_path / "redrive.db")
    await store.open()
    assert len(await Bench(store, 7).peek(1000)) == 60
    await store.close()
