"""Charts, in numbers that a template draws: series over time with a table beside them, and curves within a row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Final, NamedTuple

from redrive.console.words import clock_time
from redrive.model.retry import Step

_WIDTH: Final = 120
_HEIGHT: Final = 24
_EDGE: Final = 3
WIDTH: Final = 600
HEIGHT: Final = 160
HAIRS_MAX: Final = 200
NOTHING: Final = "\N{EN DASH}"  # where nothing was measured
_SHORT_MS: Final = 10 * 60_000
_LABELS: Final = 5  # along the axis of time
_TURNS: Final = (1, 3, 2, 5, 4)  # the colours of lines that mean nothing by themselves
#: The colours of lines that mean the same wherever they are drawn: in, out, failed, waiting or slow, on hold.
_COLOURS: Final = {
    **dict.fromkeys(("in", "In", "Published", "Invocations", "Sent", "In flight"), 1),
    **dict.fromkeys(("out", "Out", "Delivered", "Received", "On average", "Answered"), 2),
    **dict.fromkeys(("failed", "Failed", "Failed attempts", "Errors", "5xx", "Dead letters"), 3),
    **dict.fromkeys(("Slowest", "Throttles", "Oldest", "4xx", "Allowed", "Waiting"), 4),
    "Deleted": 5,
}
_STEPS: Final = (1, 2, 3, 5, 10)
Point = tuple[int, float]


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
    """The points of a line through these heights, at equal steps."""
    most, across = max(heights) or 1, max(1, len(heights) - 1)
    return " ".join(
        f"{_EDGE + (_WIDTH - 2 * _EDGE) * index // across},"
        f"{_HEIGHT - _EDGE - round((_HEIGHT - 2 * _EDGE) * height / most)}"
        for index, height in enumerate(heights)
    )


class ChartLine(NamedTuple):
    """One series, drawn."""

    label: str  # Its name
    colour: int  # Its number among the colours of lines
    paths: Sequence[str]  # SVG's paths, one for each run of points without a gap
    dots: Sequence[str]  # The same of points by themselves


@dataclass(frozen=True, slots=True)
class TimeChart:
    """Series over the same time."""

    width: int  # Width of the picture
    height: int  # Height of the picture
    lines: Sequence[ChartLine]  # In the order of their names
    top: float  # The value at the upper edge; the lower one is 0, or the least value where that is below
    bottom: float  # The value at the lower edge
    moments: Sequence[int]  # Along the axis of time (ms), evenly
    threshold: float | None  # A value that is marked; None: none
    threshold_y: float  # Vertical position
    # Each moment (ms) with the values of all lines, None if one has none; latest first.
    rows: Sequence[tuple[int, Sequence[float | None]]]
    summary: str  # The chart in a sentence
    # Lines across at round values, each with its place from the top (percent) and its label.
    ticks: Sequence[tuple[float, str]] = ()
    # The time of day of each period, for the cross-hair; at most `HAIRS_MAX` periods.
    times: Sequence[str] = ()
    series: Sequence[Sequence[str]] = ()  # For each line: its value in each of those periods, as text
    latest: Sequence[str] = ()  # For each line: its last value, as text
    time_chars: int = 5  # Of a time of day: hours and minutes, and of a short chart seconds
    marks: Sequence[tuple[float, int]] = ()  # Changes meanwhile: the place across (percent) and the number


def time_chart(
    series: Mapping[str, Sequence[Point]],
    since: int,
    until: int,
    period_ms: int,
    threshold: float | None = None,
    unit: str = "",
) -> TimeChart:
    """The chart of series by their labels.

    Args:
        series: The values of each by moment (ms), in order of time.
        since: The left edge (ms).
        until: The right edge (ms).
        period_ms: Between two values that follow each other; where they are further apart the line has a gap.
        threshold: A value to be marked.
        unit: After each value: `/s`.
    """
    values = [value for points in series.values() for _, value in points]
    marks = [] if threshold is None else [threshold]
    top = _round_up(max([*values, *marks, 0.0]))
    least = min([*values, *marks, 0.0])
    bottom = -_round_up(-least) if least < 0 else 0.0
    span, height = max(1, until - since), top - bottom
    time_chars = 8 if span < _SHORT_MS else 5  # of hours, minutes and seconds

    def position(point: Point) -> str:
        at, value = point
        x = round((at - since) / span * WIDTH, 1)
        return f"{x:g} {_y(value, top, height):g}"

    lines = [
        _line(label, turn, [[position(point) for point in run] for run in _runs(points, period_ms)])
        for turn, (label, points) in enumerate(series.items())
    ]
    times, texts = _hairs(series, range(since, until, max(1, period_ms)), time_chars, unit)
    return TimeChart(
        WIDTH,
        HEIGHT,
        lines,
        top,
        bottom,
        moments=[since + span * number // (_LABELS - 1) for number in range(_LABELS)],
        threshold=threshold,
        threshold_y=0.0 if threshold is None else _y(threshold, top, height),
        rows=_rows(series),
        summary=_summary(series, threshold),
        ticks=_ticks(top, bottom, unit),
        times=times,
        series=texts,
        latest=[f"{figure(points[-1][1])}{unit}" if points else NOTHING for points in series.values()],
        time_chars=time_chars,
    )


def _ticks(top: float, bottom: float, unit: str) -> list[tuple[float, str]]:
    """The lines across: at the upper edge, in the middle, and at the lower edge; and at 0 if that is between."""
    values = dict.fromkeys([top, (top + bottom) / 2, bottom, *([0.0] if bottom < 0 < top else [])])
    return [(round((top - value) / (top - bottom) * 100, 1), f"{figure(value)}{unit}") for value in values]


def _hairs(
    series: Mapping[str, Sequence[Point]], moments: Sequence[int], time_chars: int, unit: str
) -> tuple[list[str], list[list[str]]]:
    """The times and values that a cross-hair reads; of too many periods none."""
    if not 1 < len(moments) <= HAIRS_MAX:
        return [], []
    known = [dict(points) for points in series.values()]
    texts = [
        [f"{figure(points[at])}{unit}" if at in points else NOTHING for at in moments] for points in known
    ]
    return [f"{clock_time(at)[:time_chars]}Z" for at in moments], texts


def with_zeros(points: Sequence[Point], since: int, until: int, period_ms: int) -> list[Point]:
    """The sums of all periods from a moment to another: of one in which nothing was counted, 0."""
    known = dict(points)
    return [(moment, known.get(moment, 0.0)) for moment in range(since, until, period_ms)]


def figure(value: float) -> str:
    """A value as a person reads it: `12,000`, `0.25`."""
    if value == floor(value) and abs(value) < 10**15:
        return f"{int(value):,}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - three digits are enough


def _y(value: float, top: float, height: float) -> float:
    return round((top - value) / height * HEIGHT, 1)


def _round_up(value: float) -> float:
    """The next of 1, 2, 3, 5, 10, 20, …, so that an axis ends with a number that people read; 1 for nothing."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    return next((step * unit for step in _STEPS if step * unit >= value), 10 * unit)


def _runs(points: Sequence[Point], period_ms: int) -> list[list[Point]]:
    """The points cut at the gaps: where two are further apart than a period."""
    runs: list[list[Point]] = []
    for point in points:
        if runs and point[0] - runs[-1][-1][0] <= period_ms:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def _line(label: str, turn: int, runs: Sequence[Sequence[str]]) -> ChartLine:
    paths = ["M" + "L".join(run) for run in runs if len(run) > 1]
    colour = _COLOURS.get(label, _TURNS[turn % len(_TURNS)])
    return ChartLine(label, colour, paths, [f"M{run[0]}h0" for run in runs if len(run) == 1])


def _rows(series: Mapping[str, Sequence[Point]]) -> list[tuple[int, list[float | None]]]:
    known = [dict(points) for points in series.values()]
    moments = sorted({moment for points in known for moment in points}, reverse=True)
    return [(moment, [points.get(moment) for points in known]) for moment in moments]


def _between(values: Sequence[float]) -> str:
    least, most = figure(min(values)), figure(max(values))
    return least if least == most else f"{least} to {most}"


def _summary(series: Mapping[str, Sequence[Point]], threshold: float | None) -> str:
    """The ranges of all series in words, for those who do not see the chart."""
    parts = [
        f"{label}: {_between([value for _, value in points])}" if points else f"{label}: nothing was measured"
        for label, points in series.items()
    ]
    return "; ".join(parts) + ("" if threshold is None else f"; threshold {figure(threshold)}")
