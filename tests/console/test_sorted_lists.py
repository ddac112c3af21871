"""Lists that are sorted as a whole: what fails or holds most first, the others by name behind it, nothing twice."""

import re
from dataclasses import replace

import pytest

from redrive.model.circuit import USUAL
from redrive.model.metric import MetricPoint, Series, Statistics
from redrive.model.outage import FAILURES
from redrive.model.queue import Queue
from redrive.model.topic import Message, Topic
from redrive.telemetry.accumulators import topic_series
from tests.console.services import Services, archive
from tests.console.test_schedules import text
from tests.console.world import ROOM, SCOPE, Visitor, make_world, visiting

NUMBER, FULL = 120, 60


async def made(visitor: Visitor) -> list[str]:
    """Make queues, the last by name of which hold the most; the names of those, the fullest first."""
    engine = visitor.server.core.engine
    names = [f"q-{number:03}" for number in range(NUMBER)]
    queues = [await engine.resources.queues.create(Queue(0, SCOPE._replace(name=name))) for name in names]
    for number, queue in enumerate(queues[-FULL:], 1):
        bodies = [Message(engine.runtime.message_id(), "order") for _ in range(number)]
        await engine.messages.send(queue, bodies)
    assert visitor.server.time is not None
    await visitor.server.time.advance(60_000)
    return names[: -FULL - 1 : -1]


async def make_empty_function(services: Services, name: str) -> None:
    await services.call(
        "lambda",
        "CreateFunction",
        FunctionName=name,
        Runtime="python3.11",
        Role=f"arn:aws:iam::{SCOPE.account}:role/bill",
        Handler="app.handler",
        Code={"ZipFile": archive()},
    )


def rows(page: str) -> list[str]:
    return re.findall(r'<tr data-row><th scope="row"><a class="mono" href="[^"]+">([^<]+)</a>', page)


@pytest.mark.parametrize("sort", ["", "?sort=waiting"])
async def test_pages_lead_from_the_fullest_queue_to_the_last_empty_one(sort: str) -> None:
    async with visiting(clock="simulated") as visitor:
        fullest = await made(visitor)
        names: list[str] = []
        link = f"{ROOM}/queues{sort}"
        while link:
            page = (await visitor.get(link)).body.decode()
            names += rows(page)
            (link,) = re.findall(r'id="next" href="([^"]+)"', page) or [""]
            link = link.replace("&amp;", "&")
        assert names[:FULL] == fullest
        assert names[FULL:] == [f"q-{number:03}" for number in range(NUMBER - FULL)]


async def test_a_search_keeps_to_the_names_that_begin_so() -> None:
    async with visiting(clock="simulated") as visitor:
        await made(visitor)
        page = (await visitor.get(f"{ROOM}/queues?prefix=q-11")).body.decode()
        assert rows(page) == [f"q-{number}" for number in range(119, 109, -1)]


async def test_a_topic_says_how_many_of_its_subscriptions_fail_and_comes_first() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        resources, now = world.engine.resources, world.engine.clock.now()
        await resources.topics.create(Topic(0, SCOPE._replace(name="Another"), "sns"))
        await resources.subscriptions.create(
            replace(world.subscription, id="7a2d", endpoint="https://crm.example.com/")
        )
        await world.engine.operations._circuits.note(world.subscription, USUAL, FAILURES["503"], now)
        published = topic_series(world.topic.name, "messages_published")
        await visitor.server.core.store.add_points([MetricPoint(published, now, "", Statistics.of(12))])
        page = text(await visitor.get(f"{ROOM}/topics"))
        assert "Rentals 1 of 2 failing 2 12 0 0" in page
        assert page.index("Rentals") < page.index("Another")


async def test_functions_are_sorted_as_a_whole_and_found_by_a_part_of_their_name() -> None:
    async with visiting(functions="on", clock="simulated") as visitor:
        services = Services(visitor)
        for number in range(52):
            await make_empty_function(services, f"f-{number:02}")
        now = visitor.server.core.engine.clock.now()
        failed = Series(SCOPE.account, SCOPE.region, "AWS/Lambda", "Errors", (("FunctionName", "f-51"),))
        await visitor.server.core.store.add_points([MetricPoint(failed, now, "Count", Statistics.of(3))])
        first = (await visitor.get(f"{ROOM}/functions")).body.decode()
        assert rows(first)[:2] == ["f-51", "f-00"]
        assert f'id="next" href="{ROOM}/functions?from=50"' in first
        last = (await visitor.get(f"{ROOM}/functions?sort=-name&from=50")).body.decode()
        assert rows(last) == ["f-01", "f-00"]
        assert rows((await visitor.get(f"{ROOM}/functions?filter=-4")).body.decode())[0] == "f-40"
