"""Patience: how long an attempt waits for an answer, by the clock; and how long the clock waits for the attempt.

On the system's clock the two are one time. On a simulated one they are not: an endpoint answers in real time, while the
clock stands still and must not run ahead of it; but one that hangs would let it stand for as long as it hangs. So what is
pushed has some real seconds, and after those it hangs: the clock goes on, patience ends by it, and what follows happens.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from redrive.engine.ports import Clock

# An endpoint of a test answers in milliseconds, and on a machine that has far too much to do in a second or two.
HANGS_SECONDS: Final = 5


class Patience:
    """The attempts that wait for an answer, and will not wait for ever."""

    def __init__(self, clock: Clock) -> None:
        """Wait by this clock."""
        self._clock = clock
        self._waiting: dict[asyncio.Task[Any] | None, asyncio.Future[None]] = {}  # done when it hangs
        self._begun = asyncio.Event()

    @contextlib.contextmanager
    def begin(self) -> "Iterator[asyncio.Future[None]]":
        """Something is pushed now; what is given is done when it hangs."""
        loop = asyncio.get_running_loop()
        hangs: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(HANGS_SECONDS, hangs.set_result, None)
        try:
            yield hangs
        finally:
            timer.cancel()

    async def wait(self, pushing: "asyncio.Future[Any]", hangs: "asyncio.Future[None]", until: int) -> bool:
        """Wait for a push, of which `begin` told when it hangs; whether it was answered by that moment (ms)."""
        task, over = asyncio.current_task(), asyncio.get_running_loop().create_future()
        timer = self._clock.call_at(until, lambda: None if over.done() else over.set_result(None))
        self._waiting[task] = hangs
        self._begun.set()
        try:
            await asyncio.wait([pushing, over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._waiting[task]
            timer.cancel()
            over.cancel()
        return pushing.done()

    async def quiet(self, work: Callable[[], Sequence["asyncio.Task[Any]"]]) -> None:
        """Return when nothing of this work is left but what hangs."""
        while left := work():
            hanging = [self._waiting[one] for one in left if one in self._waiting]
            if len(hanging) == len(left) and all(one.done() for one in hanging):
                return
            self._begun.clear()
            begun = asyncio.ensure_future(self._begun.wait())
            yet = [one for one in hanging if not one.done()]
            try:
                await asyncio.wait([*left, *yet, begun], return_when=asyncio.FIRST_COMPLETED)
            finally:
                begun.cancel()
