"""Pictures: a retry schedule as a curve, in numbers that a template draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any, Final

from redrive.model.filtering import Attribute
from redrive.model.retry import Step

_WIDE: Final = (640, 200)
_SMALL: Final = (120, 24)
_EDGE: Final = 8
_PHASES: Final = {
    "IMMEDIATE": "immediate",
    "PRE_BACKOFF": "pre",
    "BACKOFF": "backoff",
    "POST_BACKOFF": "post",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """One retry of a curve.

    Attributes:
        x: Its place from the left.
        y: Its place from the top; the longest wait is highest, by a logarithmic scale.
        phase: The class that its colour comes from.
        step: The retry.
    """

    x: int
    y: int
    phase: str
    step: Step


@dataclass(frozen=True, slots=True)
class Curve:
    """The waits of a schedule, drawn.

    Attributes:
        width: Of the picture.
        height: Of the picture.
        marks: A mark for each retry that is drawn.
        points: The line through them, as SVG has it.
        summary: The schedule in a sentence.
    """

    width: int
    height: int
    marks: Sequence[Mark]
    points: str
    summary: str


def curve(steps: Sequence[Step], retries: int, *, small: bool) -> Curve | None:
    """The curve of a schedule whose first retries are given; None: it has none."""
    if not steps:
        return None
    width, height = _SMALL if small else _WIDE
    edge = 3 if small else _EDGE
    most = max(log10(step.nominal_ms + 1) for step in steps) or 1
    across = max(1, len(steps) - 1)
    marks = [
        Mark(
            edge + (width - 2 * edge) * index // across,
            height - edge - round((height - 2 * edge) * log10(step.nominal_ms + 1) / most),
            _PHASES.get(step.phase.name, "backoff"),
            step,
        )
        for index, step in enumerate(steps)
    ]
    points = " ".join(f"{mark.x},{mark.y}" for mark in marks)
    more = f"; the first {len(steps)} are drawn" if retries > len(steps) else ""
    first, last = steps[0].nominal_ms / 1000, steps[-1].nominal_ms / 1000
    times = "retry" if retries == 1 else "retries"
    summary = f"{retries:,} {times}, after {first:g} s at first and {last:g} s at last{more}"
    return Curve(width, height, marks, points, summary)


def attributes_of(typed: dict[str, Any]) -> dict[str, Attribute]:
    """Message attributes of what somebody typed as a JSON object: texts and numbers."""
    return {
        str(name): Attribute("Number" if isinstance(value, int | float) else "String", str(value))
        for name, value in typed.items()
        if not isinstance(value, bool) and isinstance(value, str | int | float)
    }
