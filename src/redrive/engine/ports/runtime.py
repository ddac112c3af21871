"""Time and chance, as things that can be handed over and simulated."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Timer(Protocol):
    """A call that was asked for at a later moment."""

    def cancel(self) -> None:
        """Do not make the call; harmless after it was made."""
        ...


class Clock(Protocol):
    """The time, as a thing that can be handed over and simulated."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        ...

    def call_at(self, at: int, call: Callable[[], None]) -> Timer:
        """Make a call at that moment (ms), or at the next turn of the loop when it has passed."""
        ...

    async def sleep_until(self, at: int) -> None:
        """Return at that moment (ms)."""
        ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """Time, chance and the name of this node, handed to every part that needs one."""

    clock: Clock
    chance: random.Random
    node: str

    def message_id(self) -> bytes:
        """A fresh message id: 16 random bytes with the marks of a version 4 UUID."""
        raw = self.chance.randbytes(16)
        return raw[:6] + _VERSION[raw[6]] + raw[7:8] + _VARIANT[raw[8]] + raw[9:]

    def token(self) -> int:
        """A fresh claim token, 63 random bits."""
        return self.chance.getrandbits(63)


# What a random byte becomes at the two places where a UUID says of what kind it is: looked up, since an id is made
# for every message and arithmetic on 128 bits takes four times as long.
_VERSION = [bytes((byte & 0x0F | 0x40,)) for byte in range(256)]
_VARIANT = [bytes((byte & 0x3F | 0x80,)) for byte in range(256)]
