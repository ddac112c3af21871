"""Arrivals of dead letters as Overview tells of them: since when the latest burst, and when the last of all."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from redrive.console.charts import Curve, sparkline
from redrive.engine.ports import TelemetryStore
from redrive.model.metric import MINUTE_MS, PeriodStatistics, PointQuery
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue
from redrive.telemetry.accumulators import arrivals_at, arrivals_in

#: A burst is over once nothing has come for so long.
GAP_MS: Final = 15 * MINUTE_MS
#: Less than a day, so that a time of day says when a burst began.
BURST_MS_MAX: Final = 23 * 60 * MINUTE_MS
_LISTED_MS: Final = 30 * MINUTE_MS
_DRAWN: Final = 40  # points of a burst's curve
#: As long as SQS keeps a message; later nothing is left of what came.
REMEMBERED_MS: Final = 14 * DAY_MS


class Burst(NamedTuple):
    """Dead letters that came soon after one another."""

    since: int  # The minute in which the first came (ms)
    letters: int  # Number of arrivals since then, redriven ones included
    curve: Curve | None = None  # Those from the first to the last


def latest_burst(minutes: Sequence[PeriodStatistics]) -> Burst | None:
    """The latest burst among minutes in their order; None: nothing came."""
    since, letters = 0, 0.0
    for minute in reversed(minutes):
        if since and since - minute.at > GAP_MS:
            break
        since, letters = minute.at, letters + minute.statistics.total
    return Burst(since, int(letters)) if letters else None


async def bursts(telemetry: TelemetryStore, queues: Sequence[Queue], now: int) -> Mapping[int, Burst]:
    """The latest burst of each dead-letter queue of the last 23 hours, by the queue's number: one read.

    Of each, up to 1,380 rows are read: the minutes in which something came. Nodes write down what they counted every 5 s,
    and lose that much if they are killed: the numbers may be too small, and are never too great.
    """
    if not queues:
        return {}
    minute = now // MINUTE_MS * MINUTE_MS
    query = PointQuery(
        [arrivals_at(queue.name) for queue in queues], minute - BURST_MS_MAX, minute + MINUTE_MS, MINUTE_MS
    )
    points = await telemetry.find_points_each(query)
    latest = {}
    for queue in queues:
        arrivals = points.get(arrivals_at(queue.name).id, ())
        # what came before it was created came to another queue of its name
        minutes = [each for each in arrivals if each.at + MINUTE_MS > queue.created_at]
        burst = latest_burst(minutes)
        if burst is not None:
            latest[queue.id] = burst._replace(curve=_burst_curve(burst, minutes))
    return latest


def _burst_curve(burst: Burst, minutes: Sequence[PeriodStatistics]) -> Curve:
    """The arrivals of a burst from its first minute to its last: it stays as it is until another comes."""
    of_burst = [each for each in minutes if each.at >= burst.since]
    period_ms = max(MINUTE_MS, (of_burst[-1].at - burst.since) // _DRAWN + 1)
    periods = [0.0] * (2 + (of_burst[-1].at - burst.since) // period_ms)  # it begins at nothing
    for each in of_burst:
        periods[1 + (each.at - burst.since) // period_ms] += each.statistics.total
    return sparkline(periods, f"{burst.letters:,} dead letters came in the latest burst")


class Day(NamedTuple):
    """The arrivals at a dead-letter queue in the last 24 hours."""

    letters: int  # Number of dead letters that arrived
    curve: Curve | None  # Those of each half hour; None: nothing came


async def last_days(telemetry: TelemetryStore, queues: Sequence[Queue], now: int) -> Mapping[int, Day]:
    """The last day of each dead-letter queue, by its number: one read of up to 49 rows for each."""
    if not queues:
        return {}
    until = now // _LISTED_MS * _LISTED_MS + _LISTED_MS
    since = until - DAY_MS - _LISTED_MS
    series = {queue.id: arrivals_at(queue.name) for queue in queues}
    points = await telemetry.find_points_each(PointQuery(list(series.values()), since, until, _LISTED_MS))
    days = {}
    for number, each in series.items():
        periods = [0.0] * ((until - since) // _LISTED_MS)
        for bucket in points.get(each.id, ()):
            periods[(bucket.at - since) // _LISTED_MS] += bucket.statistics.total
        letters = int(sum(periods))
        summary = f"{letters:,} dead letters came in the last 24 hours"
        days[number] = Day(letters, sparkline(periods, summary) if letters else None)
    return days


async def last_arrival(telemetry: TelemetryStore, scopes: Sequence[ResourceName], now: int) -> int | None:
    """The minute (ms) in which the last dead letter came in these scopes, of the last 14 days: one read.

    None: none came as far as is known, which is since the nodes began to count at their starts.
    """
    minute = now // MINUTE_MS * MINUTE_MS
    query = PointQuery(
        [arrivals_in(scope) for scope in scopes], minute - REMEMBERED_MS, minute + MINUTE_MS, MINUTE_MS
    )
    points = await telemetry.find_points(query) if scopes else []
    return points[-1].at if points else None
