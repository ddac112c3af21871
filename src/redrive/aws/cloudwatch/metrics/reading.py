"""Reading metrics, and GetMetricStatistics: which points are meant, and over which periods."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from redrive.aws.cloudwatch.metrics.errors import combination, invalid, invalid_value
from redrive.aws.cloudwatch.metrics.own_metrics import MetricName, series_of, unit_of
from redrive.aws.cloudwatch.metrics.statistic import Measurement, Statistic, statistic
from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import offload
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import TelemetryStore
from redrive.model.budget import STEPS_AT_ONCE
from redrive.model.metric import MINUTE_MS, PeriodStatistics, PointQuery, ValueCount

T = TypeVar("T")
FINE_PERIODS = (1, 5, 10, 20, 30)  # seconds; all others are whole minutes
DATAPOINTS_MAX = 1440


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time range in periods."""

    since: int  # When the first period begins (ms)
    until: int  # Before when the last one does (ms)
    period_ms: int  # How long each is

    @classmethod
    def of(cls, start: int, end: int, period_seconds: int) -> "TimeSpan":
        """A range as asked for: it begins at a whole minute, or period where that is shorter."""
        period_ms = period_seconds * 1000
        grain_ms = min(MINUTE_MS, period_ms)
        return cls(start - start % grain_ms, end, period_ms)

    @property
    def periods(self) -> int:
        """The number of points."""
        return -(-(self.until - self.since) // self.period_ms)


class MetricReader:
    """Reads metrics of callers' accounts."""

    def __init__(self, store: TelemetryStore, settle: Callable[[], Awaitable[None]]) -> None:
        """Read from this store; `settle` lets what this node has counted arrive there first."""
        self._store = store
        self._settle = settle

    async def settle(self) -> None:
        """Let what was counted until now be seen."""
        await self._settle()

    async def measurements(
        self, call: Call, metric: MetricName, span: TimeSpan, *, unit: str | None, values: bool
    ) -> list[Measurement]:
        """A metric period by period, in order of time and unit; `values`: with values beside the statistics."""
        query = PointQuery(
            series_of(call.account, call.region, metric), span.since, span.until, span.period_ms
        )
        buckets = await self._store.find_points(query)
        values_by_period = _by_period(await self._store.find_values(query)) if values else {}
        own_unit = unit_of(metric)

        def measure() -> list[Measurement]:
            points = [_measurement(bucket, own_unit, values_by_period) for bucket in buckets]
            return [point for point in points if unit is None or point.unit == unit]

        return await at_once_or_beside(call, len(buckets), measure)


async def at_once_or_beside(call: Call, points: int, work: Callable[[], T]) -> T:
    """The result of going through so many points, which takes 1 µs for each."""
    return work() if points <= STEPS_AT_ONCE else await offload(call.account, work)


def _by_period(values: list[ValueCount]) -> dict[tuple[int, str], list[ValueCount]]:
    return {
        position: list(group) for position, group in groupby(values, lambda point: (point.at, point.unit))
    }


def _measurement(
    bucket: PeriodStatistics, own_unit: str | None, values: dict[tuple[int, str], list[ValueCount]]
) -> Measurement:
    values_of_period = values.get((bucket.at, bucket.unit), [])
    return Measurement(bucket.at, own_unit or bucket.unit, bucket.statistics, values_of_period)


def dimensions_of(dimensions: list[Structure] | None) -> tuple[tuple[str, str], ...]:
    """Dimensions in order of their names."""
    return tuple(sorted((dimension["Name"], dimension["Value"]) for dimension in dimensions or ()))


def is_period(seconds: int) -> bool:
    """Returns whether points can be gathered by it."""
    return seconds in FINE_PERIODS or seconds % 60 == 0


class Datapoints:
    """Answers for one metric at a time."""

    def __init__(self, reading: MetricReader) -> None:
        self._reading = reading

    async def get_metric_statistics(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricStatistics.html.

        Datapoints come in order of time, which AWS does not promise. A percentile is there only where the senders
        gave values; a datapoint without any of what was asked for is left out.
        """
        basic: list[str] = params.get("Statistics") or []
        extended_names: list[str] = params.get("ExtendedStatistics") or []
        if bool(basic) == bool(extended_names):
            raise combination("Must specify either Statistics or ExtendedStatistics")
        span = _span(params)
        statistics = [_extended_statistic(name) for name in extended_names] or [
            Statistic(name) for name in basic
        ]
        metric = MetricName(
            params["Namespace"], params["MetricName"], dimensions_of(params.get("Dimensions"))
        )
        await self._reading.settle()
        measurements = await self._reading.measurements(
            call, metric, span, unit=params.get("Unit"), values=bool(extended_names)
        )
        datapoints = [_datapoint(point, statistics, extended=bool(extended_names)) for point in measurements]
        return {"Label": metric.name, "Datapoints": [point for point in datapoints if point is not None]}


def _span(params: Structure) -> TimeSpan:
    """The span of time that a call asks for, checked; raises AwsError."""
    period_seconds: int = params["Period"]
    if params["StartTime"] >= params["EndTime"]:
        raise invalid("The parameter StartTime must be less than the parameter EndTime.")
    if not is_period(period_seconds):
        raise invalid("The parameter Period must be 1, 5, 10, 20, 30, or a multiple of 60.")
    span = TimeSpan.of(params["StartTime"], params["EndTime"], period_seconds)
    number = (params["EndTime"] - params["StartTime"]) // (period_seconds * 1000)
    if number > DATAPOINTS_MAX:
        raise combination(
            f"You have requested up to {number} datapoints, which exceeds the limit of {DATAPOINTS_MAX}."
            " You may reduce the datapoints requested by increasing Period, or decreasing the time range."
        )
    return span


def _extended_statistic(name: str) -> Statistic:
    parsed_statistic = statistic(name)
    if parsed_statistic is None or not parsed_statistic.needs_values:
        raise invalid_value("ExtendedStatistics", name)
    return parsed_statistic


def _datapoint(measurement: Measurement, statistics: list[Statistic], *, extended: bool) -> Structure | None:
    """A datapoint as answers have it; None: the period has none of the statistics."""
    all_values = {statistic.name: statistic.of(measurement) for statistic in statistics}
    values = {name: value for name, value in all_values.items() if value is not None}
    if not values:
        return None
    members: Structure = {"ExtendedStatistics": values} if extended else values
    return {"Timestamp": measurement.at, "Unit": measurement.unit, **members}
