"""The last hour of queues: what came in, what receivers got, and how much waited."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from redrive.console.hour import Hour
from redrive.console.picture import Curve, sparkline
from redrive.console.time_chart import TimeChart, time_chart
from redrive.console.words import number
from redrive.model.metric import Series
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import queue_series

_SENT: Final = "messages_sent"
_RECEIVED: Final = "messages_received"
_DELETED: Final = "messages_deleted"
_WAITING: Final = "messages_available"
_IN_FLIGHT: Final = "messages_claimed"
_STEP_MS: Final = 5_000
LISTED: Final = (_SENT, _RECEIVED, _WAITING)
ALL: Final = (*LISTED, _DELETED, _IN_FLIGHT)


class Flow(NamedTuple):
    """The messages that go through a queue."""

    in_rate: float  # How many came in a second, on average of the last whole period and the current one
    out_rate: float  # How many receivers got in a second, likewise
    curve: Curve | None  # How many waited in each period of the hour; None: it was not counted


def flow_series(queues: Iterable[ResourceName], counters: Iterable[str] = LISTED) -> list[Series]:
    """The series that `flow` is read from, and `flow_chart` and `depth_chart` with `ALL`."""
    names = tuple(counters)
    return [queue_series(queue, name) for queue in queues for name in names]


def flow(hour: Hour, queue: ResourceName, now: int) -> Flow:
    """The flow through a queue.

    Args:
        hour: With the points of `flow_series`.
        queue: One of those.
        now: The time (ms).
    """
    since = hour.until - 2 * hour.period_ms
    seconds = (
        ((now - since) // _STEP_MS + 1) * _STEP_MS / 1000
    )  # so that it changes no more often than counters do
    in_rate, out_rate = (
        hour.total(queue_series(queue, name), since) / seconds for name in (_SENT, _RECEIVED)
    )
    return Flow(in_rate, out_rate, _depths(hour, queue))


def _depths(hour: Hour, queue: ResourceName) -> Curve | None:
    points = hour.points(queue_series(queue, _WAITING))
    if not points:
        return None
    depths = [0.0] * ((hour.until - hour.since) // hour.period_ms)
    for bucket in points:
        depths[(bucket.at - hour.since) // hour.period_ms] = bucket.statistics.average
    most = round(max(bucket.statistics.greatest for bucket in points))
    return sparkline(depths, f"Waiting in the last hour: {number(most)} at most")


def depth_chart(hour: Hour, queue: ResourceName) -> TimeChart | None:
    """The messages that waited and that were in flight at each minute; None: it was not counted."""
    lines = {
        label: [(bucket.at, bucket.statistics.average) for bucket in hour.points(queue_series(queue, gauge))]
        for label, gauge in (("Waiting", _WAITING), ("In flight", _IN_FLIGHT))
    }
    if not any(lines.values()):
        return None
    return time_chart(lines, hour.since, hour.until - hour.period_ms, hour.period_ms)


def flow_chart(hour: Hour, queue: ResourceName) -> TimeChart | None:
    """The messages that were sent, received and deleted in each whole minute; None: nobody counted."""
    lines = (("Sent", _SENT), ("Received", _RECEIVED), ("Deleted", _DELETED))
    return hour.counted({label: [queue_series(queue, counter)] for label, counter in lines}, sums=True)
