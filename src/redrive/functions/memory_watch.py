"""The watch over a process's memory: looks taken while it works, and the figure that its reports tell.

Nothing ticks while a process rests, and an invocation sets no timer: the last look comes behind the last invocation. To
begin and to end the looks with each took 4 us.
"""

from collections.abc import Callable
from typing import Final

from redrive.engine.ports import Clock, Timer
from redrive.functions.processes import family, memory_of, resident_kb

EVERY_MS: Final = 100  # while an invocation runs, its memory is looked at so often
#: The same while none takes so long, and for what their reports say of it: a look takes 60 us.
TOLD_EVERY_MS: Final = 500


class MemoryWatch:
    """Looks at one process and all that descends from it."""

    def __init__(self, clock: Clock, memory_mb: int, processes_max: int, kill: Callable[[], None]) -> None:
        """Watch nothing yet; `kill` is called when they hold or are more than this."""
        self._clock = clock
        self._memory_mb = memory_mb
        self._processes_max = processes_max
        self._kill = kill
        self.pid: int | None = None  # The process; None: it has not started
        self._runs_since: int | None = None
        self._timer: Timer | None = None
        self._looked_at = 0
        self._used_mb = 0
        self._used_at = 0

    def begin(self, now: int) -> None:
        """An invocation begins (ms)."""
        self._runs_since = now
        if self._timer is None:
            self._look_at(now + EVERY_MS)

    def end(self) -> None:
        """The invocation has ended."""
        self._runs_since = None

    def used_mb(self) -> int:
        """The most that it has held (MB), looked at again at most every `TOLD_EVERY_MS`."""
        now = self._clock.now()
        if self.pid is not None and now - self._used_at >= TOLD_EVERY_MS:
            self._used_mb = min(memory_of(family(self.pid)), self._memory_mb)
            self._used_at = now
        return self._used_mb

    def _look_at(self, at: int) -> None:
        self._timer = self._clock.call_at(at, self._look)

    def _look(self) -> None:
        """Look, where a look is due: each half second if invocations are shorter than the time between two looks."""
        self._timer = None
        if self.pid is None or self._runs_since is None:
            return
        now = self._clock.now()
        due_at = min(self._runs_since + EVERY_MS, self._looked_at + TOLD_EVERY_MS)
        if now < due_at:
            self._look_at(due_at)
            return
        self._looked_at = now
        sizes = resident_kb(family(self.pid))
        if len(sizes) > self._processes_max or sum(sizes) // 1024 > self._memory_mb:
            self._kill()
            return
        self._look_at(now + EVERY_MS)
