"""The wire between a node and the store: slow, breaking, and losing answers after the work was done."""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable
from typing import Any

from redrive.model.errors import StoreUnavailable
from tests.simulation.database import Call, Database
from tests.simulation.news import Arrived, Changed, News
from tests.simulation.options import HANG_MS_MAX, FaultInjection
from tests.simulation.trace import Trace

Die = Callable[[str], None]


class Wire:
    """`redrive.engine.ports.Store` at the other end of a bad line, for one life of one node."""

    def __init__(
        self,
        node: str,
        database: Database,
        news: News,
        faults: Callable[[], FaultInjection],
        rng: random.Random,
        trace: Trace,
        die: Die,
    ) -> None:
        self._node = node
        self._database = database
        self._news = news
        self._faults = faults
        self._rng = rng
        self._trace = trace
        self._die = die
        self._cut = False

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        return functools.partial(self._call, verb)

    async def open(self) -> None:
        """The store is open already."""

    async def close(self) -> None:
        """Others go on using the store."""
        self.cut()

    def cut(self) -> None:
        """Nothing goes out any more, and nothing is heard."""
        self._cut = True
        self._news.unsubscribe(self._node)

    def listen(self, arrived: Arrived, changed: Changed) -> None:
        """Hear of the other nodes."""
        self._news.subscribe(self._node, arrived, changed, self._rng)

    async def _call(self, verb: str, *args: Any, **named: Any) -> Any:
        if self._cut:
            raise asyncio.CancelledError
        faults, rng = self._faults(), self._rng
        trouble = _trouble(faults, rng)
        self._trace.mark(f"call: {trouble or 'well'}")
        out_ms = rng.uniform(0, HANG_MS_MAX if trouble == "hung" else faults.latency_ms_max)
        back_ms = rng.uniform(0, faults.latency_ms_max)
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()

        def answered(result: object) -> None:
            if trouble == "death_after":
                self._die(f"after its {verb}")
            elif trouble == "answer_lost":
                _later(back_ms, lambda: _give(answer, StoreUnavailable("the answer was lost")))
            else:
                _later(back_ms, lambda: heard(result))

        def heard(result: object) -> None:
            _give(answer, result)
            if not self._cut and not isinstance(result, Exception):
                self._news.tell_arrivals(self._node, verb, args, result)

        if trouble == "death_before":
            asyncio.get_running_loop().call_soon(self._die, f"before its {verb}")
        elif trouble == "request_lost":
            _later(out_ms, lambda: _give(answer, StoreUnavailable("the request was lost")))
        else:
            call = Call(self._node, verb, args, named, answered)
            _later(out_ms, lambda: self._database.take(call))
        return await answer


def _trouble(faults: FaultInjection, rng: random.Random) -> str:
    """Return the fault that befalls this call, or nothing."""
    roll = rng.random()
    for trouble in ("hung", "request_lost", "answer_lost", "death_before", "death_after"):
        share: float = getattr(faults, trouble)
        if roll < share:
            return trouble
        roll -= share
    return ""


def _later(milliseconds: float, call: Callable[[], None]) -> None:
    if milliseconds:
        asyncio.get_running_loop().call_later(milliseconds / 1000, call)
    else:
        call()


def _give(answer: asyncio.Future[object], result: object) -> None:
    if answer.done():
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
