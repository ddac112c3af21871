"""This node's counters in Prometheus's text format.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from collections.abc import Callable, Iterable, Mapping

from redrive import __version__
from redrive.engine.engine import Engine
from redrive.engine.operations import METRIC_NAMES
from redrive.model.metric import Series
from redrive.model.names import ResourceName
from redrive.protocols.http import Response
from redrive.telemetry.accumulators import TOPIC_COUNTERS

#: Of each topic, what its counters came to since the start.
Totals = Callable[[], Iterable[tuple[ResourceName, Mapping[Series, int]]]]


async def exposition(engine: Engine, totals: Totals, refused: Mapping[str, int]) -> Response:
    """The counters of the queues and topics that are there, how many endpoints rest, and who was refused.

    Args:
        engine: The one that serves.
        totals: What was counted of topics.
        refused: By reason, how many requests were.
    """
    lines = _of_queues(engine) + await _of_topics(engine, totals)
    resting = len(await engine.operations.open_circuits())
    name = "redrive_endpoints_on_probation"
    lines += [*_family(name, "Endpoints that are let rest", "gauge"), f"{name} {resting}"]
    lines += [*_of_refusals(refused), *_build()]
    return Response(200, ("\n".join(lines) + "\n").encode(), "text/plain; version=0.0.4; charset=utf-8")


def _of_queues(engine: Engine) -> list[str]:
    lines: list[str] = []
    measured = [
        (_labels(counts.name, ("queue", counts.name.name)), counts)
        for counts in engine.operations.queue_counts()
    ]
    for metric in METRIC_NAMES:
        lines += _family(
            f"redrive_queue_{metric}_total", f"{_words(metric)}, of a queue, since this node started"
        )
        lines += [
            f"redrive_queue_{metric}_total{labels} {getattr(counts, metric)}" for labels, counts in measured
        ]
    return lines


async def _of_topics(engine: Engine, totals: Totals) -> list[str]:
    found: dict[str, list[str]] = {metric: [] for metric in TOPIC_COUNTERS}
    for name, counters in totals():
        if await engine.resources.topics.get(name) is None:
            continue
        for series, value in counters.items():
            others = [pair for pair in series.dimensions if pair[0] != "topic"]
            labels = _labels(name, ("topic", name.name), *others)
            found[series.name].append(f"redrive_topic_{series.name}_total{labels} {value}")
    return [
        line
        for metric, lines in found.items()
        for line in (
            *_family(
                f"redrive_topic_{metric}_total", f"{_words(metric)}, of a topic, since this node started"
            ),
            *lines,
        )
    ]


def _of_refusals(refused: Mapping[str, int]) -> list[str]:
    name = "redrive_requests_refused_total"
    return [
        *_family(name, "Requests refused for their credentials or their origin, since this node started"),
        *(f'{name}{{reason="{_escaped(reason)}"}} {count}' for reason, count in sorted(refused.items())),
    ]


def _family(name: str, help_text: str, kind: str = "counter") -> list[str]:
    """The lines that begin a family of metrics."""
    return [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]


def _words(metric: str) -> str:
    return metric.replace("_", " ").capitalize()


def _build() -> list[str]:
    name = "redrive_build_info"
    return [
        *_family(name, "The version of this node; always 1", "gauge"),
        f'{name}{{version="{__version__}"}} 1',
    ]


def _labels(name: ResourceName, *others: tuple[str, str]) -> str:
    pairs = (("account", name.account), ("region", name.region), *others)
    return "{" + ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs) + "}"


def _escaped(value: str) -> str:
    """A resource group of Azure's may have a quote in its name."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
