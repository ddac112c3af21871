"""The soft time-out: how long an attempt waits for an answer by the clock, and how long the clock waits for attempts.

On the system's clock the two are one time. On a simulated one they are not: an endpoint answers in real time, while the
clock stands still and must not run ahead of it; but an endpoint that hangs would hold the clock for as long. So a push
has some real seconds, after which it counts as hanging: the clock goes on, and soft time-outs end by it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from redrive.engine.ports import Clock

# An endpoint of a test answers in milliseconds, and on a machine that has far too much to do in a second or two.
HANGS_SECONDS: Final = 5


class SoftTimeout:
    """The attempts that wait for an answer no longer than their plan says."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[asyncio.Task[Any] | None, asyncio.Future[None]] = {}  # done when it hangs
        self._begun: asyncio.Future[None] | None = None  # done when somebody begins to wait

    @contextlib.contextmanager
    def begin(self) -> "Iterator[asyncio.Future[None]]":
        """Begin a push; the future is done once it hangs."""
        loop = asyncio.get_running_loop()
        hangs: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(HANGS_SECONDS, hangs.set_result, None)
        try:
            yield hangs
        finally:
            timer.cancel()

    async def wait(self, pushing: "asyncio.Future[Any]", hangs: "asyncio.Future[None]", until: int) -> bool:
        """Wait for a push that was begun with `hangs`; whether it was answered by `until` (ms)."""
        task, over = asyncio.current_task(), asyncio.get_running_loop().create_future()

        def end(_: object = None) -> None:
            if not over.done():
                over.set_result(None)

        timer = self._clock.call_at(until, end)
        pushing.add_done_callback(end)  # `asyncio.wait` does as much and more, for 10 us
        self._waiting[task] = hangs
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(None)
        try:
            await over
        finally:
            del self._waiting[task]
            timer.cancel()
            pushing.remove_done_callback(end)
        return pushing.done()

    async def quiet(self, work: Callable[[], Sequence["asyncio.Task[Any]"]]) -> None:
        """Return when no task of this work is left but those that hang."""
        while left := work():
            hanging = [self._waiting[task] for task in left if task in self._waiting]
            if len(hanging) == len(left) and all(hangs.done() for hangs in hanging):
                return
            if self._begun is None or self._begun.done():
                self._begun = asyncio.get_running_loop().create_future()
            not_yet = [hangs for hangs in hanging if not hangs.done()]
            await asyncio.wait([*left, *not_yet, self._begun], return_when=asyncio.FIRST_COMPLETED)
