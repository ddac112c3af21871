"""The hands of a simulated clock: its time passes when a page says so."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

Advance: TypeAlias = Callable[[int], Awaitable[int]]
"""Lets so many milliseconds pass; how many deliveries were attempted on the way."""

STEPS_MAX: Final = 200  # moments gone through on the way to an attempt
SPAN_MAX_MS: Final = 31 * 24 * 3_600_000


class ClockHands:
    """Moves a simulated clock, once the server's parts that live by it are all there."""

    def __init__(self, now: Callable[[], int], next_at: Callable[[], int | None]) -> None:
        """Move the clock that these tell of.

        Args:
            now: The simulated moment (ms).
            next_at: The moment (ms) of what falls due next; None: nothing does.
        """
        self._now = now
        self.next_at = next_at
        self._advance: Advance | None = None

    def drive(self, advance: Advance) -> None:
        """Move the clock by this from now on."""
        self._advance = advance

    async def forward(self, milliseconds: int) -> int:
        """Let time pass; how many deliveries were attempted on the way."""
        if self._advance is None:
            raise RuntimeError("the simulated clock is moved before the server is whole")
        return await self._advance(milliseconds)

    async def to_next_attempt(self) -> int:
        """Let time pass up to the next attempt at a delivery; how many were made then, 0 where none falls due."""
        end = self._now() + SPAN_MAX_MS
        attempts = await self.forward(0)  # what is due already, which may make the next moment an earlier one
        for _ in range(STEPS_MAX):
            due = self.next_at()
            if attempts or due is None or due > end:
                break
            attempts = await self.forward(max(0, due - self._now()))
        return attempts
