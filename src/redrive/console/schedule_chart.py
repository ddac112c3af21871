"""The lab's chart: the wait before each retry, and where an outage ends, in numbers that a template draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from redrive.model.durations import show_duration
from redrive.model.outage import OutageAnswer, OutageEnd
from redrive.model.retry import Phase, RetrySchedule
from redrive.model.timetable import Column, columns_of, phase_starts, runs_of, summary, ticks_of

WIDTH, HEIGHT = 776, 224
_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 745, 15, 184
_GAP: Final = 84  # what attempts that are left out take on the axis: room for their number
_NUMBER_GAP: Final = 40  # room for the number of an attempt
CLASSES: Final = {
    Phase.IMMEDIATE: "immediate",
    Phase.PRE_BACKOFF: "pre",
    Phase.BACKOFF: "backoff",
    Phase.POST_BACKOFF: "post",
}


def drawn(schedule: RetrySchedule) -> tuple["Chart | None", str]:
    """A schedule as a chart without an outage, None if it has no retries, and in a sentence."""
    runs = runs_of(schedule, 0)
    columns = columns_of(runs)
    return chart_of(columns, None) if columns else None, summary(runs)


@dataclass(frozen=True, slots=True)
class Mark:
    """One retry."""

    x: int  # Horizontal position
    y: int  # Vertical position
    phase: str  # The class that its colour and shape come from
    made: bool  # Whether the attempt falls into the outage
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
    marks: Sequence[Mark]  # The retries
    lines: Sequence[str]  # The curve, in pieces where retries are left out
    gaps: Sequence[tuple[int, str]]  # Where they are left out: the middle, and how many
    end_x: int | None  # Where the outage ends the row of failures; None: no outage is drawn
    end_top: int  # How far up the line there goes: below the number of those left out
    legend: Sequence[tuple[str, str, str]]  # The phases: class, name and waits


def chart_of(columns: Sequence[Column], answer: OutageAnswer | None) -> Chart:
    """Draw at least one retry.

    Args:
        columns: The retries.
        answer: How an outage ends, if one is to be seen.
    """
    tick_ms, ticks = ticks_of(columns)
    gaps = list(accumulate(column.cut for column in columns))
    step = (_RIGHT - _LEFT - gaps[-1] * _GAP) / len(columns)
    lefts = [_LEFT + index * step + gap * _GAP for index, gap in enumerate(gaps)]
    points = [
        (round(left + step / 2), _height(column.wait_ms, ticks * tick_ms))
        for left, column in zip(lefts, columns, strict=True)
    ]
    left_out = [
        (round(left - _GAP / 2), f"{column.attempt - before.attempt - 1:,}")
        for left, (before, column) in zip(lefts[1:], pairwise(columns), strict=True)
        if column.cut
    ]
    numbered = _numbered(columns, points)
    marks = [
        Mark(
            x,
            y,
            CLASSES[column.phase],
            answer is None or column.attempt <= answer.attempts,
            f"{column.attempt:,}" if index in numbered else "",
            f"attempt {column.attempt:,} ({column.phase}) after {show_duration(column.wait_ms)}",
        )
        for index, (column, (x, y)) in enumerate(zip(columns, points, strict=True))
    ]
    lines = [
        (_height(tick * tick_ms, ticks * tick_ms), show_duration(tick * tick_ms)) for tick in range(ticks + 1)
    ]
    end_x = None if answer is None else _end_of(columns, lefts, answer)
    end_top = _TOP + 48 if any(end_x == x for x, _ in left_out) else _TOP
    pieces = list(_pieces(columns, points))
    legend = list(_legend(columns))
    return Chart(
        WIDTH, HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM, lines, marks, pieces, left_out, end_x, end_top, legend
    )


def _height(wait_ms: int, top_ms: int) -> int:
    return round(_BOTTOM - wait_ms / top_ms * (_BOTTOM - _TOP))


def _numbered(columns: Sequence[Column], points: Sequence[tuple[int, int]]) -> set[int]:
    """The places whose attempts are numbered: where phases begin, the last one, and others while there is room."""
    taken: dict[int, int] = {}
    for index in (*phase_starts(columns), len(columns) - 1, *range(len(columns))):
        x = points[index][0]
        if all(abs(x - other) >= _NUMBER_GAP for other in taken.values()):
            taken[index] = x
    return set(taken)


def _pieces(columns: Sequence[Column], points: Sequence[tuple[int, int]]) -> Iterator[str]:
    piece: list[str] = []
    for column, (x, y) in zip(columns, points, strict=True):
        if column.cut and piece:
            yield " ".join(piece)
            piece = []
        piece.append(f"{x},{y}")
    yield " ".join(piece)


def _end_of(columns: Sequence[Column], lefts: Sequence[float], answer: OutageAnswer) -> int:
    """The edge behind the last attempt that fails; within what is left out, the middle of the gap."""
    failed = answer.attempts - (answer.end is OutageEnd.DELIVERED)
    before = 1
    for left, column in zip(lefts, columns, strict=True):
        if column.attempt > failed:
            hidden = column.cut and before < failed < column.attempt - 1
            return round(left - (_GAP / 2 if hidden else 0))
        before = column.attempt
    return _RIGHT


def _legend(columns: Sequence[Column]) -> Iterator[tuple[str, str, str]]:
    for start, end in pairwise([*phase_starts(columns), len(columns)]):
        first, last = columns[start], columns[end - 1]
        retries = last.attempt - first.attempt + 1
        waits = " to ".join(map(show_duration, sorted({first.wait_ms, last.wait_ms})))
        yield CLASSES[first.phase], str(first.phase), f"{retries:,} after {waits}"
