"""Rates: how much happens a second in some accounts and regions, over the last minutes, whichever node counted it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from redrive.console.hour import MINUTES as HOUR_MINUTES
from redrive.console.hour import Hour
from redrive.console.picture import Curve, sparkline
from redrive.console.time_chart import TimeChart, time_chart
from redrive.console.words import rate
from redrive.model.metric import MINUTE_MS, Series
from redrive.model.names import ResourceName
from redrive.telemetry.traffic import COUNTED, scope_series

MINUTES: Final = 15
#: Nodes write down what they counted every 5 s; a minute is shown once all have had the time for it.
SETTLED_MS: Final = 10_000
_LABELS: Final = {
    "sent": "Sent",
    "received": "Received",
    "pushed": "Pushed",
    "failed": "Attempts failed",
}


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
    """The rates that all nodes counted in these scopes together.

    Whole minutes alone, so that a page with them changes once a minute and, where nothing happens, never.

    Args:
        hour: With the points of `rate_series`.
        scopes: Accounts and regions.
        now: The time (ms).
    """
    if not scopes:
        return []
    until = (now - SETTLED_MS) // MINUTE_MS * MINUTE_MS
    since = max(0, until - MINUTES * MINUTE_MS)
    sums = {counter: [0.0] * MINUTES for counter in COUNTED}
    for each in rate_series(scopes):
        for bucket in hour.points(each):
            if since <= bucket.at < until:
                sums[each.name][(bucket.at - since) // MINUTE_MS] += bucket.statistics.total
    return [_rate(_LABELS[counter], totals) for counter, totals in sums.items()]


def traffic_chart(hour: Hour, scopes: Sequence[ResourceName], now: int) -> TimeChart | None:
    """The traffic of each whole minute of the last hour, a second on average; None: there was none."""
    until = (now - SETTLED_MS) // MINUTE_MS * MINUTE_MS
    since = max(0, until - (HOUR_MINUTES - 1) * MINUTE_MS)
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
