"""Lists of queues, topics, subscriptions and dead letters say what is not as it should be, without a click."""

import html
import re
from typing import Final

from redrive.console.health import answer_of
from redrive.console.words import moment
from redrive.model.metric import MINUTE_MS, MetricPoint, Statistics
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.model.topic import Message
from redrive.telemetry.accumulators import WEB, topic_series
from tests.console.test_safety_checks import fail
from tests.console.world import ROOM, SCOPE, Visitor, make_world, visiting

_TAG: Final = re.compile(r"<[^>]+>")


async def _row(visitor: Visitor, path: str, name: str) -> list[str]:
    """The texts of the cells of a row that is called so."""
    await visitor.post(f"{ROOM}/endpoints", {})  # past the memo of a second
    page = (await visitor.get(f"{ROOM}/{path}")).body.decode()
    (row,) = [
        each
        for each in re.findall(r"<tr data-row>(.*?)</tr>", page, re.DOTALL)
        if f">{name}</a></th>" in each
    ]
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
    return [html.unescape(" ".join(_TAG.sub("", each).split())) for each in cells]


async def test_a_queue_says_whether_somebody_receives_from_it() -> None:
    async with visiting(clock="simulated") as visitor:
        world, time = await make_world(visitor), visitor.server.time
        assert time is not None
        messages = world.engine.messages
        await messages.send(world.orders, [Message(world.engine.runtime.message_id(), "a") for _ in range(3)])
        assert (await _row(visitor, "queues", "orders"))[2] == "3"
        await time.advance(12 * MINUTE_MS)
        name, state, waiting, in_flight, oldest, *_ = await _row(visitor, "queues", "orders")
        assert (name, state, waiting, in_flight) == ("orders", "Nobody receives", "3", "0")
        assert oldest == "2026-01-01 00:00:00Z"
        page = (await visitor.get(f"{ROOM}/queues/orders")).body.decode()
        assert "No receives from this queue for 10 minutes." in page
        assert "Waiting: 3" in page
        await messages.receive(world.orders, 1, wait_ms=0)
        await time.advance(10_000)
        _, state, waiting, in_flight, _, sent, received, *_ = await _row(visitor, "queues", "orders")
        assert (state, waiting, in_flight, sent, received) == ("Consumed", "2", "1", "0", "0.1/min")
        assert "No receives from" not in (await visitor.get(f"{ROOM}/queues/orders")).body.decode()


async def test_a_dead_letter_queue_says_of_what_its_messages_died_and_since_when() -> None:
    async with visiting(clock="simulated") as visitor:
        world, time = await make_world(visitor), visitor.server.time
        assert time is not None
        await world.die("a", "b")
        await time.advance(MINUTE_MS)
        cells = await _row(visitor, "dead-letters", "orders-dead")
        assert cells[1:4] == ["2", "Server error 503 2", "queue orders and 1 more"]
        assert cells[4] == "2026-01-01 00:00:00Z"
        assert (await _row(visitor, "queues", "orders-dead"))[1] == "Dead letters"


async def test_a_topic_says_how_many_subscribe_and_what_was_published() -> None:
    async with visiting(clock="simulated") as visitor:
        world, time = await make_world(visitor), visitor.server.time
        assert time is not None
        assert (await _row(visitor, "topics", "Rentals"))[1:4] == ["Idle", "1", "0"]
        for counter, state in (("attempts_failed", "None delivered"), ("deliveries_made", "Healthy")):
            series = topic_series(world.topic.name, counter, WEB)
            point = MetricPoint(series, world.engine.clock.now(), "", Statistics.of(4))
            await visitor.server.core.store.add_points([point])
            await time.advance(MINUTE_MS)
            assert (await _row(visitor, "topics", "Rentals"))[1] == state
        await world.engine.resources.subscriptions.delete(world.subscription)
        assert (await _row(visitor, "topics", "Rentals"))[1:3] == ["Nobody subscribes", "0"]


async def test_a_receiver_without_attempts_is_idle_and_not_called_healthy() -> None:
    async with visiting(clock="simulated") as visitor:
        world, time = await make_world(visitor), visitor.server.time
        assert time is not None
        for path in ("endpoints?state=all", "topics/Rentals"):
            assert "Idle</span>" in (await visitor.get(f"{ROOM}/{path}")).body.decode()
        point = MetricPoint(
            answer_of(world.subscription, True).series, world.engine.clock.now(), "", Statistics.of(40)
        )
        await visitor.server.core.store.add_points([point])
        await time.advance(MINUTE_MS)
        for path in ("endpoints?state=all&again", "topics/Rentals?again"):
            page = (await visitor.get(f"{ROOM}/{path}")).body.decode()
            assert ("Healthy</span>" in page, "Idle</span>" in page) == (True, False)


async def test_a_long_list_of_dead_letter_queues_is_cut_into_pages() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        queues = world.engine.resources.queues
        for number in range(50):
            dead = await queues.create(Queue(0, SCOPE._replace(name=f"dead-{number:02}")))
            target = DeadLetterTarget(dead.name, 3)
            await queues.create(Queue(0, SCOPE._replace(name=f"source-{number:02}"), dead_letter=target))
        page = (await visitor.get(f"{ROOM}/dead-letters")).body.decode()
        assert page.count("<tr data-row>") == 50
        assert "The next of 51 queues" in page
        rest = (await visitor.get(f"{ROOM}/dead-letters?from=50")).body.decode()
        assert rest.count("<tr data-row>") == 1


async def test_a_failing_receiver_says_since_when_and_draws_no_line_of_zeros() -> None:
    async with visiting(clock="simulated") as visitor:
        world, time = await make_world(visitor), visitor.server.time
        assert time is not None
        await fail(world, 1)
        await time.advance(60_000)
        await fail(world, 2)
        listed = (await visitor.get(f"{ROOM}/endpoints")).body.decode()
        one = (await visitor.get(f"{ROOM}/topics/Rentals/6f1c")).body.decode()
        since = f'since <time datetime="{moment(world.engine.clock.now() - 60_000)}"'
        assert since in listed
        assert f"3 attempts in a row failed {since}" in one
        assert "Attempts a minute" not in one
        assert "No complete minute with attempts" in one
