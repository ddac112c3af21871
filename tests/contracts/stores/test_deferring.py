"""Deferred calls share transactions and one fsync at the end; everybody else's are on disk when they are answered."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextvars import Context
from pathlib import Path
from typing import Any, TypeVar

import apsw
import pytest

from redrive.engine.ports import Put, Store
from redrive.model.errors import Conflict, StoreUnavailable
from redrive.stores.sqlite import transaction
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.bench import Bench

T = TypeVar("T")
FULL = 2  # of PRAGMA synchronous


class Disk:
    """A store in a file, and how often it commits and waits for the disk."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.syncs = 0
        self.commits = 0
        self.store = SqliteStore(file, meter=self)

    async def open(self) -> Bench:
        await self.store.open()
        queue = Bench(self.store, await self.store.new_id())
        self.store.connection.set_commit_hook(self.committed)
        self.syncs = 0
        return queue

    def begin(self) -> float:
        """A commit begins that waits for the disk."""
        self.syncs += 1
        ((level,),) = self.store.connection.execute("PRAGMA synchronous")
        assert level == FULL
        return 0.0

    def end(self, began: float, calls: int) -> None:
        """The commit is done."""

    def committed(self) -> bool:
        self.commits += 1
        return False

    def read(self) -> list[str]:
        """The bodies in the file, as another process sees them."""
        other = apsw.Connection(str(self.file), flags=apsw.SQLITE_OPEN_READONLY)
        bodies = [body for (body,) in other.execute("SELECT body FROM deliveries ORDER BY seq")]
        other.close()
        return bodies


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[Disk]:
    disk = Disk(tmp_path / "redrive.db")
    yield disk
    await disk.store.close()


@pytest.fixture(params=[60.0, 0.0])
def open_seconds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    seconds: float = request.param
    monkeypatch.setattr(transaction, "OPEN_SECONDS", seconds)
    return seconds


async def by_another(work: Coroutine[Any, Any, T]) -> T:
    """Do some work as a client's call does it, which nobody here set off."""
    return await asyncio.get_running_loop().create_task(work, context=Context())


async def bodies(queue: Bench) -> list[str]:
    return [delivery.body for delivery in await queue.peek(1000)]


async def test_deferred_changes_are_seen_at_once_and_stay(store: Store, plain: Bench) -> None:
    async with store.deferring():
        await plain.send("a")
        assert await bodies(plain) == ["a"]
        await by_another(plain.send("b"))
        await plain.send("c")
        assert await by_another(bodies(plain)) == ["a", "b", "c"]
    assert await bodies(plain) == ["a", "b", "c"]


async def test_a_deferred_call_that_is_refused_changes_nothing(store: Store, plain: Bench) -> None:
    async with store.deferring():
        await plain.send("a")
        with pytest.raises(Conflict):
            await store.write([Put("kind", "new", b"{}"), Put("kind", "key", b"{}", version=7)])
        await plain.send("b")
    assert await bodies(plain) == ["a", "b"]
    assert await store.get("kind", "new") is None


async def test_many_deferred_calls_are_few_commits_and_one_sync(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "OPEN_SECONDS", 60)
    monkeypatch.setattr(transaction, "CALLS_MAX", 100)
    queue = await disk.open()
    async with disk.store.deferring():
        for number in range(250):
            await queue.send(f"{number}")
            await disk.store.flush()
        assert (disk.commits, disk.syncs) == (2, 0)
    assert (disk.commits, disk.syncs) == (4, 1)
    assert len(disk.read()) == 250
    await queue.send("after that")
    assert disk.syncs == 2


async def test_writes_of_others_meanwhile_are_on_disk_with_all_before_them(
    disk: Disk, open_seconds: float
) -> None:
    queue = await disk.open()
    async with disk.store.deferring():
        await queue.send("deferred")
        assert disk.syncs == 0
        await by_another(queue.send("a client's"))
        assert disk.syncs == 1
        assert disk.read() == ["deferred", "a client's"]
        await asyncio.gather(queue.send("c"), by_another(queue.send("d")))
        assert disk.syncs == 2


async def test_tasks_that_are_set_off_defer_too_until_it_is_over(disk: Disk) -> None:
    queue = await disk.open()
    sent, over = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await queue.send("a")
        sent.set()
        await over.wait()
        await queue.send("b")

    async with disk.store.deferring():
        task = asyncio.create_task(work())
        await sent.wait()
        assert disk.syncs == 0
    assert disk.syncs == 1
    over.set()
    await task
    assert disk.syncs == 2


async def test_other_processes_wait_for_a_moment_alone(disk: Disk) -> None:
    queue = await disk.open()

    def write() -> None:
        other = apsw.Connection(str(disk.file))
        other.set_busy_timeout(5_000)
        other.execute("BEGIN IMMEDIATE; ROLLBACK")
        other.close()

    async with disk.store.deferring():
        await queue.send("a")
        await asyncio.to_thread(write)
        assert disk.read() == ["a"]


async def test_a_deferred_call_that_fails_undoes_itself_alone(disk: Disk, open_seconds: float) -> None:
    queue = await disk.open()
    async with disk.store.deferring():
        await queue.send("a")
        with pytest.raises(StoreUnavailable):
            await disk.store._commit.submit(lambda transaction: transaction.cursor.execute("nonsense"))
        await queue.send("b")
    assert disk.read() == ["a", "b"]


async def test_a_transaction_that_another_process_forbids_is_refused_and_syncs_again(disk: Disk) -> None:
    queue = await disk.open()
    disk.store.connection.set_busy_timeout(0)
    other = apsw.Connection(str(disk.file))
    async with disk.store.deferring():
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable):
            await queue.send("a")
        other.execute("ROLLBACK")
        await by_another(queue.send("b"))
    assert disk.read() == ["b"]
    other.close()


async def test_a_store_that_is_closed_meanwhile_keeps_what_was_deferred(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "redrive.db")
    queue = await disk.open()

    async def close_meanwhile() -> None:
        async with disk.store.deferring():
            await queue.send("a")
            await disk.store.close()

    with pytest.raises(StoreUnavailable):
        await close_meanwhile()
    assert disk.read() == ["a"]
