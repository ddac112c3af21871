"""A retry schedule as a timetable: which attempt is made when, equal rows folded; and as the columns of a chart.

Attempts after equal waits are reckoned together, not walked: the longest published schedule has 100,016.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from redrive.model.durations import show_duration
from redrive.model.outage import OutageAnswer, OutageEnd
from redrive.model.retry import Phase, RetrySchedule, Step

RUN_SHOWN_WHOLE: Final = 3  # a folded run takes as many lines: its first, how many more, its last
COLUMNS_MAX: Final = 60
_CUT_RUN_COLUMNS: Final = 10  # what a run keeps that is longer than the whole chart

_SECOND, _MINUTE, _HOUR = 1000, 60_000, 3_600_000
_TICKS_MAX: Final = 5
_TICK_STEPS_MS: Final = (
    *(number * _SECOND for number in (1, 2, 5, 10, 15, 20, 30)),
    *(number * _MINUTE for number in (1, 2, 5, 10, 15, 20, 30)),
    *(number * _HOUR for number in (1, 2, 3, 6, 12, 24, 48)),
)


class TimetableRow(NamedTuple):
    """One attempt."""

    attempt: int  # Number of the attempt, from 1
    phase: Phase | None  # The phase of the retry; None for the first attempt
    wait_ms: int  # The published wait before it, from the end of the attempt before
    # When it begins, counted from the publication, if jitter makes every wait as short as it can.
    earliest_ms: int
    latest_ms: int  # The same with every wait as long as can be

    def after(self, step: Step, number: int, attempt_ms: int) -> "TimetableRow":
        """The attempt that is so many equal retries later."""
        return TimetableRow(
            self.attempt + number,
            step.phase,
            step.nominal_ms,
            self.earliest_ms + number * (attempt_ms + step.earliest_ms),
            self.latest_ms + number * (attempt_ms + step.latest_ms),
        )


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive attempts in one phase and after equal waits, of which only the first and last are stored."""

    head: tuple[TimetableRow, ...]  # Its first rows, up to three
    last: TimetableRow

    @property
    def length(self) -> int:
        """The number of attempts."""
        return self.last.attempt - self.head[0].attempt + 1


def runs_of(schedule: RetrySchedule, attempt_ms: int) -> list[Run]:
    """Every attempt that may be made, the first one included; each takes `attempt_ms` before it fails."""
    row = TimetableRow(1, None, 0, 0, 0)
    runs = [Run((row,), row)]
    for step, retries in schedule.equal_waits():
        attempts = _retries_made(schedule, row, attempt_ms + step.earliest_ms, retries)
        if attempts:
            head = [
                row.after(step, number, attempt_ms) for number in range(1, attempts + 1)[:RUN_SHOWN_WHOLE]
            ]
            row = row.after(step, attempts, attempt_ms)
            runs.append(Run(tuple(head), row))
        if attempts < retries:
            break
    return runs


def _retries_made(schedule: RetrySchedule, before: TimetableRow, period_ms: int, retries: int) -> int:
    """The number of those retries that fall due before the time to live is over."""
    if schedule.expires_after_ms is None:
        return retries
    remaining_ms = schedule.expires_after_ms - 1 - before.earliest_ms
    if remaining_ms < 0:
        return 0
    return min(retries, remaining_ms // period_ms) if period_ms else retries


class Column(NamedTuple):
    """One retry of a chart."""

    attempt: int  # Number of the attempt that the retry makes
    phase: Phase
    wait_ms: int  # The published wait before it
    cut: bool = False  # Whether retries like this one were left out before it


def columns_of(runs: Sequence[Run]) -> list[Column]:
    """A column a retry, as long as there are not too many; then long runs are cut short."""
    retries = runs[-1].last.attempt - 1
    longest = COLUMNS_MAX if retries <= COLUMNS_MAX else _CUT_RUN_COLUMNS
    return [column for run in runs for column in _columns(run, longest)]


def _columns(run: Run, longest: int) -> Iterator[Column]:
    """A column for each of a run's first retries, and for its last one: `longest` together at most."""
    phase, attempt = run.last.phase, run.head[0].attempt
    if phase is None:
        return
    length = min(run.length, longest)
    for index in range(length - 1):
        yield Column(attempt + index, phase, run.last.wait_ms)
    yield Column(run.last.attempt, phase, run.last.wait_ms, cut=length < run.length)


def phase_starts(columns: Sequence[Column]) -> list[int]:
    """The places in `columns` at which a phase begins."""
    return [
        index for index, column in enumerate(columns) if not index or columns[index - 1].phase != column.phase
    ]


def ticks_of(columns: Sequence[Column]) -> tuple[int, int]:
    """The distance (ms) of the marks on the axis of waits, and how many marks there are above 0."""
    longest_ms = max(column.wait_ms for column in columns)
    tick_ms = next(step for step in _TICK_STEPS_MS if longest_ms <= step * _TICKS_MAX)
    return tick_ms, max(1, -(-longest_ms // tick_ms))


class Plot(NamedTuple):
    """The edges of a chart's plot, in its units."""

    left: float
    right: float
    top: float
    bottom: float
    gap: float  # What retries that are left out take on the axis: room for their number


class ChartLayout:
    """The layout of a chart of retries: a column each, and a gap where retries are left out.

    Attributes:
        step: The width of a column.
        lefts: The left edges of columns.
        points: The middle of each column, at the height of its wait.
        ticks: Lines across: their heights, and the waits that they mark.
        gaps: The middle of each gap, and how many retries it stands for.
    """

    def __init__(self, columns: Sequence[Column], plot: Plot) -> None:
        self._columns, self._plot = columns, plot
        tick_ms, ticks = ticks_of(columns)
        self._top_ms = ticks * tick_ms
        gaps_before = list(accumulate(column.cut for column in columns))  # how many, at each column
        self.step = (plot.right - plot.left - gaps_before[-1] * plot.gap) / len(columns)
        self.lefts = [
            plot.left + index * self.step + number * plot.gap for index, number in enumerate(gaps_before)
        ]
        self.points = [
            (left + self.step / 2, self._height(column.wait_ms))
            for left, column in zip(self.lefts, columns, strict=True)
        ]
        self.ticks = [(self._height(tick * tick_ms), tick * tick_ms) for tick in range(ticks + 1)]
        self.gaps = [
            (left - plot.gap / 2, column.attempt - before.attempt - 1)
            for left, (before, column) in zip(self.lefts[1:], pairwise(columns), strict=True)
            if column.cut
        ]

    def _height(self, wait_ms: int) -> float:
        return self._plot.bottom - wait_ms / self._top_ms * (self._plot.bottom - self._plot.top)

    def attempt_labels(self, room: float) -> dict[int, float]:
        """The x of each label, by its column: phases' first columns, the last, and others while there is room."""
        labels: dict[int, float] = {}
        count = len(self._columns)
        for index in (*phase_starts(self._columns), count - 1, *range(count)):
            x = round(self.points[index][0])
            if all(abs(x - other) >= room for other in labels.values()):
                labels[index] = x
        return labels

    def end_of(self, answer: OutageAnswer) -> tuple[float, bool]:
        """The edge behind the last attempt that fails in an outage, and whether that is one of those left out."""
        last_failure = answer.attempts - (answer.end is OutageEnd.DELIVERED)
        before = 1
        for left, column in zip(self.lefts, self._columns, strict=True):
            if column.attempt > last_failure:
                is_left_out = column.cut and before < last_failure < column.attempt - 1
                return left - (self._plot.gap / 2 if is_left_out else 0), is_left_out
            before = column.attempt
        return self._plot.right, False


def phases_of(columns: Sequence[Column]) -> Iterator[tuple[int, int, str]]:
    """Each phase: the first of its columns, the one behind its last, and in words how many retries after which waits."""
    for start, end in pairwise([*phase_starts(columns), len(columns)]):
        first, last = columns[start], columns[end - 1]
        waits = " to ".join(map(show_duration, sorted({first.wait_ms, last.wait_ms})))
        yield start, end, f"{last.attempt - first.attempt + 1:,} after {waits}"


def column_text(column: Column) -> str:
    """A retry in words."""
    return f"attempt {column.attempt:,} ({column.phase}) after {show_duration(column.wait_ms)}"


def summary(runs: Sequence[Run]) -> str:
    """The number of attempts, and when the last of them is made."""
    last = runs[-1].last
    if last.attempt == 1:
        return "one attempt, no retries"
    earliest, latest = show_duration(last.earliest_ms), show_duration(last.latest_ms)
    when = latest if earliest == latest else f"{earliest} to {latest}"
    return f"{last.attempt:,} attempts, the last {when} after publication"
