"""A retry schedule as a timetable: which attempt is made when, equal rows folded; and as the columns of a chart.

Attempts after equal waits are reckoned together, not walked: the longest published schedule has 100,016.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from redrive.model.durations import show_duration
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
    """Every attempt that may be made, the first one included.

    Args:
        schedule: The schedule.
        attempt_ms: How long each attempt takes before it fails.
    """
    row = TimetableRow(1, None, 0, 0, 0)
    runs = [Run((row,), row)]
    for step, retries in schedule.alike():
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
    left_ms = schedule.expires_after_ms - 1 - before.earliest_ms
    if left_ms < 0:
        return 0
    return min(retries, left_ms // period_ms) if period_ms else retries


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


def summary(runs: Sequence[Run]) -> str:
    """The number of attempts, and when the last of them is made."""
    last = runs[-1].last
    if last.attempt == 1:
        return "one attempt, no retries"
    earliest, latest = show_duration(last.earliest_ms), show_duration(last.latest_ms)
    when = latest if earliest == latest else f"{earliest} to {latest}"
    return f"{last.attempt:,} attempts, the last {when} after publication"
