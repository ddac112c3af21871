"""Failures, written down as the categories DeliveryFailures and PublishFailures of Azure's resource logs.

Each topic has a log group for each category, `/azure/eventgrid/{group}/{topic}/DeliveryFailures`, in the account that
its Azure subscription's GUID ends in. A line is a JSON object: `time`, `resourceId` and `eventSubscriptionName` in
capitals, `category`, `operationName`, and what is known of the attempt in one `message` of `name=value` pairs.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson

from redrive.azure.eventgrid.published import PublishedEvent
from redrive.azure.eventgrid.refusals import Unacceptable
from redrive.azure.eventgrid.rendering import as_event_grid
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA, delivery_settings, topic_settings
from redrive.azure.eventgrid.times import timestamp
from redrive.engine.ports import LogSink
from redrive.engine.ports.facts import Attempted
from redrive.model.ids import bytes_of, id_text
from redrive.model.names import ResourceName
from redrive.model.topic import Topic, without_secrets

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
        """Write to this sink.

        Args:
            sink: Takes the lines.
            stream: The stream of this node in every group.
            region: Where the groups are.
        """
        self._sink = sink
        self._stream = stream
        self._region = region
        self._strangers_at: dict[ResourceName, int] = {}

    def delivering(self, fact: Attempted, result: str) -> None:
        """An attempt failed."""
        name = delivery_settings(fact.subscription).name.upper()
        record = {"eventSubscriptionName": name, "message": f"Message:{_pairs(_attempt(fact, result))}"}
        self._write(fact.topic, DELIVERY_FAILURES, "Deliver", record, fact.at)

    def publishing(self, topic: Topic, refusal: Unacceptable, now: int) -> None:
        """A publisher's request was refused; for credentials that open nothing, a line a minute is enough.

        Whoever reaches the server can have them refused, as often as they like, and lines are kept for 30 days.
        """
        if refusal.status is HTTPStatus.UNAUTHORIZED and not self._begins_quiet_minute(topic.name, now):
            return
        known = {
            "inputEventsCount": "null",
            "httpStatusCode": refusal.status.phrase.replace(" ", ""),
            "errorType": refusal.rule,
            "errorMessage": refusal.message,
        }
        self._write(topic, PUBLISH_FAILURES, "Post", {"message": _pairs(known)}, now)

    def _begins_quiet_minute(self, topic: ResourceName, now: int) -> bool:
        """True for the first refused stranger of a topic, whose minute begins with that; false until it is over."""
        if 0 <= now - self._strangers_at.get(topic, -_STRANGERS_QUIET_MS) < _STRANGERS_QUIET_MS:
            return False
        if len(self._strangers_at) >= _TOPICS_MAX:
            self._strangers_at.clear()
        self._strangers_at[topic] = now
        return True

    def _write(self, topic: Topic, category: str, operation: str, record: Mapping[str, str], at: int) -> None:
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


def _pairs(known: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in known.items())


def _attempt(fact: Attempted, result: str) -> dict[str, object]:
    delivery, attempt = fact.delivery, fact.attempt
    published = PublishedEvent.unpack(delivery.headers)
    event: Mapping[str, Any] = orjson.loads(delivery.body)
    if published.schema == CLOUD_EVENT_SCHEMA:
        event_type, event_time = event.get("type", ""), event.get("time", "")
    else:
        event = as_event_grid(event, published)
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
        "inputSchema": published.schema,
        "publishTime": timestamp(published.published_at),
        "eventTime": event_time,
        "eventType": event_type,
        "size": bytes_of(delivery.body),
        "url": without_secrets(fact.subscription.endpoint),
        "deliveryResponse": f"{attempt.status} {attempt.response}".strip(),
    }
