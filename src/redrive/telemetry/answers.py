"""Answers of receivers: how many attempts each subscription's receiver took and refused, and how long it took, by minute.

All nodes add to the same series of a subscription: one of each result, and of each result one for each span of time
that an answer took, so that its distribution is known. Where nothing is pushed there is none. Queues that take a
publication straight away answer nobody, and are left out.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from redrive.model.metric import Series, Statistics
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import MetricAccumulator

NAMESPACE: Final = ":answers"
#: The greatest times (ms) of the spans that answers are counted by, each 1.6 times the one before; the last has none.
SPANS_MS: Final = tuple(round(5 * 1.6**power) for power in range(17))
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
