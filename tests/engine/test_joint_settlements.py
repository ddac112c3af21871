"""Pushes of a backlog are prepared together, and successes settled with those that occur while others are settled."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from redrive.engine.ports import PushRequest, Settled, SubscriptionContext
from redrive.model.delivery import Delivery
from redrive.testing import VirtualClock
from tests.engine.stage import Stage
from tests.engine.test_attempts import published_while_away

pytestmark = pytest.mark.usefixtures("pushes")

NUMBER = 32


def settlements_of(stage: Stage, first: asyncio.Event | None = None) -> list[int]:
    """Let the number of deliveries of each call of `settle` be written down; the first waits for its event."""
    settle, numbers = stage.store.settle, list[int]()

    async def settled(queue_id: int, ends: Any, now: int, **rules: bool) -> list[Settled]:
        numbers.append(len(ends))
        if first is not None and len(numbers) == 1:
            await first.wait()
        return await settle(queue_id, ends, now, **rules)

    stage.store.settle = settled  # type: ignore[method-assign]  # the same, and counted
    return numbers


async def test_answers_in_different_turns_are_settled_together(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    stage.profile.concurrency_max = NUMBER
    all_asked = asyncio.Event()
    numbers = settlements_of(stage, all_asked)

    async def take_turns(_: PushRequest) -> None:
        number = len(stage.endpoint.pushed)
        for _turn in range(number):
            await asyncio.sleep(0)
        if number == NUMBER:
            all_asked.set()

    stage.endpoint.before = take_turns
    backlog = await published_while_away(stage, *["a"] * NUMBER)
    assert sum(numbers) == NUMBER
    assert len(numbers) <= 3
    assert max(numbers) >= NUMBER - 3
    assert await stage.store.peek(backlog, 1) == []


async def test_a_success_waits_for_no_others(clock: VirtualClock, rng: random.Random) -> None:
    stage = Stage(clock, rng)
    stage.profile.concurrency_max = NUMBER
    numbers = settlements_of(stage)

    async def answer_the_first_at_once(_: PushRequest) -> None:
        if len(stage.endpoint.pushed) > 1:
            await clock.sleep_until(clock.now() + 1_000)

    stage.endpoint.before = answer_the_first_at_once
    await published_while_away(stage, *["a"] * NUMBER)
    assert numbers == [1, NUMBER - 1]


async def test_pushes_are_prepared_some_at_a_time_and_made_though_that_fails(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    stage.profile.concurrency_max = NUMBER + 1
    prepared = list[int]()

    async def fail(context: SubscriptionContext, attempts: Sequence[Sequence[Delivery]]) -> list[None]:
        prepared.append(len(attempts))
        raise ValueError

    stage.profile.render_together = fail
    await published_while_away(stage, *["a"] * (NUMBER + 1))
    assert prepared == [16, 16, 1]
    assert len(stage.endpoint.pushed) == NUMBER + 1
