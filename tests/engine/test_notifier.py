import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from redrive.engine.ports import Timer
from redrive.engine.receive.notifier import Cancellation, QueueNotifier
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
async def notifier(counting: CountingClock) -> QueueNotifier:
    return QueueNotifier(counting)


class Waiters:
    """Receivers in a line, and the order in which they are woken."""

    def __init__(self, notifier: QueueNotifier, clock: VirtualClock) -> None:
        self._notifier = notifier
        self._clock = clock
        self.woken: list[str] = []

    async def add(self, name: str, **how: Any) -> "asyncio.Task[None]":
        """One more at the end of the line."""
        task = asyncio.create_task(self._wait(name, **how))
        await asyncio.sleep(0)
        return task

    async def _wait(
        self,
        name: str,
        wait_ms: int = 20 * SECOND,
        due_at: int | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        until = self._clock.now() + wait_ms
        await self._notifier.wait(QUEUE, self._notifier.count(QUEUE), until, due_at, cancellation)
        self.woken.append(name)


@pytest.fixture
async def waiters(notifier: QueueNotifier, clock: VirtualClock) -> Waiters:
    return Waiters(notifier, clock)


async def settled() -> None:
    """Everybody who was woken has run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_new_delivery_wakes_the_receiver_that_waits_longest(
    notifier: QueueNotifier, waiters: Waiters
) -> None:
    for name in "abc":
        await waiters.add(name)
    for expected in (["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c"]):
        notifier.announce(QUEUE)
        await settled()
        assert waiters.woken == expected


async def test_each_new_delivery_wakes_one_receiver(notifier: QueueNotifier, waiters: Waiters) -> None:
    for name in "abcd":
        await waiters.add(name)
    notifier.announce(QUEUE, 3)
    notifier.announce(QUEUE + 1, 3)
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
        pytest.param(lambda notifier: notifier.announce(QUEUE), id="an arrival"),
        pytest.param(lambda notifier: notifier.expect(QUEUE, 10**15), id="a later one"),
        pytest.param(lambda notifier: notifier.announce_all(), id="perhaps anything"),
    ],
)
async def test_news_between_the_claim_and_the_wait_are_not_missed(
    notifier: QueueNotifier, clock: VirtualClock, news: Callable[[QueueNotifier], None]
) -> None:
    began = clock.now()
    count = notifier.count(QUEUE)
    news(notifier)
    await notifier.wait(QUEUE, count, began + 20 * SECOND, None)
    assert clock.now() == began


async def test_a_reminder_is_no_news(notifier: QueueNotifier, clock: VirtualClock) -> None:
    """Else a thousand receivers that leave together would send each other back to the store, again and again."""
    began = clock.now()
    count = notifier.count(QUEUE)
    notifier.remind(QUEUE, began + SECOND)
    assert notifier.count(QUEUE) == count


async def test_a_delivery_that_falls_due_wakes_one_receiver(
    notifier: QueueNotifier, clock: VirtualClock, waiters: Waiters
) -> None:
    began = clock.now()
    await waiters.add("a", due_at=began + 5 * SECOND)
    await waiters.add("b", due_at=began + 9 * SECOND)
    notifier.expect(QUEUE, began + 2 * SECOND)
    notifier.expect(QUEUE, began + 3 * SECOND)
    for at, expected in ((1_999, []), (2_000, ["a"]), (19_999, ["a"])):
        await clock.sleep_until(began + at)
        await settled()
        assert waiters.woken == expected


async def test_a_queue_has_one_timer_and_no_timer_outlives_who_waited(
    notifier: QueueNotifier, counting: CountingClock, clock: VirtualClock, waiters: Waiters
) -> None:
    began = clock.now()
    for number in range(10):
        await waiters.add(str(number), due_at=began + (20 - number) * SECOND)
    assert len(counting.pending) == 10 + 1
    notifier.announce(QUEUE, 10)
    await settled()
    assert counting.pending == set()
    assert not notifier.anyone(QUEUE)
    notifier.expect(QUEUE, began + SECOND)
    assert counting.pending == set()


async def test_a_cancelled_receiver_stops_waiting(
    notifier: QueueNotifier, clock: VirtualClock, waiters: Waiters
) -> None:
    began = clock.now()
    gone = Cancellation()
    task = await waiters.add("a", cancellation=gone)
    await waiters.add("b")
    gone.happen()
    await task
    assert (clock.now(), waiters.woken) == (began, ["a"])
    notifier.announce(QUEUE)
    await settled()
    assert waiters.woken == ["a", "b"]


async def test_a_receiver_cancelled_beforehand_does_not_wait(
    notifier: QueueNotifier, clock: VirtualClock
) -> None:
    began = clock.now()
    gone = Cancellation()
    gone.happen()
    await notifier.wait(QUEUE, notifier.count(QUEUE), began + SECOND, None, gone)
    assert clock.now() == began
    assert not notifier.anyone(QUEUE)


async def test_a_receiver_cancelled_after_being_woken_wakes_the_next(
    notifier: QueueNotifier, waiters: Waiters
) -> None:
    first = await waiters.add("a")
    await waiters.add("b")
    notifier.announce(QUEUE)
    first.cancel()
    await settled()
    assert waiters.woken == ["b"]


async def test_a_receiver_cancelled_before_being_woken_wakes_no_other(
    notifier: QueueNotifier, waiters: Waiters
) -> None:
    first = await waiters.add("a")
    await waiters.add("b")
    first.cancel()
    await settled()
    assert waiters.woken == []
    notifier.announce(QUEUE)
    await settled()
    assert waiters.woken == ["b"]


async def test_a_new_delivery_does_not_wake_a_cancelled_receiver(
    notifier: QueueNotifier, waiters: Waiters
) -> None:
    gone = Cancellation()
    await waiters.add("a", cancellation=gone)
    await waiters.add("b")
    gone.happen()
    notifier.announce(QUEUE)
    await settled()
    assert sorted(waiters.woken) == ["a", "b"]


async def test_a_notice_for_all_queues_wakes_every_receiver(
    notifier: QueueNotifier, waiters: Waiters
) -> None:
    for name in "abc":
        await waiters.add(name)
    notifier.announce_all()
    await settled()
    assert waiters.woken == ["a", "b", "c"]


async def test_a_watcher_hears_everything_until_it_stops(
    notifier: QueueNotifier, clock: VirtualClock
) -> None:
    heard: list[int] = []
    notifier.watch(QUEUE, lambda: heard.append(clock.now()))
    began = clock.now()
    notifier.announce(QUEUE)
    notifier.announce_all()
    notifier.expect(QUEUE, began + SECOND)
    await clock.sleep_until(began + SECOND)
    assert heard == [began, began, began + SECOND]
    notifier.unwatch(QUEUE)
    notifier.announce(QUEUE)
    assert len(heard) == 3
    assert not notifier.anyone(QUEUE)
