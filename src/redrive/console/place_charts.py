"""The six charts of an account and region: what comes, goes and fails, what waits and for how long, and dead letters."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from redrive.console.charts import NOTHING, Point, TimeChart, figure, time_chart, with_zeros
from redrive.console.hour import SETTLED_MS, WAITING, rate_series
from redrive.console.visit import Visit
from redrive.model.metric import PeriodStatistics, PointQuery, Series
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import QUEUE, queue_series, scope_series

#: Queues whose depth is added up, the fullest first: 86,000 rows are looked through at most, as of eight metrics.
DEPTHS_MAX: Final = {"1h": 40, "6h": 20, "24h": 10, "15d": 2}
_AGE: Final = "oldest_age_seconds"
_MINUTE_SECONDS: Final = 60
_RATES: Final = {"In": ("sent",), "Out": ("received", "pushed"), "Failed": ("failed",)}
_TITLES: Final = {"In": "In", "Out": "Out", "Failed": "Failed attempts"}
Buckets = Mapping[int, Sequence[PeriodStatistics]]


class PlaceChart(NamedTuple):
    """A chart, and what the table says of it."""

    title: str  # Subject
    drawn: TimeChart | None  # None: nothing was measured
    least: str  # The smallest value, with its unit
    average: str  # The mean of the values
    greatest: str  # The largest value


async def place_charts(
    visit: Visit, known: Iterable[Series], dead: Collection[ResourceName], span: tuple[str, int, int]
) -> list[PlaceChart]:
    """The charts of the page's account and region: one read.

    Args:
        visit: Who asks.
        known: The series of the account and region.
        dead: The queues there that take dead letters.
        span: The name of the time that is shown, its length and that of a period (ms).
    """
    name, span_ms, period_ms = span
    until = (visit.now - SETTLED_MS) // period_ms * period_ms
    since = max(0, until - span_ms)
    queues = _depths(visit, known, DEPTHS_MAX[name])
    own_queues = [each for each in queues if each not in dead]
    dead_letter_queues = [each for each in queues if each in dead]
    series = [*rate_series([visit.scope]), *(queue_series(each, WAITING) for each in queues)]
    series += [queue_series(each, _AGE) for each in own_queues]
    points = await visit.installation.telemetry.find_points_each(PointQuery(series, since, until, period_ms))

    def chart(title: str, label: str, values: Sequence[Point], unit: str) -> PlaceChart:
        if not any(value for _, value in values):
            return PlaceChart(title, None, NOTHING, NOTHING, NOTHING)
        time_lines = time_chart({label: values}, since, until, period_ms, unit=unit)
        numbers = [value for _, value in values]
        texts = (min(numbers), sum(numbers) / len(numbers), max(numbers))
        return PlaceChart(title, time_lines, *(f"{figure(round(each, 2))}{unit}" for each in texts))

    rates = [
        chart(_TITLES[label], label, _rate(visit.scope, points, counters, since, until, period_ms), "/s")
        for label, counters in _RATES.items()
    ]
    return [
        *rates,
        chart("Waiting", "Waiting", _combined_gauge(points, own_queues, WAITING, sum), ""),
        chart("Oldest message", "Oldest", _ages(points, own_queues), " min"),
        chart("Dead letters", "Dead letters", _combined_gauge(points, dead_letter_queues, WAITING, sum), ""),
    ]


def _depths(visit: Visit, known: Iterable[Series], most: int) -> list[ResourceName]:
    """The queues that were looked at: those that hold something first."""
    scope = visit.scope
    names = {
        scope._replace(name=each.dimensions[0][1])
        for each in known
        if each.namespace == QUEUE and each.name == WAITING
    }
    full = [level.name for level in visit.installation.queue_levels() if level.name in names]
    return [*full, *sorted(names.difference(full))][:most]


def _rate(
    scope: ResourceName, points: Buckets, counters: Sequence[str], since: int, until: int, period_ms: int
) -> list[Point]:
    """The messages or attempts a second of each period, on average."""
    sums: dict[int, float] = {}
    for counter in counters:
        for bucket in points.get(scope_series(scope, counter).id, ()):
            sums[bucket.at] = sums.get(bucket.at, 0.0) + bucket.statistics.total * 1000 / period_ms
    rates = [(at, round(value, 2)) for at, value in sums.items()]
    return with_zeros(rates, since, until, period_ms)


def _combined_gauge(
    points: Buckets, queues: Sequence[ResourceName], name: str, combine: Callable[[list[float]], float]
) -> list[Point]:
    """A gauge of several queues in each period in which one was looked at."""
    values: dict[int, list[float]] = {}
    for queue in queues:
        for bucket in points.get(queue_series(queue, name).id, ()):
            values.setdefault(bucket.at, []).append(bucket.statistics.average)
    return [(at, round(combine(each), 2)) for at, each in sorted(values.items())]


def _ages(points: Buckets, queues: Sequence[ResourceName]) -> list[Point]:
    """The greatest age of all (minutes): ages are never added up."""
    return [(at, round(age / _MINUTE_SECONDS, 1)) for at, age in _combined_gauge(points, queues, _AGE, max)]
