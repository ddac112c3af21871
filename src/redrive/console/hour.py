"""The last hour of some accounts and regions, minute by minute: one read for all that Overview tells of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from redrive.engine.ports import TelemetryStore
from redrive.model.metric import MINUTE_MS, PeriodStatistics, PointQuery, Series

MINUTES: Final = 60


class Hour(NamedTuple):
    """The points of some series.

    Attributes:
        since: The beginning of the first minute (ms).
        until: The end of the last one, which is the current minute (ms).
        by_series: The points of each series by its id; none of a series without points.
    """

    since: int
    until: int
    by_series: Mapping[int, Sequence[PeriodStatistics]]

    def points(self, series: Series) -> Sequence[PeriodStatistics]:
        """The points of a series, in order of time."""
        return self.by_series.get(series.id, ())

    def total(self, series: Series, since: int = 0) -> float:
        """The sum of a series from a moment (ms) on."""
        return sum(bucket.statistics.total for bucket in self.points(series) if bucket.at >= since)


async def last_hour(telemetry: TelemetryStore, series: Iterable[Series], now: int) -> Hour:
    """The last hour of these series."""
    until = now // MINUTE_MS * MINUTE_MS + MINUTE_MS
    since = max(0, until - (MINUTES + 1) * MINUTE_MS)
    all_series = list(series)
    points = (
        await telemetry.find_points_each(PointQuery(all_series, since, until, MINUTE_MS))
        if all_series
        else {}
    )
    return Hour(since, until, points)
