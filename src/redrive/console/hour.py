"""The last hour of some accounts and regions, minute by minute, and the rates of its last minutes: one read for all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from redrive.console.charts import Curve, TimeChart, sparkline, time_chart
from redrive.console.words import number, rate
from redrive.engine.ports import TelemetryStore
from redrive.model.metric import MINUTE_MS, PeriodStatistics, PointQuery, Series
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import COUNTED, queue_series, scope_series

MINUTES: Final = 60
WAITING: Final = "messages_available"  # the series of how many wait in a queue
SENT: Final = "messages_sent"  # the series of what came to a queue
#: What one point of a list gathers: fifty lines of three series are 2,000 rows.
LISTED_MS: Final = 5 * MINUTE_MS
RATE_MINUTES: Final = 15
#: Nodes write down what they counted every 5 s; a minute is shown once all have had the time for it.
SETTLED_MS: Final = 10_000
_LABELS: Final = {"sent": "Sent", "received": "Received", "pushed": "Pushed", "failed": "Attempts failed"}


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

        With `sums`, their values are added up, and not how many there are.
        """
        periods = [0.0] * ((self.until - self.since) // self.period_ms)
        for bucket in (bucket for each in series for bucket in self.points(each)):
            value = bucket.statistics.total if sums else bucket.statistics.samples
            periods[(bucket.at - self.since) // self.period_ms] += value
        return sparkline(periods, words) if any(periods) else None

    def line_chart(self, lines: Mapping[str, Sequence[Series]], *, sums: bool = False) -> TimeChart | None:
        """Lines that add up some series each, minute by minute: their samples, or values (`sums`); None: all are 0."""
        whole_until = self.until - MINUTE_MS  # the minute that has not ended says too little
        points = {}
        for label, series in lines.items():
            minutes: dict[int, float] = {}
            for bucket in (bucket for each in series for bucket in self.points(each)):
                value = bucket.statistics.total if sums else bucket.statistics.samples
                minutes[bucket.at] = minutes.get(bucket.at, 0.0) + value
            points[label] = [(at, minutes.get(at, 0.0)) for at in range(self.since, whole_until, MINUTE_MS)]
        if not any(value for line in points.values() for _, value in line):
            return None
        return time_chart(points, self.since, whole_until, MINUTE_MS, unit="/min")


def depth_curve(hour: Hour, queue: ResourceName) -> Curve | None:
    """The messages that waited in a queue in each period, of points of its series `WAITING`; None: none were counted."""
    points = hour.points(queue_series(queue, WAITING))
    if not points:
        return None
    depths = [0.0] * ((hour.until - hour.since) // hour.period_ms)
    for bucket in points:
        depths[(bucket.at - hour.since) // hour.period_ms] = bucket.statistics.average
    most = round(max(bucket.statistics.greatest for bucket in points))
    return sparkline(depths, f"Waiting in the last hour: {number(most)} at most")


async def last_hour(
    telemetry: TelemetryStore,
    series: Iterable[Series],
    now: int,
    period_ms: int = MINUTE_MS,
    minutes: int = MINUTES,
) -> Hour:
    """The last hour of these series, or fewer minutes.

    Args:
        telemetry: Where all nodes write down what they counted.
        series: One read finds them all.
        now: The time (ms).
        period_ms: What one point gathers: a list has fifty lines and does with longer ones.
        minutes: So many before the current period.
    """
    until = now // period_ms * period_ms + period_ms
    since = max(0, until - minutes * MINUTE_MS - period_ms)
    all_series = list(series)
    points = (
        await telemetry.find_points_each(PointQuery(all_series, since, until, period_ms))
        if all_series
        else {}
    )
    return Hour(since, until, points, period_ms)


@dataclass(frozen=True, slots=True)
class Rate:
    """One of the things that happen, and how often."""

    label: str  # Label of the rate
    latest: str  # A second's, on average of the last whole minute, as text
    drawn: Curve  # Each of the last 15 minutes


def rate_series(scopes: Sequence[ResourceName]) -> list[Series]:
    """The series that the rates of these scopes are read from: four of each."""
    return [scope_series(scope, counter) for scope in scopes for counter in COUNTED]


def rates(hour: Hour, scopes: Sequence[ResourceName], now: int) -> list[Rate]:
    """The rates that all nodes counted in these scopes together, by the points that `hour` has of `rate_series`.

    Whole minutes alone, so that a page with them changes once a minute and, where nothing happens, never.
    """
    if not scopes:
        return []
    until = (now - SETTLED_MS) // MINUTE_MS * MINUTE_MS
    since = max(0, until - RATE_MINUTES * MINUTE_MS)
    sums = {counter: [0.0] * RATE_MINUTES for counter in COUNTED}
    for each in rate_series(scopes):
        for bucket in hour.points(each):
            if since <= bucket.at < until:
                sums[each.name][(bucket.at - since) // MINUTE_MS] += bucket.statistics.total
    return [_rate(_LABELS[counter], totals) for counter, totals in sums.items()]


def traffic_chart(hour: Hour, scopes: Sequence[ResourceName], now: int) -> TimeChart | None:
    """The traffic of each whole minute of the last hour, a second on average; None: there was none."""
    until = (now - SETTLED_MS) // MINUTE_MS * MINUTE_MS
    since = max(0, until - (MINUTES - 1) * MINUTE_MS)
    lines = {"in": ("sent",), "failed": ("failed",), "out": ("received", "pushed")}
    sums: dict[str, dict[int, float]] = {label: {} for label in lines}
    for each in rate_series(scopes):
        label = next(label for label, counters in lines.items() if each.name in counters)
        for bucket in hour.points(each):
            sums[label][bucket.at] = sums[label].get(bucket.at, 0.0) + bucket.statistics.total
    if not any(since <= at < until for of_line in sums.values() for at in of_line):
        return None
    seconds = MINUTE_MS // 1000
    points = {
        label: [(at, round(of_line.get(at, 0.0) / seconds, 2)) for at in range(since, until, MINUTE_MS)]
        for label, of_line in sums.items()
    }
    return time_chart(points, since, until, MINUTE_MS, unit="/s")


def _rate(label: str, totals: Sequence[float]) -> Rate:
    seconds = MINUTE_MS // 1000
    each = [total / seconds for total in totals]
    summary = f"{label} in each of the last {len(each)} minutes: {rate(min(each))} to {rate(max(each))}"
    return Rate(label, rate(each[-1]), sparkline(each, summary))
