"""The health check of a server: what leaves it open, whether its store is fit, and what would be lost or forgotten.

The first two are what `redrive doctor` tells; they are remembered for half a minute, as the store's disk is measured.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

from redrive.engine.ports import Clock

_REMEMBERED_MS: Final = 30_000
Examine = Callable[[], Awaitable[Iterable[tuple[str, str, str]]]]


class Check(NamedTuple):
    """The answer to one check."""

    name: str  # Subject of the check
    fact: str = ""  # Measured value; empty: none
    wrong: str = ""  # Problem, its cost and its remedy; empty: no problem
    link: str = ""  # Page with the remedy; empty: there is none
    to: str = ""  # Text of the link


class Doctor:
    """Checks the settings and the store of this node."""

    def __init__(
        self, findings: Callable[[], Iterable[tuple[str, str]]], examine: Examine, clock: Clock
    ) -> None:
        """Check nothing yet.

        Args:
            findings: Tells of each check of the settings what is open.
            examine: Tells of each check of the store what was measured, and what is wrong.
            clock: The system's.
        """
        self._findings = findings
        self._examine = examine
        self._clock = clock
        self._known: tuple[int, Sequence[Check], Sequence[Check]] = (0, (), ())

    async def checks(self) -> tuple[Sequence[Check], Sequence[Check]]:
        """The checks of the settings, and those of the store."""
        if self._clock.now() >= self._known[0] + _REMEMBERED_MS:
            settings = [Check(name.capitalize(), wrong=wrong) for name, wrong in self._findings()]
            store = [Check(name.capitalize(), fact, wrong) for name, fact, wrong in await self._examine()]
            self._known = self._clock.now(), settings, store
        return self._known[1:]
