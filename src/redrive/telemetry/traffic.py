"""Traffic of places: what all queues and topics of an account and region did together, minute by minute.

A page that shows the rates of a whole server reads four series of each place instead of five of each queue, of which
there may be a hundred thousand. All nodes add to the same series.
"""

from typing import Final, NamedTuple

from redrive.model.metric import MetricPoint, Series, Statistics
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import QueueAccumulators, TopicAccumulators

PLACE: Final = ":place"  # a namespace


class Traffic(NamedTuple):
    """Numbers that a place, or something in it, counted.

    Attributes:
        sent: Messages that came into queues.
        received: Messages that receivers got, each time that they did.
        pushed: Deliveries that endpoints took; queues that take a publication straight away are in `sent` alone.
        failed: Attempts at an endpoint that did not succeed.
    """

    sent: float = 0.0
    received: float = 0.0
    pushed: float = 0.0
    failed: float = 0.0


#: What is kept of each place.
COUNTED: Final = Traffic._fields


class TrafficByPlace:
    """Adds up by place what queues and topics counted, until it is taken."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, str, int], Traffic] = {}

    def add(self, tallies: QueueAccumulators | TopicAccumulators, minute: int) -> None:
        """Add what a queue or a topic counted in the minute that begins then (ms)."""
        traffic = _of_queue(tallies) if isinstance(tallies, QueueAccumulators) else _of_topic(tallies)
        if not any(traffic):
            return
        name = tallies.name
        # A private topic's region has more behind a colon.
        place = (name.account, name.region.partition(":")[0], minute)
        known = self._counted.get(place)
        self._counted[place] = (
            traffic if known is None else Traffic(*map(sum, zip(known, traffic, strict=True)))
        )

    def take(self) -> list[MetricPoint]:
        """The sums since the last time; of what did not happen there is no point."""
        points = [
            MetricPoint(
                place_series(ResourceName(account, region, ""), counter), minute, "", Statistics.of(value)
            )
            for (account, region, minute), traffic in self._counted.items()
            for counter, value in zip(COUNTED, traffic, strict=True)
            if value
        ]
        self._counted.clear()
        return points


def place_series(place: ResourceName, counter: str) -> Series:
    """A counter of a place; it is no account's, so that nobody finds it among the metrics of one."""
    return Series("", "", PLACE, counter, (("account", place.account), ("region", place.region)))


def _of_queue(queue: QueueAccumulators) -> Traffic:
    return Traffic(sent=queue.messages_sent.total, received=queue.messages_received.total)


def _of_topic(topic: TopicAccumulators) -> Traffic:
    totals, failed = topic.total("deliveries_made"), topic.total("attempts_failed")
    return Traffic(pushed=totals - topic.taken_at_once, failed=failed)
