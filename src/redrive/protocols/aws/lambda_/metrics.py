"""Metrics of invocations, in `AWS/Lambda`, by function, by what was named, and by the version that ran.

    Invocations, Errors, Duration (ms)          of what ran, or failed to
    Throttles                                   of what was refused for want of concurrency
    ConcurrentExecutions                        how many ran at once when one began
    AsyncEventsReceived                         events taken for later
    AsyncEventAge (ms)                          how old an event was when it was tried
    AsyncEventsDropped                          events that were given up
    DeadLetterErrors, DestinationDeliveryFailures   what a dead-letter target or a destination did not take

Errors are counted as 0 where there is none, so that an alarm on them heals.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from redrive.model.function import InvocationResult, Throttled
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics
from redrive.model.names import ResourceName
from redrive.protocols.aws.lambda_.lookup import Meant
from redrive.protocols.aws.lambda_.records import Configuration

NAMESPACE: Final = "AWS/Lambda"

Count = Callable[[Sequence[MetricPoint]], None]
Dimensions = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Counted:
    """An invocation that is being counted.

    Attributes:
        result: Its result; None: there is none yet.
    """

    result: InvocationResult | None = None


class InvocationMetrics:
    """Counts what becomes of invocations."""

    def __init__(self, count: Count) -> None:
        """Hand points to `count`."""
        self._count = count
        self._running: Counter[ResourceName] = Counter()

    @contextmanager
    def counting(self, meant: Meant, version: Configuration, began_at: int) -> Iterator[Counted]:
        """Count one invocation, which runs inside; it began at that moment (ms)."""
        counted = Counted()
        name = version.name
        self._running[name] += 1
        try:
            yield counted
        except Throttled:
            self._add(name, _dimensions(meant, version), began_at, {"Throttles": 1})
            raise
        finally:
            running = self._running[name]
            self._running[name] -= 1
            if counted.result is not None:
                values = {
                    "Invocations": 1,
                    "Errors": int(counted.result.failed),
                    "Throttles": 0,
                    "Duration": counted.result.duration_ms,
                    "ConcurrentExecutions": running,
                }
                self._add(name, _dimensions(meant, version), began_at, values)

    def count(self, name: ResourceName, metric: str, value: float, at: int) -> None:
        """Count something of a function as a whole."""
        self._add(name, [(("FunctionName", name.name),)], at, {metric: value})

    def _add(
        self, name: ResourceName, dimensions: Sequence[Dimensions], at: int, values: dict[str, float]
    ) -> None:
        self._count(
            [
                MetricPoint(
                    Series(name.account, name.region, NAMESPACE, metric, each),
                    at - at % MINUTE_MS,
                    "Milliseconds" if metric in _MILLISECONDS else "Count",
                    Statistics.of(value),
                )
                for metric, value in values.items()
                for each in dimensions
            ]
        )


_MILLISECONDS: Final = frozenset({"Duration", "AsyncEventAge"})


def _dimensions(meant: Meant, version: Configuration) -> list[Dimensions]:
    """By function, by what was named, and by the version that ran; names within a series are in order."""
    function = ("FunctionName", version.name.name)
    named = version.name.name if meant.alias is None else f"{version.name.name}:{meant.alias.name}"
    resource = ("Resource", named)
    return [(function,), (function, resource), (("ExecutedVersion", version.version), function, resource)]
