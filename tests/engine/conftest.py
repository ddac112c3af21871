"""Async tests here run on virtual time, on an engine whose store is in memory and can be held up."""

import asyncio
import random
from collections.abc import Callable, Mapping

import pytest

from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import VirtualClock, VirtualLoop
from tests.engine.held_store import HeldStore
from tests.engine.stage import PlainProfile


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": VirtualLoop}


@pytest.fixture
async def clock() -> VirtualClock:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return VirtualClock(loop)


@pytest.fixture(params=["task", "direct"])
def pushes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a test twice: each push is a task, or begun without one (`redrive.engine.push.direct`)."""
    monkeypatch.setattr(PlainProfile, "direct", request.param == "direct")


@pytest.fixture
def rng() -> random.Random:
    return random.Random(0)


@pytest.fixture
async def store() -> HeldStore:
    return HeldStore(SqliteStore(None))


@pytest.fixture
def nodes(store: HeldStore, clock: VirtualClock) -> Callable[[str], Engine]:
    """Makes nodes on the one store."""
    return lambda name: Engine(store, Runtime(clock, random.Random(name), name))


@pytest.fixture
async def engine(nodes: Callable[[str], Engine]) -> Engine:
    engine = nodes("one")
    await engine.open()
    return engine
