"""A schedule's waits as a chart in the terminal."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from redrive.model.durations import show_duration
from redrive.model.timetable import COLUMNS_MAX, RUN_SHOWN_WHOLE, Column, Run, TimetableRow, phase_starts

_HEIGHT: Final = 8  # lines; a block character has eighths, so 64 steps
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_CELL_CHARS_MAX: Final = 6
_GAP: Final = " ⋯ "  # where retries are left out
WIDE: Final = 80  # characters a line: more are not used
_COLUMNS_MIN: Final = 20
_AXIS_CHARS: Final = 2  # the blank and the axis between the labels and the bars


def draw(columns: Sequence[Column], room: int = WIDE) -> str:
    """Draw the waits as bars, the longest as high as the chart; below, the attempt at which each phase begins.

    Args:
        columns: The retries, at least one.
        room: How many characters a line may have; a chart wider than 60 is no clearer, and one under 20 is none.
    """
    top_ms = max(column.wait_ms for column in columns)
    labels = [show_duration(top_ms), *[""] * (_HEIGHT - 2), "0 s"]
    margin = max(map(len, labels))
    beside = margin + _AXIS_CHARS + len(f"{columns[-1].attempt:,}")  # its number may stick out to the right
    width = max(_COLUMNS_MIN, min(COLUMNS_MAX, room - beside))
    width -= len(_GAP) * sum(column.cut for column in columns)
    every = -(-len(columns) // width)
    columns = _thinned(columns, every)
    chars = min(_CELL_CHARS_MAX, width // len(columns))
    lines = []
    for line, label in enumerate(labels):
        bars = "".join(
            " " * len(_gap(column)) + _bar(column, top_ms, _HEIGHT - 1 - line, chars) for column in columns
        )
        lines.append(f"{label.rjust(margin)} ┤{bars}".rstrip())
    lines.append(f"{' ' * margin} └{_axis(columns, chars)}")
    lines.append(f"{' ' * margin}  {_attempts(columns, chars)}".rstrip())
    return "\n".join(lines)


def _thinned(columns: Sequence[Column], every: int) -> list[Column]:
    """Every so-manieth column, the last one always; a gap before one that goes is before the next that stays."""
    thinned: list[Column] = []
    cut = False
    for index, column in enumerate(columns):
        cut = cut or column.cut
        if (len(columns) - 1 - index) % every == 0:
            thinned.append(column._replace(cut=cut))
            cut = False
    return thinned


def _gap(column: Column) -> str:
    return _GAP if column.cut else ""


def _bar(column: Column, top_ms: int, line: int, chars: int) -> str:
    """The part of a bar that stands in one line; what is more than 0 is seen."""
    eighths = round(column.wait_ms / top_ms * _HEIGHT * 8) if top_ms else 0
    if column.wait_ms:
        eighths = max(1, eighths)
    block = _EIGHTHS[max(0, min(8, eighths - 8 * line))]
    return block * max(1, chars - 1) + " " * (chars > 1)


def _axis(columns: Sequence[Column], chars: int) -> str:
    starts = frozenset(phase_starts(columns))
    return "".join(
        _gap(column) + ("┬" if index in starts else "─") + "─" * (chars - 1)
        for index, column in enumerate(columns)
    )


def _attempts(columns: Sequence[Column], chars: int) -> str:
    """The attempts' numbers under the beginnings of phases and the last column, where there is room."""
    text = ""
    gaps = list(accumulate(len(_gap(column)) for column in columns))
    for index in [*phase_starts(columns), len(columns) - 1]:
        gap = index * chars + gaps[index] - len(text)
        if gap > 0 or not text:
            text += " " * gap + f"{columns[index].attempt:,}"
    return text


# A timetable in the terminal: a line an attempt, of long runs the two ends.

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


def _line(row: TimetableRow) -> tuple[str, ...]:
    return (
        f"{row.attempt:,}",
        row.phase or "",
        "" if row.phase is None else show_duration(row.wait_ms),
        show_duration(row.earliest_ms),
        show_duration(row.latest_ms),
    )
