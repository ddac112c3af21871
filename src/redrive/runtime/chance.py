"""Real chance and the names made of it."""

import os
import random
import socket

from typing_extensions import override

from redrive.engine.ports import Clock, Runtime

# A message takes 16 bytes for its id, a claim 8 for its token. Asking the kernel costs about as much for 4 KiB as
# for 16 bytes (0.5 µs), so it is asked for 256 messages at a time.
_POOL_BYTES = 4096


class PooledSystemRandom(random.SystemRandom):
    """The kernel's randomness, fetched a pool at a time; nobody can guess what comes next."""

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
    """The machine's chance (ids and claim tokens that nobody can guess) and a name for this process."""
    chance = PooledSystemRandom()
    node = f"{socket.gethostname()}-{os.getpid()}-{chance.getrandbits(32):08x}"
    return Runtime(clock, chance, node)
