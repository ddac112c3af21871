"""Metrics of Event Grid's topics, under Azure Monitor's names, and the log of failures.

    PublishSuccessCount, PublishFailCount            events; requests, by `Error` and `ErrorType`
    PublishSuccessLatencyInMs                        of requests
    AdvancedFilterEvaluationCount                    by `EventSubscriptionName`; the first that fails is the last asked
    MatchedEventCount, UnmatchedEventCount           events that a subscription wanted, or none; of domains, the first
    DeliverySuccessCount                             by `EventSubscriptionName`, as all that follow
    DeliveryAttemptFailCount                         by `Error` and `ErrorType`
    DestinationProcessingDurationInMs                of requests to webhooks and their like
    DeadLetteredCount                                by `DeadLetterReason`; counted when they are in their container
    DroppedEventCount                                by `DropReason`

What belongs to a domain's topic is counted of the domain, with a dimension `Topic`. Source: "Monitoring data reference
for Azure Event Grid push delivery".

Of a namespace is counted, with a dimension `Topic` ("Supported metrics for Microsoft.EventGrid/namespaces"):

    SuccessfulPublishedEvents, FailedPublishedEvents, PublishLatencyInMilliseconds, MatchedEventCount,
    UnmatchedEventCount, DeadLetteredCount, DroppedEventCount
    SuccessfulReceivedEvents, FailedReceivedEvents   events that were pulled, or pushed
    and what `redrive.azure.namespaces.service` counts: each call of who pulls

Failures are written down as well, as the categories DeliveryFailures and PublishFailures of Azure's resource logs. Each
topic has a log group for each category, `/azure/eventgrid/{group}/{topic}/DeliveryFailures`, in the account that its
Azure subscription's GUID ends in. A line is a JSON object: `time`, `resourceId` and `eventSubscriptionName` in capitals,
`category`, `operationName`, and what is known of the attempt in one `message` of `name=value` pairs.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

import orjson
from typing_extensions import override

from redrive.azure.eventgrid import dead_letters, names, namespace_letters, outcomes
from redrive.azure.eventgrid.notation import timestamp
from redrive.azure.eventgrid.published import PublishedEvent, as_event_grid
from redrive.azure.eventgrid.refusals import Unacceptable
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA, ID, delivery_settings, topic_settings
from redrive.engine.ports import LogSink
from redrive.engine.ports.facts import Accepted, Attempted, Listener
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.model.metric import Series, SeriesGroup
from redrive.model.names import ResourceName, bytes_of, id_text
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic, without_secrets

DELIVERY_FAILURES: Final = "DeliveryFailures"
PUBLISH_FAILURES: Final = "PublishFailures"
_ACCOUNT_DIGITS: Final = 12
_STRANGERS_QUIET_MS: Final = 60_000
_TOPICS_MAX: Final = 10_000
_UNNAMED: Final = "Aborted"
_GENERIC: Final = "GenericError"  # what the logs call the failures that dead letters have no name for


class FailureLog:
    """Writes failures to log groups."""

    def __init__(self, sink: LogSink, stream: str, region: str) -> None:
        self._sink = sink
        self._stream = stream
        self._region = region
        self._strangers_at: dict[ResourceName, int] = {}

    def add_delivery(self, fact: Attempted, result: str) -> None:
        """An attempt failed."""
        name = delivery_settings(fact.subscription).name.upper()
        record = {"eventSubscriptionName": name, "message": f"Message:{_pairs(_attempt(fact, result))}"}
        self._write(fact.topic, DELIVERY_FAILURES, "Deliver", record, fact.at)

    def add_publication(self, topic: Topic, refusal: Unacceptable, now: int) -> None:
        """A publisher's request was refused; for credentials that open nothing, a line a minute is enough.

        Whoever reaches the server can have them refused, as often as they like, and lines are kept for 30 days.
        """
        if refusal.status is HTTPStatus.UNAUTHORIZED and not self._begins_quiet_minute(topic.name, now):
            return
        fields = {
            "inputEventsCount": "null",
            "httpStatusCode": refusal.status.phrase.replace(" ", ""),
            "errorType": refusal.rule,
            "errorMessage": refusal.message,
        }
        self._write(topic, PUBLISH_FAILURES, "Post", {"message": _pairs(fields)}, now)

    def _begins_quiet_minute(self, topic: ResourceName, now: int) -> bool:
        """True for the first refused stranger of a topic, whose minute begins with that; false until it is over."""
        if 0 <= now - self._strangers_at.get(topic, -_STRANGERS_QUIET_MS) < _STRANGERS_QUIET_MS:
            return False
        if len(self._strangers_at) >= _TOPICS_MAX:
            self._strangers_at.clear()
        self._strangers_at[topic] = now
        return True

    def _write(self, topic: Topic, category: str, operation: str, record: Mapping[str, str], at: int) -> None:
        """Write a line of a category about a topic, as Azure's diagnostic logs have it."""
        line = {
            "time": timestamp(at),
            "resourceId": topic_settings(topic).id.upper(),
            "category": category,
            "operationName": operation,
            **record,
        }
        self._sink.write(_group(topic, category, self._region), self._stream, at, orjson.dumps(line).decode())


def _group(topic: Topic, category: str, region: str) -> ResourceName:
    name = f"/azure/eventgrid/{topic.name.region}/{topic.name.name.replace(':', '/')}/{category}"
    return ResourceName(topic.name.account[-_ACCOUNT_DIGITS:], region, name)


def _pairs(fields: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in fields.items())


def _attempt(fact: Attempted, result: str) -> dict[str, object]:
    """The members of a log line about a failed attempt; `result`: its outcome in Azure's word."""
    delivery, attempt = fact.delivery, fact.attempt
    published_event = PublishedEvent.unpack(delivery.headers)
    event: Mapping[str, Any] = orjson.loads(delivery.body)
    if published_event.schema == CLOUD_EVENT_SCHEMA:
        event_type, event_time = event.get("type", ""), event.get("time", "")
    else:
        event = as_event_grid(event, published_event)
        event_type, event_time = event.get("eventType", ""), event.get("eventTime", "")
    return {
        "outcome": _GENERIC if result == _UNNAMED else result,
        "latencyInMs": attempt.duration_ms,
        "id": event.get("id", ""),
        "systemId": id_text(delivery.message_id),
        "state": fact.transition.outcome.name,
        "deliveryTime": timestamp(fact.at),
        "deliveryCount": delivery.attempts,
        "deliverySchema": delivery_settings(fact.subscription).schema,
        "inputSchema": published_event.schema,
        "publishTime": timestamp(published_event.published_at),
        "eventTime": event_time,
        "eventType": event_type,
        "size": bytes_of(delivery.body),
        "url": without_secrets(fact.subscription.endpoint),
        "deliveryResponse": f"{attempt.status} {attempt.response}".strip(),
    }


RESOURCE: Final = "resource"  # the dimension that says of what; nobody asks for it by name
SUBSCRIPTION: Final = "EventSubscriptionName"
NAMESPACES: Final = {
    "topics": "Microsoft.EventGrid/topics",
    "domains": "Microsoft.EventGrid/domains",
    "namespaces": "Microsoft.EventGrid/namespaces",
    "storageaccounts": "Microsoft.EventGrid/systemTopics",
}

_PULL: Final = "pull"  # what waits to be received is not delivered yet
#: What a namespace's metrics are called where others have another name for it; None: it has none.
_NAMESPACE_NAMES: Final[Mapping[str, str | None]] = {
    "PublishSuccessCount": "SuccessfulPublishedEvents",
    "DeliverySuccessCount": "SuccessfulReceivedEvents",
    "DeliveryAttemptFailCount": "FailedReceivedEvents",
    "DestinationProcessingDurationInMs": None,
    "AdvancedFilterEvaluationCount": None,
}

Dimensions = tuple[tuple[str, str], ...]
AddSample = Callable[[SeriesGroup, float, int], None]


class Counter:
    """Counts into the series of topics, domains and namespaces."""

    def __init__(self, add_sample: AddSample) -> None:
        """Count from zero; `add_sample` takes samples and their moments (ms)."""
        self._add_sample = add_sample

    def count(
        self, topic: ResourceName, name: str, value: float, at: int, dimensions: Dimensions = ()
    ) -> None:
        """Add to a metric of a topic, under the name that its resource has for it."""
        self._add_sample(_group_of(topic, name, dimensions), value, at)

    def add(self, topic: Topic, name: str, value: float, at: int, dimensions: Dimensions = ()) -> None:
        """The same, by the name that the metric has in a topic's namespace; not counted if it has none there."""
        metric = _NAMESPACE_NAMES.get(name, name) if names.is_namespace_topic(topic.name) else name
        if metric is not None:
            self.count(topic.name, metric, value, at, dimensions)

    def add_for(self, fact: Attempted, name: str, value: float, dimensions: Dimensions = ()) -> None:
        """The same, for the event subscription of an attempt."""
        label = (SUBSCRIPTION, delivery_settings(fact.subscription).name)
        self.add(fact.topic, name, value, fact.at, (label, *dimensions))


class Measures(Listener):
    """Counts what happens to events, and has failures written down.

    Attributes:
        counter: What it counts into.
    """

    def __init__(self, add_sample: AddSample, failures: FailureLog) -> None:
        # `add_sample`: takes samples and their moments (ms); they are on disk some seconds later
        self.counter = Counter(add_sample)
        self._failures = failures

    def listeners(self) -> Sequence[tuple[Listener, Sequence[str]]]:
        """The listeners that count, each with the dialects and profiles whose facts it hears; see `PullMeasures` too."""
        return (
            (self, (names.DIALECT, names.NAMESPACES)),
            (DeadLetterMeasures(self.counter), (names.DEAD_LETTER_STORES,)),
        )

    # ---- publishers -------------------------------------------------------------------------------------

    @override
    def published(self, topic: Topic, messages: int, matched: int, body_bytes: int, now: int) -> None:
        """See `Listener.published`; what enters a domain's topic entered the domain too."""
        if not messages:
            return
        in_domain = _place_in_domain(topic)
        if not in_domain:
            self.counter.add(topic, "PublishSuccessCount", messages, now)
        if matched:
            self.counter.add(topic, "MatchedEventCount", matched, now)
        if matched < messages and not topic.name.name.startswith("domains:"):
            self.counter.add(topic, "UnmatchedEventCount", messages - matched, now)

    def answered(self, topic: Topic, took_ms: int, now: int) -> None:
        """A publisher's request was answered so fast."""
        self.counter.add(topic, "PublishSuccessLatencyInMs", took_ms, now)

    def refused(self, topic: Topic, refusal: Unacceptable, now: int) -> None:
        """A publisher's request was not taken."""
        kind = "ClientError" if refusal.status < HTTPStatus.INTERNAL_SERVER_ERROR else "ServerError"
        dimensions = (("Error", refusal.rule), ("ErrorType", kind))
        self.counter.add(topic, "PublishFailCount", 1, now, dimensions)
        self._failures.add_publication(topic, refusal, now)

    @override
    def evaluated(self, topic: Topic, filters: Sequence[tuple[Subscription, int]], now: int) -> None:
        for subscription, number in filters:
            label = (SUBSCRIPTION, delivery_settings(subscription).name)
            self.counter.add(topic, "AdvancedFilterEvaluationCount", number, now, (label,))

    # ---- subscribers ------------------------------------------------------------------------------------

    @override
    def attempted(self, fact: Attempted) -> None:
        """Count a push by its result; what is pulled is counted elsewhere."""
        if fact.subscription.protocol == _PULL:
            return
        if not fact.attempt.delivered:
            self._count_failure(fact)
            return
        self.counter.add_for(fact, "DeliverySuccessCount", 1)
        if fact.position == 0:
            self.counter.add_for(fact, "DestinationProcessingDurationInMs", fact.attempt.duration_ms)

    @override
    def accepted(self, fact: Accepted) -> None:
        for attempt in fact.attempts():
            self.attempted(attempt)

    @override
    def expired(self, fact: Attempted) -> None:
        self._count_drop(fact)

    def _count_failure(self, fact: Attempted) -> None:
        """Count a failed attempt, write it to the log, and count the event that is given up by it."""
        kind, attempt = delivery_settings(fact.subscription).destination_type, fact.attempt
        error = outcomes.outcome_of(attempt.reason, attempt.status, attempt.response, kind)
        dimensions = (("Error", error), ("ErrorType", _error_type(attempt.status)))
        self.counter.add_for(fact, "DeliveryAttemptFailCount", 1, dimensions)
        self._failures.add_delivery(fact, error)
        if fact.transition.outcome is not Outcome.RETRY:
            self._count_drop(fact)

    def _count_drop(self, fact: Attempted) -> None:
        """A lost event: one with a dead-letter container is not lost yet."""
        settings = delivery_settings(fact.subscription)
        if settings.dead_letter_container is None:
            reason = dead_letters.letter_of(fact, settings).reason
            self.counter.add_for(fact, "DroppedEventCount", 1, (("DropReason", reason),))


class DeadLetterMeasures(Listener):
    """Counts what happens to letters on their way to their stores."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    @override
    def attempted(self, fact: Attempted) -> None:
        """Count a dead letter that was stored, or one that is given up."""
        if fact.attempt.delivered:
            reason = namespace_letters.reason_of(fact.delivery)
            self._counter.add_for(fact, "DeadLetteredCount", 1, (("DeadLetterReason", reason),))
        elif fact.transition.outcome is not Outcome.RETRY:
            self.expired(fact)

    @override
    def expired(self, fact: Attempted) -> None:
        unavailable = ("DropReason", "DeadLetterDestinationUnavailable")
        self._counter.add_for(fact, "DroppedEventCount", 1, (unavailable,))


class PullMeasures(Listener):
    """Counts events that are dropped from the queues that callers pull namespaces' events from."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    @override
    def dropped(self, queue: Queue, messages: int, why: DeadLetterReason, now: int) -> None:
        """Count the events that a namespace topic's queue dropped, by the reason."""
        resource = queue.attributes.get(ID)
        if resource is not None and names.is_namespace_topic(queue.name):
            topic = queue.name._replace(name=queue.name.name.rpartition(":")[0])
            label = (SUBSCRIPTION, resource.rpartition("/")[2])
            reason = ("DropReason", namespace_letters.REASONS[why])
            self._counter.count(topic, "DroppedEventCount", messages, now, (label, reason))


@lru_cache(maxsize=16_384)
def _group_of(topic: ResourceName, name: str, dimensions: Dimensions) -> SeriesGroup:
    return SeriesGroup(series_of(topic, name, dimensions))


def series_of(topic: ResourceName, name: str, dimensions: Dimensions = ()) -> Series:
    """A metric of a topic or a domain."""
    kind, _, rest = topic.name.partition(":")
    name_there, _, topic_name = rest.partition(":") if kind in ("domains", "namespaces") else (rest, "", "")
    labels = [*dimensions, (RESOURCE, f"{kind}:{name_there}")]
    if topic_name:
        labels.append(("Topic", topic_name))
    return Series(topic.account, topic.region, NAMESPACES.get(kind, kind), name, tuple(sorted(labels)))


def _place_in_domain(topic: Topic) -> bool:
    return topic.name.name.startswith("domains:") and topic.name.name.count(":") > 1


def _error_type(status: int) -> str:
    if not status:
        return "NetworkError"
    return "ServerError" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "ClientError"
