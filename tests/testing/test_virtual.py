import asyncio
import functools
import itertools
import random
from datetime import UTC, datetime

import pytest

from redrive.testing import NothingScheduled, VirtualClock, VirtualLoop, run_virtual

DAY_MS = 24 * 60 * 60 * 1000


@pytest.mark.parametrize("wait_ms", [1, DAY_MS - 1, 365 * DAY_MS + 1, 100 * 365 * DAY_MS + 7])
def test_a_wait_of_any_length_ends_to_the_millisecond(wait_ms: int) -> None:
    async def story(clock: VirtualClock, rng: random.Random) -> list[int]:
        moments = [clock.now()]
        for after_ms in (wait_ms, 1, 1, 1):
            await clock.sleep_until(moments[-1] + after_ms)
            moments.append(clock.now())
        return [later - earlier for earlier, later in itertools.pairwise(moments)]

    assert run_virtual(story) == [wait_ms, 1, 1, 1]


def test_time_begins_at_a_date_and_passes_only_while_all_wait() -> None:
    async def story(clock: VirtualClock, rng: random.Random) -> None:
        began = clock.now()
        assert datetime.fromtimestamp(began / 1000, UTC).isoformat() == "2026-01-01T00:00:00+00:00"
        for _ in range(1000):
            await asyncio.sleep(0)
        assert clock.now() == began

    run_virtual(story)


def test_calls_are_made_in_the_order_in_which_they_fall_due() -> None:
    async def story(clock: VirtualClock, rng: random.Random) -> list[tuple[int, str]]:
        made: list[tuple[int, str]] = []
        began = clock.now()

        def make(name: str) -> None:
            made.append((clock.now() - began, name))

        for after, name in ((30, "c"), (10, "a"), (20, "b"), (10, "a too"), (-5, "past")):
            clock.call_at(began + after, functools.partial(make, name))
        clock.call_at(began + 15, lambda: made.append((0, "never"))).cancel()
        await clock.sleep_until(began + 40)
        return made

    assert run_virtual(story) == [(0, "past"), (10, "a"), (10, "a too"), (20, "b"), (30, "c")]


def test_time_outs_of_asyncio_are_virtual_too() -> None:
    async def story(clock: VirtualClock, rng: random.Random) -> int:
        began = clock.now()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.get_running_loop().create_future()
        return clock.now() - began

    assert run_virtual(story) == 3_600_000


def test_tasks_that_wait_for_ever_are_named_in_the_error() -> None:
    async def story(clock: VirtualClock, rng: random.Random) -> None:
        never = asyncio.get_running_loop().create_future()
        await asyncio.wait([asyncio.create_task(asyncio.wait_for(never, None), name="the one who waits")])

    with pytest.raises(NothingScheduled, match=r"2 tasks wait for ever: .*the one who waits"):
        run_virtual(story)


def test_a_sleeper_that_is_cancelled_leaves_no_timer() -> None:
    async def story(clock: VirtualClock, rng: random.Random) -> None:
        sleeper = asyncio.create_task(clock.sleep_until(clock.now() + DAY_MS))
        await asyncio.sleep(0)
        sleeper.cancel()
        await asyncio.wait([sleeper])
        await asyncio.get_running_loop().create_future()

    with pytest.raises(NothingScheduled):
        run_virtual(story)


def test_a_thread_is_refused() -> None:
    async def story(clock: VirtualClock, rng: random.Random) -> None:
        await asyncio.to_thread(print)

    with pytest.raises(RuntimeError, match="a thread is invisible to virtual time"):
        run_virtual(story)


def test_chance_follows_from_the_seed() -> None:
    async def story(clock: VirtualClock, rng: random.Random) -> float:
        return rng.random()

    assert run_virtual(story, 1) == run_virtual(story, 1) != run_virtual(story, 2)


def test_a_clock_can_begin_at_any_moment() -> None:
    loop = VirtualLoop()
    try:
        clock = VirtualClock(loop, start=5_000)
        loop.run_until_complete(clock.sleep_until(5_250))
        assert (clock.now(), loop.elapsed_ms) == (5_250, 250)
    finally:
        loop.close()
