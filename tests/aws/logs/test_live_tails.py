"""Live tails: what a session tells, when, and where it ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from redrive.aws.logs.live_tails import (
    EVENTS_MAX,
    EVENTS_PER_PAGE,
    LATE_MS,
    SESSIONS_MAX,
    FollowedGroup,
    UpdateRoom,
)
from redrive.aws.logs.places import GROUP, STREAM, LogPlaces
from redrive.aws.wire.errors import AwsError
from redrive.model.errors import StoreUnavailable
from redrive.model.log import LogEvent
from tests.aws.cloudwatch.stage import ACCOUNT, REGION, Stage

ARN = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:g"
HOURS_3 = 3 * 60 * 60


@dataclass
class Session:
    """A session, read event by event."""

    stage: Stage
    events: Any

    async def next(self) -> tuple[str, dict[str, Any]]:
        event: tuple[str, dict[str, Any]] = await asyncio.wait_for(anext(self.events), 10)
        return event

    async def update(self, after: float | None = 1) -> dict[str, Any]:
        """The next update, which comes after so many seconds; None: at once."""
        coming = asyncio.ensure_future(self.next())
        if after is not None:
            await asyncio.sleep(0)
            await self.stage.advance(after)
        name, update = await coming
        assert name == "sessionUpdate", update
        return update

    async def told(self, after: float | None = 1) -> list[str]:
        return [event["message"] for event in (await self.update(after))["sessionResults"]]


@asynccontextmanager
async def tail(stage: Stage, *groups: str, **params: Any) -> AsyncIterator[Session]:
    """A session that has begun."""
    answer = await stage.call("logs", "StartLiveTail", logGroupIdentifiers=list(groups) or [ARN], **params)
    session = Session(stage, answer["responseStream"])
    try:
        name, start = await session.next()
        assert name == "sessionStart"
        assert start["logGroupIdentifiers"] == (list(groups) or [ARN])
        yield session
    finally:
        await session.events.aclose()


async def put(stage: Stage, *messages: str, group: str = "g", stream: str = "s", ago: int = 0) -> None:
    at = stage.now - ago * 1000
    events = [{"timestamp": at, "message": message} for message in messages]
    await stage.call("logs", "PutLogEvents", logGroupName=group, logStreamName=stream, logEvents=events)


async def of_another_node(stage: Stage, *messages: str) -> None:
    """Write events straight into the store, as another node does."""
    documents = stage.server.core.engine.resources.documents
    (group,) = await documents.find(GROUP, "")
    (stream,) = await documents.find(STREAM, "")
    now = stage.now
    await stage.server.core.store.add_events(
        [LogEvent(group.id, stream.id, now, now, message) for message in messages]
    )


async def test_each_second_brings_the_new_events(stage: Stage) -> None:
    await put(stage, "before")
    async with tail(stage) as session:
        assert await session.told() == []
        await put(stage, "a", "b", ago=3600)
        assert await session.update(None) == {
            "sessionMetadata": {"sampled": False},
            "sessionResults": [
                {
                    "logStreamName": "s",
                    "logGroupIdentifier": f"{ACCOUNT}:g",
                    "message": message,
                    "timestamp": stage.now - 3_600_000,
                    "ingestionTime": stage.now,
                }
                for message in ("a", "b")
            ],
        }
        assert await session.told() == []


async def test_events_of_another_node_come_with_the_next_second(stage: Stage) -> None:
    async with tail(stage) as session:
        await of_another_node(stage, "elsewhere")
        assert await session.told() == ["elsewhere"]
        assert await session.told() == []


async def test_an_event_whose_transaction_ends_late_is_told_all_the_same(stage: Stage) -> None:
    """Numbers are given before a transaction ends: a lower one may come to be seen after a higher one."""

    class Late:
        def __init__(self) -> None:
            self.seen: list[LogEvent] = []

        async def find_events(self, query: Any) -> list[LogEvent]:
            return [event for event in self.seen if event.seq > query.arrived_after]

    late, documents = Late(), stage.server.core.engine.resources.documents
    (group,) = await documents.find(GROUP, "")
    (stream,) = await documents.find(STREAM, "")
    found = [LogEvent(group.id, stream.id, 5, 5, text, seq) for seq, text in enumerate(("late", "early"), 1)]
    followed = FollowedGroup(late, LogPlaces(documents), group)  # type: ignore[arg-type] - all that it asks
    await followed.begin()
    told = []
    for seen, moment in ((found[1:], 0), (found, LATE_MS - 1), (found, 3 * LATE_MS), (found, 9 * LATE_MS)):
        late.seen = seen
        read = await followed.read(lambda _, __: True, lambda _: 1, UpdateRoom(100, 100, 1000), moment)
        told.append([event.message for _, event in read])
    assert told == [["early"], ["late"], [], []]


async def test_streams_and_a_pattern_choose(stage: Stage) -> None:
    for stream in ("st", "other"):
        await stage.call("logs", "CreateLogStream", logGroupName="g", logStreamName=stream)
    for chosen, told in (
        ({"logStreamNames": ["st", "absent"]}, ["ERROR st"]),
        ({"logStreamNamePrefixes": ["s", "x"]}, ["ERROR s", "ERROR st"]),
        ({"logStreamNamePrefixes": ["s"], "logEventFilterPattern": "ERROR -st"}, ["ERROR s"]),
        ({"logEventFilterPattern": "fine"}, ["fine"]),
    ):
        async with tail(stage, **chosen) as session:
            for stream in ("s", "st", "other"):
                await put(stage, f"ERROR {stream}", stream=stream)
            await put(stage, "fine", stream="other")
            assert sorted(await session.told(None)) == told


async def test_several_groups_are_followed_at_once(stage: Stage) -> None:
    await stage.call("logs", "CreateLogGroup", logGroupName="h")
    await stage.call("logs", "CreateLogStream", logGroupName="h", logStreamName="s")
    async with tail(stage, ARN, f"{ARN[:-1]}h") as session:
        await put(stage, "of g")
        await put(stage, "of h", group="h")
        events = (await session.update(None))["sessionResults"]
        assert [(event["logGroupIdentifier"], event["message"]) for event in events] == [
            (f"{ACCOUNT}:g", "of g"),
            (f"{ACCOUNT}:h", "of h"),
        ]


async def test_a_flood_is_sampled(stage: Stage) -> None:
    async with tail(stage) as session:
        await of_another_node(stage, *(str(number) for number in range(EVENTS_MAX + EVENTS_PER_PAGE)))
        update = await session.update()
        assert (len(update["sessionResults"]), update["sessionMetadata"]) == (EVENTS_MAX, {"sampled": True})
        await of_another_node(stage, "after the flood")
        assert await session.told() == ["after the flood"]


async def test_as_many_as_an_update_holds_are_all(stage: Stage) -> None:
    async with tail(stage) as session:
        await of_another_node(stage, *(str(number) for number in range(EVENTS_MAX)))
        update = await session.update()
        assert (len(update["sessionResults"]), update["sessionMetadata"]) == (EVENTS_MAX, {"sampled": False})


async def test_large_events_fill_an_update(stage: Stage) -> None:
    async with tail(stage) as session:
        await of_another_node(stage, *("x" * 300_000 for _ in range(8)))
        update = await session.update()
        assert (len(update["sessionResults"]), update["sessionMetadata"]) == (4, {"sampled": True})


async def test_a_reader_that_was_slow_catches_up_as_far_as_ten_updates(stage: Stage) -> None:
    async with tail(stage) as session:
        await of_another_node(stage, *(str(number) for number in range(11 * EVENTS_MAX)))
        await stage.advance(60)  # nobody reads
        told: list[int] = []
        sampled: list[bool] = []
        for _ in range(10):
            update = await session.update(None)
            told.append(len(update["sessionResults"]))
            sampled.append(update["sessionMetadata"]["sampled"])
        assert told == [EVENTS_MAX] * 10
        assert sampled == [False] * 9 + [True]
        assert await session.told() == []


async def test_a_session_ends_after_three_hours(stage: Stage) -> None:
    async with tail(stage) as session:
        assert await session.told(HOURS_3 - 1) == []
        while (name := (await session.next())[0]) == "sessionUpdate":
            await stage.advance(1)
        assert name == "SessionTimeoutException"
        with pytest.raises(StopAsyncIteration):
            await session.next()


async def test_a_session_ends_when_the_server_does(stage: Stage) -> None:
    async with tail(stage) as session:
        waiting = asyncio.ensure_future(session.told(None))
        await stage.advance(0.5)
        for extension in stage.server.extensions:
            for end in extension.lifecycle.end_streams:
                end()
        assert await waiting == []
        with pytest.raises(StopAsyncIteration):
            await session.next()


async def test_a_store_that_is_away_breaks_a_session(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_: object) -> None:
        raise StoreUnavailable

    async with tail(stage) as session:
        await of_another_node(stage, "x")
        with monkeypatch.context() as patched:
            patched.setattr(stage.server.core.store, "find_events", away)
            coming = asyncio.ensure_future(session.next())
            await asyncio.sleep(0)
            await stage.advance(1)
            assert (await coming)[0] == "SessionStreamingException"


async def test_sessions_are_bounded_and_what_was_left_makes_room(stage: Stage) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(SESSIONS_MAX):
            await stack.enter_async_context(tail(stage))
        with pytest.raises(AwsError) as refused:
            await stage.call("logs", "StartLiveTail", logGroupIdentifiers=[ARN])
        assert refused.value.code == "LimitExceededException"
    async with tail(stage) as session:
        assert await session.told() == []


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"logGroupIdentifiers": ["g"]}, "InvalidParameterException"),
        ({"logGroupIdentifiers": [f"{ARN}:*"]}, "InvalidParameterException"),
        ({"logGroupIdentifiers": [ARN.replace(ACCOUNT, "111111111111")]}, "InvalidParameterException"),
        ({"logGroupIdentifiers": [f"{ARN}x"]}, "ResourceNotFoundException"),
        ({"logGroupIdentifiers": []}, "InvalidParameterException"),
        ({"logGroupIdentifiers": [ARN] * 11}, "InvalidParameterException"),
        ({"logStreamNames": ["a"], "logStreamNamePrefixes": ["b"]}, "InvalidParameterException"),
        ({"logGroupIdentifiers": [ARN, f"{ARN}2"], "logStreamNames": ["a"]}, "InvalidParameterException"),
        ({"logEventFilterPattern": "{ nonsense"}, "InvalidParameterException"),
    ],
)
async def test_groups_that_cannot_be_followed_are_refused(
    stage: Stage, params: dict[str, Any], code: str
) -> None:
    with pytest.raises(AwsError) as refused:
        await stage.call("logs", "StartLiveTail", **{"logGroupIdentifiers": [ARN], **params})
    assert refused.value.code == code
