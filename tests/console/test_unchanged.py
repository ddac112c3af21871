"""Pages that ask again: one that has not changed is not sent again, however late it is, and a grown list says so."""

import re

import pytest

from redrive.console.pages import event_grid, topics
from redrive.console.schedule_chart import Chart, draw_schedule
from redrive.endpoints.containers import BlobContainers
from redrive.model.retry import RetrySchedule
from tests.console.test_event_grid import PAGE, subscribed
from tests.console.world import BUSY, ROOM, Visitor, make_world, pages_of, visiting

PARTIAL = {"x-redrive-part": "live"}
#: Their time goes on by itself: they draw the last hour.
MOVING = (f"{ROOM}/metrics", f"{ROOM}/queues", f"{ROOM}/queues/orders")
#: The part of a page that asks for itself again; the navigation does so beside it.
_LIVE = re.compile(rb'<div id="live"[^>]* data-every=')


async def test_a_page_that_has_not_changed_is_not_sent_again_two_hours_later() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        note = BUSY._replace(at=world.engine.clock.now())  # notes of long ago are swept
        seqs = await world.die("order 1", "order 2", note=note)
        paths = [path for path in pages_of(world, seqs[0]) if path.partition("?")[0] not in MOVING]
        assert visitor.server.time is not None
        await visitor.server.time.advance(60_000)  # how full queues are is looked at each minute
        asking = [path for path in paths if _LIVE.search((await visitor.get(path)).body)]
        assert len(asking) > 10
        first = {path: await visitor.get(path, **PARTIAL) for path in asking}
        await visitor.server.time.advance(7_200_000)
        await visitor.post(f"{ROOM}/endpoints", {})  # past the memo of a second
        for path, before in first.items():
            again = await visitor.get(path, **PARTIAL, **{"if-none-match": before.headers["ETag"]})
            assert (again.status, again.body) == (304, b""), path
            assert int(again.headers["X-Redrive-Now"]) - int(before.headers["X-Redrive-Now"]) == 7_200_000


@pytest.mark.parametrize("order", ["newest", "oldest"])
async def test_the_workbench_says_how_many_are_newer_than_those_it_shows(order: str) -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        await world.die("order 1", "order 2")
        asks = await _asks(visitor, f"{ROOM}/dead-letters/orders-dead?order={order}")
        assert "newer than those below" not in await _live(visitor, asks)
        await world.die("order 3")
        await visitor.post(f"{ROOM}/endpoints", {})
        live = await _live(visitor, asks)
        assert ("1 newer than those below" in live) == (order == "newest")


async def test_the_workbench_of_a_queue_that_was_empty_says_what_came() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        asks = await _asks(visitor, f"{ROOM}/dead-letters/orders-dead")
        await world.die(*(f"order {number}" for number in range(10)))
        assert "10 newer than those below" in await _live(visitor, asks)


async def test_a_subscription_that_asks_again_draws_no_schedule_and_looks_for_no_blobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with visiting() as visitor:
        await make_world(visitor)
        await subscribed(visitor)
        paths = [f"{ROOM}/topics/Rentals/6f1c", PAGE]
        parameter: list[str] = []

        def draw(schedule: RetrySchedule) -> tuple[Chart | None, str]:
            parameter.append("schedule")
            return draw_schedule(schedule)

        async def look(*_: object) -> None:
            parameter.append("blobs")

        monkeypatch.setattr(topics, "draw_schedule", draw)
        monkeypatch.setattr(event_grid, "draw_schedule", draw)
        monkeypatch.setattr(BlobContainers, "newest", look)
        for path in paths:
            assert "Healthy" in await _live(visitor, path)
        assert parameter == []
        for path in paths:
            assert "Retries</h2>" in (await visitor.get(path)).body.decode()
        assert sorted(parameter) == ["blobs", "schedule", "schedule"]


async def _asks(visitor: Visitor, path: str) -> str:
    """The address that a page's live part asks."""
    (found,) = re.findall(
        r'<div id="live"[^>]* data-fragment="([^"]+)"', (await visitor.get(path)).body.decode()
    )
    return str(found).replace("&amp;", "&")


async def _live(visitor: Visitor, path: str) -> str:
    return (await visitor.get(path, **PARTIAL)).body.decode()
