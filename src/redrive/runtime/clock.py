"""The system's clock, as `redrive.engine.ports.Clock`."""

import asyncio
import time
from collections.abc import Callable

from redrive.engine.ports import Timer


class SystemClock:
    """Wall time in milliseconds; waits are measured on the loop's monotonic clock."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def call_at(self, at: int, call: Callable[[], None]) -> Timer:
        """Make a call at that moment (ms)."""
        return asyncio.get_running_loop().call_later(max(0, at - self.now()) / 1000, call)

    async def sleep_until(self, at: int) -> None:
        """Return at about that moment (ms)."""
        await asyncio.sleep(max(0, at - self.now()) / 1000)
