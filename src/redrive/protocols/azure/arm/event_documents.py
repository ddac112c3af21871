"""Event subscriptions' documents: what is sent is checked, kept, and shown again without secrets."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from redrive.model.topic import EVENTS, Subscription, Topic
from redrive.protocols.azure.arm import fields
from redrive.protocols.azure.arm.destinations import (
    Destination,
    EndpointResolver,
    accepted_container,
    accepted_destination,
    shown_destination,
)
from redrive.protocols.azure.arm.event_filters import accepted_filter, filter_text
from redrive.protocols.azure.arm.fields import Document
from redrive.protocols.azure.eventgrid import names, settings
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import AzureError, invalid

SUCCEEDED: Final = "Succeeded"
AWAITING: Final = "AwaitingManualAction"
FAILED: Final = "Failed"
ENDS_AT: Final = (
    "validation_ends_at"  # of an event subscription's attributes: until when it awaits an action (ms)
)

TYPE: Final = "Microsoft.EventGrid/eventSubscriptions"
_NAME: Final = re.compile(r"[A-Za-z0-9-]{3,64}")
_DELIVERED: Final = (settings.EVENT_GRID_SCHEMA, settings.CUSTOM_INPUT_SCHEMA, settings.CLOUD_EVENT_SCHEMA)
_SCHEMAS: Final[Mapping[str, tuple[str, ...]]] = {
    settings.EVENT_GRID_SCHEMA: (settings.EVENT_GRID_SCHEMA, settings.CLOUD_EVENT_SCHEMA),
    settings.CLOUD_EVENT_SCHEMA: (settings.CLOUD_EVENT_SCHEMA,),
    settings.CUSTOM_EVENT_SCHEMA: (
        settings.CUSTOM_INPUT_SCHEMA,
        settings.EVENT_GRID_SCHEMA,
        settings.CLOUD_EVENT_SCHEMA,
    ),
}
"""What a topic's input can be delivered as; the first is what it is delivered as where nobody says."""
_LABELS_MAX: Final = 100
_READ_ONLY: Final = frozenset({"topic", "provisioningState"})
# A part by itself, or within one that has an identity besides.
_DESTINATIONS: Final = ("destination", "deliveryWithResourceIdentity")
_DEAD_LETTERS: Final = ("deadLetterDestination", "deadLetterWithResourceIdentity")


@dataclass(frozen=True, slots=True)
class Accepted:
    """An event subscription's properties that are accepted.

    Attributes:
        properties: What is kept.
        destination: Where deliveries go.
        expires_at: When it ends (ms), if it does.
    """

    properties: Mapping[str, Any]
    destination: Destination
    expires_at: int | None


def check_name(name: str) -> None:
    """An event subscription's.

    Raises:
        AzureError: It is none.
    """
    if not _NAME.fullmatch(name):
        raise invalid(f"The event subscription's name '{name}' must be 3 to 64 letters, digits and hyphens.")


def accepted(
    given: Document, before: Document, topic: Topic, resolve: EndpointResolver, now: int
) -> Accepted:
    """Check properties.

    Args:
        given: As sent.
        before: Those that they replace; empty for none.
        topic: Whose events.
        resolve: What stands behind resource ids.
        now: ms.

    Raises:
        AzureError: They are not acceptable.
    """
    said = {name: value for name, value in fields.present(given).items() if name not in _READ_ONLY}
    earlier, _ = _inner(before, _DESTINATIONS)
    wanted, wrapped = _inner(said, _DESTINATIONS)
    if wanted is None:
        raise invalid("The property 'destination' is missing.")
    destination = accepted_destination(wanted, earlier or {}, resolve)
    container, container_wrapped = _inner(said, _DEAD_LETTERS)
    if container is not None:
        said |= _wrapped(said, _DEAD_LETTERS, accepted_container(container), within=container_wrapped)
    said |= _wrapped(said, _DESTINATIONS, destination.document, within=wrapped)
    said["filter"] = accepted_filter(fields.part(said, "filter"))
    said["eventDeliverySchema"] = _schema(said, topic)
    said["retryPolicy"] = _retry_policy(fields.part(said, "retryPolicy") or {})
    said["labels"] = fields.texts(said, "labels") or []
    if len(said["labels"]) > _LABELS_MAX:
        raise invalid(f"There may be {_LABELS_MAX} labels.")
    return Accepted(said, destination, _expires_at(said, now))


def patched(before: Document, change: Document) -> dict[str, Any]:
    """Properties as a PATCH leaves them: each that it names is replaced as a whole."""
    said = {name: value for name, value in fields.present(change).items() if name not in _READ_ONLY}
    other = [pair for pair in (_DESTINATIONS, _DEAD_LETTERS) if any(name in said for name in pair)]
    gone = {name for pair in other for name in pair}
    return {name: value for name, value in before.items() if name not in gone} | said


def subscription(topic: Topic, resource_id: str, wanted: Accepted, state: str, ends_at: int) -> Subscription:
    """The engine's document of an event subscription; its queue's number is given when it is written.

    Args:
        topic: Whose events.
        resource_id: The event subscription's ARM id.
        wanted: Its properties.
        state: Its provisioning state.
        ends_at: Until when it awaits an action, in that state (ms).
    """
    name = names.subscription_id(resource_id.rpartition("/")[2])
    buries = _inner(wanted.properties, _DEAD_LETTERS)[0] is not None
    attributes = {
        settings.ID: resource_id,
        settings.PROPERTIES: orjson.dumps(wanted.properties).decode(),
        settings.STATE: state,
    }
    if state == AWAITING:
        attributes[ENDS_AT] = str(ends_at)
    return Subscription(
        id=name,
        topic=topic.name,
        queue_id=0,
        owner=topic.name.account,
        protocol=wanted.destination.protocol,
        endpoint=wanted.destination.endpoint,
        confirmed=state == SUCCEEDED,
        filter_text=filter_text(wanted.properties["filter"]),
        filter_language=EVENTS,
        dead_letter=names.dead_letter_queue(topic.name, name) if buries else None,
        attributes=attributes,
        expires_at=wanted.expires_at,
    )


def properties_of(kept: Subscription) -> dict[str, Any]:
    """The properties as they are kept, secrets included."""
    read: dict[str, Any] = orjson.loads(kept.attributes[settings.PROPERTIES])
    return read


def destination_of(properties: Document) -> Document:
    """The destination, wherever it stands."""
    return _inner(properties, _DESTINATIONS)[0] or {}


def named(properties: Document) -> list[ArmId]:
    """The resources that a destination and a dead-letter destination name."""
    parts = [_inner(properties, where)[0] or {} for where in (_DESTINATIONS, _DEAD_LETTERS)]
    return [found for found in map(resource_of, parts) if found is not None]


def resource_of(destination: Document) -> ArmId | None:
    """The resource that a destination names; what a webhook has under that name means nothing."""
    text = (destination.get("properties") or {}).get("resourceId")
    return ArmId.parse(text) if isinstance(text, str) else None


def state_of(kept: Subscription, now: int) -> str:
    """The provisioning state; who was waited for too long has failed."""
    state = kept.attributes[settings.STATE]
    ended = state == AWAITING and now >= int(kept.attributes[ENDS_AT])
    return FAILED if ended else state


def shown(kept: Subscription, topic_id: str, now: int, resource_id: str, kind: str = TYPE) -> dict[str, Any]:
    """An event subscription as the resource manager shows it.

    Args:
        kept: The subscription.
        topic_id: The ARM id of what it is subscribed at.
        now: ms.
        resource_id: Its own, in the form it was asked for.
        kind: Its type, in that form.
    """
    properties = properties_of(kept)
    destination, within = _inner(properties, _DESTINATIONS)
    if destination is not None:
        properties |= _wrapped(properties, _DESTINATIONS, shown_destination(destination), within=within)
    return {
        "id": resource_id,
        "name": resource_id.rpartition("/")[2],
        "type": kind,
        "properties": {"topic": topic_id, "provisioningState": state_of(kept, now), **properties},
    }


# ---- parts -------------------------------------------------------------------------------------------------------


def _inner(properties: Document, where: tuple[str, str]) -> tuple[Document | None, bool]:
    """A part, and whether it stands within another."""
    name, with_identity = where
    found = fields.part(properties, name)
    if found is not None:
        return found, False
    outer = fields.part(properties, with_identity)
    return (None, False) if outer is None else (fields.part(outer, name), True)


def _wrapped(properties: Document, where: tuple[str, str], value: Any, *, within: bool) -> dict[str, Any]:
    name, with_identity = where
    return {with_identity: {**properties[with_identity], name: value}} if within else {name: value}


def _schema(said: Document, topic: Topic) -> str:
    incoming = settings.topic_settings(topic).input_schema
    possible = _SCHEMAS[incoming]
    schema = fields.one_of(said, "eventDeliverySchema", _DELIVERED) or possible[0]
    if schema not in possible:
        raise invalid(
            f"The event delivery schema '{schema}' is not supported for a topic whose input schema is '{incoming}'; "
            f"it must be one of {', '.join(possible)}."
        )
    return schema


def _retry_policy(given: Document) -> dict[str, int]:
    attempts = fields.number(given, "maxDeliveryAttempts", 1, settings.ATTEMPTS_MAX)
    minutes = fields.number(given, "eventTimeToLiveInMinutes", 1, settings.MINUTES_TO_LIVE_MAX)
    return {
        "maxDeliveryAttempts": attempts or settings.ATTEMPTS_MAX,
        "eventTimeToLiveInMinutes": minutes or settings.MINUTES_TO_LIVE_MAX,
    }


def _expires_at(said: Document, now: int) -> int | None:
    text = fields.text(said, "expirationTimeUtc")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _no_moment(text) from None
    instant = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    expires_at = int(instant.timestamp() * 1000)
    if expires_at <= now:
        raise invalid(f"The expirationTimeUtc '{text}' is over.")
    return expires_at


def _no_moment(text: str) -> AzureError:
    return invalid(f"The expirationTimeUtc '{text}' is no moment as ISO 8601 writes it.")
