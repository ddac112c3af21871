"""Batches of thousands: claimed and settled in pieces, between which others have their turn, and pushed at once."""

import random
from collections.abc import Awaitable
from typing import Any

import pytest

from redrive.engine.ports import Batch, ClaimRequest, ClaimResult, Settled
from redrive.engine.push.settlement import PIECE
from redrive.testing import VirtualClock
from tests.engine.stage import Stage
from tests.engine.test_attempts import published_while_away

pytestmark = pytest.mark.usefixtures("pushes")


async def test_large_batches_are_claimed_and_settled_in_pieces_and_pushed_at_once(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    stage.profile.changes = {"batch": Batch(5_000, 1_000_000)}
    stage.profile.concurrency_max = 1
    claim, settle = stage.store.claim, stage.store.settle
    claims: list[int] = []
    settlements: list[int] = []

    def claimed(request: ClaimRequest) -> Awaitable[ClaimResult]:
        claims.append(request.limit)
        return claim(request)

    def settled(queue_id: int, ends: Any, now: int, **rules: bool) -> Awaitable[list[Settled]]:
        settlements.append(len(ends))
        return settle(queue_id, ends, now, **rules)

    stage.store.claim = claimed  # type: ignore[method-assign]  # the same, and counted
    stage.store.settle = settled  # type: ignore[method-assign]  # likewise
    backlog = await published_while_away(stage, *["a"] * (2 * PIECE + 7))
    assert [body.count("a") for _, body in stage.endpoint.pushed] == [2 * PIECE + 7]
    assert max(claims) == max(settlements) == PIECE
    assert len(claims) <= 2 * 3 + 1
    assert sum(settlements) == 2 * PIECE + 7
    assert await stage.store.peek(backlog, 1) == []


async def test_no_more_pieces_are_claimed_than_attempts_can_take(
    clock: VirtualClock, rng: random.Random
) -> None:
    stage = Stage(clock, rng)
    stage.profile.changes = {"batch": Batch(5_000, 3 * PIECE)}
    stage.profile.concurrency_max = 1
    claim, claimed = stage.store.claim, [0]

    async def counted(request: ClaimRequest) -> ClaimResult:
        found = await claim(request)
        if not stage.endpoint.pushed:
            claimed[0] += len(found.deliveries)
        return found

    stage.store.claim = counted  # type: ignore[method-assign]  # the same, and counted
    await published_while_away(stage, *["1234"] * (4 * PIECE))
    assert claimed == [PIECE]
