"""Rates: how much happens a second in some accounts and regions, over the last minutes, whichever node counted it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from redrive.console.picture import Curve, sparkline
from redrive.console.words import rate
from redrive.engine.ports import TelemetryStore
from redrive.model.metric import MINUTE_MS, PointQuery
from redrive.model.names import ResourceName
from redrive.telemetry.traffic import COUNTED, place_series

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
    """One of the things that happen, and how often.

    Attributes:
        label: Of what.
        latest: A second's, on average of the last whole minute, as text.
        drawn: Each of the last 15 minutes.
    """

    label: str
    latest: str
    drawn: Curve


async def rates(telemetry: TelemetryStore, places: Sequence[ResourceName], now: int) -> list[Rate]:
    """The rates that all nodes counted in these places together: one read, of four series of each.

    Whole minutes alone, so that a page with them changes once a minute and, where nothing happens, never.

    Args:
        telemetry: Where it is written down.
        places: Accounts and regions; none: nothing is read.
        now: The time (ms).
    """
    if not places:
        return []
    until = (now - SETTLED_MS) // MINUTE_MS * MINUTE_MS
    since = max(0, until - MINUTES * MINUTE_MS)
    series = {place_series(place, counter): counter for place in places for counter in COUNTED}
    found = await telemetry.find_points_each(PointQuery(list(series), since, until, MINUTE_MS))
    sums = {counter: [0.0] * MINUTES for counter in COUNTED}
    for each, counter in series.items():
        for bucket in found.get(each.id, ()):
            sums[counter][(bucket.at - since) // MINUTE_MS] += bucket.statistics.total
    return [_rate(_LABELS[counter], totals) for counter, totals in sums.items()]


def _rate(label: str, totals: Sequence[float]) -> Rate:
    seconds = MINUTE_MS // 1000
    each = [total / seconds for total in totals]
    summary = f"{label} in each of the last {len(each)} minutes: {rate(min(each))} to {rate(max(each))}"
    return Rate(label, rate(each[-1]), sparkline(each, summary))
