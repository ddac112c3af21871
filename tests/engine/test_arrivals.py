import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from redrive.engine.arrivals import Arrivals, Gone
from redrive.engine.ports import Timer
from redrive.testing import VirtualClock

QUEUE = 7
SECOND = 1_000


class CountingClock:
    """A virtual clock that knows which calls it has still to make."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.pending: set[int] = set()
        self._calls = 0
        self.now = clock.now
        self.sleep_until = clock.sleep_until

    def call_at(self, at: int, call: Callable[[], None]) -> Timer:
        self._calls += 1
        number = self._calls

        def made() -> None:
            self.pending.discard(number)
            call()

        self.pending.add(number)
        timer = self._clock.call_at(at, made)
        pending = self.pending

        class Counted:
            def cancel(self) -> None:
                pending.discard(number)
                timer.cancel()

        return Counted()


@pytest.fixture
async def counting(clock: VirtualClock) -> CountingClock:
    return CountingClock(clock)


@pytest.fixture
async def arrivals(counting: CountingClock) -> Arrivals:
    return Arrivals(counting)


class Waiters:
    """Receivers in a line, and the order in which they are woken."""

    def __init__(self, arrivals: Arrivals, clock: VirtualClock) -> None:
        self._arrivals = arrivals
        self._clock = clock
        self.woken: list[str] = []

    async def add(self, name: str, **how: Any) -> "asyncio.Task[None]":
        """One more at the end of the line."""
        task = asyncio.create_task(self._wait(name, **how))
        await asyncio.sleep(0)
        return task

    async def _wait(
        self, name: str, wait_ms: int = 20 * SECOND, due_at: int | None = None, gone: Gone | None = None
    ) -> None:
        until = self._clock.now() + wait_ms
        await self._arrivals.wait(QUEUE, self._arrivals.count(QUEUE), until, due_at, gone)
        self.woken.append(name)


@pytest.fixture
async def waiters(arrivals: Arrivals, clock: VirtualClock) -> Waiters:
    return Waiters(arrivals, clock)


async def settled() -> None:
    """Everybody who was woken has run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_arrival_wakes_the_one_who_waits_longest(arrivals: Arrivals, waiters: Waiters) -> None:
    for name in "abc":
        await waiters.add(name)
    for expected in (["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c"]):
        arrivals.announce(QUEUE)
        await settled()
        assert waiters.woken == expected


async def test_so_many_arrivals_wake_so_many(arrivals: Arrivals, waiters: Waiters) -> None:
    for name in "abcd":
        await waiters.add(name)
    arrivals.announce(QUEUE, 3)
    arrivals.announce(QUEUE + 1, 3)
    await settled()
    assert waiters.woken == ["a", "b", "c"]


async def test_a_wait_ends_in_its_time(clock: VirtualClock, waiters: Waiters) -> None:
    began = clock.now()
    task = await waiters.add("a", wait_ms=3 * SECOND)
    await task
    assert clock.now() == began + 3 * SECOND


@pytest.mark.parametrize(
    "news",
    [
        pytest.param(lambda arrivals: arrivals.announce(QUEUE), id="an arrival"),
        pytest.param(lambda arrivals: arrivals.expect(QUEUE, 10**15), id="a later one"),
        pytest.param(lambda arrivals: arrivals.announce_all(), id="perhaps anything"),
    ],
)
async def test_news_between_the_claim_and_the_wait_are_not_missed(
    arrivals: Arrivals, clock: VirtualClock, news: Callable[[Arrivals], None]
) -> None:
    began = clock.now()
    count = arrivals.count(QUEUE)
    news(arrivals)
    await arrivals.wait(QUEUE, count, began + 20 * SECOND, None)
    assert clock.now() == began


async def test_a_reminder_is_no_news(arrivals: Arrivals, clock: VirtualClock) -> None:
    """Else a thousand receivers that leave together would send each other back to the store, again and again."""
    began = clock.now()
    count = arrivals.count(QUEUE)
    arrivals.remind(QUEUE, began + SECOND)
    assert arrivals.count(QUEUE) == count


async def test_what_falls_due_wakes_one(arrivals: Arrivals, clock: VirtualClock, waiters: Waiters) -> None:
    began = clock.now()
    await waiters.add("a", due_at=began + 5 * SECOND)
    await waiters.add("b", due_at=began + 9 * SECOND)
    arrivals.expect(QUEUE, began + 2 * SECOND)
    arrivals.expect(QUEUE, began + 3 * SECOND)
    for at, expected in ((1_999, []), (2_000, ["a"]), (19_999, ["a"])):
        await clock.sleep_until(began + at)
        await settled()
        assert waiters.woken == expected


async def test_a_queue_has_one_timer_and_no_timer_outlives_who_waited(
    arrivals: Arrivals, counting: CountingClock, clock: VirtualClock, waiters: Waiters
) -> None:
    began = clock.now()
    for number in range(10):
        await waiters.add(str(number), due_at=began + (20 - number) * SECOND)
    assert len(counting.pending) == 10 + 1
    arrivals.announce(QUEUE, 10)
    await settled()
    assert counting.pending == set()
    assert not arrivals.anyone(QUEUE)
    arrivals.expect(QUEUE, began + SECOND)
    assert counting.pending == set()


async def test_who_goes_away_stops_waiting(arrivals: Arrivals, clock: VirtualClock, waiters: Waiters) -> None:
    began = clock.now()
    gone = Gone()
    task = await waiters.add("a", gone=gone)
    await waiters.add("b")
    gone.happen()
    await task
    assert (clock.now(), waiters.woken) == (began, ["a"])
    arrivals.announce(QUEUE)
    await settled()
    assert waiters.woken == ["a", "b"]


async def test_who_is_gone_already_does_not_wait(arrivals: Arrivals, clock: VirtualClock) -> None:
    began = clock.now()
    gone = Gone()
    gone.happen()
    await arrivals.wait(QUEUE, arrivals.count(QUEUE), began + SECOND, None, gone)
    assert clock.now() == began
    assert not arrivals.anyone(QUEUE)


async def test_who_is_cancelled_after_being_woken_hands_the_news_on(
    arrivals: Arrivals, waiters: Waiters
) -> None:
    first = await waiters.add("a")
    await waiters.add("b")
    arrivals.announce(QUEUE)
    first.cancel()
    await settled()
    assert waiters.woken == ["b"]


async def test_who_is_cancelled_before_wakes_nobody(arrivals: Arrivals, waiters: Waiters) -> None:
    first = await waiters.add("a")
    await waiters.add("b")
    first.cancel()
    await settled()
    assert waiters.woken == []
    arrivals.announce(QUEUE)
    await settled()
    assert waiters.woken == ["b"]


async def test_an_arrival_is_not_spent_on_who_is_leaving(arrivals: Arrivals, waiters: Waiters) -> None:
    gone = Gone()
    await waiters.add("a", gone=gone)
    await waiters.add("b")
    gone.happen()
    arrivals.announce(QUEUE)
    await settled()
    assert sorted(waiters.woken) == ["a", "b"]


async def test_perhaps_anything_wakes_everybody(arrivals: Arrivals, waiters: Waiters) -> None:
    for name in "abc":
        await waiters.add(name)
    arrivals.announce_all()
    await settled()
    assert waiters.woken == ["a", "b", "c"]


async def test_a_watcher_hears_everything_until_it_stops(arrivals: Arrivals, clock: VirtualClock) -> None:
    heard: list[int] = []
    arrivals.watch(QUEUE, lambda: heard.append(clock.now()))
    began = clock.now()
    arrivals.announce(QUEUE)
    arrivals.announce_all()
    arrivals.expect(QUEUE, began + SECOND)
    await clock.sleep_until(began + SECOND)
    assert heard == [began, began, began + SECOND]
    arrivals.unwatch(QUEUE)
    arrivals.announce(QUEUE)
    assert len(heard) == 3
    assert not arrivals.anyone(QUEUE)
