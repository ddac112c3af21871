"""A retry schedule as a timetable: which attempt is made when, equal rows folded."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter
from typing import Final, NamedTuple

from redrive.cli.durations import show_duration
from redrive.model.retry import Phase, RetrySchedule


class Row(NamedTuple):
    """One attempt.

    Attributes:
        attempt: From 1.
        phase: The phase of the retry; None for the first attempt.
        wait_ms: The published wait before it, from the end of the attempt before.
        earliest_ms: When it begins, counted from the publication, if jitter makes every wait as short as it can.
        latest_ms: The same with every wait as long as can be.
    """

    attempt: int
    phase: Phase | None
    wait_ms: int
    earliest_ms: int
    latest_ms: int


_ROWS_SHOWN_WHOLE: Final = 3  # a folded run takes as many lines: its first, how many more, its last


@dataclass(frozen=True, slots=True)
class Run:
    """Attempts in a row of one phase and after one wait, of which only the ends are kept.

    Attributes:
        head: Its first rows, up to three.
        last: Its last row.
    """

    head: tuple[Row, ...]
    last: Row

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
    alike = groupby(_rows(schedule, attempt_ms), key=attrgetter("phase", "wait_ms"))
    return [_run(rows) for _, rows in alike]


def _run(rows: Iterator[Row]) -> Run:
    head = tuple(islice(rows, _ROWS_SHOWN_WHOLE))
    last = deque(rows, maxlen=1)
    return Run(head, last[0] if last else head[-1])


def _rows(schedule: RetrySchedule, attempt_ms: int) -> Iterator[Row]:
    row = Row(1, None, 0, 0, 0)
    yield row
    for step in schedule.steps():
        row = Row(
            step.attempt + 1,
            step.phase,
            step.nominal_ms,
            row.earliest_ms + attempt_ms + step.earliest_ms,
            row.latest_ms + attempt_ms + step.latest_ms,
        )
        if schedule.expired(0, row.earliest_ms):
            return
        yield row


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
    if run.length <= _ROWS_SHOWN_WHOLE:
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
