"""A timetable in the terminal: a line an attempt, of long runs the two ends."""

from collections.abc import Sequence
from typing import Final

from redrive.model.durations import show_duration
from redrive.model.timetable import RUN_SHOWN_WHOLE, Row, Run

_HEAD: Final = ("attempt", "phase", "wait", "earliest", "latest")
_PHASE_COLUMN: Final = 1


def table(runs: Sequence[Run]) -> str:
    """The timetable as text; of a long run the two ends, and how many lie between."""
    lines = [_HEAD, *(line for run in runs for line in _lines(run))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if column == _PHASE_COLUMN else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _lines(run: Run) -> list[tuple[str, ...]]:
    if run.length <= RUN_SHOWN_WHOLE:
        return [_line(row) for row in run.head]
    return [_line(run.head[0]), ("⋮", f"{run.length - 2:,} more", "", "", ""), _line(run.last)]


def _line(row: Row) -> tuple[str, ...]:
    return (
        f"{row.attempt:,}",
        row.phase or "",
        "" if row.phase is None else show_duration(row.wait_ms),
        show_duration(row.earliest_ms),
        show_duration(row.latest_ms),
    )
