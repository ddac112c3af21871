"""Simulated time: it advances on request, and continues from where the last run of the store stopped."""

from collections.abc import Sequence
from typing import Final

from redrive.composition.extension import ClockDriven
from redrive.engine.engine import Engine
from redrive.engine.ports import DocumentKind
from redrive.runtime.simulated import SimulatedClock
from redrive.telemetry.telemetry import Telemetry

_MOMENT: Final[DocumentKind[int]] = DocumentKind(
    "simulated_clock", lambda now: {"now": now}, lambda document: int(document["now"])
)


class SimulatedTime:
    """A simulated clock, with the engine that lives by it."""

    def __init__(
        self,
        clock: SimulatedClock,
        engine: Engine,
        telemetry: Telemetry,
        others: Sequence[ClockDriven] = (),
    ) -> None:
        """Move this clock, by which `others` live besides the engine."""
        self._others = others
        self._clock = clock
        self._engine = engine
        self._telemetry = telemetry

    async def take_up(self) -> None:
        """Go on from the moment in the store: there may be moments of this clock in it."""
        moment: int | None = await self._engine.resources.documents.get(_MOMENT, "moment")
        self._clock.take_up(moment or 0)

    async def advance(self, milliseconds: int) -> int:
        """Let time pass, doing everything that falls due on the way, in order; how many deliveries were attempted.

        Upkeep is once at the end: nobody can look in between, and a year has a million rounds. So is waiting for the
        disk: of what happens on the way nobody gets an answer before the end.
        """
        before = self._engine.attempts
        async with self._engine.deferring():
            await self._clock.advance(milliseconds, self._until_quiet, self._is_quiet)
            await self._engine.tidy()
            await self._telemetry.tidy()
            now = self._clock.now()
            await self._engine.resources.documents.update_or_create(_MOMENT, "moment", now, lambda _: now)
        return self._engine.attempts - before

    def _is_quiet(self) -> bool:
        others = all(other.is_quiet for other in self._others)
        return others and self._engine.is_quiet and self._telemetry.is_quiet

    async def _until_quiet(self) -> None:
        await self._engine.until_quiet()
        for other in self._others:
            await other.until_quiet()
        await self._telemetry.until_quiet()
