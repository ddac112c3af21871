"""Subscription filters: what is owed to functions, when, and in which parts."""

import random
from typing import Any

import pytest

from redrive.model.errors import StoreUnavailable
from redrive.model.log import LogEvent
from redrive.model.names import ResourceName
from redrive.protocols.aws.inner_calls import InnerCalls
from redrive.protocols.aws.logs.places import Places
from redrive.protocols.aws.logs.subscribed import Forwarded, FunctionCalls
from redrive.protocols.aws.logs.subscriptions import SubscriptionFilter, SubscriptionFilters
from tests.protocols.cloudwatch.stage import ACCOUNT, REGION, Stage

MIB = 1_048_576
GROUP = ResourceName(ACCOUNT, REGION, "g")


@pytest.fixture
async def filters(stage: Stage) -> SubscriptionFilters:
    """The filters of a group with the number 1, to a function that is not there."""
    engine = stage.server.core.engine
    functions = FunctionCalls(InnerCalls({}, engine.runtime), open_functions=True)
    made = SubscriptionFilters(engine, Places(engine.resources.documents), functions)
    await made.kept.put(SubscriptionFilter(GROUP, 1, "f", "x", 0, "arn:aws:lambda:::function:f", ""))
    return made


@pytest.fixture
def owed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[Forwarded]:
    """The deliveries that enter the backlog."""
    found: list[Forwarded] = []

    def enter(_draft: Any, _topic: Any, _subscription: Any, body: str, _headers: bytes) -> None:
        found.append(Forwarded.unpack(body.encode()))

    monkeypatch.setattr(stage.server.core.engine.messages, "publish_alone_in", enter)
    return found


def event(message: str, stream: int = 1, group: int = 1) -> LogEvent:
    return LogEvent(group, stream, 5, 5, message)


async def test_each_stream_has_a_delivery_of_its_own(
    filters: SubscriptionFilters, owed: list[Forwarded]
) -> None:
    events = [event("x 1"), event("y"), event("x 2"), event("x 3", stream=2), event("x", group=2)]
    await filters.pass_through(events, {1: "s", 2: "t"})
    assert [(each.stream, [told["message"] for told in each.events]) for each in owed] == [
        ("s", ["x 1", "x 2"]),
        ("t", ["x 3"]),
    ]


async def test_no_delivery_is_larger_than_a_function_takes(
    filters: SubscriptionFilters, owed: list[Forwarded]
) -> None:
    chance = random.Random(3)
    texts = ["x " + chance.randbytes(50_000).hex() for _ in range(10)]
    await filters.pass_through([event(text) for text in texts], {1: "s"})
    assert [told["message"] for each in owed for told in each.events] == texts
    assert len(owed) == 2
    assert all(len(each.payload(ACCOUNT)) <= MIB for each in owed)


async def test_events_that_a_store_refused_go_with_the_next_ones(
    filters: SubscriptionFilters, owed: list[Forwarded], stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(stage.server.core.engine.resources, "write", away)
        await filters.pass_through([event("x 1")], {1: "s"})
        assert owed == []
    await filters.pass_through([event("x 2")], {1: "s"})
    assert [told["message"] for each in owed for told in each.events] == ["x 1", "x 2"]
    ids = [told["id"] for each in owed for told in each.events]
    assert len(set(ids)) == 2
