"""A simulated clock does not wait for endpoints that hang, and does not run ahead of those that answer."""

import asyncio
import random

import pytest

from redrive.engine.engine import Engine
from redrive.engine.ports import PushRequest, Runtime
from redrive.engine.push.late_pushes import HANGS_SECONDS
from redrive.model.attempt import Reason
from redrive.runtime.simulated import SimulatedClock
from redrive.testing import VirtualClock, run_virtual
from tests.engine.stage import Stage, name
from tests.engine.test_attempts import minutely

pytestmark = pytest.mark.usefixtures("pushes")

MINUTE_MS = 60_000


async def standing(stage: Stage) -> SimulatedClock:
    """Let the stage's engine have a clock that stands still, while the loop's time goes on for endpoints."""
    clock = SimulatedClock()
    stage.profile.schedule = minutely()
    stage.profile.changes = {"soft_timeout_ms": 30_000, "lease_ms": 60_000}
    stage.engine = Engine(
        stage.store,
        Runtime(clock, stage.rng, "a"),
        {"plain": stage.profile},
        {"push": stage.endpoint},
        [stage.memory],
    )
    await stage.engine.open()
    topic = await stage.topic()
    await stage.subscribe(topic, "s", "somewhere")
    return clock


def test_an_endpoint_that_hangs_holds_the_clock_up_for_seconds() -> None:
    async def story(real: VirtualClock, rng: random.Random) -> None:
        stage = Stage(real, rng)
        clock = await standing(stage)
        began, hanging = clock.now(), asyncio.Event()

        async def hang(_: PushRequest) -> None:
            await hanging.wait()

        stage.endpoint.before = hang
        topic = await stage.engine.resources.topics.get(name("orders"))
        assert topic is not None
        await stage.publish(topic, "a")
        await clock.advance(5 * MINUTE_MS // 2, stage.engine.until_quiet)
        elapsed_ms = real.now() - stage.endpoint.pushed[0][0]
        assert elapsed_ms < 3 * HANGS_SECONDS * 1000
        assert [(fact.attempt.reason, fact.at - began) for fact in stage.memory.attempts] == [
            (
                Reason.TIMED_OUT,
                90_000,
            )  # its patience ended after 30 s, and the next attempt was a minute later
        ]
        assert len(stage.endpoint.pushed) == 2
        hanging.set()  # the second one is answered after all
        await stage.engine.until_quiet()
        await clock.advance(1, stage.engine.until_quiet)
        assert [fact.attempt.reason for fact in stage.memory.attempts] == [Reason.TIMED_OUT, Reason.ACCEPTED]
        await stage.engine.close()

    run_virtual(story)


def test_the_clock_waits_for_an_endpoint_that_takes_its_time() -> None:
    async def story(real: VirtualClock, rng: random.Random) -> None:
        stage = Stage(real, rng)
        clock = await standing(stage)
        began = clock.now()

        async def think(_: PushRequest) -> None:
            await real.sleep_until(real.now() + HANGS_SECONDS * 1000 - 1)

        stage.endpoint.before = think
        topic = await stage.engine.resources.topics.get(name("orders"))
        assert topic is not None
        await stage.publish(topic, "a")
        await clock.advance(365 * 24 * 60 * MINUTE_MS, stage.engine.until_quiet)
        (fact,) = stage.memory.attempts
        assert (fact.attempt.reason, fact.at) == (Reason.ACCEPTED, began)
        await stage.engine.close()

    run_virtual(story)
