"""What a node remembers of queues is not more the longer it runs."""

import random
from collections.abc import Callable, Sized

from redrive.engine.engine import Engine
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.receive.receiver import InFlightEstimate
from redrive.testing import VirtualClock
from tests.engine.samples import make_queue, send
from tests.engine.stage import Stage


def sizes(part: object) -> dict[str, int]:
    """How much there is in each of an object's collections."""
    return {where: len(held) for where, held in vars(part).items() if isinstance(held, Sized)}


async def test_news_of_queues_leaves_nothing(clock: VirtualClock) -> None:
    notifier = QueueNotifier(clock)
    before = sizes(notifier)
    for queue_id in range(10_000):
        notifier.announce(queue_id)
        notifier.expect(queue_id, clock.now() + 1000)
    assert sizes(notifier) == before


async def test_what_was_in_flight_and_ended_leaves_nothing(engine: Engine) -> None:
    in_flight = InFlightEstimate(engine._store, engine.runtime)
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
    assert queue.id in engine._counters
    engine.resources.documents.forget("queue", queue.name.key)  # it is told of the change
    await engine.operations.sweep()
    assert queue.id not in engine._counters
    assert set(sizes(engine._receiver.in_flight).values()) == {0}


async def test_a_subscription_that_had_a_rate_leaves_no_pace(
    clock: VirtualClock, chance: random.Random
) -> None:
    stage = Stage(clock, chance)
    stage.profile.rate_max = 10
    await stage.engine.open()
    topic = await stage.topic()
    subscription = await stage.subscribe(topic, "s", "somewhere")
    await stage.publish(topic)
    await stage.engine.quiet()
    paces = "SELECT count(*) FROM paces"
    assert stage.store._connection.execute(paces).fetchone() == (1,)
    await stage.engine.resources.subscriptions.delete(subscription)
    await stage.engine.operations.sweep()
    assert stage.store._connection.execute(paces).fetchone() == (0,)
    await stage.engine.close()
