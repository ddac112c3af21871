"""Each topic's counters since this node started: counters that only grow, for Prometheus."""

from collections import Counter
from collections.abc import Iterator

from redrive.model.metric import Series
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import TopicAccumulators


class Totals:
    """The sums of tallies that were collected, by topic."""

    def __init__(self) -> None:
        self._topics: dict[ResourceName, Counter[Series]] = {}

    def add(self, tallies: TopicAccumulators) -> None:
        """Add a minute's worth."""
        counters = self._topics.setdefault(tallies.name, Counter())
        for series, statistics in tallies:
            counters[series] += round(statistics.total)

    def forget(self, name: ResourceName) -> None:
        """The topic is gone."""
        self._topics.pop(name, None)

    def clear(self) -> None:
        """Begin at zero again."""
        self._topics.clear()

    def __iter__(self) -> Iterator[tuple[ResourceName, dict[Series, int]]]:
        for name, counters in list(self._topics.items()):
            yield name, dict(counters)
