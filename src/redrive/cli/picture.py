"""A schedule's waits as a picture: one SVG file, which any browser opens."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final
from xml.etree import ElementTree as ET

from redrive.cli.terminal import shorten
from redrive.model.durations import show_duration
from redrive.model.outage import OutageAnswer
from redrive.model.retry import Phase
from redrive.model.timetable import (
    COLUMNS_MAX,
    RUN_SHOWN_WHOLE,
    ChartLayout,
    Column,
    Plot,
    Run,
    TimetableRow,
    column_text,
    phase_starts,
    phases_of,
)

_HEIGHT: Final = 8  # lines; a block character has eighths, so 64 steps
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_CELL_CHARS_MAX: Final = 6
_GAP_MARK: Final = " ⋯ "  # where retries are left out
WIDE: Final = 80  # characters a line: more are not used
_COLUMNS_MIN: Final = 20
_AXIS_CHARS: Final = 2  # the blank and the axis between the labels and the bars


def draw(columns: Sequence[Column], room: int = WIDE) -> str:
    """Draw the waits as bars, the longest as high as the chart; below, the attempt at which each phase begins.

    `room` is how many characters a line may have; a chart wider than 60 is no clearer, and one under 20 is none.
    """
    top_ms = max(column.wait_ms for column in columns)
    labels = [show_duration(top_ms), *[""] * (_HEIGHT - 2), "0 s"]
    margin = max(map(len, labels))
    # The number of the last attempt may stick out to the right.
    margin_chars = margin + _AXIS_CHARS + len(f"{columns[-1].attempt:,}")
    width = max(_COLUMNS_MIN, min(COLUMNS_MAX, room - margin_chars))
    width -= len(_GAP_MARK) * sum(column.cut for column in columns)
    every = -(-len(columns) // width)  # rounded up
    columns = _thin(columns, every)
    chars = min(_CELL_CHARS_MAX, width // len(columns))  # of a column
    lines = []
    for line, label in enumerate(labels):
        bars = "".join(
            " " * len(_gap_mark(column)) + _bar(column, top_ms, _HEIGHT - 1 - line, chars)
            for column in columns
        )
        lines.append(f"{label.rjust(margin)} ┤{bars}".rstrip())
    lines.append(f"{' ' * margin} └{_axis(columns, chars)}")
    lines.append(f"{' ' * margin}  {_attempt_numbers(columns, chars)}".rstrip())
    return "\n".join(lines)


def _thin(columns: Sequence[Column], every: int) -> list[Column]:
    """Every `every`-th column, counted from the last; a gap before a dropped one moves to the next that stays."""
    remaining_columns: list[Column] = []
    has_gap = False
    for index, column in enumerate(columns):
        has_gap = has_gap or column.cut
        if (len(columns) - 1 - index) % every == 0:
            remaining_columns.append(column._replace(cut=has_gap))
            has_gap = False
    return remaining_columns


def _gap_mark(column: Column) -> str:
    return _GAP_MARK if column.cut else ""


def _bar(column: Column, top_ms: int, line: int, chars: int) -> str:
    """The part of a bar in one line of text; a wait of more than 0 has an eighth of a line at least."""
    eighths = round(column.wait_ms / top_ms * _HEIGHT * 8) if top_ms else 0
    if column.wait_ms:
        eighths = max(1, eighths)
    block = _EIGHTHS[max(0, min(8, eighths - 8 * line))]
    return block * max(1, chars - 1) + " " * (chars > 1)


def _axis(columns: Sequence[Column], chars: int) -> str:
    """The line below the bars, with a mark where a phase begins."""
    starts = frozenset(phase_starts(columns))
    return "".join(
        _gap_mark(column) + ("┬" if index in starts else "─") + "─" * (chars - 1)
        for index, column in enumerate(columns)
    )


def _attempt_numbers(columns: Sequence[Column], chars: int) -> str:
    """The attempts' numbers under the beginnings of phases and the last column, where there is room."""
    text = ""
    mark_chars = list(accumulate(len(_gap_mark(column)) for column in columns))
    for index in [*phase_starts(columns), len(columns) - 1]:
        blanks = index * chars + mark_chars[index] - len(text)
        if blanks > 0 or not text:
            text += " " * blanks + f"{columns[index].attempt:,}"
    return text


# A timetable in the terminal: a line an attempt, of long runs the two ends.

_HEAD: Final = ("attempt", "phase", "wait", "earliest", "latest")
_PHASE_COLUMN: Final = 1


def table(runs: Sequence[Run]) -> str:
    """The timetable as text; of a long run the two ends, and how many lie between."""
    lines = [_HEAD, *(line for run in runs for line in _lines(run))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_align(line, widths) for line in lines)


def _align(line: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if column == _PHASE_COLUMN else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _lines(run: Run) -> list[tuple[str, ...]]:
    if run.length <= RUN_SHOWN_WHOLE:
        return [_row_cells(row) for row in run.head]
    return [_row_cells(run.head[0]), ("⋮", f"{run.length - 2:,} more", "", "", ""), _row_cells(run.last)]


def _row_cells(row: TimetableRow) -> tuple[str, ...]:
    """The cells of an attempt: its number, its phase, the wait, and its earliest and latest time."""
    return (
        f"{row.attempt:,}",
        row.phase or "",
        "" if row.phase is None else show_duration(row.wait_ms),
        show_duration(row.earliest_ms),
        show_duration(row.latest_ms),
    )


_WIDTH: Final = 960
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 936, 96, 392  # the plot's edges
_LEGEND_TOP: Final = _BOTTOM + 76
_ROW: Final = 21  # a line each phase, so that no text runs into another, whatever the font
_TICK_LABEL_GAP: Final = 46  # room for `100,016`
_TITLE_CHARS_MAX: Final = 80
_GAP: Final = 84  # what attempts that are left out take on the axis: room for their number
_PLOT: Final = Plot(_LEFT, _RIGHT, _TOP, _BOTTOM, _GAP)
_GAP_TEXT: Final = 60  # the two lines in it
_TEAR: Final = 7  # how far the torn edges of a gap go in and out

# Told apart by everybody: blue, orange, green and purple of the Okabe-Ito set, on tints of themselves.
_COLOURS: Final = {
    Phase.IMMEDIATE: "#009e73",
    Phase.PRE_BACKOFF: "#e69f00",
    Phase.BACKOFF: "#0072b2",
    Phase.POST_BACKOFF: "#cc79a7",
}
_INK, _GRID, _PAPER = "#222222", "#dddddd", "#ffffff"
_DOWN: Final = "#d55e00"  # of the same set: the endpoint is down
_HATCH: Final = "down"

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class DrawnOutage:
    """The outage that a picture shows."""

    answer: OutageAnswer  # Fate of a message that is published at the start of the outage
    text: str  # The same in words


def picture(columns: Sequence[Column], title: str, summary: str, outage: DrawnOutage | None = None) -> str:
    """Draw the wait before each retry as SVG, with an outage across it, if there is one."""
    height = _LEGEND_TOP + _ROW * (len(phase_starts(columns)) + (outage is not None))
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {_WIDTH} {height}",
            "width": str(_WIDTH),
            "height": str(height),
            "role": "img",
            "font-family": "sans-serif",
            "font-size": "13",
        },
    )
    ET.SubElement(root, "title").text = f"{title}: {summary}"
    _rectangle(root, 0, 0, _WIDTH, height, _PAPER)
    _text(root, (_LEFT, 30), shorten(title, _TITLE_CHARS_MAX), size="18")
    _text(root, (_LEFT, 52), summary)
    if outage is not None:
        _text(root, (_LEFT, 72), outage.text, fill=_DOWN)
    _Plot(root, columns, outage.answer if outage else None).draw()
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


class _Plot:
    """The chart itself, on its sheet: a column a retry, and a gap where retries are left out."""

    def __init__(self, root: ET.Element, columns: Sequence[Column], outage: OutageAnswer | None) -> None:
        self._root = root
        self._columns = columns
        self._outage = outage
        self._layout = ChartLayout(columns, _PLOT)

    def draw(self) -> None:
        """Draw from the back to the front."""
        self._draw_bands()
        self._draw_waits()
        self._draw_outage()
        self._draw_curve()
        self._draw_gaps()
        self._draw_end_of_outage()
        self._draw_dots()
        self._draw_attempts()
        self._draw_legend()

    def _draw_bands(self) -> None:
        """Colour the background by phases."""
        for start, end, _ in phases_of(self._columns):
            left, right = self._layout.lefts[start], self._layout.lefts[end - 1] + self._layout.step
            colour = _COLOURS[self._columns[start].phase]
            band = _rectangle(self._root, left, _TOP, right - left, _BOTTOM - _TOP, colour)
            band.set("opacity", "0.1")

    def _draw_waits(self) -> None:
        for y, wait_ms in self._layout.ticks:
            _line(self._root, [(_LEFT, y), (_RIGHT, y)], _GRID)
            _text(self._root, (_LEFT - 8, y + 4), show_duration(wait_ms), anchor="end")
        _text(self._root, (_LEFT - 8, _TOP - 14), "wait", anchor="end")

    def _draw_curve(self) -> None:
        for point, after in pairwise(self._layout.points):
            _line(self._root, [point, after], _INK)

    def _draw_gaps(self) -> None:
        """Tear the paper where attempts are left out, and say how many."""
        for middle, number in self._layout.gaps:
            left, right = middle - _GAP / 2, middle + _GAP / 2
            tear = [*_zigzag(left, _TOP - 4, _BOTTOM + 4), *_zigzag(right, _TOP - 4, _BOTTOM + 4)[::-1]]
            gap = ET.SubElement(self._root, "polygon", {"points": _points(tear), "fill": _PAPER})
            gap.set("class", "gap")
            for edge in (left, right):
                _line(self._root, _zigzag(edge, _TOP - 4, _BOTTOM + 4), _GRID)
            for line, text in enumerate((f"{number:,}", "more")):
                at = (middle, _TOP + 24 + line * _ROW)
                _text(self._root, at, text, anchor="middle")

    def _draw_dots(self) -> None:
        """Draw a dot at the wait of each attempt; hollow ones are not made, as the outage is over."""
        radius = min(5.0, self._layout.step / 3)
        for column, (x, y) in zip(self._columns, self._layout.points, strict=True):
            colour = _COLOURS[column.phase]
            dot = ET.SubElement(
                self._root, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{radius:.1f}"}
            )
            dot.set("fill", colour if self._is_made(column) else _PAPER)
            dot.set("stroke", colour)
            ET.SubElement(dot, "title").text = column_text(column)

    def _is_made(self, column: Column) -> bool:
        return self._outage is None or column.attempt <= self._outage.attempts

    def _draw_outage(self) -> None:
        """Hatch the attempts that fail."""
        if self._outage is None:
            return
        size = {"width": "8", "height": "8", "patternUnits": "userSpaceOnUse"}
        pattern = ET.SubElement(self._root, "pattern", {"id": _HATCH, **size})
        _line(pattern, [(0, 8), (8, 0)], _DOWN)
        end, _ = self._layout.end_of(self._outage)
        band = _rectangle(self._root, _LEFT, _TOP, end - _LEFT, _BOTTOM - _TOP, f"url(#{_HATCH})")
        band.set("opacity", "0.35")
        band.set("class", "outage")

    def _draw_end_of_outage(self) -> None:
        """Draw a line where the message is taken, or given up; over the gaps, since it may lie in one."""
        if self._outage is None:
            return
        (end, is_hidden), top = self._layout.end_of(self._outage), _TOP
        if is_hidden:  # below the number of those left out, and with its own
            top += _GAP_TEXT
            _text(self._root, (end, _BOTTOM + 20), f"{self._outage.attempts:,}", anchor="middle", fill=_DOWN)
        _line(self._root, [(end, top), (end, _BOTTOM + 4)], _DOWN, width="2")

    def _draw_attempts(self) -> None:
        """Number the attempts where phases begin, the last one, and others while there is room."""
        for index in self._layout.attempt_labels(_TICK_LABEL_GAP):
            x, number = self._layout.points[index][0], f"{self._columns[index].attempt:,}"
            _text(self._root, (x, _BOTTOM + 20), number, anchor="middle")
        _text(self._root, ((_LEFT + _RIGHT) / 2, _BOTTOM + 44), "attempt", anchor="middle")

    def _draw_legend(self) -> None:
        """Say below the plot what each colour means."""
        y = _LEGEND_TOP
        for start, _, text in phases_of(self._columns):
            phase = self._columns[start].phase
            _rectangle(self._root, _LEFT, y - 11, 12, 12, _COLOURS[phase])
            _text(self._root, (_LEFT + 18, y), f"{phase}: {text}")
            y += _ROW
        if self._outage is None:
            return
        _rectangle(self._root, _LEFT, y - 11, 12, 12, f"url(#{_HATCH})")
        hint = "" if all(map(self._is_made, self._columns)) else "; hollow attempts are not made"
        _text(self._root, (_LEFT + 18, y), f"the endpoint is down{hint}")


def _zigzag(x: float, top: float, bottom: float) -> list[Point]:
    """A zigzag from top to bottom."""
    teeth = int((bottom - top) // (2 * _TEAR))
    tooth_height = (bottom - top) / teeth
    return [
        (x + (_TEAR / 2 if tooth % 2 else -_TEAR / 2), top + tooth * tooth_height)
        for tooth in range(teeth + 1)
    ]


# ---- SVG ---------------------------------------------------------------------------------------------------------


def _rectangle(parent: ET.Element, x: float, y: float, width: float, height: float, fill: str) -> ET.Element:
    box = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    return ET.SubElement(parent, "rect", {**box, "fill": fill})


def _line(parent: ET.Element, points: Sequence[Point], stroke: str, width: str = "1") -> None:
    style = {"fill": "none", "stroke": stroke, "stroke-width": width}
    ET.SubElement(parent, "polyline", {"points": _points(points), **style})


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _text(
    parent: ET.Element,
    at: Point,
    text: str,
    *,
    anchor: str = "start",
    size: str | None = None,
    fill: str = _INK,
) -> None:
    x, y = at
    attributes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "fill": fill}
    ET.SubElement(parent, "text", {**attributes, **({"font-size": size} if size else {})}).text = text
