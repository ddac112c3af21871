"""What a node remembers of queues is not more the longer it runs."""

import random
from collections.abc import Callable, Sized

from redrive.engine.arrivals import Arrivals
from redrive.engine.engine import Engine
from redrive.engine.receive import Flights
from redrive.testing import VirtualClock, run_virtual
from tests.engine.samples import make_queue, send
from tests.engine.stage import Stage


def sizes(part: object) -> dict[str, int]:
    """How much there is in each of an object's collections."""
    return {where: len(held) for where, held in vars(part).items() if isinstance(held, Sized)}


async def test_news_of_queues_leaves_nothing(clock: VirtualClock) -> None:
    arrivals = Arrivals(clock)
    before = sizes(arrivals)
    for queue_id in range(10_000):
        arrivals.announce(queue_id)
        arrivals.expect(queue_id, clock.now() + 1000)
    assert sizes(arrivals) == before


async def test_what_was_in_flight_and_ended_leaves_nothing(engine: Engine) -> None:
    flights = Flights(engine.store, engine.runtime)
    for queue_id in range(100):
        flights.add(queue_id, 3)
        flights.add(queue_id, -3)
        flights.add(queue_id, -1)  # its claim had run out, and was counted anew
    assert set(sizes(flights).values()) == {0}


async def test_a_queue_that_another_node_deleted_is_forgotten(
    engine: Engine, nodes: Callable[[str], Engine], clock: VirtualClock
) -> None:
    queue = await make_queue(engine, "q")
    await send(engine, queue, "a")
    await engine.receiver.receive(queue, 1, wait_ms=0)
    other = nodes("two")
    await other.queues.delete(queue)
    await other.sweeper.round()
    assert queue.id in engine.measure
    engine.directory.forget("queue", queue.name.key)  # it is told of the change
    await engine.sweeper.round()
    assert queue.id not in engine.measure
    assert set(sizes(engine.receiver.flights).values()) == {0}


def test_a_subscription_that_had_a_rate_leaves_no_pace() -> None:
    async def story(clock: VirtualClock, chance: random.Random) -> None:
        stage = Stage(clock, chance)
        stage.profile.rate_max = 10
        await stage.engine.open()
        topic = await stage.topic()
        subscription = await stage.subscribe(topic, "s", "somewhere")
        await stage.publish(topic)
        await stage.engine.quiet()
        paces = "SELECT count(*) FROM paces"
        assert stage.store._connection.execute(paces).fetchone() == (1,)
        await stage.engine.topics.unsubscribe(subscription)
        await stage.engine.sweeper.round()
        assert stage.store._connection.execute(paces).fetchone() == (0,)
        await stage.engine.close()

    run_virtual(story)
