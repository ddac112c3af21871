"""Clock and random numbers, passed in so that they can be simulated."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol


class Timer(Protocol):
    """A call that is scheduled for a later time."""

    def cancel(self) -> None:
        """Do not make the call; harmless after it was made."""
        ...


class Clock(Protocol):
    """The time, as an object that is passed in and can be simulated."""

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
    """Time, randomness and the name of this node, passed to every part that needs one."""

    clock: Clock
    rng: random.Random
    node: str
    _ids: list[bytes] = field(default_factory=list, repr=False, compare=False)

    def message_id(self) -> bytes:
        """A fresh message id: 16 random bytes with the marks of a version 4 UUID."""
        if not self._ids:
            self._ids.extend(_made_ids(self.rng.randbytes(_ID_BYTES * _IDS_MADE)))
        return self._ids.pop()

    def token(self) -> int:
        """A fresh claim token, 63 random bits."""
        return self.rng.getrandbits(63)

    def first_version(self) -> int:
        """The version that a new document begins at, of 52 random bits.

        A document that was removed and made again under its name is never taken for the one before, which another node
        may still remember.
        """
        return 1 + self.rng.getrandbits(52)


# An id is made for every message, and a publication to four queues takes six: one by one they were a twentieth of its
# time, so they are made 256 at a time.
_ID_BYTES: Final = 16
_IDS_MADE: Final = 256
# What a random byte becomes at the two places where a UUID says of what kind it is.
_VERSION: Final = bytes(byte & 0x0F | 0x40 for byte in range(256))
_VARIANT: Final = bytes(byte & 0x3F | 0x80 for byte in range(256))


def _made_ids(rng: bytes) -> list[bytes]:
    marked = bytearray(rng)
    marked[6::_ID_BYTES] = marked[6::_ID_BYTES].translate(_VERSION)
    marked[8::_ID_BYTES] = marked[8::_ID_BYTES].translate(_VARIANT)
    whole = bytes(marked)
    return [whole[at : at + _ID_BYTES] for at in range(0, len(whole), _ID_BYTES)]
