"""Checks of a plan: an endpoint's last attempts, and how it answered in the last hour, decide on the verdict."""

import re

import pytest

from redrive.console.health import answer_of
from redrive.engine.operations import RedriveOptions
from redrive.model.circuit import USUAL
from redrive.model.metric import MetricPoint, Statistics
from redrive.model.outage import FAILURES
from tests.console.test_schedules import text
from tests.console.world import BUSY, ROOM, World, make_world, visiting

_FIRST = 'data-first aria-describedby="verdict where">'  # of the button that Enter presses

PLAN = f"{ROOM}/dead-letters/orders-dead/plan?what=all&cause=all"


async def fail(world: World, attempts: int) -> None:
    """Let so many attempts at the endpoint fail one after the other."""
    for _ in range(attempts):
        now = world.engine.clock.now()
        await world.engine.operations._circuits.note(world.subscription, USUAL, FAILURES["500"], now)


@pytest.mark.parametrize(
    ("attempts", "verdict"), [(0, "Looks safe"), (2, "Look at this"), (3, "Will fail"), (9, "Will fail")]
)
async def test_three_failures_in_a_row_are_foreseen_to_go_on(attempts: int, verdict: str) -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        await fail(world, attempts)
        answer = await visitor.get(PLAN)
        page, html = text(answer), answer.body.decode()
        assert f"Is it safe? {verdict}" in page
        safe = "Rehearse with copies" if verdict == "Will fail" else "Start in 5 seconds"
        assert re.findall(rf'class="(?:button )?primary"[^>]*{_FIRST}([^<]+)<', html) == [safe]
        assert ("Start anyway" in page) is (verdict == "Will fail")
        assert page.index("Is it safe?") < page.index("What moves")
        assert (f"failed {attempts} attempts in a row" in page) is (attempts > 0)
        assert "In the last hour" not in page
        assert (
            "A message that fails again has 4 attempts, the last 58.5 s to 1 min after it is sent, and then becomes"
            in page
        )


async def test_a_check_says_how_the_endpoint_answered_in_the_last_hour() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        now = world.engine.clock.now()
        answers = [
            MetricPoint(answer_of(world.subscription, delivered).series, now, "", Statistics.of(40, number))
            for delivered, number in ((True, 17), (False, 3))
        ]
        await visitor.server.core.store.add_points(answers)
        page = text(await visitor.get(PLAN))
        assert "In the last hour it accepted 17 of 20 attempts, responding in 40 ms on average." in page
        assert "Looks safe" in page


@pytest.mark.parametrize(("failures", "verdict"), [(2, "Looks safe"), (3, "Will fail")])
async def test_an_endpoint_that_took_nothing_in_the_last_hour_is_not_called_healthy(
    failures: int, verdict: str
) -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        series = answer_of(world.subscription, False).series
        now = world.engine.clock.now()
        await visitor.server.core.store.add_points(
            [MetricPoint(series, now, "", Statistics.of(40, failures))]
        )
        assert f"Is it safe? {verdict}" in text(await visitor.get(PLAN))


async def test_back_is_the_first_choice_of_a_failing_plan_without_bodies_to_rehearse() -> None:
    async with visiting(console_bodies="hidden") as visitor:
        world = await make_world(visitor)
        await fail(world, 3)
        page = (await visitor.get(PLAN)).body.decode()
        assert re.findall(rf'class="button primary" href="([^"]+)" {_FIRST}Back<', page) == [
            f"{ROOM}/dead-letters/orders-dead?cause=all"
        ]


async def test_another_redrive_is_opened_first() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        await world.die("order 1")
        later = RedriveOptions(delay_ms=60_000)
        task = await world.engine.operations.redrives.start(world.dead, None, 1, later)
        page = (await visitor.get(PLAN)).body.decode()
        assert f'/tasks/{task.id}" {_FIRST}Open the other redrive' in page


async def test_causes_beyond_five_are_folded_and_what_stays_is_counted() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        for status in range(500, 507):
            await world.die(f"order {status}", note=BUSY._replace(status=status))
        assert "2 more causes" in text(await visitor.get(PLAN))
        cause = f"{world.orders.id}:server_error%20503"
        assert "6 other messages stay." in text(await visitor.get(f"{PLAN[:-3]}{cause}"))
