"""Async tests here run on virtual time."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping

import pytest

from redrive.testing import VirtualClock, VirtualLoop
from tests.azure.stage import Stage


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": VirtualLoop}


@pytest.fixture
async def clock() -> VirtualClock:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return VirtualClock(loop)


@pytest.fixture
async def stage(clock: VirtualClock) -> AsyncIterator[Stage]:
    stage = Stage(clock, random.Random(1))
    await stage.engine.open()
    yield stage
    await stage.engine.close()
