"""Tallies: counting in memory, at a fraction of a microsecond, and the answers of receivers by the minute.

All nodes add to the same series of a subscription: one of each result, and of each result one for each span of time
that an answer took, so that its distribution is known. Where nothing is pushed there is none. Queues that take a
publication straight away answer nobody, and are left out.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from redrive.model.metric import SPANS_MS, Series, Statistics
from redrive.model.names import ResourceName

QUEUE = ":queue"  # namespaces; a colon leads them, and no sender's namespace begins with one
TOPIC = ":topic"

Labels = tuple[tuple[str, str], ...]
WEB: Labels = (("endpoint", "web"),)
OTHER: Labels = (("endpoint", "other"),)


class MetricAccumulator:
    """Statistics that grow."""

    __slots__ = ("greatest", "least", "samples", "total")

    def __init__(self) -> None:
        self.samples = 0.0
        self.total = 0.0
        self.least = math.inf
        self.greatest = -math.inf

    def add(self, value: float, samples: float = 1) -> None:
        """Add samples that all have one value."""
        if value < self.least:  # noqa: PLR1730 - a call of min takes three times as long, and this is done at each message
            self.least = value
        if value > self.greatest:  # noqa: PLR1730 - as above
            self.greatest = value
        self.samples += samples
        self.total += value * samples

    def add_statistics(self, other: Statistics) -> None:
        """Add what was measured elsewhere."""
        self.least = min(self.least, other.least)
        self.greatest = max(self.greatest, other.greatest)
        self.samples += other.samples
        self.total += other.total

    @property
    def statistics(self) -> Statistics:
        """The statistics of the samples added so far, of which there is at least one."""
        return Statistics(self.samples, self.total, self.least, self.greatest)


QUEUE_COUNTERS = ("messages_sent", "bytes_sent", "messages_received", "empty_receives", "messages_deleted")


class QueueAccumulators:
    """The counters of one queue, as attributes: looking them up in a dictionary would take as long as counting."""

    __slots__ = ("name", *QUEUE_COUNTERS)

    def __init__(self, name: ResourceName) -> None:
        self.name = name
        self.messages_sent = MetricAccumulator()
        self.bytes_sent = MetricAccumulator()
        self.messages_received = MetricAccumulator()
        self.empty_receives = MetricAccumulator()
        self.messages_deleted = MetricAccumulator()

    def __iter__(self) -> Iterator[tuple[Series, Statistics]]:
        for counter in QUEUE_COUNTERS:
            tally: MetricAccumulator = getattr(self, counter)
            if tally.samples:
                yield queue_series(self.name, counter), tally.statistics


TOPIC_COUNTERS = (
    "messages_published",
    "bytes_published",
    "deliveries_made",
    "attempts_failed",
    "deliveries_failed",
    "deliveries_filtered",
    "dead_letters_kept",
    "dead_letters_lost",
    "messages_archived",
    "bytes_archived",
    "replays_delivered",
    "replays_failed",
)


class TopicAccumulators:
    """The counters of one topic, by name and labels; what each publication moves, as attributes."""

    __slots__ = (
        "_tallies",
        "bytes_published",
        "messages_published",
        "name",
        "taken_at_once",
        "taken_by_queues",
    )

    def __init__(self, name: ResourceName) -> None:
        self.name = name
        self._tallies: dict[tuple[str, Labels], MetricAccumulator] = {}
        self.messages_published = self.of("messages_published")
        self.bytes_published = self.of("bytes_published")
        self.taken_by_queues = self.of("deliveries_made", OTHER)
        #: Deliveries that queues took with the publication, without a push.
        self.taken_at_once = 0

    def of(self, counter: str, labels: Labels = ()) -> MetricAccumulator:
        """One counter, to be added to."""
        tally = self._tallies.get((counter, labels))
        if tally is None:
            tally = self._tallies[counter, labels] = MetricAccumulator()
        return tally

    def total(self, counter: str) -> float:
        """The sum of a counter whatever its labels."""
        return sum(tally.total for (name, _), tally in self._tallies.items() if name == counter)

    def __iter__(self) -> Iterator[tuple[Series, Statistics]]:
        for (counter, labels), tally in self._tallies.items():
            if tally.samples:
                yield topic_series(self.name, counter, labels), tally.statistics


def queue_series(queue: ResourceName, name: str) -> Series:
    """A metric of a queue."""
    return Series(queue.account, queue.region, QUEUE, name, (("queue", queue.name),))


def topic_series(topic: ResourceName, name: str, labels: Labels = ()) -> Series:
    """A metric of a topic."""
    dimensions = tuple(sorted((*labels, ("topic", topic.name))))
    return Series(topic.account, topic.region, TOPIC, name, dimensions)


NAMESPACE: Final = ":answers"
_NO_END_MS: Final = round(5 * 1.6**17)


class Answer(NamedTuple):
    """A way in which the receiver of a subscription answers."""

    topic: ResourceName
    subscription: str  # Its id
    delivered: bool  # Whether the attempt succeeded

    @property
    def series(self) -> Series:
        """The series with a sample for each attempt, of the milliseconds that it took; no account's, as losses'."""
        account, region, name = self.topic
        dimensions = (
            ("account", account),
            ("region", region),
            ("subscription", self.subscription),
            ("topic", name),
        )
        return Series(
            "", "", NAMESPACE, "attempts_delivered" if self.delivered else "attempts_failed", dimensions
        )

    def series_of_span(self, span: int) -> Series:
        """The series of those answers that took so long, with a sample for each; see `SPANS_MS`."""
        whole = self.series
        dimensions = tuple(sorted((*whole.dimensions, ("span", str(span)))))
        return whole._replace(name=f"{whole.name}_by_span", dimensions=dimensions)


class _Count:
    """The answers of one kind, and how many took how long."""

    __slots__ = ("spans", "statistics")

    def __init__(self) -> None:
        self.statistics = MetricAccumulator()
        self.spans = [0] * (len(SPANS_MS) + 1)


class Answers:
    """Counts answers until they are taken."""

    def __init__(self) -> None:
        self._counted: dict[Answer, _Count] = {}

    def add(self, answer: Answer, took_ms: int) -> None:
        """Count one, unless its topic stands for one destination, of which there may be a million."""
        if answer.topic.private:
            return
        count = self._counted.get(answer)
        if count is None:
            count = self._counted[answer] = _Count()
        count.statistics.add(took_ms)
        count.spans[bisect_left(SPANS_MS, took_ms)] += 1

    def take(self) -> Iterator[tuple[Series, Statistics]]:
        """The answers since the last time, each kind as points of its series."""
        counted, self._counted = self._counted, {}
        for answer, count in counted.items():
            yield answer.series, count.statistics.statistics
            for span, number in enumerate(count.spans):
                if number:
                    value = SPANS_MS[span] if span < len(SPANS_MS) else _NO_END_MS
                    yield answer.series_of_span(span), Statistics.of(value, number)
