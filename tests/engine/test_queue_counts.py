"""Counts of queues: exact where they are cheap, and of a moment ago where counting takes its time."""

import asyncio
from dataclasses import replace

import pytest

from redrive.engine.messages import KEPT_MS_MAX, KEPT_PER_MS, QueueCounts
from redrive.engine.ports import COUNTED_AT_ONCE, Counts
from redrive.model.errors import StoreUnavailable
from redrive.model.queue import Queue
from redrive.testing import VirtualClock
from tests.engine.samples import named

QUEUE = Queue(7, named("orders"))


class LeapingClock:
    """A clock that can be set to another time; what waits for it waits by the loop's."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.leapt_ms = 0

    def now(self) -> int:
        return self._clock.now() + self.leapt_ms


class CountingStore:
    """A store that has so many messages of a queue, and takes so long to count them all."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.available = 0
        self.takes_ms = 0
        self.whole_counts = 0
        self.away = False

    async def count(self, queue_id: int, now: int, at_most: int | None = None) -> Counts:
        assert queue_id == QUEUE.id
        if at_most is not None:
            return Counts(min(self.available, at_most), 0, 0)
        self.whole_counts += 1
        if self.away:
            raise StoreUnavailable("away")
        counts = Counts(self.available, 0, 0)
        await self._clock.sleep_until(self._clock.now() + self.takes_ms)
        return counts


@pytest.fixture
async def store(clock: VirtualClock) -> CountingStore:
    return CountingStore(clock)


@pytest.fixture
async def leaping(clock: VirtualClock) -> LeapingClock:
    return LeapingClock(clock)


@pytest.fixture
async def counts(store: CountingStore, leaping: LeapingClock) -> QueueCounts:
    return QueueCounts(store, leaping)  # type: ignore[arg-type]  # they have the verbs that are called


async def available(counts: QueueCounts, queue: Queue = QUEUE) -> int:
    return (await counts.of(queue)).available


async def test_a_queue_of_ordinary_size_is_counted_at_each_call(
    counts: QueueCounts, store: CountingStore
) -> None:
    store.takes_ms = 1000
    for number in (3, 0, COUNTED_AT_ONCE - 1, 5):
        store.available = number
        assert await available(counts) == number
    assert store.whole_counts == 0


async def test_a_large_queue_is_counted_again_after_a_hundred_times_as_long(
    counts: QueueCounts, store: CountingStore, clock: VirtualClock
) -> None:
    store.available, store.takes_ms = 1_000_000, 50
    assert await available(counts) == 1_000_000
    counted_at = clock.now()
    store.available = 900_000
    await clock.sleep_until(counted_at + 50 * KEPT_PER_MS - 1)
    assert await available(counts) == 1_000_000
    assert store.whole_counts == 1
    await clock.sleep_until(counted_at + 50 * KEPT_PER_MS)
    assert await available(counts) == 1_000_000  # nobody waits for the next count
    await clock.sleep_until(clock.now() + 51)
    assert await available(counts) == 900_000
    assert store.whole_counts == 2


async def test_no_count_is_given_that_is_older_than_twenty_seconds(
    counts: QueueCounts, store: CountingStore, clock: VirtualClock
) -> None:
    store.available, store.takes_ms = 50_000_000, 3_000
    await counts.of(QUEUE)
    counted_at = clock.now()
    store.available = 0
    await clock.sleep_until(counted_at + 2 * KEPT_MS_MAX)
    assert await available(counts) == 0


async def test_a_queue_that_was_large_is_exact_again(
    counts: QueueCounts, store: CountingStore, clock: VirtualClock
) -> None:
    store.available, store.takes_ms = 1_000_000, 50
    await counts.of(QUEUE)
    store.available, store.takes_ms = 12, 0
    await clock.sleep_until(clock.now() + KEPT_MS_MAX)
    await counts.of(QUEUE)
    await clock.sleep_until(clock.now() + 1)
    for number in (12, 11):
        store.available = number
        assert await available(counts) == number


async def test_counting_that_takes_no_time_is_done_at_each_call(
    counts: QueueCounts, store: CountingStore
) -> None:
    for number in (20_000, 19_999):
        store.available = number
        assert await available(counts) == number


async def test_a_purge_ends_what_was_known(
    counts: QueueCounts, store: CountingStore, clock: VirtualClock
) -> None:
    store.available, store.takes_ms = 1_000_000, 50
    await counts.of(QUEUE)
    store.available = 12
    assert await available(counts, replace(QUEUE, purged_at=clock.now())) == 12


async def test_a_count_of_a_queue_that_was_half_emptied_is_forgotten_with_the_purge(
    counts: QueueCounts, store: CountingStore, clock: VirtualClock
) -> None:
    store.available, store.takes_ms = 400_000, 50
    await counts.of(QUEUE)
    await clock.sleep_until(clock.now() + 50 * KEPT_PER_MS)
    await counts.of(QUEUE)  # has it counted again
    await clock.sleep_until(clock.now() + 10)
    counts.forget(QUEUE)
    store.available = 0
    assert await available(counts) == 0
    await clock.sleep_until(clock.now() + 100)
    assert await available(counts) == 0


async def test_callers_who_wait_for_a_count_that_is_forgotten_are_answered(
    counts: QueueCounts, store: CountingStore, clock: VirtualClock
) -> None:
    store.available, store.takes_ms = 1_000_000, 50
    waiting = asyncio.create_task(available(counts))
    await clock.sleep_until(clock.now() + 10)
    counts.forget(QUEUE)
    store.available = 20_000
    assert await available(counts) == 20_000
    assert await waiting == 1_000_000
    assert await available(counts) == 20_000


async def test_a_count_during_which_the_clock_is_set_back_is_not_remembered(
    counts: QueueCounts, store: CountingStore, leaping: LeapingClock, clock: VirtualClock
) -> None:
    store.available, store.takes_ms = 1_000_000, 50
    counting = asyncio.create_task(available(counts))
    await clock.sleep_until(clock.now() + 10)
    leaping.leapt_ms = -60_000
    await counting
    store.available = 20_000
    assert await available(counts) == 20_000


async def test_a_clock_that_is_set_back_brings_no_old_count(
    counts: QueueCounts, store: CountingStore, leaping: LeapingClock
) -> None:
    store.available, store.takes_ms = 1_000_000, 50
    await counts.of(QUEUE)
    leaping.leapt_ms, store.takes_ms = -3_600_000, 0
    store.available = 20_000
    assert await available(counts) == 20_000


async def test_calls_that_come_together_have_a_queue_counted_once(
    counts: QueueCounts, store: CountingStore
) -> None:
    store.available, store.takes_ms = 1_000_000, 50
    answers = await asyncio.gather(*(available(counts) for _ in range(20)))
    assert answers == [1_000_000] * 20
    assert store.whole_counts == 1


async def test_a_caller_who_leaves_keeps_nobody_from_being_answered(
    counts: QueueCounts, store: CountingStore, clock: VirtualClock
) -> None:
    store.available, store.takes_ms = 1_000_000, 50
    first = asyncio.create_task(available(counts))
    second = asyncio.create_task(available(counts))
    await clock.sleep_until(clock.now() + 10)
    first.cancel()
    assert await second == 1_000_000
    assert store.whole_counts == 1


async def test_a_store_that_is_away_is_asked_again(
    counts: QueueCounts, store: CountingStore, clock: VirtualClock
) -> None:
    store.available, store.takes_ms = 1_000_000, 50
    store.away = True
    with pytest.raises(StoreUnavailable):
        await counts.of(QUEUE)
    store.away = False
    assert await available(counts) == 1_000_000
    store.away = True
    await clock.sleep_until(clock.now() + 50 * KEPT_PER_MS)
    assert await available(counts) == 1_000_000  # as of a moment ago
    await clock.sleep_until(clock.now() + 51)
    store.away = False
    store.available = 2_000_000
    await counts.of(QUEUE)
    await clock.sleep_until(clock.now() + 51)
    assert await available(counts) == 2_000_000


async def test_counts_that_no_longer_stand_are_forgotten(
    counts: QueueCounts, store: CountingStore, clock: VirtualClock
) -> None:
    store.available, store.takes_ms = 1_000_000, 50
    await counts.of(QUEUE)
    await clock.sleep_until(clock.now() + 2 * KEPT_MS_MAX)
    await counts.of(replace(QUEUE, purged_at=1))
    assert len(counts._kept_counts) == 1
    assert not counts._counting
