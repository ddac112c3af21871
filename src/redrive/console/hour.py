"""The last hour of some accounts and regions, minute by minute: one read for all that Overview tells of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from redrive.console.picture import Curve, sparkline
from redrive.console.time_chart import TimeChart, time_chart
from redrive.engine.ports import TelemetryStore
from redrive.model.metric import MINUTE_MS, PeriodStatistics, PointQuery, Series

MINUTES: Final = 60
#: What one point of a list gathers: fifty lines of three series are 2,000 rows.
LISTED_MS: Final = 5 * MINUTE_MS


class Tally(NamedTuple):
    """The points of some series together."""

    samples: int  # How many there are
    total: float  # Their sum
    greatest: float | None  # The largest; None: there is none
    last_at: int | None  # When the minute of the latest begins (ms); None: there is none

    @property
    def mean(self) -> float | None:
        """The average; None: there is none."""
        return self.total / self.samples if self.samples else None


class Hour(NamedTuple):
    """The points of some series."""

    since: int  # The beginning of the first minute (ms)
    until: int  # The end of the last one, which is the current minute (ms)
    # The points of each series by its id; none of a series without points.
    by_series: Mapping[int, Sequence[PeriodStatistics]]
    period_ms: int = MINUTE_MS  # Length of a period

    def points(self, series: Series) -> Sequence[PeriodStatistics]:
        """The points of a series, in order of time."""
        return self.by_series.get(series.id, ())

    def total(self, series: Series, since: int = 0) -> float:
        """The sum of a series from a moment (ms) on."""
        return sum(bucket.statistics.total for bucket in self.points(series) if bucket.at >= since)

    def tally(self, *series: Series) -> Tally:
        """The points of some series together."""
        buckets = [bucket for each in series for bucket in self.points(each)]
        statistics = [bucket.statistics for bucket in buckets]
        return Tally(
            round(sum(each.samples for each in statistics)),
            sum(each.total for each in statistics),
            max((each.greatest for each in statistics), default=None),
            max((bucket.at for bucket in buckets), default=None),
        )

    def sparkline(self, words: str, *series: Series, sums: bool = False) -> Curve | None:
        """Some series period by period, under a sentence; None: there is nothing but zeros.

        Args:
            words: The sentence.
            series: Added up.
            sums: Whether the values are added up, and not how many there are.
        """
        periods = [0.0] * ((self.until - self.since) // self.period_ms)
        for bucket in (bucket for each in series for bucket in self.points(each)):
            value = bucket.statistics.total if sums else bucket.statistics.samples
            periods[(bucket.at - self.since) // self.period_ms] += value
        return sparkline(periods, words) if any(periods) else None

    def counted(self, lines: Mapping[str, Sequence[Series]], *, sums: bool = False) -> TimeChart | None:
        """Lines with the samples of some series each, minute by minute; None: all of them are empty.

        Args:
            lines: The series that each adds up, by its label.
            sums: Whether the values are added up, and not how many there are.
        """
        if not any(self.points(each) for series in lines.values() for each in series):
            return None
        whole = self.until - MINUTE_MS  # the minute that has not ended says too little
        points = {}
        for label, series in lines.items():
            minutes: dict[int, float] = {}
            for bucket in (bucket for each in series for bucket in self.points(each)):
                value = bucket.statistics.total if sums else bucket.statistics.samples
                minutes[bucket.at] = minutes.get(bucket.at, 0.0) + value
            points[label] = [(at, minutes.get(at, 0.0)) for at in range(self.since, whole, MINUTE_MS)]
        return time_chart(points, self.since, whole, MINUTE_MS, unit="/min")


async def last_hour(
    telemetry: TelemetryStore, series: Iterable[Series], now: int, period_ms: int = MINUTE_MS
) -> Hour:
    """The last hour of these series.

    Args:
        telemetry: Where all nodes write down what they counted.
        series: One read finds them all.
        now: The time (ms).
        period_ms: What one point gathers: a list has fifty lines and does with longer ones.
    """
    until = now // period_ms * period_ms + period_ms
    since = max(0, until - MINUTES * MINUTE_MS - period_ms)
    all_series = list(series)
    points = (
        await telemetry.find_points_each(PointQuery(all_series, since, until, period_ms))
        if all_series
        else {}
    )
    return Hour(since, until, points, period_ms)
