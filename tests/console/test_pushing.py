"""Tests of a receiver: pushed once to it alone, kept nowhere, and answered on the page."""

import pytest

from redrive.endpoints.http import HttpEndpoint
from redrive.engine.ports import PushRequest
from redrive.model.attempt import Attempt, AttemptResult, Reason
from tests.console.test_schedules import text
from tests.console.world import ROOM, make_world, visiting

TEST = f"{ROOM}/topics/Rentals/6f1c/test"


async def test_a_test_is_pushed_once_signed_and_marked_and_its_answer_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pushed: list[PushRequest] = []

    async def push(_: HttpEndpoint, request: PushRequest) -> Attempt:
        pushed.append(request)
        return Attempt(AttemptResult.FAILED, Reason.SERVER_ERROR, 503, "upstream is away", 41)

    monkeypatch.setattr(HttpEndpoint, "push", push)
    async with visiting() as visitor:
        world = await make_world(visitor)
        assert (
            f'href="{TEST}">Send a test…' in (await visitor.get(f"{ROOM}/topics/Rentals/6f1c")).body.decode()
        )
        page = text(await visitor.post(TEST, {"body": '{"test": 1}'}))
        assert "Server error 503 in 41 ms upstream is away" in page
        (request,) = pushed
        assert request.endpoint == world.subscription.endpoint
        assert request.headers["x-redrive-test"] == "1"
        assert b'"Signature"' in request.body
        assert sum(await world.engine.messages.count_backlog(world.subscription, 10)) == 0
        audit = text(await visitor.get(f"{ROOM}/audit"))
        assert "A test to https://billing.example.com/hook?…: Server error 503" in audit
        assert (await visitor.post(TEST, {"body": ""})).status == 400
        assert len(pushed) == 1


async def test_a_test_takes_an_injected_fault_for_its_answer() -> None:
    async with visiting() as visitor:
        world = await make_world(visitor)
        world.engine.operations.inject_fault(world.subscription.endpoint, 404)
        assert "Client error 404" in text(await visitor.post(TEST, {"body": "x"}))
