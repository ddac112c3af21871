"""Event subscriptions of namespaces' topics: what is sent is checked and kept, and what the engine makes of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from redrive.model.queue import DeadLetterTarget, Queue, ResourceName
from redrive.model.topic import EVENTS, Subscription, Topic
from redrive.protocols.azure.arm import event_filters, fields
from redrive.protocols.azure.arm.destinations import accepted_container
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
DELIVERIES_MAX: Final = 10
LOCK_SECONDS_MIN: Final = 60
LOCK_SECONDS_MAX: Final = 300
_TO_LIVE_MIN_MS: Final = 60_000
_DEAD_LETTER: Final = "deadLetterDestinationWithResourceIdentity"


@dataclass(frozen=True, slots=True)
class QueueMode:
    """How a subscription's events wait to be received.

    Attributes:
        lock_ms: How long a receiver holds an event.
        deliveries_max: After so many receipts an event is a dead letter, or dropped.
        to_live_ms: How long after its publication; None for as long as the topic keeps it.
        dead_letters: Whether there is a container for dead letters.
    """

    lock_ms: int
    deliveries_max: int
    to_live_ms: int | None
    dead_letters: bool


def accepted(given: Document, topic: Topic) -> dict[str, Any]:
    """A subscription's properties as they are kept.

    Args:
        given: Its ARM properties.
        topic: Whose it is to be.

    Raises:
        AzureError: They are not acceptable.
    """
    kept = {name: value for name, value in fields.present(given).items() if name != "provisioningState"}
    schema = fields.one_of(kept, "eventDeliverySchema", (settings.CLOUD_EVENT_SCHEMA,))
    kept["deliveryConfiguration"] = _configuration(fields.part(kept, "deliveryConfiguration") or {}, topic)
    kept["eventDeliverySchema"] = schema or settings.CLOUD_EVENT_SCHEMA
    expires_at(kept)
    filter_text(kept)
    return kept


def shown(subscription: Subscription) -> Mapping[str, Any]:
    """A subscription as the resource manager shows it."""
    resource = id_of(subscription.attributes)
    properties = orjson.loads(subscription.attributes[settings.PROPERTIES])
    return {
        "id": resource.text,
        "name": resource.name,
        "type": "/".join((resource.provider, *resource.parts[::2])),
        "properties": {**properties, "provisioningState": subscription.attributes[settings.STATE]},
    }


def engine_subscription(resource: ArmId, topic: Topic, properties: Document) -> Subscription:
    """The engine's subscription of an event subscription in queue mode.

    Args:
        resource: Its ARM id.
        topic: The engine's topic.
        properties: As `accepted` gave them.
    """
    own = names.subscription_id(resource.name)
    return Subscription(
        id=own,
        topic=topic.name,
        queue_id=0,
        owner=topic.name.account,
        protocol=PULL,
        endpoint=queue_name(topic.name, own).key,
        filter_text=filter_text(properties),
        filter_language=EVENTS,
        dead_letter=names.dead_letter_queue(topic.name, own)
        if _queue_mode(properties).dead_letters
        else None,
        attributes={
            settings.ID: resource.text,
            settings.PROPERTIES: orjson.dumps(properties).decode(),
            settings.STATE: "Succeeded",
        },
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


def _configuration(said: Document, topic: Topic) -> dict[str, Any]:
    mode = fields.one_of(said, "deliveryMode", (QUEUE, "Push")) or QUEUE
    if mode != QUEUE:
        raise invalid("The deliveryMode Push is not offered; receive from a queue.", "FeatureNotSupported")
    queue = fields.present(fields.part(said, "queue") or {})
    lock = fields.number(queue, "receiveLockDurationInSeconds", LOCK_SECONDS_MIN, LOCK_SECONDS_MAX)
    deliveries = fields.number(queue, "maxDeliveryCount", 1, DELIVERIES_MAX)
    _check_to_live(fields.text(queue, "eventTimeToLive"), topic)
    dead_letter = fields.part(fields.part(queue, _DEAD_LETTER) or {}, "deadLetterDestination")
    if dead_letter is not None:
        queue[_DEAD_LETTER] = {
            **queue[_DEAD_LETTER],
            "deadLetterDestination": accepted_container(dead_letter),
        }
    return {
        "deliveryMode": QUEUE,
        "queue": {
            **queue,
            "receiveLockDurationInSeconds": lock or LOCK_SECONDS_MIN,
            "maxDeliveryCount": deliveries or DELIVERIES_MAX,
        },
    }


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
        dead_letters=bool((said.get(_DEAD_LETTER) or {}).get("deadLetterDestination")),
    )
