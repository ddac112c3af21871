"""A schedule's waits as a picture: one SVG file, which any browser opens."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final
from xml.etree import ElementTree as ET

from redrive.cli.drawing import Column, phase_starts
from redrive.cli.durations import show_duration
from redrive.model.retry import Phase

_WIDTH, _HEIGHT = 960, 470
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 936, 74, 370  # the plot's edges
_TICK_LABEL_GAP: Final = 46  # room for `100,016`
_LEGEND_STEP: Final = 208

# Told apart by everybody: blue, orange, green and purple of the Okabe-Ito set, on tints of themselves.
_COLOURS: Final = {
    Phase.IMMEDIATE: "#009e73",
    Phase.PRE_BACKOFF: "#e69f00",
    Phase.BACKOFF: "#0072b2",
    Phase.POST_BACKOFF: "#cc79a7",
}
_INK, _GRID = "#222222", "#dddddd"

_SECOND, _MINUTE, _HOUR = 1000, 60_000, 3_600_000
_TICKS_MAX: Final = 5
_TICK_STEPS_MS: Final = (
    *(number * _SECOND for number in (1, 2, 5, 10, 15, 20, 30)),
    *(number * _MINUTE for number in (1, 2, 5, 10, 15, 20, 30)),
    *(number * _HOUR for number in (1, 2, 3, 6, 12, 24, 48)),
)


def picture(columns: Sequence[Column], title: str, summary: str) -> str:
    """Draw the wait before each retry as SVG.

    Args:
        columns: The retries, at least one.
        title: What schedule it is.
        summary: A second line.
    """
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {_WIDTH} {_HEIGHT}",
            "width": str(_WIDTH),
            "height": str(_HEIGHT),
            "role": "img",
            "font-family": "sans-serif",
            "font-size": "13",
        },
    )
    ET.SubElement(root, "title").text = f"{title}: {summary}"
    _rectangle(root, 0, 0, _WIDTH, _HEIGHT, "#ffffff")
    _text(root, _LEFT, 30, title, size="18")
    _text(root, _LEFT, 52, summary)
    _Plot(root, columns).draw()
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


class _Plot:
    """The chart itself, on its sheet."""

    def __init__(self, root: ET.Element, columns: Sequence[Column]) -> None:
        self._root = root
        self._columns = columns
        self._starts = phase_starts(columns)
        self._step = (_RIGHT - _LEFT) / len(columns)
        longest_ms = max(column.wait_ms for column in columns)
        self._tick_ms = next(step for step in _TICK_STEPS_MS if longest_ms <= step * _TICKS_MAX)
        self._ticks = max(1, -(-longest_ms // self._tick_ms))

    def draw(self) -> None:
        """Draw from the back to the front."""
        self._bands()
        self._waits()
        self._curve()
        self._attempts()
        self._legend()

    def _x(self, place: float) -> float:
        return _LEFT + (place + 0.5) * self._step

    def _y(self, wait_ms: float) -> float:
        return _BOTTOM - wait_ms / (self._ticks * self._tick_ms) * (_BOTTOM - _TOP)

    def _phases(self) -> Iterator[tuple[Phase, int, int]]:
        for start, end in zip(self._starts, [*self._starts[1:], len(self._columns)], strict=True):
            yield self._columns[start].phase, start, end

    def _bands(self) -> None:
        for phase, start, end in self._phases():
            left, right = self._x(start - 0.5), self._x(end - 0.5)
            band = _rectangle(self._root, left, _TOP, right - left, _BOTTOM - _TOP, _COLOURS[phase])
            band.set("opacity", "0.1")

    def _waits(self) -> None:
        for tick in range(self._ticks + 1):
            wait_ms = tick * self._tick_ms
            _line(self._root, [(_LEFT, self._y(wait_ms)), (_RIGHT, self._y(wait_ms))], _GRID)
            _text(self._root, _LEFT - 8, self._y(wait_ms) + 4, show_duration(wait_ms), anchor="end")

    def _curve(self) -> None:
        points = [(self._x(place), self._y(column.wait_ms)) for place, column in enumerate(self._columns)]
        for place, (before, point) in enumerate(pairwise(points), start=1):
            segment = _line(self._root, [before, point], _INK)
            if self._columns[place].cut:
                segment.set("stroke-dasharray", "2 4")
        for column, (x, y) in zip(self._columns, points, strict=True):
            radius = min(5.0, self._step / 3)
            dot = ET.SubElement(
                self._root,
                "circle",
                {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": f"{radius:.1f}", "fill": _COLOURS[column.phase]},
            )
            ET.SubElement(
                dot, "title"
            ).text = f"attempt {column.attempt:,} ({column.phase}) after {show_duration(column.wait_ms)}"

    def _attempts(self) -> None:
        """Number the attempts where phases begin, the last one, and others while there is room."""
        numbered: list[float] = []
        for place in (*self._starts, len(self._columns) - 1, *range(len(self._columns))):
            x = self._x(place)
            if all(abs(x - other) >= _TICK_LABEL_GAP for other in numbered):
                numbered.append(x)
                _text(self._root, x, _BOTTOM + 20, f"{self._columns[place].attempt:,}", anchor="middle")
        _text(self._root, (_LEFT + _RIGHT) / 2, _BOTTOM + 44, "attempt", anchor="middle")
        _text(self._root, _LEFT - 8, _TOP - 16, "wait", anchor="end")

    def _legend(self) -> None:
        first = {phase: self._columns[start] for phase, start, _ in self._phases()}
        last = {phase: self._columns[end - 1] for phase, _, end in self._phases()}
        for place, phase in enumerate(first):
            x, y = _LEFT + place * _LEGEND_STEP, _BOTTOM + 76
            _rectangle(self._root, x, y - 11, 12, 12, _COLOURS[phase])
            retries = last[phase].attempt - first[phase].attempt + 1
            waits = sorted({first[phase].wait_ms, last[phase].wait_ms})
            text = f"{phase}: {retries:,} after {' to '.join(map(show_duration, waits))}"
            _text(self._root, x + 18, y, text)


# ---- SVG ---------------------------------------------------------------------------------------------------------


def _rectangle(parent: ET.Element, x: float, y: float, width: float, height: float, fill: str) -> ET.Element:
    box = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    return ET.SubElement(parent, "rect", {**box, "fill": fill})


def _line(parent: ET.Element, points: Sequence[tuple[float, float]], stroke: str) -> ET.Element:
    (x1, y1), (x2, y2) = points
    ends = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
    return ET.SubElement(parent, "line", {**ends, "stroke": stroke})


def _text(
    parent: ET.Element, x: float, y: float, text: str, *, anchor: str = "start", size: str | None = None
) -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "fill": _INK}
    ET.SubElement(parent, "text", {**place, **({"font-size": size} if size else {})}).text = text
