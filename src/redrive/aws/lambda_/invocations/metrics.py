"""Metrics of invocations, in `AWS/Lambda`, by account, by function, by what was named, and by the version that ran.

    Invocations, Errors, Duration (ms)          of what ran, or failed to
    Throttles                                   of what was refused for want of concurrency
    ConcurrentExecutions                        how many ran at once when one began
    UnreservedConcurrentExecutions              the same of an account's functions without a reservation
    AsyncEventsReceived                         events taken for later
    AsyncEventAge (ms)                          how old an event was when it was tried
    AsyncEventsDropped                          events that were given up
    DeadLetterErrors, DestinationDeliveryFailures   what a dead-letter target or a destination did not take
    PolledEventCount, FilteredOutEventCount, InvokedEventCount, FailedInvokeEventCount, DeletedEventCount
                                                messages of an event source mapping that asks for them
    UrlRequestCount, Url4xxCount, Url5xxCount, UrlRequestLatency (ms)   of requests to function URLs

Besides, for the console: what became of the batches of each event source mapping (`batch_series`), whether or not its
owner asks for metrics of it.

Errors are counted as 0 if there is none, so that an alarm on them heals.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from typing_extensions import override

from redrive.aws.lambda_.documents.backlogs import INVOCATIONS, BacklogTarget
from redrive.aws.lambda_.documents.lookup import FunctionTarget
from redrive.aws.lambda_.documents.records import Configuration, EventSourceMapping
from redrive.engine.ports.facts import Attempted, Listener, Undelivered
from redrive.model.delivery import Outcome
from redrive.model.function import InvocationResult
from redrive.model.metric import Series, SeriesGroup
from redrive.model.names import ResourceName

NAMESPACE: Final = "AWS/Lambda"

MAPPINGS: Final = ":mappings"  # no account's, and so is not listed among the metrics of one
#: The names of a mapping's series: batches that the function took, took in part, or failed at.
SUCCEEDED, FAILED_IN_PART, FAILED = BATCHES = ("succeeded", "failed_in_part", "failed")

UNRESERVED: Final = "UnreservedConcurrentExecutions"

AddSample = Callable[[SeriesGroup, float, int], None]
Dimensions = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class InvocationCount:
    """An invocation that is being counted."""

    name: ResourceName  # The function
    resource: str  # The function as it was named: with the alias, if it was named by one
    version: str  # The version that runs
    is_unreserved: bool  # The function has no reserved concurrency
    began_at: int  # Its beginning (ms)


class InvocationMetrics:
    """Counts what becomes of invocations."""

    def __init__(self, add_sample: AddSample, now: Callable[[], int]) -> None:
        """Hand samples and their moments (ms) to `add_sample`, those of mappings at the time that `now` tells."""
        self._add_sample = add_sample
        self._now = now
        self._running: Counter[ResourceName] = Counter()
        self._unreserved: Counter[tuple[str, str]] = Counter()

    def begin(self, target: FunctionTarget, version: Configuration, began_at: int) -> InvocationCount:
        """Count one invocation, which begins at that moment (ms); `end` has to follow."""
        name, alias = version.name, target.alias
        resource = name.name if alias is None else f"{name.name}:{alias.name}"
        is_unreserved = target.function.reserved is None
        self._running[name] += 1
        self._unreserved[name.account, name.region] += is_unreserved
        return InvocationCount(name, resource, version.version, is_unreserved, began_at)

    def end(self, count: InvocationCount, result: InvocationResult | None) -> None:
        """Count an invocation by its result; None: it has none."""
        name = count.name
        location = name.account, name.region
        running, unreserved = self._running[name], self._unreserved[location]
        self._running[name] = running - 1
        self._unreserved[location] = unreserved - count.is_unreserved
        if result is None:
            return
        values = {
            "Invocations": 1,
            "Errors": int(result.failed),
            "Throttles": 0,
            "Duration": result.duration_ms,
            "ConcurrentExecutions": running,
        }
        if count.is_unreserved:
            values[UNRESERVED] = unreserved
        self._add(name, count.resource, count.version, count.began_at, values)

    def throttle(self, count: InvocationCount) -> None:
        """Count that an invocation was refused for want of concurrency; `end` follows."""
        self._add(count.name, count.resource, count.version, count.began_at, {"Throttles": 1})

    def count_mapping(self, mapping: EventSourceMapping, metric: str, value: int) -> None:
        """Count messages of a mapping, if its owner wants them counted."""
        if not mapping.counted:
            return
        account, region, _ = mapping.function
        dimensions = (("EventSourceMappingUUID", mapping.id),)
        self._add_sample(_alone(Series(account, region, NAMESPACE, metric, dimensions)), value, self._now())

    def count_batch(self, mapping: EventSourceMapping, result: str, messages: int) -> None:
        """Count a batch by its result, one of `BATCHES`."""
        self._add_sample(_alone(batch_series(mapping, result)), messages, self._now())

    def count(self, name: ResourceName, metric: str, value: float, at: int) -> None:
        """Count something of a function as a whole."""
        self._add(name, "", "", at, {metric: value})

    def _add(
        self, name: ResourceName, resource: str, version: str, at: int, values: dict[str, float]
    ) -> None:
        for metric, value in values.items():
            self._add_sample(_group_of(name, resource, version, metric), value, at)


def batch_series(mapping: EventSourceMapping, result: str) -> Series:
    """The series with a sample for each batch of a mapping with a result, of its messages."""
    account, region, _ = mapping.function
    dimensions = (("account", account), ("mapping", mapping.id), ("region", region))
    return Series("", "", MAPPINGS, result, dimensions)


# What is invoked is invoked again: 20 series of an invocation are 10 us to make, and it has as many others to count.
@lru_cache(maxsize=4_096)
def _group_of(name: ResourceName, resource: str, version: str, metric: str) -> SeriesGroup:
    """The series of a metric: by function, and with a `resource` also by account, by resource and by executed version."""
    of_function = (("FunctionName", name.name),)
    if metric == UNRESERVED:
        return SeriesGroup(Series(name.account, name.region, NAMESPACE, metric, ()))
    dimensions: list[Dimensions] = [of_function]
    if resource:
        dimensions.append(())
        of_resource = (*of_function, ("Resource", resource))
        dimensions += [of_resource, (("ExecutedVersion", version), *of_resource)]
    return SeriesGroup(*(Series(name.account, name.region, NAMESPACE, metric, each) for each in dimensions))


@lru_cache(maxsize=1_024)
def _alone(series: Series) -> SeriesGroup:
    """The same group for a series each time: there is an accumulator for each group."""
    return SeriesGroup(series)


class EventMetrics(Listener):
    """Counts what becomes of events, and of what their ends lead to."""

    def __init__(self, metrics: InvocationMetrics) -> None:
        self._metrics = metrics

    @override
    def attempted(self, fact: Attempted) -> None:
        """Count the age of an event that was tried, or a record or letter that finally failed."""
        name = _function(fact)
        if fact.subscription.id == INVOCATIONS:
            age_ms = fact.at - fact.attempt.duration_ms - fact.delivery.sent_at
            self._metrics.count(name, "AsyncEventAge", max(0, age_ms), fact.at)
        elif not fact.attempt.delivered and fact.transition.outcome is not Outcome.RETRY:
            is_dead_letter = fact.subscription.id == BacklogTarget.DEAD_LETTER
            metric = "DeadLetterErrors" if is_dead_letter else "DestinationDeliveryFailures"
            self._metrics.count(name, metric, 1, fact.at)

    @override
    def undelivered(self, fact: Undelivered) -> None:
        last = fact.last
        if last.subscription.id == INVOCATIONS:
            self._metrics.count(_function(last), "AsyncEventsDropped", 1, last.at)


def _function(fact: Attempted) -> ResourceName:
    """The function behind an engine topic of events."""
    topic = fact.topic.name
    name, _, _ = topic.name.partition(":")
    region, _, _ = topic.region.partition(":")
    return ResourceName(topic.account, region, name)
