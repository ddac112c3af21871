"""A node's meters, levels and counters as OpenTelemetry's points, all of them counted since the node started."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    Sum,
)
from opentelemetry.sdk.metrics.export import Histogram as HistogramPoints

from redrive.model.names import ResourceName
from redrive.telemetry.gauges import SHOWN_MAX, Level
from redrive.telemetry.meters import Histogram, NodeMeters
from redrive.telemetry.telemetry import Telemetry

_CUMULATIVE: Final = AggregationTemporality.CUMULATIVE
_NS_OF_MS: Final = 1_000_000
_UNKNOWN: Final[Any] = (
    None  # OTLP may leave out the least and the greatest value, the class of the SDK does not say so
)
_STATES: Final = ("available", "in_flight", "delayed")  # in the order of `Counts`

Attributes: TypeAlias = Mapping[str, str]


class Counted(Protocol):
    """The counts of a queue, an attribute each."""

    @property
    def name(self) -> ResourceName:
        """The queue's."""
        ...


class Readings:
    """Reads all that a node counts."""

    def __init__(
        self,
        meters: NodeMeters,
        telemetry: Telemetry,
        queue_counts: Callable[[], Iterable[Counted]],
        counters: Sequence[str],
        started_at: int,
    ) -> None:
        """Read these; `counters` are the names of the `queue_counts`, which began at `started_at` (ms)."""
        self._meters = meters
        self._telemetry = telemetry
        self._queue_counts = queue_counts
        self._counters = counters
        self._since = started_at * _NS_OF_MS

    def read(self, now: int) -> list[Metric]:
        """The metrics at this moment (ms)."""
        at = now * _NS_OF_MS
        return [*self._node(at), *self._levels(at), *self._queue_counters(at)]

    def _node(self, at: int) -> list[Metric]:
        """The metrics of the node itself: attempts, commits, the event loop, dead letters and losses."""
        meters = self._meters
        attempts = [
            (histogram, {"protocol": protocol, "outcome": outcome})
            for (protocol, outcome), histogram in meters.attempts.items()
        ]
        return [
            self._histograms("redrive.attempt.duration", "Seconds that attempts took", attempts, at),
            self._histograms(
                "redrive.commit.duration", "Seconds that commits took", [(meters.commits.seconds, {})], at
            ),
            self._histograms(
                "redrive.event_loop.lag",
                "Seconds by which the event loop was late",
                [(meters.loop_lag, {})],
                at,
            ),
            self._sums(
                "redrive.dead_letters",
                "Deliveries that were dead-lettered",
                _by_cause(meters.dead_letters),
                at,
            ),
            self._sums("redrive.losses", "Deliveries that were dropped", _by_cause(meters.losses), at),
        ]

    def _levels(self, at: int) -> list[Metric]:
        """The metrics of how full queues and backlogs are, and how old their oldest delivery is."""
        queues, topics = self._telemetry.queue_levels, self._telemetry.backlog_levels
        return [
            _gauges("redrive.queue.messages", "Messages of a queue", _states("queue", queues), at),
            _gauges("redrive.queue.oldest_age", "Seconds of the oldest message", _ages("queue", queues), at),
            _gauges("redrive.topic.deliveries", "Deliveries to endpoints", _states("topic", topics), at),
            _gauges("redrive.topic.oldest_age", "Seconds of the oldest delivery", _ages("topic", topics), at),
        ]

    def _queue_counters(self, at: int) -> list[Metric]:
        """A metric for each of the counters of queues, of the first `SHOWN_MAX` queues."""
        all_counts = list(islice(self._queue_counts(), SHOWN_MAX))
        return [
            self._sums(
                f"redrive.queue.{name}",
                name.replace("_", " "),
                [(getattr(counts, name), _labels("queue", counts.name)) for counts in all_counts],
                at,
            )
            for name in self._counters
        ]

    def _sums(
        self, name: str, description: str, values: Iterable[tuple[float, Attributes]], at: int
    ) -> Metric:
        points = [NumberDataPoint(attributes, self._since, at, value) for value, attributes in values]
        return Metric(name, description, "1", Sum(points, _CUMULATIVE, is_monotonic=True))

    def _histograms(
        self, name: str, description: str, histograms: Iterable[tuple[Histogram, Attributes]], at: int
    ) -> Metric:
        points = [self._histogram(histogram, attributes, at) for histogram, attributes in histograms]
        return Metric(name, description, "s", HistogramPoints(points, _CUMULATIVE))

    def _histogram(self, histogram: Histogram, attributes: Attributes, at: int) -> HistogramDataPoint:
        """A histogram in OTLP's form, in which each bucket has the number of its own samples alone."""
        reading = histogram.read()
        bounds = [bound for bound, _ in reading.buckets]
        totals = [total for _, total in reading.buckets]
        counts = [total - before for total, before in zip(totals, [0, *totals], strict=False)]
        return HistogramDataPoint(
            attributes,
            self._since,
            at,
            totals[-1],
            reading.sum,
            counts,
            bounds[:-1],  # the last is infinite, which OTLP does not write
            min=_UNKNOWN,
            max=_UNKNOWN,
        )


def _gauges(name: str, description: str, values: Iterable[tuple[float, Attributes]], at: int) -> Metric:
    points = [NumberDataPoint(attributes, 0, at, value) for value, attributes in values]
    return Metric(name, description, "1", Gauge(points))


def _states(kind: str, levels: Sequence[Level]) -> list[tuple[float, Attributes]]:
    """The deliveries of each queue or topic by their state."""
    return [
        (number, {**_labels(kind, level.name), "state": state})
        for level in levels
        for state, number in zip(_STATES, level.counts, strict=True)
    ]


def _ages(kind: str, levels: Sequence[Level]) -> list[tuple[float, Attributes]]:
    return [(level.age_seconds, _labels(kind, level.name)) for level in levels]


def _by_cause(counts: Mapping[tuple[str, str], int]) -> list[tuple[float, Attributes]]:
    return [
        (number, {"source": source, "reason": str(reason)}) for (source, reason), number in counts.items()
    ]


def _labels(kind: str, name: ResourceName) -> Attributes:
    return {kind: name.name, "account": name.account, "region": name.region}
