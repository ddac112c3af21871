"""Reading metrics: which points are meant, and over which periods."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from redrive.aws.cloudwatch.metrics.own_metrics import MetricName, series_of, unit_of
from redrive.aws.cloudwatch.metrics.statistic import Measured
from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import offload
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import TelemetryStore
from redrive.model.budget import STEPS_AT_ONCE
from redrive.model.metric import MINUTE_MS, PeriodStatistics, PointQuery, ValueCount

T = TypeVar("T")
FINE_PERIODS = (1, 5, 10, 20, 30)  # seconds; all others are whole minutes


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

    async def measured(
        self, call: Call, metric: MetricName, span: TimeSpan, *, unit: str | None, values: bool
    ) -> list[Measured]:
        """A metric period by period, in order of time and unit.

        Args:
            call: Whose metric.
            metric: Which.
            span: When.
            unit: Only points of that unit; None: of any.
            values: Whether values are wanted beside the statistics.
        """
        query = PointQuery(
            series_of(call.account, call.region, metric), span.since, span.until, span.period_ms
        )
        buckets = await self._store.find_points(query)
        values_by_period = _by_period(await self._store.find_values(query)) if values else {}
        own_unit = unit_of(metric)

        def measured() -> list[Measured]:
            points = [_measured(bucket, own_unit, values_by_period) for bucket in buckets]
            return [point for point in points if unit is None or point.unit == unit]

        return await at_once_or_beside(call, len(buckets), measured)


async def at_once_or_beside(call: Call, points: int, work: Callable[[], T]) -> T:
    """The result of going through so many points, which takes 1 µs for each."""
    return work() if points <= STEPS_AT_ONCE else await offload(call.account, work)


def _by_period(values: list[ValueCount]) -> dict[tuple[int, str], list[ValueCount]]:
    return {
        position: list(group) for position, group in groupby(values, lambda point: (point.at, point.unit))
    }


def _measured(
    bucket: PeriodStatistics, own_unit: str | None, values: dict[tuple[int, str], list[ValueCount]]
) -> Measured:
    values_of_period = values.get((bucket.at, bucket.unit), [])
    return Measured(bucket.at, own_unit or bucket.unit, bucket.statistics, values_of_period)


def dimensions_of(dimensions: list[Structure] | None) -> tuple[tuple[str, str], ...]:
    """Dimensions in order of their names."""
    return tuple(sorted((dimension["Name"], dimension["Value"]) for dimension in dimensions or ()))


def is_period(seconds: int) -> bool:
    """Returns whether points can be gathered by it."""
    return seconds in FINE_PERIODS or seconds % 60 == 0
