"""Readings: the points of very many alarms at once.

Alarms of one period and as many periods share one question to the store, for a thousand questions would take ten times
as long as their answers. Only statistics that need the values themselves are asked for metric by metric.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from redrive.aws.cloudwatch.alarms.verdict import Datapoint
from redrive.aws.cloudwatch.alarms.watch import AlarmWatch, WatchedMetric
from redrive.aws.cloudwatch.metrics.expressions import ExpressionError
from redrive.aws.cloudwatch.metrics.metric_math import compute_values
from redrive.aws.cloudwatch.metrics.queries import UNITS_IN_ORDER
from redrive.aws.cloudwatch.metrics.statistic import Measurement
from redrive.aws.kit.offloading import within_budget
from redrive.engine.ports import TelemetryStore
from redrive.model.budget import OverBudgetError
from redrive.model.metric import PeriodStatistics, PointQuery, Statistics, ValueCount

_MS = 1000
_MINUTE_SECONDS = 60


class AlarmReadings:
    """Reads what alarms look at."""

    def __init__(self, store: TelemetryStore) -> None:
        self._store = store

    async def read(
        self, watches: Iterable[AlarmWatch], moment: int
    ) -> list[tuple[AlarmWatch, Sequence[Datapoint]]]:
        """The newest periods of each alarm that have ended by a moment (ms), newest first."""
        readings: list[tuple[AlarmWatch, Sequence[Datapoint]]] = []
        for (period_seconds, periods), group in groupby(sorted(watches, key=_span_of), key=_span_of):
            together = list(group)
            query = _query(together, period_seconds, periods, moment)
            buckets = await self._store.find_points_each(query)
            readings += [(watch, await self._window(watch, query, buckets)) for watch in together]
        return readings

    async def _window(
        self, watch: AlarmWatch, query: PointQuery, buckets: Mapping[int, Sequence[PeriodStatistics]]
    ) -> Sequence[Datapoint]:
        """A datapoint for each period of a watch, the latest first; without a value where there are no samples."""
        moments = range(query.until - query.period_ms, query.since - 1, -query.period_ms)
        if watch.expressions:
            return await self._compute(watch, query, buckets, moments)
        (source,) = watch.sources
        points = await self._points(source, query, buckets)
        return [points.get(moment) or Datapoint(moment) for moment in moments]

    async def _compute(
        self,
        watch: AlarmWatch,
        query: PointQuery,
        buckets: Mapping[int, Sequence[PeriodStatistics]],
        moments: Sequence[int],
    ) -> Sequence[Datapoint]:
        """The window of a watch on expressions; without values if these cannot be computed."""
        metrics = {
            source.id: {
                point.at: point.value
                for point in (await self._points(source, query, buckets)).values()
                if point.value is not None
            }
            for source in watch.sources
        }
        oldest_first = moments[::-1]
        try:
            values = await within_budget(
                watch.alarm.name.account,
                lambda budget: compute_values(
                    watch.expressions, metrics, oldest_first, watch.period_seconds, budget
                ),
                patient=True,
            )
        except (ExpressionError, OverBudgetError):
            return [Datapoint(moment) for moment in moments]
        value = values[watch.returned]
        series = value if isinstance(value, Mapping) else {}
        return [Datapoint(moment, series.get(moment)) for moment in moments]

    async def _points(
        self, source: WatchedMetric, query: PointQuery, buckets: Mapping[int, Sequence[PeriodStatistics]]
    ) -> dict[int, Datapoint]:
        """The points of a metric by their periods' beginnings, in the unit that is meant, where it has several."""
        of_source = [bucket for series in source.series for bucket in buckets.get(series.id, ())]
        unit = _unit(source, of_source)
        by_period: dict[int, Statistics] = {}
        for bucket in of_source:
            if bucket.unit == unit or source.own_unit is not None:
                sum_so_far = by_period.get(bucket.at)
                by_period[bucket.at] = (
                    bucket.statistics if sum_so_far is None else sum_so_far + bucket.statistics
                )
        if source.unit is not None and source.unit != (source.own_unit or unit):
            return {}  # it has no points in the unit of the definition
        values = (
            await self._values(source, query, unit) if source.statistic.needs_values and by_period else {}
        )
        points = {}
        for at, statistics in by_period.items():
            value = source.statistic.of(Measurement(at, unit, statistics, values.get(at, ())))
            if value is not None:
                points[at] = Datapoint(at, value, statistics.samples)
        return points

    async def _values(
        self, source: WatchedMetric, query: PointQuery, unit: str
    ) -> dict[int, list[ValueCount]]:
        """The counts of each value, by period, in one unit."""
        point_query = PointQuery(source.series, query.since, query.until, query.period_ms)
        values: dict[int, list[ValueCount]] = {}
        for value in await self._store.find_values(point_query):
            if value.unit == unit:
                values.setdefault(value.at, []).append(value)
        return values


def _span_of(watch: AlarmWatch) -> tuple[int, int]:
    return watch.period_seconds, watch.periods


def _query(watches: Sequence[AlarmWatch], period_seconds: int, periods: int, moment: int) -> PointQuery:
    """The query for the metrics of all watches; its periods count back from the last whole minute (or shorter period)."""
    period_ms = period_seconds * _MS
    grain_ms = min(period_seconds, _MINUTE_SECONDS) * _MS
    until = moment - moment % grain_ms
    series = {series for watch in watches for source in watch.sources for series in source.series}
    return PointQuery(sorted(series), until - periods * period_ms, until, period_ms)


def _unit(source: WatchedMetric, buckets: Sequence[PeriodStatistics]) -> str:
    """The unit that is meant: the definition's, or the first of those that there are."""
    units = {bucket.unit for bucket in buckets}
    if source.unit is not None and source.own_unit is None:
        return source.unit
    return min(units, key=UNITS_IN_ORDER.index) if len(units) > 1 else next(iter(units), "")
