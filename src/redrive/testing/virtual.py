"""An event loop whose time is virtual: nothing is slept, and a day of waiting takes as long as its work.

When every task waits, the loop moves its time to the next timer instead of blocking until then. Where there is no
timer either, nobody could ever wake: the loop says so, and who waits, instead of hanging. With a seed for randomness, a
run is the same on every machine and every time.

Threads and other processes are invisible to virtual time: while one works, the loop sees only that everybody waits.
So there are no threads here, and no socket should be waited for.
"""

import asyncio
import math
import random
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from typing_extensions import override

from redrive.engine.ports import Timer
from redrive.runtime.simulated import DEFAULT_START, sleep_by

T = TypeVar("T")

TASKS_NAMED_MAX = 20  # in the complaint that all of them wait for ever


class NothingScheduled(RuntimeError):  # noqa: N818 - what happened, as its reader would say it
    """Every task waits and no timer is set: nothing can ever happen again."""


class _PassingTime(selectors.DefaultSelector):
    """A selector for virtual time: where a loop would block until its next timer, time passes instead."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            names = sorted(task.get_name() for task in asyncio.all_tasks())
            raise NothingScheduled(f"{len(names)} tasks wait for ever: {', '.join(names[:TASKS_NAMED_MAX])}")
        # A hair past the timer: asyncio calls what is due before `time() + 1e-9`, which after three months of seconds
        # is no longer another number than `time()`.
        self.seconds = math.nextafter(self.seconds + timeout, math.inf)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop on virtual time, which begins at zero."""

    def __init__(self) -> None:
        self._passing_time = _PassingTime()
        super().__init__(self._passing_time)

    @override
    def time(self) -> float:
        """Seconds since the beginning."""
        return self._passing_time.seconds

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the beginning."""
        return round(self._passing_time.seconds * 1000)

    @override
    def run_in_executor(self, *_: object) -> NoReturn:
        """Refuse.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("a thread is invisible to virtual time: use what works without one")


class VirtualClock:
    """`redrive.engine.ports.Clock` on the time of a virtual loop."""

    def __init__(self, loop: VirtualLoop, start: int = DEFAULT_START) -> None:
        """Let the loop's beginning be this moment (ms)."""
        self._loop = loop
        self._start = start

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return self._start + self._loop.elapsed_ms

    def call_at(self, at: int, call: Callable[[], None]) -> Timer:
        """Make a call at that moment (ms), or at the next turn of the loop when it has passed."""
        return self._loop.call_at((at - self._start) / 1000, call)

    async def sleep_until(self, at: int) -> None:
        """Return at that moment (ms)."""
        await sleep_by(self.call_at, at)


def run_virtual(story: Callable[[VirtualClock, random.Random], Coroutine[Any, Any, T]], seed: int = 0) -> T:
    """Run `story(clock, rng)` to its end on a new virtual loop, and return its result.

    Args:
        story: A coroutine function.
        seed: Seeds `rng`.

    Raises:
        NothingScheduled: The story can never end.
    """
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        clock, rng = VirtualClock(loop), random.Random(seed)  # noqa: S311 - must be repeatable
        return runner.run(story(clock, rng))
