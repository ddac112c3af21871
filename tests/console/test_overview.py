"""Overview's rates and its line about the node."""

import html
import re
from pathlib import Path

from redrive.app import assembled
from redrive.console.hour import MINUTES as HOUR_MINUTES
from redrive.engine.operations import LEASE_MS, SCOPES_MAX, RedriveOptions
from redrive.model.metric import MINUTE_MS
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.task import CarefulPace
from redrive.model.topic import Message, Topic
from redrive.settings import Settings
from tests.console.services import make_key
from tests.console.world import ROOM, ROOT, SCOPE, URL, Visitor, make_world, visiting
from tests.telemetry.facts import FAILED, attempted

OTHER = ResourceName("111111111111", "eu-west-1")


async def advance(visitor: Visitor, ms: int) -> None:
    assert visitor.server.time is not None
    await visitor.server.time.advance(ms)
    await visitor.post(f"{ROOM}/endpoints", {})  # past the memo of a second


async def overview(visitor: Visitor, query: str = "") -> str:
    return (await visitor.get(f"{ROOT}/{query}")).body.decode()


def shown(page: str) -> dict[str, str]:
    """The rates of a page, by their labels."""
    return dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+/s)</dd>", page))


def summary(page: str, label: str) -> str:
    (found,) = re.findall(rf'role="img" aria-label="({label} in [^"]+)"', page)
    return str(found)


async def send(visitor: Visitor, scope: ResourceName, messages: int) -> Queue:
    """Send messages to a queue of a place."""
    engine = visitor.server.core.engine
    name = scope._replace(name="sent-to")
    known = await engine.resources.queues.get(name)
    queue = known or await engine.resources.queues.create(Queue(0, name))
    visitor.server.core.telemetry.metrics.sent(queue, messages, 10 * messages, engine.clock.now())
    return queue


async def test_the_rates_are_those_of_the_last_whole_minute_and_the_line_has_fifteen() -> None:
    async with visiting(clock="simulated") as visitor:
        queue = await send(visitor, SCOPE, 6000)
        metrics, now = visitor.server.core.telemetry.metrics, visitor.server.core.engine.clock.now()
        metrics.received(queue, 30, now)
        for _ in range(3):
            metrics.attempted(attempted(now, protocol="https"))
        metrics.attempted(attempted(now, FAILED))
        assert set(shown(await overview(visitor)).values()) == {"0/s"}  # the minute is not over
        await advance(visitor, MINUTE_MS + 15_000)
        page = await overview(visitor)
        assert shown(page) == {
            "Sent": "100/s",
            "Received": "0.5/s",
            "Pushed": "0.05/s",
            "Attempts failed": "0.02/s",
        }
        await advance(visitor, 14 * MINUTE_MS)
        page = await overview(visitor)
        assert shown(page)["Sent"] == "0/s"
        assert summary(page, "Sent") == "Sent in each of the last 15 minutes: 0/s to 100/s"
        await advance(visitor, MINUTE_MS)
        assert "0/s to 0/s" in summary(await overview(visitor), "Sent")


async def test_a_polled_page_with_rates_changes_once_a_minute_and_not_at_rest() -> None:
    async with visiting(clock="simulated") as visitor:
        await send(visitor, SCOPE, 6000)
        tag, changed = "", []
        for _ in range(4 * 62):
            answer = await visitor.get(f"{ROOT}/", **{"x-redrive-part": "live", "if-none-match": tag})
            changed.append(answer.status != 304)
            tag = answer.headers["ETag"]
            await advance(visitor, MINUTE_MS // 4)
        # At first, with each place of the busy minute along the line, and when it is past.
        assert sum(changed) == 1 + HOUR_MINUTES - 1 + 1


async def test_rates_are_of_the_places_that_are_shown_alone() -> None:
    async with visiting(clock="simulated") as visitor:
        await send(visitor, SCOPE, 6000)
        await send(visitor, OTHER, 600)
        await advance(visitor, MINUTE_MS + 15_000)
        assert shown(await overview(visitor))["Sent"] == "110/s"
        assert shown(await overview(visitor, "?place=111111111111/eu-west-1"))["Sent"] == "10/s"
        assert set(shown(await overview(visitor, "?place=222222222222/eu-west-1")).values()) == {"0/s"}


AZURE = "11111111-1111-1111-1111-999999999999"  # of the account whose number its last digits are


async def test_any_place_of_an_azure_subscription_is_found() -> None:
    async with visiting() as visitor:
        resources = visitor.server.core.engine.resources
        groups = [f"group-{number:03}" for number in range(2 * SCOPES_MAX + 1)]
        for group in groups:
            await resources.topics.create(Topic(0, ResourceName(AZURE, group, "t"), "eventgrid"))
        found = []
        path = f"{ROOT}/?of={AZURE}"
        for _ in range(3):
            page = (await visitor.get(path)).body.decode()
            found += re.findall(rf"{AZURE} · (group-\d+)</a></th>", page)
            path = html.unescape("".join(re.findall(r'id="next" href="([^"]+)"', page)))
        assert (found, path) == (groups, "")
        alone = await overview(visitor, f"?place={AZURE}/{groups[-1]}")
        assert re.findall(rf"{AZURE} · (group-\d+)</a></th>", alone) == groups[-1:]


async def test_the_picker_finds_places_of_a_subscription_behind_any_number_of_others() -> None:
    async with visiting(auth="required") as visitor:
        resources = visitor.server.core.engine.resources
        for number in range(SCOPES_MAX):
            name = ResourceName(f"{number:012}", "us-east-1", "q")
            await resources.queues.create(Queue(0, name))
        await resources.topics.create(Topic(0, ResourceName(AZURE, "rg", "t"), "eventgrid"))
        key = await make_key(visitor.server.core.keyring, "999999999999")
        await visitor.post(f"{ROOT}/login", {"key": key.access_key_id, "secret": key.secret})
        assert AZURE not in await overview(visitor)
        led = await visitor.get(f"{ROOT}/place?place={AZURE}")
        assert f"{AZURE} · rg" in (await visitor.get(led.headers["Location"])).body.decode()
        there = await visitor.get(f"{ROOT}/place?place={AZURE}/rg")
        assert there.headers["Location"] == f"{ROOT}/{AZURE}/rg/dead-letters"
        for refused in ("000000000001", "000000000001/us-east-1", "", f"{AZURE}/"):
            assert (await visitor.get(f"{ROOT}/place?place={refused}")).status == 400


async def test_overview_tells_its_node_and_its_store(tmp_path: Path) -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        core = visitor.server.core
        told = node_line(await overview(visitor))
        assert core.runtime.node in told
        assert "store sqlite · clock system" in told  # nothing is committed in memory
        core.meters.commits.seconds.observe(0.0004)
        core.meters.commits.seconds.observe(0.3)
        await visitor.post(f"{ROOM}/endpoints", {})
        assert "median commit 0.5 ms or less" in node_line(await overview(visitor))
    file = f"sqlite:///{tmp_path / 'redrive.db'}"
    async with assembled(Settings(store=file), URL) as server:
        await server.open()
        assert re.search(r"store sqlite of [\d.]+ KiB", node_line(await overview(Visitor(server))))


def node_line(page: str) -> str:
    (told,) = re.findall(r"Node <span class=\"mono\">.*</p>", page)
    return str(told)


async def test_a_queue_from_which_nobody_receives_is_told_of_after_ten_minutes() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        engine = world.engine
        for queue in (world.orders, world.dead):
            await engine.messages.send(queue, [Message(engine.runtime.message_id(), "7001")])
        told = "No receives for 10 minutes"
        await advance(visitor, 9 * MINUTE_MS)
        assert told not in await overview(visitor)
        await advance(visitor, 2 * MINUTE_MS)
        page = await overview(visitor)
        assert page.count(told) == 1  # a dead-letter queue waits for a person, and is told of as such
        assert 'aria-label="Open queue: 1 message waits in orders"' in page
        await engine.messages.receive(world.orders, 1, lease_ms=0, wait_ms=0)
        await advance(visitor, MINUTE_MS)
        assert told not in await overview(visitor)


async def test_a_redrive_that_failed_is_named_for_a_day_or_until_another_of_its_queue_begins() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        operations, queues = world.engine.operations, world.engine.resources.queues
        await world.die("order 1", "order 2", "order 3")
        elsewhere = await queues.create(Queue(0, SCOPE._replace(name="elsewhere")))
        task = await operations.redrives.start(world.dead, elsewhere, 1)
        await queues.delete(elsewhere)
        await advance(visitor, 10_000)
        page = await overview(visitor)
        told = "the queue that it sent to is gone"
        assert told in page
        assert "Redrive of" not in await overview(visitor, f"?place={OTHER.account}/{OTHER.region}")
        link = f"{ROOM}/dead-letters/orders-dead/tasks/{task.id}"
        assert f'href="{link}" aria-label="Open redrive: Redrive of orders-dead: ' in page
        assert "It failed: the queue that it sent to is gone." in (await visitor.get(link)).body.decode()
        await advance(visitor, 24 * 60 * MINUTE_MS + LEASE_MS)
        assert told not in await overview(visitor)
        again = await operations.redrives.start(world.dead, world.dead, 1)
        await operations.redrives.cancel(world.dead.name, again.id)
        await advance(visitor, 10_000)
        assert "Redrive of" not in await overview(visitor)


async def test_a_redrive_that_stopped_itself_is_named_until_somebody_decides() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        operations = world.engine.operations
        await world.die(*(f"order {number}" for number in range(20)))
        task = await operations.redrives.start(world.dead, None, None, RedriveOptions(careful=CarefulPace()))
        await advance(visitor, 1_000)
        await world.fail()
        await advance(visitor, 48 * 60 * MINUTE_MS)
        page = await overview(visitor)
        assert (
            '10 of 20 moved</a><span class="soft">10 of 10 failed their first attempt: Server error 503'
            in page
        )
        assert page.index("No receives for 10 minutes") < page.index("Stopped by itself")
        await operations.redrives.cancel(world.dead.name, task.id)
        await advance(visitor, 1_000)
        assert "Redrive of" not in await overview(visitor)
