"""Shared values: made once for all who wait, and made again when unusable."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from redrive.endpoints.kept_connection import SingleFlight


class Workshop:
    """Makes numbers, one for each `finish`."""

    def __init__(self) -> None:
        self.made = 0
        self.broken: set[int] = set()
        self.shared: SingleFlight[str, int] = SingleFlight(lambda number: number not in self.broken)
        self.error: Exception | None = None
        self._go = asyncio.Event()

    def finish(self) -> None:
        self._go.set()

    def make(self) -> Coroutine[Any, Any, int]:
        async def make() -> int:
            await self._go.wait()
            if self.error is not None:
                raise self.error
            self.made += 1
            return self.made

        return make()

    async def get(self, key: str = "key") -> int:
        return await self.shared.of(key, self.make)


async def waiting(*calls: Callable[[], Coroutine[Any, Any, int]]) -> list["asyncio.Task[int]"]:
    """Tasks that have come as far as they can."""
    tasks = [asyncio.create_task(call()) for call in calls]
    await asyncio.wait(tasks, timeout=0)
    return tasks


async def test_a_cancelled_caller_leaves_the_work_to_the_others() -> None:
    workshop = Workshop()
    first, second = await waiting(workshop.get, workshop.get)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    workshop.finish()
    assert (await second, await workshop.get(), await workshop.get("other")) == (1, 1, 2)


async def test_a_failure_is_told_to_all_who_wait_and_tried_anew_by_the_next() -> None:
    workshop = Workshop()
    tasks = await waiting(workshop.get, workshop.get)
    workshop.error = ConnectionError("refused")
    workshop.finish()
    assert await asyncio.gather(*tasks, return_exceptions=True) == [workshop.error] * 2
    workshop.error = None
    assert await workshop.get() == 1


async def test_unusable_values_are_made_again_and_forgotten() -> None:
    workshop = Workshop()
    workshop.finish()
    assert (await workshop.get("old"), await workshop.get()) == (1, 2)
    workshop.broken = {1, 2}
    assert await workshop.get() == 3
    workshop.broken = set()
    assert await workshop.get("old") == 4


async def test_only_the_value_a_caller_had_is_forgotten() -> None:
    workshop = Workshop()
    workshop.finish()
    assert await workshop.get() == 1
    workshop.shared.forget("key", 1)
    assert await workshop.get() == 2
    workshop.shared.forget("key", 1)
    assert await workshop.get() == 2


async def test_a_close_ends_every_wait() -> None:
    workshop = Workshop()
    (task,) = await waiting(workshop.get)
    await workshop.shared.close()
    with pytest.raises(asyncio.CancelledError):
        await task
