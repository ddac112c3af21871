"""The machine's clock and randomness, as the engine's ports have them."""

import asyncio
import logging
import os
import random
import socket
import time
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from redrive.engine.ports import Clock, Runtime, Timer

logger = logging.getLogger(__name__)


class SystemClock:
    """Wall time in milliseconds; waits are measured on the loop's monotonic clock."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def elapsed_ms(self) -> float:
        """A count of milliseconds that grows steadily, for durations of less than one."""
        return time.perf_counter() * 1000

    def call_at(self, at: int, call: Callable[[], None]) -> Timer:
        """Make a call at that moment (ms)."""
        return asyncio.get_running_loop().call_later(max(0, at - self.now()) / 1000, call)

    async def sleep_until(self, at: int) -> None:
        """Return at about that moment (ms)."""
        await asyncio.sleep(max(0, at - self.now()) / 1000)


def monotonic() -> float:
    """Seconds, of which only differences mean anything: for measuring what this process does, whatever the clock."""
    return time.perf_counter()


async def watch_loop(late: Callable[[float], None], every_seconds: float = 1.0) -> None:
    """Ask the event loop for a call again and again, and say by how many seconds each came too late; until cancelled.

    While the loop is busy with one thing, everything else waits: callers, time-outs, the connections of endpoints.
    """
    while True:
        due_at = monotonic() + every_seconds
        await asyncio.sleep(every_seconds)
        late(max(0.0, monotonic() - due_at))


# The shortest visibility timeouts are some seconds; adjustments by NTP are slewed, and stay far below.
_JUMP_MS: Final = 2_000
_LOOK_SECONDS: Final = 10


async def warn_of_jumps(now: Callable[[], int]) -> None:
    """Warn when the wall clock (`now`, in ms) jumps, as it was set or the machine slept, until cancelled.

    Everything that waits does so until a moment of wall time.
    """
    loop = asyncio.get_running_loop()
    offset = now() - loop.time() * 1000
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        jump_ms = now() - loop.time() * 1000 - offset
        offset += jump_ms
        if abs(jump_ms) < _JUMP_MS:
            continue
        direction = "later" if jump_ms < 0 else "earlier"
        effect = f"in-flight and delayed messages come back that much {direction}"
        logger.warning("clock.jumped seconds=%+.1f: %s", jump_ms / 1000, effect)


# A message takes 16 bytes for its id, a claim 8 for its token. Asking the kernel costs about as much for 4 KiB as
# for 16 bytes (0.5 µs), so it is asked for 256 messages at a time.
_POOL_BYTES = 4096


class PooledSystemRandom(random.SystemRandom):
    """The kernel's randomness, fetched a pool at a time; it cannot be predicted."""

    def __init__(self) -> None:
        super().__init__()
        self._pool = b""
        self._at = 0

    @override
    def randbytes(self, n: int) -> bytes:
        """Return `n` random bytes."""
        if n > _POOL_BYTES:
            return os.urandom(n)
        if self._at + n > len(self._pool):
            self._pool = os.urandom(_POOL_BYTES)
            self._at = 0
        begin = self._at
        self._at = end = begin + n
        return self._pool[begin:end]

    @override
    def getrandbits(self, k: int) -> int:
        """Return an integer of `k` random bits."""
        n = (k + 7) // 8
        return int.from_bytes(self.randbytes(n)) >> (n * 8 - k)


def real_runtime(clock: Clock) -> Runtime:
    """A runtime on the system's random numbers (ids and claim tokens cannot be guessed), with a name for this process."""
    rng = PooledSystemRandom()
    node = f"{socket.gethostname()}-{os.getpid()}-{rng.getrandbits(32):08x}"
    return Runtime(clock, rng, node)
