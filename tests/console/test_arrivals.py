"""Bursts of dead letters, and the last dead letter, as Overview tells of them."""

import re

import pytest

from redrive.console.arrivals import GAP_MS, Burst, latest_burst
from redrive.model.delivery import DeadLetterReason
from redrive.model.metric import MINUTE_MS, PeriodStatistics, Statistics
from redrive.model.queue import DAY_MS
from redrive.model.topic import Message
from tests.console.test_overview import advance, overview
from tests.console.world import Visitor, World, make_world, visiting

HOUR = 60 * MINUTE_MS


@pytest.mark.parametrize(
    ("came", "burst"),
    [
        ({}, None),
        ({7: 3}, Burst(7 * MINUTE_MS, 3)),
        ({7: 3, 8: 4, 20: 5}, Burst(7 * MINUTE_MS, 12)),
        ({7: 3, 22: 4}, Burst(7 * MINUTE_MS, 7)),
        ({7: 3, 23: 4, 24: 5}, Burst(23 * MINUTE_MS, 9)),
    ],
)
def test_a_burst_ends_once_nothing_came_for_a_quarter_of_an_hour(
    came: dict[int, int], burst: Burst | None
) -> None:
    assert GAP_MS == 15 * MINUTE_MS
    minutes = [
        PeriodStatistics(minute * MINUTE_MS, "", Statistics.of(number)) for minute, number in came.items()
    ]
    assert latest_burst(minutes) == burst


def since(page: str) -> list[tuple[str, str]]:
    """The numbers and beginnings of bursts on a page."""
    found = re.findall(r"([\d,]+) in the latest burst · since <time datetime=\"[-\d]+T(\d\d:\d\d)", page)
    return [(number, f"{time}Z") for number, time in found]


def at(visitor: Visitor) -> str:
    """The minute of the server's clock."""
    seconds = visitor.server.core.engine.clock.now() // 1000
    return f"{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}Z"


async def let_die(visitor: Visitor, world: World, messages: int) -> None:
    """Let consumers give up messages of the queue of orders, as they do: by receiving them too often."""
    engine = world.engine
    sent = [Message(engine.runtime.message_id(), "order") for _ in range(messages)]
    await engine.messages.send(world.orders, sent)
    for _ in range(4):
        await engine.messages.receive(world.orders, messages, lease_ms=0, wait_ms=0)
    await advance(visitor, 6_000)  # what nodes counted is written down every 5 s


async def test_overview_says_how_many_dead_letters_came_since_the_latest_burst_began() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        await world.die("of long ago")
        assert since(await overview(visitor)) == []  # nobody counted it
        await advance(visitor, HOUR)
        began = at(visitor)
        await let_die(visitor, world, 4)
        assert since(await overview(visitor)) == [("4", began)]
        await advance(visitor, 10 * MINUTE_MS)
        await let_die(visitor, world, 3)
        page = await overview(visitor)
        assert "8 dead letters in orders-dead" in page
        assert since(page) == [("7", began)]
        await advance(visitor, HOUR)
        assert since(await overview(visitor)) == [("7", began)]
        began = at(visitor)
        await let_die(visitor, world, 2)
        assert since(await overview(visitor)) == [("2", began)]
        await advance(visitor, DAY_MS)
        assert since(await overview(visitor)) == []


async def test_arrivals_at_a_deleted_queue_are_not_told_of_its_namesake() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        await let_die(visitor, world, 4)
        await world.engine.resources.queues.delete(world.dead)
        await advance(visitor, 5 * MINUTE_MS)
        again = await world.engine.resources.queues.create(world.dead)
        began = at(visitor)
        visitor.server.core.telemetry.metrics.buried(
            world.orders, 1, DeadLetterReason.EXHAUSTED, world.engine.clock.now()
        )
        await world.engine.messages.send(again, [Message(world.engine.runtime.message_id(), "order")])
        await advance(visitor, 6_000)
        assert since(await overview(visitor)) == [("1", began)]


async def test_a_page_on_which_nothing_stands_says_when_the_last_dead_letter_came() -> None:
    async with visiting(clock="simulated") as visitor:
        assert "dead letter" not in quiet(await overview(visitor)).lower()  # there is no queue yet
        world = await make_world(visitor)
        await advance(visitor, 0)
        assert (
            quiet(await overview(visitor)) == "Nothing needs attention. No dead letter in the last 14 days."
        )
        minute = world.engine.clock.now() // MINUTE_MS * MINUTE_MS
        await let_die(visitor, world, 2)
        assert "Nothing needs attention" not in await overview(visitor)
        await world.engine.messages.purge(world.dead)
        await advance(visitor, 3 * DAY_MS)
        page = await overview(visitor)
        assert re.fullmatch(
            r"Nothing needs attention. The last dead letter arrived [-\d]+ [\d:]+Z.", quiet(page)
        )
        (shown,) = re.findall(r'The last dead letter arrived <time datetime="([^"]+)" data-ago>', page)
        assert shown[11:16] + "Z" == f"{minute // HOUR % 24:02}:{minute // MINUTE_MS % 60:02}Z"
        elsewhere = await overview(visitor, "?place=111111111111/eu-west-1")
        assert quiet(elsewhere) == "Nothing needs attention. No dead letter in the last 14 days."
        await advance(visitor, 12 * DAY_MS)
        assert (
            quiet(await overview(visitor)) == "Nothing needs attention. No dead letter in the last 14 days."
        )


async def test_a_young_node_knows_of_no_dead_letter_before_its_start() -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        assert (
            quiet(await overview(visitor))
            == "Nothing needs attention. No dead letter since this node started."
        )


def quiet(page: str) -> str:
    """The sentence in place of needs; empty where there are some."""
    found = re.findall(r'<p class="in calm">(.*?)(?: <span class="soft">|</p>)', page)
    return re.sub(r"<[^>]+>", "", "".join(found)).removeprefix("Calm").strip()
