"""Quotas count each request once, whoever goes away and however the store fares."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from redrive.aws.apigateway.control.records import UsagePlan, UsageQuotas
from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.model.errors import StoreUnavailable
from redrive.runtime.simulated import SimulatedClock
from redrive.stores.sqlite.store import SqliteStore

NOW = 1_700_000_000_000
Story = Callable[["Gated"], Awaitable[None]]


class Gated:
    """Quotas of three requests a day, whose writes wait until they are let through, or fail."""

    def __init__(self) -> None:
        self.engine = Engine(SqliteStore(None), Runtime(SimulatedClock(), random.Random(7), "node"))
        self.quotas = UsageQuotas(self.engine)
        self.plan = UsagePlan("0" * 12, "us-east-1", "few", NOW, {"quota": {"limit": 3, "period": "DAY"}})
        self.gate = asyncio.Event()
        self.failure: Exception | None = None
        self._write = self.engine.resources.write
        self.engine.resources.write = self._gated  # type: ignore[method-assign]  # a store that is slow

    async def _gated(self, decide: Any) -> Any:
        await self.gate.wait()
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        return await self._write(decide)

    def spend(self) -> "asyncio.Task[bool]":
        """A request that counts."""
        return asyncio.create_task(self.quotas.spend(self.plan, "key", NOW))


def tell(story: Story) -> None:
    async def told() -> None:
        gated = Gated()
        await gated.engine.open()
        try:
            async with asyncio.timeout(5):
                await story(gated)
        finally:
            await gated.engine.close()

    asyncio.run(told())


def test_requests_that_come_while_a_write_fails_are_counted_by_the_next() -> None:
    async def story(gated: Gated) -> None:
        gated.failure = StoreUnavailable("away")
        first = gated.spend()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        later = [gated.spend() for _ in range(4)]
        await asyncio.sleep(0)
        gated.gate.set()
        with pytest.raises(StoreUnavailable):
            await first
        assert await asyncio.gather(*later) == [True, True, True, False]

    tell(story)


def test_a_caller_that_goes_away_takes_nobody_along() -> None:
    async def story(gated: Gated) -> None:
        first = gated.spend()
        await asyncio.sleep(0)
        second = gated.spend()
        await asyncio.sleep(0)
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
        gated.gate.set()
        assert await second

    tell(story)
