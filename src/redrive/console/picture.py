"""Pictures: a retry schedule as a curve of a table's height, in numbers that a template draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any, Final

from redrive.model.filtering import Attribute
from redrive.model.retry import Step

_WIDTH: Final = 120
_HEIGHT: Final = 24
_EDGE: Final = 3


@dataclass(frozen=True, slots=True)
class Curve:
    """The waits of a schedule, drawn.

    Attributes:
        width: Of the picture.
        height: Of the picture.
        points: The line through the retries, as SVG has it; the longest wait is highest, by a logarithmic scale.
        summary: The schedule in a sentence.
    """

    width: int
    height: int
    points: str
    summary: str


def curve(steps: Sequence[Step], retries: int) -> Curve | None:
    """The curve of a schedule whose first retries are given; None: it has none."""
    if not steps:
        return None
    most = max(log10(step.nominal_ms + 1) for step in steps) or 1
    across = max(1, len(steps) - 1)
    points = " ".join(
        f"{_EDGE + (_WIDTH - 2 * _EDGE) * index // across},"
        f"{_HEIGHT - _EDGE - round((_HEIGHT - 2 * _EDGE) * log10(step.nominal_ms + 1) / most)}"
        for index, step in enumerate(steps)
    )
    more = f"; the first {len(steps)} are drawn" if retries > len(steps) else ""
    first, last = steps[0].nominal_ms / 1000, steps[-1].nominal_ms / 1000
    times = "retry" if retries == 1 else "retries"
    summary = f"{retries:,} {times}, after {first:g} s at first and {last:g} s at last{more}"
    return Curve(_WIDTH, _HEIGHT, points, summary)


def attributes_of(typed: dict[str, Any]) -> dict[str, Attribute]:
    """Message attributes of what somebody typed as a JSON object: texts and numbers."""
    return {
        str(name): Attribute("Number" if isinstance(value, int | float) else "String", str(value))
        for name, value in typed.items()
        if not isinstance(value, bool) and isinstance(value, str | int | float)
    }
