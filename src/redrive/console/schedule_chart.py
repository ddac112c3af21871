"""The lab's chart: the wait before each retry, and where an outage ends, in numbers that a template draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.model.durations import show_duration
from redrive.model.outage import OutageAnswer
from redrive.model.retry import Phase, RetrySchedule
from redrive.model.timetable import (
    ChartLayout,
    Column,
    Plot,
    column_text,
    columns_of,
    phases_of,
    runs_of,
    summary,
)

WIDTH, HEIGHT = 776, 224
_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 745, 15, 184
_PLOT: Final = Plot(_LEFT, _RIGHT, _TOP, _BOTTOM, gap=84)
_NUMBER_GAP: Final = 40  # room for the number of an attempt
CLASSES: Final = {
    Phase.IMMEDIATE: "immediate",
    Phase.PRE_BACKOFF: "pre",
    Phase.BACKOFF: "backoff",
    Phase.POST_BACKOFF: "post",
}


def draw_schedule(schedule: RetrySchedule) -> tuple["Chart | None", str]:
    """A schedule as a chart without an outage, None if it has no retries, and in a sentence."""
    runs = runs_of(schedule, 0)
    columns = columns_of(runs)
    return chart_of(columns, None) if columns else None, summary(runs)


@dataclass(frozen=True, slots=True)
class RetryMark:
    """One retry."""

    x: int  # Horizontal position
    y: int  # Vertical position
    phase: str  # The class that its colour and shape come from
    is_attempted: bool  # Whether it is made at all: none is after the message is delivered or given up
    number: str  # The attempt, where there is room to write it
    text: str  # The attempt in words


@dataclass(frozen=True, slots=True)
class Chart:
    """A schedule drawn."""

    width: int  # Width of the picture
    height: int  # Height of the picture
    left: int  # The left edge of the plot
    right: int  # Its right edge
    top: int  # Its upper edge
    bottom: int  # Its lower edge
    ticks: Sequence[tuple[int, str]]  # Lines across: their places from the top, and the waits they mark
    marks: Sequence[RetryMark]  # The retries
    lines: Sequence[str]  # The curve, in pieces where retries are left out
    gaps: Sequence[tuple[int, str]]  # Where they are left out: the middle, and how many
    end_x: int | None  # Where the outage ends the row of failures; None: no outage is drawn
    end_top: int  # How far up the line there goes: below the number of those left out
    legend: Sequence[tuple[str, str, str]]  # The phases: class, name and waits


def chart_of(columns: Sequence[Column], answer: OutageAnswer | None) -> Chart:
    """Draw at least one retry; with an answer, also how an outage ends."""
    layout = ChartLayout(columns, _PLOT)
    points = [(round(x), round(y)) for x, y in layout.points]
    numbered = layout.attempt_labels(_NUMBER_GAP)
    marks = [
        RetryMark(
            x,
            y,
            CLASSES[column.phase],
            answer is None or column.attempt <= answer.attempts,
            f"{column.attempt:,}" if index in numbered else "",
            column_text(column),
        )
        for index, (column, (x, y)) in enumerate(zip(columns, points, strict=True))
    ]
    gaps = [(round(x), f"{number:,}") for x, number in layout.gaps]
    end_x = None if answer is None else round(layout.end_of(answer)[0])
    return Chart(
        WIDTH,
        HEIGHT,
        _LEFT,
        _RIGHT,
        _TOP,
        _BOTTOM,
        ticks=[(round(y), show_duration(wait_ms)) for y, wait_ms in layout.ticks],
        marks=marks,
        lines=list(_pieces(columns, points)),
        gaps=gaps,
        end_x=end_x,
        end_top=_TOP + 48 if any(end_x == x for x, _ in gaps) else _TOP,
        legend=[
            (CLASSES[columns[start].phase], str(columns[start].phase), text)
            for start, _, text in phases_of(columns)
        ],
    )


def _pieces(columns: Sequence[Column], points: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The points of the lines, as SVG writes them: a new line begins at each column that is cut off."""
    piece: list[str] = []
    for column, (x, y) in zip(columns, points, strict=True):
        if column.cut and piece:
            yield " ".join(piece)
            piece = []
        piece.append(f"{x},{y}")
    yield " ".join(piece)
