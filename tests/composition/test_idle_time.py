"""A day of simulated time in which nothing is due costs next to nothing: 23 days of retries are 100,000 attempts."""

import functools
from typing import Any

import pytest

from redrive.app import assembled
from redrive.runtime.simulated import SimulatedClock
from redrive.settings import Settings
from redrive.stores.sqlite.store import SqliteStore

READS_MAX = 30  # upkeep at the end, and keys' rounds of six hours


async def test_a_day_in_which_nothing_is_due_hardly_reads_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Any] = []
    read = SqliteStore._read

    @functools.wraps(read)
    async def counted(store: SqliteStore, look: Any) -> Any:
        reads.append(look)
        return await read(store, look)

    monkeypatch.setattr(SqliteStore, "_read", counted)
    settings = Settings(store="sqlite://:memory:", clock="simulated", functions="on")
    async with assembled(settings, "http://127.0.0.1:4566") as server:
        await server.open()
        assert server.time is not None
        assert isinstance(server.core.engine.clock, SimulatedClock)
        await server.time.advance(1000)
        reads.clear()
        await server.time.advance(86_400_000)
        assert len(reads) < READS_MAX
