"""Replays that are cut short, overtaken, or met by what is published at the same moment."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from redrive.engine.engine import ROUND_MS, Engine
from redrive.engine.ports import Runtime
from redrive.engine.publish.archive import archive_rows, read
from redrive.engine.tasks.leased_tasks import LEASE_MS
from redrive.engine.tasks.replay import BATCH_MAX, OVERLAP_MS
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery, is_replayed
from redrive.model.queue import DAY_MS, Queue
from redrive.model.task import ReplayState
from redrive.model.topic import Attribute, Publication, Subscription, Topic
from redrive.testing import VirtualClock
from tests.engine.held_store import Held, HeldStore
from tests.engine.samples import numbered
from tests.engine.stage import PlainProfile, name

ENVELOPE = b'{"envelope":"plain"}'
MakeNode = Callable[[str], Engine]


@pytest.fixture
def nodes(store: HeldStore, clock: VirtualClock) -> MakeNode:
    return lambda text: Engine(store, Runtime(clock, random.Random(text), text), {"plain": PlainProfile()})


@pytest.fixture
async def topic(engine: Engine) -> Topic:
    return await engine.resources.topics.create(Topic(0, name("t"), "plain", ordered=True, archive_ms=DAY_MS))


@pytest.fixture
async def queue(engine: Engine) -> Queue:
    return await engine.resources.queues.create(Queue(0, name("q"), ordered=True))


@pytest.fixture
async def subscription(engine: Engine, topic: Topic, queue: Queue) -> Subscription:
    return await engine.resources.subscriptions.create(
        Subscription("s", topic.name, 0, "1", "queue", "queue:q")
    )


async def publish(engine: Engine, topic: Topic, *bodies: str) -> None:
    for body in bodies:
        message_id = engine.runtime.message_id()
        publication = Publication(
            message_id, body, {}, {}, ENVELOPE, 1, "g", deduplication_id=message_id.hex()
        )
        await engine.messages.publish(topic, [publication])


async def take(engine: Engine, queue: Queue) -> list[tuple[str, bool]]:
    """Take all out of a queue, in order, when nothing is under way: each body, and whether it is replayed."""
    await engine.until_quiet()
    taken = []
    while deliveries := await engine.messages.receive(queue, 10, wait_ms=0):
        for one in deliveries:
            taken.append((one.body, is_replayed(one.headers)))
            await engine.messages.delete(queue, [(one.seq, one.token or 0)])
    return taken


async def again(
    engine: Engine, subscription: Subscription, ends_at: int | None = None, starts_at: int = 0
) -> None:
    operations = engine.operations
    await engine.resources.write(
        lambda draft: operations.replays.start_in(draft, subscription, starts_at, ends_at)
    )


async def state(engine: Engine, subscription: Subscription) -> ReplayState | None:
    replay = await engine.operations.replays.of(subscription)
    return None if replay is None else replay.state


async def test_messages_published_during_a_replay_come_after_the_replayed_ones(
    engine: Engine, store: HeldStore, topic: Topic, queue: Queue, subscription: Subscription
) -> None:
    await publish(engine, topic, "a", "b")
    assert await take(engine, queue) == [("a", False), ("b", False)]
    held = store.hold("peek")
    await again(engine, subscription)
    await held.reached
    await publish(engine, topic, "c")
    held.let_go()
    assert await take(engine, queue) == [("a", True), ("b", True), ("c", False)]
    await publish(engine, topic, "d")
    assert await take(engine, queue) == [("d", False)]
    assert await state(engine, subscription) is ReplayState.COMPLETED


async def test_a_message_written_after_the_replay_ended_is_delivered_at_once(
    engine: Engine, store: HeldStore, topic: Topic, queue: Queue, subscription: Subscription
) -> None:
    """The routes were found while the replay was under way, and the message is written when that has ended."""
    await publish(engine, topic, "a")
    await take(engine, queue)
    beginning = store.hold("last_seq")
    await again(engine, subscription)
    await beginning.reached
    late = store.hold("publish")
    publishing = asyncio.create_task(publish(engine, topic, "late"))
    await late.reached
    beginning.let_go()
    await engine.until_quiet()
    assert await state(engine, subscription) is ReplayState.COMPLETED
    late.let_go()
    await publishing
    await publish(engine, topic, "next")
    assert await take(engine, queue) == [("a", True), ("late", False), ("next", False)]


async def test_a_message_published_as_the_replay_ends_does_not_restart_it(
    engine: Engine, store: HeldStore, topic: Topic, queue: Queue, subscription: Subscription
) -> None:
    await publish(engine, topic, "a")
    await take(engine, queue)
    beginning = store.hold("last_seq")
    await again(engine, subscription)
    await beginning.reached
    late = store.hold("publish")
    publishing = asyncio.create_task(publish(engine, topic, "late"))
    await late.reached
    outcome: asyncio.Future[Held] = asyncio.get_running_loop().create_future()
    engine.parts.subscriptions.on_backlog = lambda one: (
        None if one.is_held else outcome.set_result(store.hold("peek"))
    )
    beginning.let_go()
    letting_go = await outcome
    await letting_go.reached
    late.let_go()
    await publishing
    letting_go.let_go()
    assert await take(engine, queue) == [("a", True), ("late", False)]
    now = await engine.resources.subscriptions.get(topic.name, subscription.id)
    assert now is not None
    assert not now.is_held
    await publish(engine, topic, "next")
    assert await take(engine, queue) == [("next", False)]


async def test_a_publisher_unaware_of_the_replay_delivers_at_once(
    engine: Engine, store: HeldStore, topic: Topic, queue: Queue, subscription: Subscription
) -> None:
    late = store.hold("publish")
    publishing = asyncio.create_task(publish(engine, topic, "late"))
    await late.reached
    await again(engine, subscription)
    await engine.until_quiet()
    late.let_go()
    await publishing
    assert await take(engine, queue) == [("late", False)]


async def test_a_replay_cut_short_is_carried_on_once_by_another_node(
    engine: Engine,
    nodes: MakeNode,
    store: HeldStore,
    clock: VirtualClock,
    topic: Topic,
    queue: Queue,
    subscription: Subscription,
) -> None:
    bodies = numbered(2 * BATCH_MAX + 1)
    await publish(engine, topic, *bodies)
    await take(engine, queue)
    entered = store.hold_answer("enqueue")  # the first batch is in the queue, and nobody hears of it
    await again(engine, subscription)
    await entered.reached
    await engine.parts.replayer.close()
    two = nodes("two")
    await two.parts.replayer.round()
    await two.until_quiet()
    assert await state(two, subscription) is ReplayState.RUNNING  # leased still
    await clock.sleep_until(clock.now() + LEASE_MS)
    await two.parts.replayer.round()
    assert await take(two, queue) == [(body, True) for body in bodies]
    assert await state(two, subscription) is ReplayState.COMPLETED


async def test_a_store_that_was_away_is_tried_again(
    engine: Engine, store: HeldStore, topic: Topic, queue: Queue, subscription: Subscription
) -> None:
    await publish(engine, topic, "a")
    await take(engine, queue)
    beginning = store.hold("last_seq")
    await again(engine, subscription)
    await beginning.reached
    beginning.lose()
    await engine.until_quiet()
    assert await state(engine, subscription) is ReplayState.PENDING
    await engine.parts.replayer.round()
    assert await take(engine, queue) == [("a", True)]


async def test_a_replay_with_an_end_keeps_later_messages_in_archive_and_buffer(
    engine: Engine, clock: VirtualClock, topic: Topic, queue: Queue, subscription: Subscription
) -> None:
    await again(engine, subscription, ends_at=1)
    await engine.until_quiet()
    bodies = []
    for number in range(10):
        bodies.append(f"m{number}")
        await publish(engine, topic, bodies[-1])
        await clock.sleep_until(clock.now() + OVERLAP_MS // 2)
        await engine.parts.replayer.round()
    assert await take(engine, queue) == []
    rests = await engine.resources.subscriptions.get(topic.name, "s")
    assert rests is not None
    assert rests.waiting_id is not None
    waiting = await engine.parts.store.peek(rests.waiting_id, 100)
    assert 0 < len(waiting) < len(bodies)  # the others are read out of the archive
    await again(engine, rests)
    assert [body for body, _ in await take(engine, queue)] == bodies


@pytest.mark.parametrize("verb", ["purge", "sweep"])
async def test_messages_after_the_end_of_a_resting_replay_arrive(
    engine: Engine, topic: Topic, queue: Queue, subscription: Subscription, store: HeldStore, verb: str
) -> None:
    await again(engine, subscription, ends_at=1)
    assert await take(engine, queue) == []
    await publish(engine, topic, "missed")
    cleaning = store.hold(verb)  # of what rests, which goes on after the answer
    await engine.resources.write(lambda draft: engine.operations.replays.end_in(draft, subscription))
    await asyncio.wait([cleaning.reached], timeout=0.1)
    await publish(engine, topic, "next")
    cleaning.let_go()
    assert await take(engine, queue) == [("next", False)]


async def test_a_replay_that_is_replaced_is_given_up(
    engine: Engine, store: HeldStore, topic: Topic, queue: Queue, subscription: Subscription
) -> None:
    await publish(engine, topic, *numbered(BATCH_MAX + 1))
    await take(engine, queue)
    second_batch = store.hold_answer("enqueue")
    await again(engine, subscription)
    await second_batch.reached
    await again(engine, subscription, starts_at=engine.clock.now())
    second_batch.let_go()
    await engine.until_quiet()
    replay = await engine.operations.replays.of(subscription)
    assert replay is not None
    assert (replay.starts_at, replay.state) == (engine.clock.now(), ReplayState.COMPLETED)


async def test_of_a_subscription_that_goes_nothing_stays(
    engine: Engine, clock: VirtualClock, topic: Topic, queue: Queue, subscription: Subscription
) -> None:
    await again(engine, subscription, ends_at=1)
    await engine.until_quiet()
    await publish(engine, topic, "waits")
    rests = await engine.resources.subscriptions.get(topic.name, "s")
    assert rests is not None
    assert rests.waiting_id is not None
    await engine.resources.subscriptions.delete(rests)
    await engine.parts.replayer.round()
    await engine.operations.sweep()
    assert await engine.parts.store.find("replay", "") == []
    assert await engine.parts.store.peek(rests.waiting_id, 10) == []
    await engine.resources.topics.delete(topic)
    await clock.sleep_until(clock.now() + ROUND_MS)
    await engine.operations.sweep()
    assert await engine.parts.store.peek(topic.id, 10) == []


async def test_a_node_that_closed_does_not_go_on(
    engine: Engine, store: HeldStore, clock: VirtualClock, subscription: Subscription
) -> None:
    await again(engine, subscription, clock.now() + LEASE_MS, starts_at=1)
    await engine.until_quiet()  # it looks again, a second from now
    await engine.parts.replayer.close()
    store.calls.clear()
    await clock.sleep_until(clock.now() + 2 * LEASE_MS)
    assert store.calls == []


async def test_an_archive_that_ends_fails_the_replay_and_lets_what_waits_go(
    engine: Engine, store: HeldStore, topic: Topic, queue: Queue, subscription: Subscription
) -> None:
    beginning = store.hold("last_seq")
    await again(engine, subscription)
    await beginning.reached
    await publish(engine, topic, "waits")
    await engine.resources.topics.update(topic.name, lambda one: replace(one, archive_ms=0))
    beginning.let_go()
    assert await take(engine, queue) == [("waits", False)]
    assert await state(engine, subscription) is ReplayState.FAILED


async def test_an_archive_gives_back_what_was_published(topic: Topic) -> None:
    refusal = Attempt(AttemptResult.REFUSED, Reason.TOO_LARGE, 400, "too many")
    publication = Publication(
        id=bytes(16),
        body="body",
        bodies={"sqs": "other"},
        attributes={"n": Attribute("Number", "7")},
        envelope=b'{"envelope":"sns","subject":"\\u00e4"}',
        bytes_published=12,
        group_id="g",
        deduplication_id="d",
        raw_refusal=refusal,
    )
    (new_delivery,) = archive_rows(topic, publication, 5)
    assert new_delivery.queue_id == topic.id
    headers = b'{"sequence":17,' + (new_delivery.headers or b"")[1:]
    row = Delivery(
        queue_id=topic.id,
        seq=20,
        available_at=5,
        attempts=0,
        token=None,
        enqueued_at=5,
        sent_at=5,
        first_claimed_at=None,
        message_id=new_delivery.message_id,
        group_id=new_delivery.group_id,
        deduplication_id=new_delivery.deduplication_id,
        origin=None,
        headers=headers,
        body=new_delivery.body,
    )
    assert read(row) == (20, 17, 5, publication)
    assert archive_rows(replace(topic, archive_ms=0), publication, 5) == ()
