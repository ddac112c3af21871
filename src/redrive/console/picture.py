"""Pictures: a retry schedule or a rate as a curve of a table's height, in numbers that a template draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any, Final

from redrive.model.message import Attribute
from redrive.model.retry import Step

_WIDTH: Final = 120
_HEIGHT: Final = 24
_EDGE: Final = 3


@dataclass(frozen=True, slots=True)
class Curve:
    """Some values in their order, drawn."""

    width: int  # Width of the picture
    height: int  # Height of the picture
    points: str  # The line through the values, as SVG has it; the greatest is highest
    summary: str  # The values in a sentence


def curve(steps: Sequence[Step], retries: int) -> Curve | None:
    """The curve of a schedule whose first retries are given, its waits by a logarithmic scale; None: it has none."""
    if not steps:
        return None
    points = _through([log10(step.nominal_ms + 1) for step in steps])
    more = f"; the first {len(steps)} are drawn" if retries > len(steps) else ""
    first, last = steps[0].nominal_ms / 1000, steps[-1].nominal_ms / 1000
    times = "retry" if retries == 1 else "retries"
    summary = f"{retries:,} {times}, after {first:g} s at first and {last:g} s at last{more}"
    return Curve(_WIDTH, _HEIGHT, points, summary)


def sparkline(values: Sequence[float], summary: str) -> Curve:
    """The curve of values that are not below 0, which stands at the lower edge."""
    return Curve(_WIDTH, _HEIGHT, _through(values), summary)


def _through(heights: Sequence[float]) -> str:
    most, across = max(heights) or 1, max(1, len(heights) - 1)
    return " ".join(
        f"{_EDGE + (_WIDTH - 2 * _EDGE) * index // across},"
        f"{_HEIGHT - _EDGE - round((_HEIGHT - 2 * _EDGE) * height / most)}"
        for index, height in enumerate(heights)
    )


def attributes_of(typed: dict[str, Any]) -> dict[str, Attribute]:
    """Message attributes from a typed JSON object: texts and numbers."""
    return {
        str(name): Attribute("Number" if isinstance(value, int | float) else "String", str(value))
        for name, value in typed.items()
        if not isinstance(value, bool) and isinstance(value, str | int | float)
    }
