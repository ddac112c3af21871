"""The control of a simulated clock: its time passes when a page says so."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

Advance: TypeAlias = Callable[[int], Awaitable[int]]
"""Lets so many milliseconds pass; how many deliveries were attempted on the way."""

STEPS_MAX: Final = 200  # moments gone through on the way to an attempt
SPAN_MAX_MS: Final = 31 * 24 * 3_600_000


class NothingDue(Exception):  # noqa: N818 - an answer, not a failure
    """No delivery is to be tried at any time, so there is no moment to go to."""


class ClockControl:
    """Moves a simulated clock, once the server's parts that it drives are all there."""

    def __init__(self, now: Callable[[], int], next_at: Callable[[], int | None]) -> None:
        """Move the clock that these tell of: its time (ms), and that of the next attempt, if one is due at any time."""
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
        """Let time pass up to the next attempt at a delivery; how many attempts were made then.

        At a moment that `next_at` names, a backlog is looked into. Where nothing is due after all, as at the end of a
        lease that was settled, time passes to the next such moment, and not beyond the last of them.

        Raises:
            NothingDue: No backlog is to be looked into at any time, so no time passes.
        """
        attempts = await self.forward(0)  # what is due already
        if not attempts and self.next_at() is None:
            raise NothingDue
        for _ in range(STEPS_MAX):
            due = self.next_at()
            if attempts or due is None:
                break
            attempts = await self.forward(max(0, due - self._now()))
        return attempts
