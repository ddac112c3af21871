"""A clock that stands still until it is told to move, and then misses nothing on the way."""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from redrive.engine.ports import Timer

# Turns of the event loop without news after which what was woken is taken to have done its work. A wake-up passes
# through a handful of callbacks (timer, future, task, answer), each one turn.
QUIET_TURNS = 16

DEFAULT_START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)


class _Call:
    __slots__ = ("call", "cancelled")

    def __init__(self, call: Callable[[], None]) -> None:
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def make(self) -> None:
        if not self.cancelled:
            self.call()


async def sleep_by(call_at: Callable[[int, Callable[[], None]], Timer], at: int) -> None:
    """Return when a clock whose `Clock.call_at` this is comes to a moment (ms)."""
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    timer = call_at(at, wake)
    try:
        await woken
    finally:
        timer.cancel()


class SimulatedClock:
    """`redrive.engine.ports.Clock` whose time passes by `advance` alone."""

    def __init__(self, start: int = DEFAULT_START) -> None:
        """Stand at this moment (ms)."""
        self._now = start
        self._calls: list[tuple[int, int, _Call]] = []
        self._order = itertools.count()

    def now(self) -> int:
        """The simulated moment (ms)."""
        return self._now

    def take_up(self, at: int) -> None:
        """Stand at a moment (ms) that an earlier run came to, if that is later."""
        self._now = max(self._now, at)

    def call_at(self, at: int, call: Callable[[], None]) -> Timer:
        """Make a call when the clock comes to that moment (ms); what is past is due at the next advance."""
        entry = _Call(call)
        if at <= self._now:
            asyncio.get_running_loop().call_soon(entry.make)
        else:
            heapq.heappush(self._calls, (at, next(self._order), entry))
        return entry

    def next_at(self) -> int | None:
        """The moment (ms) of the next call; None: nothing falls due."""
        self._drop_cancelled()
        return self._calls[0][0] if self._calls else None

    async def sleep_until(self, at: int) -> None:
        """Return when the clock comes to that moment (ms)."""
        await sleep_by(self.call_at, at)

    async def advance(
        self,
        milliseconds: int,
        settle: Callable[[], Awaitable[None]],
        is_settled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Advance, stopping at each due time until the work that it triggered has settled.

        Args:
            milliseconds: So far.
            settle: Returns when nothing is under way.
            is_settled: True if `settle` would return at once. It is asked at each turn of the loop, of which 100,000
                moments have 1,600,000.
        """
        until = self._now + milliseconds
        await _wait_until_quiet(settle, is_settled)
        while (moment := self._next_moment(until)) is not None:
            self._now = max(self._now, moment)
            while self._next_moment(self._now) is not None:
                heapq.heappop(self._calls)[2].make()
            await _wait_until_quiet(settle, is_settled)
        self._now = until

    def _next_moment(self, until: int) -> int | None:
        """The moment (ms) of the next call up to then."""
        self._drop_cancelled()
        return self._calls[0][0] if self._calls and self._calls[0][0] <= until else None

    def _drop_cancelled(self) -> None:
        """Drop cancelled calls from the front, of which each attempt leaves one."""
        while self._calls and self._calls[0][2].cancelled:
            heapq.heappop(self._calls)


async def _wait_until_quiet(settle: Callable[[], Awaitable[None]], is_settled: Callable[[], bool]) -> None:
    for _ in range(QUIET_TURNS):
        await asyncio.sleep(0)
        if not is_settled():
            await settle()
