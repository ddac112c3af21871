"""Calls that arrive together go to the database together: one statement, one commit, one fsync for all of them.

While every lane is under way, calls wait; the next free lane takes all that wait. So an idle store answers a single
call at once, and the busier it is, the less a call costs. Each call is answered when its group is committed.

Beginning and committing a statement costs the database as much as twenty of its rows. So calls wait while many are under
way, instead of taking another lane, and those that were just answered may share the next group: the loop has two turns
before it is taken. A lone caller does not wait.

    calls ──wait──► lane 1: statement, commit ──► each caller's answer
               └──► lane 2: …
"""

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from asyncpg import Connection

from redrive.engine.ports import GROUP_CALLS_MAX
from redrive.model.errors import RedriveError, StoreUnavailable
from redrive.stores.postgres.connections import Connections, NotTaken

logger = logging.getLogger(__name__)
# With fewer calls under way another lane may begin: a few callers need not wait for each other.
_LARGE_GROUP: Final = 8

Call = TypeVar("Call")
Answer = TypeVar("Answer")


class _Waiting(NamedTuple, Generic[Call, Answer]):
    call: Call
    answer: "asyncio.Future[Answer]"


@dataclass(slots=True)
class _CallLine(Generic[Call, Answer]):
    waiting: deque[_Waiting[Call, Answer]] = field(default_factory=deque)
    busy: int = 0
    calls_under_way: int = 0


class CallLanes(Generic[Call, Answer]):
    """Sends calls of one kind to the database, many at once."""

    def __init__(
        self,
        connections: Connections,
        run: Callable[[Connection, Sequence[Call]], Awaitable[Sequence[Answer]]],
        lanes_max: int,
        key: Callable[[Call], object] = lambda _: None,
    ) -> None:
        """Send calls on these connections, in groups of one key; of each key up to `lanes_max` groups at once.

        `run` answers a group of calls, in order, by one statement or one transaction: it may be run again when the
        database rolled that back.
        """
        self._connections = connections
        self._run = run
        self._lanes_max = lanes_max
        self._key = key
        self._lines: dict[object, _CallLine[Call, Answer]] = {}
        self._lanes: set[asyncio.Task[None]] = set()

    def submit(self, call: Call) -> "asyncio.Future[Answer]":
        """Send a call with the next group; the future is done when that is committed."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        key = self._key(call)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _CallLine()
        line.waiting.append(_Waiting(call, answer))
        if len(line.waiting) == 1 and line.busy < self._lanes_max and line.calls_under_way < _LARGE_GROUP:
            line.busy += 1
            lane = loop.create_task(self._work(key, line), name="redrive-lane")
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)
        return answer

    async def idle(self) -> None:
        """Return when all that was submitted is answered."""
        while self._lanes:
            await asyncio.wait(self._lanes)

    async def _work(self, key: object, line: _CallLine[Call, Answer]) -> None:
        """Send group after group, as long as calls wait and no other lane has enough under way for them."""
        while line.waiting and (line.busy == 1 or line.calls_under_way < _LARGE_GROUP):
            group: list[_Waiting[Call, Answer]] = []
            await self._next_group(line, group)
            line.calls_under_way -= len(group)
            if len(group) > 1:
                await _two_turns()
        line.busy -= 1
        if not line.busy:
            del self._lines[key]

    async def _next_group(self, line: _CallLine[Call, Answer], group: list[_Waiting[Call, Answer]]) -> None:
        """Send the next group and give each call its answer, or the failure; `group` gets the calls that were taken."""
        try:
            answers = await self._connections.run(functools.partial(self._send, line, group))
        except RedriveError as error:
            if isinstance(error, NotTaken) and len(group) > 1:
                await self._apart(group)
            else:
                self._fail(group or _take(line.waiting), error)
        except Exception as error:
            logger.exception("store.call_failed calls=%d", len(group))
            self._fail(group or _take(line.waiting), StoreUnavailable(f"the store failed: {error}"))
        else:
            for waiting, answer in zip(group, answers, strict=True):
                _answer(waiting, answer)

    async def _send(
        self, line: _CallLine[Call, Answer], group: list[_Waiting[Call, Answer]], connection: Connection
    ) -> Sequence[Answer]:
        """Take what waits now that a connection is free, and run it; the same again if it was rolled back."""
        if not group:
            group += _take(line.waiting)
            line.calls_under_way += len(group)
        if not group:
            return ()
        meter = self._connections.meter
        began = meter.begin()
        answers = await self._run(connection, [waiting.call for waiting in group])
        meter.end(began, len(group))
        return answers

    async def _apart(self, group: list[_Waiting[Call, Answer]]) -> None:
        """Of several calls one may be the culprit: give each its own transaction."""
        logger.warning("store.group_undone calls=%d: each is tried alone", len(group))
        for waiting in group:
            try:
                (answer,) = await self._connections.run(functools.partial(self._send, _CallLine(), [waiting]))
            except RedriveError as error:
                self._fail([waiting], error)
            else:
                _answer(waiting, answer)

    @staticmethod
    def _fail(group: Sequence[_Waiting[Call, Answer]], error: RedriveError) -> None:
        for waiting in group:
            if not waiting.answer.done():
                waiting.answer.set_exception(error)


async def _two_turns() -> None:
    """Let the loop turn twice: answers are sent, and what was called because of them is submitted."""
    turn = asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)
    await turn.wait()


def _take(line: deque[_Waiting[Call, Answer]]) -> list[_Waiting[Call, Answer]]:
    calls = [line.popleft() for _ in range(min(len(line), GROUP_CALLS_MAX))]
    return [waiting for waiting in calls if not waiting.answer.done()]  # given up before they began


def _answer(waiting: _Waiting[Call, Answer], answer: Answer) -> None:
    if not waiting.answer.done():
        waiting.answer.set_result(answer)
