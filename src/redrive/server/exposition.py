"""This node's counters, and the levels that it saw last, for Prometheus.

A scrape asks the store for one thing that it did not say before, how many circuit breakers are open. Of queues and
topics 2,000 have lines of their own, so that a scrape of a server with 100,000 of them takes no longer.
"""

import asyncio
import types
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from redrive import __version__
from redrive.engine.engine import Engine
from redrive.engine.operations import METRIC_NAMES
from redrive.model.errors import StoreUnavailable
from redrive.model.names import ResourceName
from redrive.telemetry.accumulators import TOPIC_COUNTERS
from redrive.telemetry.gauges import SHOWN_MAX, Level
from redrive.telemetry.meters import NodeMeters, Reading
from redrive.telemetry.telemetry import Telemetry

_SINCE: Final = "since this node started"
_TOPICS_A_TURN: Final = 200  # 3 ms

#: Of the levels of queues and of backlogs: what the counts are called, and their HELP, in the order of `Counts`.
_QUEUE_COUNTS: Final = (
    ("messages_available", "Messages of a queue that may be received now"),
    ("messages_in_flight", "Messages of a queue that were received and not deleted"),
    ("messages_delayed", "Messages of a queue that wait for their delay"),
)
_BACKLOG_COUNTS: Final = (
    ("deliveries_due", "Deliveries to a topic's endpoints that are due and were not begun"),
    ("deliveries_in_flight", "Deliveries to a topic's endpoints that are being attempted"),
    ("deliveries_retrying", "Deliveries to a topic's endpoints that wait for their next attempt"),
)


class Exposition:
    """Writes all metrics of a node."""

    def __init__(
        self, engine: Engine, telemetry: Telemetry, meters: NodeMeters, refusal_counts: Mapping[str, int]
    ) -> None:
        """Collect metrics from these sources; `refusal_counts` are the numbers of refused requests, by reason."""
        self._engine = engine
        self._telemetry = telemetry
        self._meters = meters
        self._refusal_counts = refusal_counts
        self._scrape: asyncio.Task[str] | None = None

    async def text(self) -> str:
        """All families, each with its HELP and TYPE; concurrent requests share one result.

        Ten scrapes at once of 3,000 queues and topics took one turn of the event loop of 0.27 s. Now they take what one
        takes, 25 ms, in turns of some milliseconds.
        """
        if self._scrape is None:
            self._scrape = asyncio.create_task(self._write(), name="redrive-scrape")
            self._scrape.add_done_callback(self._forget_scrape)
        return await asyncio.shield(self._scrape)

    def _forget_scrape(self, _: "asyncio.Task[str]") -> None:
        self._scrape = None

    async def _write(self) -> str:
        """All families as text, with a turn of the event loop after each."""
        pieces: list[str] = []
        async for lines in self._families():
            pieces.append("".join(f"{line}\n" for line in lines))
            await _turn()
        return "".join(pieces)

    async def _families(self) -> AsyncIterator[list[str]]:
        """The lines of each family in turn: of queues, topics, attempts, endpoints and this node."""
        telemetry = self._telemetry
        for lines in _level_families("queue", _QUEUE_COUNTS, telemetry.queue_levels):
            yield lines
        yield _age_family("queue", "message", telemetry.queue_levels)
        for lines in self._queue_counters():
            yield lines
        for lines in _level_families("topic", _BACKLOG_COUNTS, telemetry.backlog_levels):
            yield lines
        yield _age_family("topic", "delivery", telemetry.backlog_levels)
        for lines in await self._topic_counters():
            yield lines
        yield self._attempts()
        yield await self._endpoints()
        yield self._node()

    def _queue_counters(self) -> Iterator[list[str]]:
        """A family for each of the counters of queues, of the first `SHOWN_MAX` queues."""
        queue_counts = [
            (_labels_of("queue", counts.name), counts)
            for counts in islice(self._engine.operations.queue_counts(), SHOWN_MAX)
        ]
        for metric in METRIC_NAMES:
            samples = [(label_text, getattr(counts, metric)) for label_text, counts in queue_counts]
            yield family(f"redrive_queue_{metric}_total", "counter", _help_of(metric, "queue"), samples)

    async def _topic_counters(self) -> Iterator[list[str]]:
        """A family for each of the counters of topics that still exist, of the first `SHOWN_MAX`."""
        by_metric: dict[str, list[Sample]] = {metric: [] for metric in TOPIC_COUNTERS}
        for number, (topic, counters) in enumerate(islice(self._telemetry.metrics.totals, SHOWN_MAX), 1):
            if number % _TOPICS_A_TURN == 0:
                await _turn()
            if not await self._is_there(topic):
                continue
            for series, value in counters.items():
                others = [(name, text) for name, text in series.dimensions if name != "topic"]
                by_metric[series.name].append((_labels_of("topic", topic, *others), value))
        return (
            family(f"redrive_topic_{metric}_total", "counter", _help_of(metric, "topic"), samples)
            for metric, samples in by_metric.items()
        )

    async def _is_there(self, topic: ResourceName) -> bool:
        """True if a topic exists, or the store is away and cannot say: its counters stay then."""
        topics = self._engine.resources.topics
        try:
            return (topics.known(topic) or await topics.get(topic)) is not None
        except StoreUnavailable:
            return True

    def _attempts(self) -> list[str]:
        """The families about attempts and how deliveries ended without success."""
        meters = self._meters
        durations = [
            ([("protocol", protocol), ("outcome", outcome)], durations_of_kind.read())
            for (protocol, outcome), durations_of_kind in sorted(meters.attempts.items())
        ]
        return [
            *histogram(
                "redrive_attempt_duration_seconds", "Time that attempts to push deliveries took", durations
            ),
            *_by_cause(
                "redrive_dead_letters_total", "Deliveries that became dead letters", meters.dead_letters
            ),
            *_by_cause(
                "redrive_deliveries_lost_total",
                "Deliveries that ended undelivered and are in no dead-letter queue",
                meters.losses,
            ),
        ]

    async def _endpoints(self) -> list[str]:
        """The family about open circuit breakers."""
        try:
            number = len(await self._engine.operations.open_circuits())
        except StoreUnavailable:  # the number is unknown, and whoever looks now needs the other families
            return []
        help_text = "Circuit breakers that are open: endpoints that fail and are left alone"
        return family("redrive_circuit_breakers_open", "gauge", help_text, [("", number)])

    def _node(self) -> list[str]:
        """The families about this node: refused requests, commits, the event loop and the version."""
        meters = self._meters
        refused = [
            (labels([("reason", reason)]), count) for reason, count in sorted(self._refusal_counts.items())
        ]
        help_text = f"Requests refused for their credentials or their origin, {_SINCE}"
        build = [(labels([("version", __version__)]), 1)]
        return [
            *family("redrive_requests_refused_total", "counter", help_text, refused),
            *histogram(
                "redrive_store_commit_duration_seconds",
                "Time that commits of the store took",
                [((), meters.commits.seconds.read())],
            ),
            *histogram(
                "redrive_store_commit_calls",
                "Calls that shared a commit of the store",
                [((), meters.commits.calls.read())],
            ),
            *histogram(
                "redrive_event_loop_lag_seconds",
                "Time by which a call that the event loop was asked for, once a second, came too late",
                [((), meters.loop_lag.read())],
            ),
            *family("redrive_build_info", "gauge", "The version of this node; always 1", build),
        ]


@types.coroutine
def _turn() -> Generator[None, None, None]:
    """Let others have a turn of the event loop."""
    yield


def _level_families(
    kind: str, names: Sequence[tuple[str, str]], levels: Sequence[Level]
) -> Iterator[list[str]]:
    counts_by_labels = [(_labels_of(kind, level.name), level.counts) for level in levels]
    for index, (name, help_text) in enumerate(names):
        samples = [(label_text, counts[index]) for label_text, counts in counts_by_labels]
        yield family(f"redrive_{kind}_{name}", "gauge", help_text, samples)


def _age_family(kind: str, what: str, levels: Sequence[Level]) -> list[str]:
    samples = [(_labels_of(kind, level.name), level.age_seconds) for level in levels]
    help_text = f"Age of the oldest {what} of a {kind}"
    return family(f"redrive_{kind}_oldest_{what}_age_seconds", "gauge", help_text, samples)


def _by_cause(name: str, help_text: str, counts: Mapping[tuple[str, str], int]) -> list[str]:
    """A family of counters by source and reason."""
    samples = [
        (labels([("source", source), ("reason", reason)]), count)
        for (source, reason), count in sorted(counts.items())
    ]
    return family(name, "counter", f"{help_text}, {_SINCE}", samples)


def _labels_of(kind: str, name: ResourceName, *others: tuple[str, str]) -> str:
    return labels([("account", name.account), ("region", name.region), (kind, name.name), *others])


def _help_of(metric: str, kind: str) -> str:
    return f"{metric.replace('_', ' ').capitalize()}, of a {kind}, {_SINCE}"


# Prometheus's text format: families of metrics as lines.
#
# https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
#
# Written here, since prometheus_client takes twenty times as long for a line, on the event loop:
# 129 ms where this takes 6, for 26,000 of them (decision 0007). Tests read what is written with its parser.

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Pairs = Sequence[tuple[str, str]]
#: Labels as `labels` writes them, and the number.
Sample = tuple[str, float]


def labels(pairs: Pairs) -> str:
    """Labels as they stand behind a name; nothing if there are none."""
    return "{" + _label_list(pairs) + "}" if pairs else ""


def family(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> list[str]:
    """The lines of a family, in the order of its samples; its kind is `counter` or `gauge`."""
    return [*_head(name, kind, help_text), *[f"{name}{label_text} {value}" for label_text, value in samples]]


def histogram(name: str, help_text: str, readings: Iterable[tuple[Pairs, Reading]]) -> list[str]:
    """The lines of a family of histograms."""
    lines = _head(name, "histogram", help_text)
    for pairs, reading in readings:
        beginning = f"{_label_list(pairs)}," if pairs else ""
        lines += [
            f'{name}_bucket{{{beginning}le="{_bound(bound)}"}} {count}' for bound, count in reading.buckets
        ]
        label_text = labels(pairs)
        _, total = reading.buckets[-1]
        lines += [f"{name}_sum{label_text} {reading.sum}", f"{name}_count{label_text} {total}"]
    return lines


def _head(name: str, kind: str, help_text: str) -> list[str]:
    return [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]


def _label_list(pairs: Pairs) -> str:
    return ",".join([f'{label}="{_escape(value)}"' for label, value in pairs])


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else str(bound)


def _escape(value: str) -> str:
    """A resource group of Azure's may have a quote in its name."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
