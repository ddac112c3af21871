"""The simulated clock's bar, without a browser."""

from urllib.parse import unquote

from redrive.model.topic import Message
from redrive.runtime.simulated import DEFAULT_START
from tests.console.test_schedules import text
from tests.console.world import ROOM, ROOT, make_world, visiting

HOUR_MS = 3_600_000


async def test_every_page_shows_the_simulated_time_and_what_is_due() -> None:
    async with visiting(clock="simulated") as visitor:
        for path in (f"{ROOT}/", f"{ROOM}/queues", f"{ROOT}/schedules", f"{ROOT}/nowhere"):
            page = text(await visitor.get(path))
            assert "simulated clock 2026-01-01 00:00:00Z" in page, path
            assert "next attempt expected in" in page or "no attempt is due" in page, path


async def test_time_goes_on_and_leads_back_to_the_page_that_it_was_told_on() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        await world.engine.messages.send(world.orders, [Message(bytes(16), "a")])
        back = f"{ROOM}/queues?prefix=or"
        moved = await visitor.post(f"{ROOT}/clock", {"by": HOUR_MS, "back": back})
        assert moved.status == 303
        assert moved.headers["Location"] == back
        assert world.engine.clock.now() == DEFAULT_START + HOUR_MS
        page = text(await visitor.get(moved.headers["Location"]))
        assert "2026-01-01 01:00:00Z" in page
        assert "Time advanced by 1 h: no delivery was attempted" in page


async def test_a_place_outside_the_console_is_not_gone_back_to() -> None:
    async with visiting(clock="simulated") as visitor:
        for back in ("https://evil.example/", "//evil.example/", "/\\evil.example", "/_redrive/reset", ""):
            moved = await visitor.post(f"{ROOT}/clock", {"by": 1, "back": back})
            assert moved.headers["Location"] == f"{ROOT}/", back


async def test_the_next_attempt_is_come_to_at_its_own_moment() -> None:
    async with visiting(clock="simulated") as visitor:
        world = await make_world(visitor)
        policy = {"topic": "Rentals", "body": "hello"}
        world.engine.operations.inject_fault(world.subscription.endpoint, 500)
        await visitor.post(f"{ROOM}/topics/Rentals/publish", policy)
        first = await visitor.post(f"{ROOT}/clock", {"by": "next", "back": f"{ROOT}/"})
        assert "1 attempt was made" in unquote(first.headers["Set-Cookie"])
        before = world.engine.clock.now()
        second = await visitor.post(f"{ROOT}/clock", {"by": "next", "back": f"{ROOT}/"})
        assert "1 attempt was made" in unquote(second.headers["Set-Cookie"])
        assert 19_500 <= world.engine.clock.now() - before <= 20_000


async def test_the_clock_is_not_moved_where_no_attempt_is_due() -> None:
    async with visiting(clock="simulated") as visitor:
        await make_world(visitor)
        page = await visitor.get(f"{ROOM}/queues")
        assert b'value="next" disabled' in page.body
        moved = await visitor.post(f"{ROOT}/clock", {"by": "next", "back": f"{ROOT}/"})
        assert "No attempt is due, so the clock was not moved" in text(
            await visitor.get(moved.headers["Location"])
        )
        assert visitor.server.core.engine.clock.now() == DEFAULT_START


async def test_too_long_a_time_and_a_clock_that_is_nobodys_are_refused() -> None:
    async with visiting(clock="simulated") as visitor:
        assert (await visitor.post(f"{ROOT}/clock", {"by": 32 * 24 * HOUR_MS})).status == 400
        assert (await visitor.post(f"{ROOT}/clock", {"by": "-1"})).status == 400
    async with visiting() as visitor:
        assert (await visitor.post(f"{ROOT}/clock", {"by": 1})).status == 404
        assert "simulated clock" not in text(await visitor.get(f"{ROOT}/"))


async def test_a_read_only_visitor_sees_the_time_and_no_buttons() -> None:
    async with visiting(clock="simulated", console="read-only") as visitor:
        page = await visitor.get(f"{ROOM}/queues")
        assert "simulated clock" in text(page)
        assert b'name="by"' not in page.body
        assert (await visitor.post(f"{ROOT}/clock", {"by": 1})).status == 403
