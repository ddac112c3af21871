"""Calls that go to PostgreSQL together: few in a lane of their own, many as one statement."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from redrive.engine.ports import UNMEASURED
from redrive.stores.postgres.call_lanes import CallLanes
from redrive.stores.postgres.connections import Connections

LANES = 2
MANY = 20


class EndlessConnections:
    """Connections of which there are always more."""

    meter = UNMEASURED

    async def run(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do some work on a connection that nobody looks at."""
        return await work(None)


class Database:
    """Answers a statement when the test says so.

    Attributes:
        statements: The calls of each statement, in order.
    """

    def __init__(self) -> None:
        self.statements: list[list[int]] = []
        self._answers: list[asyncio.Event] = []
        self.lanes = CallLanes(cast("Connections", EndlessConnections()), self._run, LANES)

    async def _run(self, _: Any, calls: Sequence[int]) -> Sequence[int]:
        answer = asyncio.Event()
        self.statements.append(list(calls))
        self._answers.append(answer)
        await answer.wait()
        return calls

    async def submit(self, *calls: int) -> "list[asyncio.Future[int]]":
        """Submit calls, and let the lanes take what they will."""
        futures = [self.lanes.submit(call) for call in calls]
        await turns()
        return futures

    async def answer(self, statement: int) -> None:
        """Commit a statement, and let the lanes go on."""
        self._answers[statement].set()
        await turns()


async def turns() -> None:
    """As many turns of the loop as anything here takes."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_few_calls_have_a_lane_each() -> None:
    database = Database()
    await database.submit(1)
    await database.submit(2)
    assert database.statements == [[1], [2]]


async def test_calls_wait_for_many_under_way_and_go_together() -> None:
    database = Database()
    many = list(range(MANY))
    await database.submit(*many)
    await database.submit(100)
    await database.submit(101)
    assert database.statements == [many]
    await database.answer(0)
    assert database.statements == [many, [100, 101]]


async def test_those_just_answered_share_the_next_statement() -> None:
    database = Database()
    many = list(range(MANY))
    first, *_ = await database.submit(*many)

    async def call_again() -> None:
        await first
        database.lanes.submit(200)

    again = asyncio.create_task(call_again())
    await database.submit(100)
    await database.answer(0)
    assert database.statements == [many, [100, 200]]
    await again


async def test_a_lane_gives_way_to_a_large_group() -> None:
    database = Database()
    await database.submit(1)
    await database.submit(*range(10, 10 + MANY))
    await database.submit(50)
    await database.answer(0)
    assert database.statements == [[1], list(range(10, 10 + MANY))]
    await database.answer(1)
    assert database.statements[-1] == [50]
    await database.answer(2)
    await database.lanes.idle()
