"""Real chance and the names made of it."""

import os
import random
import socket

from redrive.engine.ports import Clock, Runtime


def real_runtime(clock: Clock) -> Runtime:
    """The machine's chance (ids and claim tokens that nobody can guess) and a name for this process."""
    chance = random.SystemRandom()
    node = f"{socket.gethostname()}-{os.getpid()}-{chance.getrandbits(32):08x}"
    return Runtime(clock, chance, node)
