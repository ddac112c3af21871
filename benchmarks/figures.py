"""Results of a measurement: one figure, the bound it is held to, and the line it is printed as."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound that a figure has to keep to.

    Attributes:
        side: Where the figure must be: not below the limit, under it, not above it, or at it.
        limit: In the figure's own unit.
    """

    side: Literal["at least", "under", "at most", "exactly"]
    limit: float

    def holds(self, value: float) -> bool:
        """True if a value keeps to it."""
        return _HOLDS[self.side](value, self.limit)


_HOLDS: Final[dict[str, Callable[[float, float], bool]]] = {
    "at least": operator.ge,
    "under": operator.lt,
    "at most": operator.le,
    "exactly": operator.eq,
}


def at_least(limit: float) -> Bound:
    """A figure that must not fall below this."""
    return Bound("at least", limit)


def under(limit: float) -> Bound:
    """A figure that must stay under this."""
    return Bound("under", limit)


def at_most(limit: float) -> Bound:
    """A figure that must not rise above this."""
    return Bound("at most", limit)


def exactly(limit: float) -> Bound:
    """A figure that must be this: a number of things, of which none may be lost and none made."""
    return Bound("exactly", limit)


@dataclass(frozen=True, slots=True)
class Figure:
    """One result.

    Attributes:
        what: Of what, in a few words.
        value: The figure; a ratio wherever one can be had, because ratios hold on other machines.
        unit: `x` for a ratio.
        detail: The absolute numbers behind it.
        bound: What it is held to, if to anything.
    """

    what: str
    value: float
    unit: str
    detail: str
    bound: Bound | None = None

    @property
    def is_missed(self) -> bool:
        """True if it does not keep to its bound."""
        return self.bound is not None and not self.bound.holds(self.value)

    def line(self, question: str) -> str:
        """The figure as a line of the table."""
        value = f"{self.value:,.2f} {self.unit}"
        return f"{question:<11} {self.what:<42} {value:>14}  {self._verdict():<24} {self.detail}"

    def _verdict(self) -> str:
        if self.bound is None:
            return ""
        kept = "MISSED" if self.is_missed else "ok"
        return f"{self.bound.side} {self.bound.limit:,g}: {kept}"
