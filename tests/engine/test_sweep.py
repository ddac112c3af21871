import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from redrive.engine.engine import ROUND_MS, Engine
from redrive.engine.ports import Counts, Swept
from redrive.engine.sweep import QUEUES_PER_TURN, ROWS_PER_SWEEP
from redrive.model.errors import Refused
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, DEDUPLICATION_MS, Queue
from redrive.model.topic import Publication, Subscription, Topic
from redrive.testing import VirtualClock
from tests.contracts.stores.bench import Bench
from tests.engine.held_store import HeldStore
from tests.engine.samples import bodies, make_queue, numbered, send

MINUTE_MS = 60_000


@pytest.fixture
async def queue(engine: Engine) -> Queue:
    return await make_queue(engine, "q", retention_ms=MINUTE_MS)


async def test_the_sweep_removes_expired_deliveries_alone(
    engine: Engine, clock: VirtualClock, queue: Queue
) -> None:
    began = clock.now()
    await send(engine, queue, "a", "b")
    await clock.sleep_until(began + 1)
    await send(engine, queue, "c")
    await clock.sleep_until(began + MINUTE_MS - 1)
    assert await engine.operations.sweep() == 0
    await clock.sleep_until(began + MINUTE_MS)
    assert await engine.operations.sweep() == 2
    assert await bodies(engine, queue) == ["c"]
    assert engine.operations.counts(queue).messages_expired == 2


async def test_a_deep_queue_is_swept_in_small_steps(
    engine: Engine, store: HeldStore, clock: VirtualClock, queue: Queue
) -> None:
    number = 2 * ROWS_PER_SWEEP + 1
    await send(engine, queue, *numbered(number))
    await clock.sleep_until(clock.now() + MINUTE_MS)
    assert await engine.operations.sweep() == number
    assert store.calls.count("sweep") == 3


async def test_the_sweep_removes_all_deduplication_keys_of_a_deleted_queue(
    engine: Engine, clock: VirtualClock
) -> None:
    queue = await make_queue(engine, "q.fifo", ordered=True)
    bench = Bench(engine.parts.store, queue.id, ordered=True)
    now = clock.now()
    known = [
        bench.new_delivery("a", now, group="g", deduplication_key=key, deduplicate_until=now + MINUTE_MS)
        for key in numbered(2 * ROWS_PER_SWEEP + 1)
    ]
    await engine.parts.store.enqueue(known)
    await engine.resources.queues.delete(queue)
    assert await engine.operations.sweep() == len(known)
    assert await engine.parts.store.sweep(queue.id, 0, now + MINUTE_MS, 1) == Swept(0, has_more=False)


async def test_many_queues_are_read_in_turns(engine: Engine, store: HeldStore, clock: VirtualClock) -> None:
    queues = [await make_queue(engine, f"q{number:03}", retention_ms=MINUTE_MS) for number in range(120)]
    for queue in queues:
        await send(engine, queue, "a")
    await clock.sleep_until(clock.now() + MINUTE_MS)
    store.calls.clear()
    assert await engine.operations.sweep() == 120
    assert store.calls.count("sweep") == 120
    assert store.calls.count("find") <= 120 // QUEUES_PER_TURN + 6


async def test_every_node_sweeps_and_twice_does_no_harm(
    engine: Engine, nodes: Callable[[str], Engine], clock: VirtualClock, queue: Queue
) -> None:
    await send(engine, queue, *numbered(50))
    await clock.sleep_until(clock.now() + MINUTE_MS)
    gone = await asyncio.gather(*(node.operations.sweep() for node in (engine, nodes("two"), nodes("three"))))
    assert sum(gone) == 50


async def test_a_purge_takes_what_is_there_claimed_or_not_and_nothing_later(
    engine: Engine, clock: VirtualClock, queue: Queue
) -> None:
    await send(engine, queue, "a", "b")
    await engine.messages.receive(queue, 1, wait_ms=0)
    assert await engine.messages.purge(queue) == 2
    noted = await engine.resources.queues.get(queue.name)
    assert noted is not None
    assert noted.purged_at == clock.now()
    await send(engine, queue, "c")
    assert await bodies(engine, queue) == ["c"]


async def test_no_count_from_amid_a_purge_is_given_after_it(
    engine: Engine, store: HeldStore, clock: VirtualClock, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [400_000]

    async def slow_count(queue_id: int, now: int, at_most: int | None = None) -> Counts:
        seen = left[0]
        if at_most is None:
            await clock.sleep_until(now + 50)
        return Counts(seen, 0, 0)

    monkeypatch.setattr(store, "count", slow_count, raising=False)
    held = store.hold("purge")
    purging = asyncio.create_task(engine.messages.purge(queue))
    await held.reached
    noted = await engine.resources.queues.get(queue.name)
    assert noted is not None
    assert (await engine.messages.count(noted)).available == 400_000
    left[0] = 0
    held.let_go()
    await purging
    assert (await engine.messages.count(noted)).available == 0


async def test_a_purge_without_a_minimum_interval_is_never_refused(
    engine: Engine, clock: VirtualClock, queue: Queue
) -> None:
    """Not even where the last purge was noted by a node whose clock is ahead."""
    ahead = clock.now() + 5_000
    await engine.resources.queues.update(queue.name, lambda one: replace(one, purged_at=ahead))
    await send(engine, queue, "a")
    with pytest.raises(Refused):
        await engine.messages.purge(queue, rest_ms=MINUTE_MS)
    assert await engine.messages.purge(queue) == 1


async def test_a_message_sent_during_a_purge_stays(engine: Engine, store: HeldStore, queue: Queue) -> None:
    await send(engine, queue, "a")
    held = store.hold("purge")
    purging = asyncio.create_task(engine.messages.purge(queue))
    await held.reached
    await send(engine, queue, "b")
    held.let_go()
    assert await purging == 1
    assert await bodies(engine, queue) == ["b"]


async def test_upkeep_comes_round_and_outlives_a_store_that_is_away(
    engine: Engine, store: HeldStore, clock: VirtualClock, queue: Queue
) -> None:
    upkeep = asyncio.create_task(engine.run())
    await send(engine, queue, "a")
    store.away = True
    await clock.sleep_until(clock.now() + 5 * MINUTE_MS)
    store.away = False
    assert await bodies(engine, queue) == ["a"]
    await clock.sleep_until(clock.now() + ROUND_MS + 1)
    assert await bodies(engine, queue) == []
    assert not upkeep.done()
    upkeep.cancel()


async def test_a_reset_leaves_nothing(engine: Engine, store: HeldStore) -> None:
    dead = await make_queue(engine, "dead")
    queue = await make_queue(engine, "q1", dead_letters=dead)
    await send(engine, queue, *numbered(5))
    await send(engine, dead, *numbered(5))
    await engine.resources.queues.delete(queue)
    await engine.operations.redrives.start(dead, None, 1)
    await engine.reset()
    for kind in ("queue", "queue_number", "deleted_queue", "move_task"):
        assert await store.real.find(kind, "") == []
    assert await bodies(engine, dead) == await bodies(engine, queue) == []


async def test_a_subscription_goes_when_its_time_is_over(engine: Engine, clock: VirtualClock) -> None:
    topic = await engine.resources.topics.create(Topic(0, ResourceName("1", "r", "t"), "sns"))
    ends_at = clock.now() + MINUTE_MS
    for name, moment in (("ends", ends_at), ("stays", None)):
        await engine.resources.subscriptions.create(
            Subscription(name, topic.name, 0, "1", "http", "http://a", expires_at=moment)
        )
    await clock.sleep_until(ends_at - 1)
    await engine.operations.sweep()
    assert [one.id for one in await engine.resources.subscriptions.of(topic.name)] == ["ends", "stays"]
    await clock.sleep_until(ends_at)
    await engine.operations.sweep()
    assert [one.id for one in await engine.resources.subscriptions.of(topic.name)] == ["stays"]


async def test_a_long_sweep_holds_up_no_other_upkeep(
    engine: Engine, store: HeldStore, clock: VirtualClock
) -> None:
    sweeping = store.hold("occupied")
    upkeep = asyncio.ensure_future(engine.run())
    await sweeping.reached
    store.calls.clear()
    await clock.sleep_until(clock.now() + 2 * ROUND_MS + 1)
    assert store.calls.count("find") >= 4  # tasks and backlogs, twice
    upkeep.cancel()
    await asyncio.wait([upkeep])


async def test_an_archive_is_swept_when_there_is_something_old_in_it(
    engine: Engine, store: HeldStore, clock: VirtualClock
) -> None:
    fifo = Topic(0, ResourceName("1", "here", "t"), "plain", ordered=True, archive_ms=2 * MINUTE_MS)
    topic = await engine.resources.topics.create(fifo)
    await engine.resources.topics.create(replace(fifo, name=ResourceName("1", "here", "empty")))
    publication = Publication(b"0" * 16, "a", {}, {}, b"{}", 1, group_id="g", deduplication_id="d")
    await engine.messages.publish(topic, [publication])
    began = clock.now()
    swept = []
    for moment in (0, MINUTE_MS, 2 * MINUTE_MS, DEDUPLICATION_MS - 1, DEDUPLICATION_MS, DEDUPLICATION_MS + 1):
        await clock.sleep_until(began + moment)
        store.calls.clear()
        swept.append((await engine.operations.sweep(), store.calls.count("sweep")))
    assert swept == [(0, 0), (0, 0), (1, 1), (0, 0), (0, 1), (0, 0)]


async def test_empty_queues_are_not_looked_at(engine: Engine, store: HeldStore) -> None:
    queues = [await make_queue(engine, f"q{number:03}") for number in range(50)]
    await send(engine, queues[7], "a")
    await engine.operations.sweep()
    store.calls.clear()
    await engine.operations.sweep()
    assert store.calls == ["occupied", "occupied", "find"]


async def test_a_backlog_is_never_too_old(
    engine: Engine, store: HeldStore, clock: VirtualClock, queue: Queue
) -> None:
    await send(engine, replace(queue, id=await store.real.new_id()), "a")
    await clock.sleep_until(clock.now() + 40 * DAY_MS)
    assert await engine.operations.sweep() == 0
    store.calls.clear()
    assert await engine.operations.sweep() == 0
    assert store.calls == ["occupied", "occupied", "find"]
