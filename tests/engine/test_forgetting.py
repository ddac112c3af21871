"""Memory that a node has of queues does not grow the longer it runs."""

import gc
import random
from collections.abc import Callable, Sized
from types import CodeType, FunctionType, ModuleType

import pytest

from redrive.engine.engine import Engine
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.receive.receiver import InFlightEstimate
from redrive.model.topic import Publication, Subscription, Topic
from redrive.testing import VirtualClock
from tests.engine.samples import make_queue, named, send
from tests.engine.stage import Stage

pytestmark = pytest.mark.usefixtures("pushes")

TOPICS = 20  # of one life


def sizes(part: object) -> dict[str, int]:
    """Return the size of each of an object's collections."""
    return {where: len(held) for where, held in vars(part).items() if isinstance(held, Sized)}


async def test_news_of_queues_leaves_nothing(clock: VirtualClock) -> None:
    notifier = QueueNotifier(clock)
    before = sizes(notifier)
    for queue_id in range(10_000):
        notifier.announce(queue_id)
        notifier.expect(queue_id, clock.now() + 1000)
    assert sizes(notifier) == before


async def test_the_in_flight_estimate_forgets_settled_deliveries(engine: Engine) -> None:
    in_flight = InFlightEstimate(engine.parts.store, engine.runtime)
    for queue_id in range(100):
        in_flight.add(queue_id, 3)
        in_flight.add(queue_id, -3)
        in_flight.add(queue_id, -1)  # its claim had run out, and was counted anew
    assert set(sizes(in_flight).values()) == {0}


async def test_a_queue_that_another_node_deleted_is_forgotten(
    engine: Engine, nodes: Callable[[str], Engine], clock: VirtualClock
) -> None:
    queue = await make_queue(engine, "q")
    await send(engine, queue, "a")
    await engine.messages.receive(queue, 1, wait_ms=0)
    other = nodes("two")
    await other.resources.queues.delete(queue)
    await other.operations.sweep()
    assert queue.id in engine.parts.counters
    engine.resources.documents.forget("queue", queue.name.key)  # it is told of the change
    await engine.operations.sweep()
    assert queue.id not in engine.parts.counters
    assert set(sizes(engine.parts.receiver.in_flight).values()) == {0}


async def test_a_subscription_that_had_a_rate_leaves_no_pace(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    stage.profile.rate_max = 10
    await stage.engine.open()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")
    await stage.publish(topic)
    await stage.engine.until_quiet()
    paces = "SELECT count(*) FROM paces"
    assert stage.store.connection.execute(paces).fetchone() == (1,)
    await stage.engine.resources.subscriptions.delete(subscription)
    await stage.engine.operations.sweep()
    assert stage.store.connection.execute(paces).fetchone() == (0,)
    await stage.engine.close()


def reachable(part: object) -> int:
    """The number of objects that an object holds, directly or not; code and modules are not counted."""
    gc.collect()
    found = {id(part): part}
    new = [part]
    while new:
        new = [
            each
            for each in gc.get_referents(*new)
            if id(each) not in found and not isinstance(each, type | ModuleType | FunctionType | CodeType)
        ]
        new = list({id(each): each for each in new}.values())
        found |= {id(each): each for each in new}
    return len(found)


async def test_topics_that_came_and_went_leave_nothing(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    await stage.engine.open()
    held = []
    for number in range(5):
        await live(stage.engine, f"life-{number}")
        for notes in (
            stage.memory.attempts,
            stage.memory.dead,
            stage.endpoint.pushed,
            stage.profile.contexts,
        ):
            notes.clear()
        held.append(reachable(stage.engine))
    assert max(held[2:]) - held[1] < TOPICS, held
    await stage.engine.close()


async def live(engine: Engine, life: str) -> None:
    """Have topics come with queues and subscriptions, be published to, be asked about, and go."""
    topics, queues = engine.resources.topics, engine.resources.queues
    for number in range(TOPICS):
        queue = await make_queue(engine, f"{life}-{number}")
        topic = await topics.create(Topic(0, queue.name, "plain"))
        await engine.resources.subscriptions.create(
            Subscription("s", topic.name, 0, "1", "push", "somewhere", dead_letter=queue.name)
        )
        await engine.resources.subscriptions.count(topic.name)
        await engine.messages.publish(topic, [Publication(b"0" * 16, "a", {}, {}, b"{}", 1)])
        await send(engine, queue, "a")
        await engine.messages.receive(queue, 1, wait_ms=0)
    await engine.until_quiet()
    for number in range(TOPICS):
        name = named(f"{life}-{number}")
        for topic in [found for found in [await topics.get(name)] if found]:
            await topics.delete(topic)
        for queue in [found for found in [await queues.get(name)] if found]:
            await queues.delete(queue)
    await topics.count("1", "here")
    await engine.operations.sweep()
    await engine.parts.dispatcher.look_round()


async def test_changes_that_nobody_asks_about_are_not_kept(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.engine.configuration.count_by_key.CHANGES_MAX", 10)
    numbers = engine.resources.subscriptions.numbers
    assert await engine.resources.topics.count("1", "here") == (0, 0)
    for number in range(100):
        await engine.resources.topics.create(Topic(0, named(f"t{number}"), "plain"))
        assert sum(len(count.changed_keys) for count in numbers._topic_tally._counts.values()) <= 10
    assert await engine.resources.topics.count("1", "here") == (0, 100)
