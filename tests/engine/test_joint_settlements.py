"""Successes of a deep backlog are settled together, also where its endpoint answers one after the other."""

import asyncio
import random
from collections.abc import Awaitable
from typing import Any

import pytest

from redrive.engine.ports import PushRequest, Settled
from redrive.engine.push.settlement import TOGETHER
from redrive.testing import VirtualClock
from tests.engine.stage import Stage
from tests.engine.test_attempts import published_while_away

pytestmark = pytest.mark.usefixtures("pushes")


def settlements_of(stage: Stage) -> list[int]:
    """Let the number of deliveries of each call of `settle` be written down."""
    settle, numbers = stage.store.settle, list[int]()

    def settled(queue_id: int, ends: Any, now: int, **rules: bool) -> Awaitable[list[Settled]]:
        numbers.append(len(ends))
        return settle(queue_id, ends, now, **rules)

    stage.store.settle = settled  # type: ignore[method-assign]  # the same, and counted
    return numbers


async def test_answers_in_different_turns_are_settled_together(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    stage.profile.concurrency_max = 2 * TOGETHER
    numbers = settlements_of(stage)

    async def take_turns(_: PushRequest) -> None:
        for _turn in range(len(stage.endpoint.pushed)):
            await asyncio.sleep(0)

    stage.endpoint.before = take_turns
    backlog = await published_while_away(stage, *["a"] * (2 * TOGETHER))
    assert numbers[0] == TOGETHER
    assert sum(numbers) == 2 * TOGETHER
    assert await stage.store.peek(backlog, 1) == []


async def test_successes_wait_for_others_no_longer_than_a_moment(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    stage.profile.concurrency_max = TOGETHER
    numbers = settlements_of(stage)

    async def answer_the_first_at_once(_: PushRequest) -> None:
        if len(stage.endpoint.pushed) > 1:
            await clock.sleep_until(clock.now() + 1_000)

    stage.endpoint.before = answer_the_first_at_once
    await published_while_away(stage, *["a"] * TOGETHER)
    assert numbers == [1, TOGETHER - 1]
