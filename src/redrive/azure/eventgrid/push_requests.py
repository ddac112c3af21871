"""Push requests for each kind of destination: body, content type and headers.

Webhooks, functions, hybrid connections and event hubs get an array, also of a single event; a CloudEvent that goes alone
goes as an object. Queues and topics of other services get a message for each event. Headers become a message's
properties there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from redrive.azure.eventgrid.notation import read_text
from redrive.azure.eventgrid.published import METADATA_VERSION, PublishedEvent, as_event_grid, render_event
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA, DeliveryAttribute, DeliverySettings
from redrive.engine.ports import PushRequest
from redrive.model.delivery import Delivery
from redrive.model.memo import remembered
from redrive.model.topic import Subscription

TIMEOUT_MS: Final = 180_000  # "if the endpoint responds within 3 minutes" its answer still counts
NOTIFICATION: Final = "Notification"
ORIGIN: Final = "eventgrid.azure.net"
JSON: Final = "application/json; charset=utf-8"
CLOUD_EVENT: Final = "application/cloudevents+json; charset=utf-8"
CLOUD_EVENTS: Final = "application/cloudevents-batch+json; charset=utf-8"

_TIME_TO_LIVE: Final = "queueMessageTimeToLiveInSeconds"  # of storage queues

HTTP: Final = frozenset({"http", "https"})
_ARRAYS: Final = frozenset({"WebHook", "AzureFunction", "HybridConnection", "EventHub"})

# An endpoint that guards against abuse may look for its agreement in either: CloudEvents' 1.0.0 names the first, which
# is what Azure sends, its 1.0.2 the second.
_ORIGINS: Final = {"Origin": ORIGIN, "WebHook-Request-Origin": ORIGIN}


# Events that were published together have one envelope. A topic's mapping may put much of an event into it.
_unpack: Final = remembered(1024, 4096, longer_max=16)(PublishedEvent.unpack)


def push_request(
    subscription: Subscription,
    settings: DeliverySettings,
    deliveries: Sequence[Delivery],
    authorization: Mapping[str, str],
) -> PushRequest:
    """The push request of one delivery, or of a batch; `authorization` are headers that tell the endpoint who comes."""
    envelopes = [_unpack(delivery.headers) for delivery in deliveries]
    texts = [
        render_event(delivery.body, envelope, settings.schema)
        for delivery, envelope in zip(deliveries, envelopes, strict=True)
    ]
    headers = _headers(settings, deliveries[0], envelopes[0], texts[0])
    if len(texts) > 1:
        del headers["aeg-output-event-id"]
    if subscription.protocol in HTTP:
        headers["Accept-Encoding"] = "gzip, deflate"
        if settings.schema == CLOUD_EVENT_SCHEMA:
            headers |= _ORIGINS
    headers |= authorization
    seconds_kept = settings.destination.get(_TIME_TO_LIVE)
    if seconds_kept is not None:
        headers["ttl-seconds"] = str(seconds_kept)
    body, content_type = _together(settings, texts)
    return PushRequest(subscription.endpoint, body.encode(), content_type, headers, TIMEOUT_MS)


def _together(settings: DeliverySettings, texts: Sequence[str]) -> tuple[str, str]:
    """A body and its content type."""
    is_cloud_event = settings.schema == CLOUD_EVENT_SCHEMA
    if len(texts) == 1 and (is_cloud_event or settings.destination_type not in _ARRAYS):
        return texts[0], CLOUD_EVENT if is_cloud_event else JSON
    return f"[{','.join(texts)}]", CLOUD_EVENTS if is_cloud_event else JSON


def _headers(
    settings: DeliverySettings, delivery: Delivery, published_event: PublishedEvent, text: str
) -> dict[str, str]:
    """The headers of a request; those that belong to an event are the first one's."""
    event: Mapping[str, Any] = orjson.loads(delivery.body)
    headers = {
        "aeg-event-type": NOTIFICATION,
        "aeg-subscription-name": settings.name.upper(),
        "aeg-delivery-count": str(delivery.attempts - 1),
        "aeg-output-event-id": str((published_event.mapped or event).get("id", "")),
    }
    if settings.schema == CLOUD_EVENT_SCHEMA:
        headers["aeg-metadata-version"] = str(event.get("specversion", "1.0"))
    else:
        versions = as_event_grid(event, published_event)
        headers["aeg-data-version"] = str(versions.get("dataVersion", ""))
        headers["aeg-metadata-version"] = METADATA_VERSION
    if settings.attributes:
        headers |= _own_headers(settings, event, text)
    return headers


def _own_headers(settings: DeliverySettings, event: Mapping[str, Any], text: str) -> dict[str, str]:
    if not needs_event(settings.attributes):
        return attribute_headers(settings.attributes)
    return attribute_headers(settings.attributes, read_text(text.encode()), event)


# Delivery attributes: headers that a subscription adds to each delivery, said outright or taken from the event.

VALUE_BYTES_MAX: Final = 4096  # "each header value should not exceed 4,096 bytes"
_ROOT: Final = "$."


def attribute_headers(attributes: Iterable[DeliveryAttribute], *forms: Mapping[str, Any]) -> dict[str, str]:
    """The headers of one delivery; an attribute whose field the event does not have is left out.

    A field is looked for in each form of the event in turn.
    """
    values = ((each.name, _value(each, forms)) for each in attributes)
    return {name: value for name, value in values if value is not None and _may_be_sent(value)}


def needs_event(attributes: Iterable[DeliveryAttribute]) -> bool:
    """True if any of them is taken from the event."""
    return any(each.source_field is not None for each in attributes)


def _value(attribute: DeliveryAttribute, forms: Iterable[Mapping[str, Any]]) -> str | None:
    """The value in the first form of the event that has one."""
    if attribute.source_field is None:
        return attribute.value
    path = attribute.source_field.removeprefix(_ROOT).split(".")
    texts = (_text(_at(form, path)) for form in forms)
    return next((text for text in texts if text is not None), None)


def _at(event: Mapping[str, Any], path: Iterable[str]) -> object:
    value: object = event
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: object) -> str | None:
    """Texts, numbers and booleans resolve; objects, arrays and null do not."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _may_be_sent(value: str) -> bool:
    """A line break would end the header and begin another."""
    return len(value.encode()) <= VALUE_BYTES_MAX and not set(value) & {"\r", "\n", "\0"}
