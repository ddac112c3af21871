"""Answers of receivers: how many attempts each subscription's receiver took and refused, and how long it took, by minute.

All nodes add to the same two series of a subscription; where nothing is pushed there is none. Queues that take a
publication straight away answer nobody, and are left out.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from redrive.model.metric import Series, Statistics
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import MetricAccumulator

NAMESPACE: Final = ":answers"


class Answer(NamedTuple):
    """A way in which the receiver of a subscription answers.

    Attributes:
        topic: Its topic.
        subscription: Its id.
        delivered: Whether the attempt succeeded.
    """

    topic: ResourceName
    subscription: str
    delivered: bool

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


class Answers:
    """Counts answers until they are taken."""

    def __init__(self) -> None:
        self._counted: dict[Answer, MetricAccumulator] = {}

    def add(self, answer: Answer, took_ms: int) -> None:
        """Count one, unless its topic stands for one destination, of which there may be a million."""
        if answer.topic.private:
            return
        accumulator = self._counted.get(answer)
        if accumulator is None:
            accumulator = self._counted[answer] = MetricAccumulator()
        accumulator.add(took_ms)

    def take(self) -> Iterator[tuple[Series, Statistics]]:
        """The answers since the last time, each kind as points of its series."""
        counted, self._counted = self._counted, {}
        for answer, accumulator in counted.items():
            yield answer.series, accumulator.statistics
