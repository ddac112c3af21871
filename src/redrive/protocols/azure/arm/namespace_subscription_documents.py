"""Event subscriptions of namespaces' topics: what is sent is checked and kept, and what the engine makes of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from redrive.model.queue import DeadLetterTarget, Queue, ResourceName
from redrive.model.topic import EVENTS, Subscription, Topic
from redrive.protocols.azure.arm import event_documents, event_filters, fields
from redrive.protocols.azure.arm.destinations import (
    Destination,
    EndpointResolver,
    accepted_container,
    accepted_destination,
    shown_destination,
)
from redrive.protocols.azure.arm.fields import Document
from redrive.protocols.azure.arm.namespace_documents import id_of, retention_ms
from redrive.protocols.azure.eventgrid import names, settings
from redrive.protocols.azure.eventgrid.dialect import PULL
from redrive.protocols.azure.namespaces.durations import duration_ms
from redrive.protocols.azure.namespaces.incoming import BYTES_MAX
from redrive.protocols.azure.namespaces.places import queue_name
from redrive.protocols.azure.namespaces.receiving import WAIT_SECONDS_DEFAULT
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import invalid

QUEUE: Final = "Queue"
PUSH: Final = "Push"
DELIVERIES_MAX: Final = 10
LOCK_SECONDS_MIN: Final = 60
LOCK_SECONDS_MAX: Final = 300
_TO_LIVE_MIN_MS: Final = 60_000
_PUSHED_TO: Final = ("WebHook", "EventHub")
_WITH_IDENTITY: Final = "deliveryWithResourceIdentity"
_DEAD_LETTER: Final = "deadLetterDestinationWithResourceIdentity"


@dataclass(frozen=True, slots=True)
class QueueMode:
    """How a subscription's events wait to be received.

    Attributes:
        lock_ms: How long a receiver holds an event.
        deliveries_max: After so many receipts an event is a dead letter, or dropped.
        to_live_ms: How long after its publication; None for as long as the topic keeps it.
    """

    lock_ms: int
    deliveries_max: int
    to_live_ms: int | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """An event subscription's properties that are accepted.

    Attributes:
        properties: What is kept.
        destination: Where events are pushed; None: they wait in a queue.
    """

    properties: Mapping[str, Any]
    destination: Destination | None


def accepted(given: Document, before: Document, topic: Topic, resolve: EndpointResolver) -> Accepted:
    """Check properties.

    Args:
        given: As sent.
        before: Those that they replace; empty for none.
        topic: Whose it is to be.
        resolve: What stands behind resource ids.

    Raises:
        AzureError: They are not acceptable.
    """
    kept = {name: value for name, value in fields.present(given).items() if name != "provisioningState"}
    schema = fields.one_of(kept, "eventDeliverySchema", (settings.CLOUD_EVENT_SCHEMA,))
    said = fields.part(kept, "deliveryConfiguration") or {}
    earlier = before.get("deliveryConfiguration") or {}
    mode = fields.one_of(said, "deliveryMode", (QUEUE, PUSH)) or QUEUE
    if earlier.get("deliveryMode", mode) != mode:
        raise invalid("The property 'deliveryMode' cannot be changed.")
    destination = None
    if mode == PUSH:
        push, destination = _push(fields.part(said, "push") or {}, earlier.get("push") or {}, topic, resolve)
        kept["deliveryConfiguration"] = {"deliveryMode": PUSH, "push": push}
    else:
        queue = _queue(fields.part(said, "queue") or {}, topic)
        kept["deliveryConfiguration"] = {"deliveryMode": QUEUE, "queue": queue}
    kept["eventDeliverySchema"] = schema or settings.CLOUD_EVENT_SCHEMA
    expires_at(kept)
    filter_text(kept)
    return Accepted(kept, destination)


def named(properties: Document) -> list[ArmId]:
    """The resources that a destination and a dead-letter destination name."""
    configuration = properties["deliveryConfiguration"]
    said = configuration.get("queue") or configuration.get("push")
    letters = (said.get(_DEAD_LETTER) or {}).get("deadLetterDestination") or {}
    parts = (destination_of(configuration.get("push") or {}), letters)
    return [found for found in map(event_documents.resource_of, parts) if found is not None]


def shown(subscription: Subscription, now: int) -> Mapping[str, Any]:
    """A subscription as the resource manager shows it."""
    resource = id_of(subscription.attributes)
    properties = event_documents.properties_of(subscription)
    push = properties["deliveryConfiguration"].get("push")
    if push is not None:
        shown_push = {**push, **_placed(push, shown_destination(destination_of(push)))}
        properties["deliveryConfiguration"] = {"deliveryMode": PUSH, "push": shown_push}
    return {
        "id": resource.text,
        "name": resource.name,
        "type": "/".join((resource.provider, *resource.parts[::2])),
        "properties": {**properties, "provisioningState": event_documents.state_of(subscription, now)},
    }


def engine_subscription(
    resource: ArmId, topic: Topic, wanted: Accepted, state: str = event_documents.SUCCEEDED, ends_at: int = 0
) -> Subscription:
    """The engine's subscription of an event subscription.

    Args:
        resource: Its ARM id.
        topic: The engine's topic.
        wanted: Its properties.
        state: Its provisioning state.
        ends_at: Until when it awaits an action, in that state (ms).
    """
    own = names.subscription_id(resource.name)
    properties, destination = wanted.properties, wanted.destination
    attributes = {
        settings.ID: resource.text,
        settings.PROPERTIES: orjson.dumps(properties).decode(),
        settings.STATE: state,
    }
    if state == event_documents.AWAITING:
        attributes[event_documents.ENDS_AT] = str(ends_at)
    return Subscription(
        id=own,
        topic=topic.name,
        queue_id=0,
        owner=topic.name.account,
        protocol=PULL if destination is None else destination.protocol,
        endpoint=queue_name(topic.name, own).key if destination is None else destination.endpoint,
        confirmed=state == event_documents.SUCCEEDED,
        filter_text=filter_text(properties),
        filter_language=EVENTS,
        dead_letter=names.dead_letter_queue(topic.name, own) if _keeps_letters(properties) else None,
        attributes=attributes,
        expires_at=expires_at(properties),
    )


def engine_queue(subscription: Subscription, topic: Topic) -> Queue:
    """The queue that a subscription in queue mode is received from, not made yet."""
    mode = _queue_mode(orjson.loads(subscription.attributes[settings.PROPERTIES]))
    kept_ms = retention_ms(topic)
    target = subscription.dead_letter
    return Queue(
        0,
        ResourceName.from_key(subscription.endpoint),
        lease_ms=mode.lock_ms,
        retention_ms=kept_ms if mode.to_live_ms is None else min(mode.to_live_ms, kept_ms),
        wait_ms=WAIT_SECONDS_DEFAULT * 1000,
        body_bytes_max=2 * BYTES_MAX,  # bytes in base64, and every text escaped
        dead_letter=None if target is None else DeadLetterTarget(target, mode.deliveries_max),
        drops_after=mode.deliveries_max,
        buries_expired=True,
        serves=subscription.key,
        attributes={settings.ID: subscription.attributes[settings.ID]},
    )


def filter_text(properties: Document) -> str | None:
    """The filter in the words of `redrive.model.filtering.read_event_filter`; None: everything passes.

    Raises:
        AzureError: It is none.
    """
    said = fields.part(properties, "filtersConfiguration") or {}
    types, filters = said.get("includedEventTypes"), said.get("filters")
    return event_filters.filter_text(
        event_filters.accepted_filter({"includedEventTypes": types, "advancedFilters": filters})
    )


def expires_at(properties: Document) -> int | None:
    """When the subscription ends (ms), if it does.

    Raises:
        AzureError: The moment is none.
    """
    text = fields.text(properties, "expirationTimeUtc")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise invalid(f"The property 'expirationTimeUtc' is '{text}', which is no moment.") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def destination_of(push: Document) -> Document:
    """Where events are pushed, as it is kept, wherever it stands."""
    found: Document | None = push.get("destination") or (push.get(_WITH_IDENTITY) or {}).get("destination")
    return found or {}


def _queue(said: Document, topic: Topic) -> dict[str, Any]:
    lock = fields.number(said, "receiveLockDurationInSeconds", LOCK_SECONDS_MIN, LOCK_SECONDS_MAX)
    return {**_limits(said, topic), "receiveLockDurationInSeconds": lock or LOCK_SECONDS_MIN}


def _push(
    said: Document, before: Document, topic: Topic, resolve: EndpointResolver
) -> tuple[dict[str, Any], Destination]:
    kept = _limits(said, topic)
    for outer in (kept, fields.part(kept, _WITH_IDENTITY) or {}):
        fields.part(outer, "destination")
    given = destination_of(kept)
    kind = fields.one_of(given, "endpointType", _PUSHED_TO)
    if kind is None:
        raise invalid(f"The destination's endpointType must be one of {', '.join(_PUSHED_TO)}.")
    destination = accepted_destination(given, destination_of(before), resolve)
    return {**kept, **_placed(kept, destination.document)}, destination


def _placed(push: Document, destination: Document) -> dict[str, Any]:
    """A destination where another stands: by itself, or within what has an identity besides."""
    if push.get("destination"):
        return {"destination": destination}
    return {_WITH_IDENTITY: {**push[_WITH_IDENTITY], "destination": destination}}


def _limits(said: Document, topic: Topic) -> dict[str, Any]:
    """What both modes have: how often, how long, and where to then."""
    kept = fields.present(said)
    deliveries = fields.number(kept, "maxDeliveryCount", 1, DELIVERIES_MAX)
    _check_to_live(fields.text(kept, "eventTimeToLive"), topic)
    dead_letter = fields.part(fields.part(kept, _DEAD_LETTER) or {}, "deadLetterDestination")
    if dead_letter is not None:
        container = accepted_container(dead_letter)
        kept[_DEAD_LETTER] = {**kept[_DEAD_LETTER], "deadLetterDestination": container}
    return {**kept, "maxDeliveryCount": deliveries or DELIVERIES_MAX}


def _check_to_live(text: str | None, topic: Topic) -> None:
    if text is None:
        return
    to_live_ms = duration_ms(text)
    if to_live_ms is None:
        raise invalid(f"The property 'eventTimeToLive' is '{text}', which is no duration of ISO 8601.")
    if not _TO_LIVE_MIN_MS <= to_live_ms <= retention_ms(topic):
        raise invalid(
            f"The property 'eventTimeToLive' is '{text}'; it must be PT1M at least and no longer than the topic's "
            "eventRetentionInDays."
        )


def _queue_mode(properties: Document) -> QueueMode:
    said = properties["deliveryConfiguration"]["queue"]
    to_live = said.get("eventTimeToLive")
    return QueueMode(
        lock_ms=said["receiveLockDurationInSeconds"] * 1000,
        deliveries_max=said["maxDeliveryCount"],
        to_live_ms=None if to_live is None else duration_ms(to_live),
    )


def _keeps_letters(properties: Document) -> bool:
    configuration = properties["deliveryConfiguration"]
    said = configuration.get("queue") or configuration.get("push")
    return bool((said.get(_DEAD_LETTER) or {}).get("deadLetterDestination"))
