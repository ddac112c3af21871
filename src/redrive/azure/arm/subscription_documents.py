"""Event subscriptions as they are kept and shown, whatever they are subscribed at."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from redrive.azure.arm import schema
from redrive.azure.arm.destinations import DestinationForm, shown_destination
from redrive.azure.arm.schema import Document
from redrive.azure.arm.specs import retention_ms
from redrive.azure.eventgrid import names, settings
from redrive.azure.eventgrid.dialect import PULL
from redrive.azure.eventgrid.documents import queue_name
from redrive.azure.eventgrid.notation import duration_ms
from redrive.azure.namespaces.incoming import BYTES_MAX
from redrive.azure.namespaces.settling import WAIT_SECONDS_DEFAULT
from redrive.azure.wire.answers import invalid
from redrive.azure.wire.arm_id import ArmId
from redrive.model.names import ResourceName
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.model.topic import EVENTS, Subscription, Topic

SUCCEEDED: Final = "Succeeded"
AWAITING: Final = "AwaitingManualAction"
FAILED: Final = "Failed"
ENDS_AT: Final = "validation_ends_at"  # an attribute: until when an event subscription awaits an action (ms)
CONFIGURATION: Final = "deliveryConfiguration"  # namespaces' topics have it, and no others
_NAME: Final = re.compile(r"[A-Za-z0-9-]{3,64}")

Path = tuple[str, ...]

# A part stands by itself, or within one that has an identity besides.
DESTINATIONS: Final[tuple[Path, ...]] = (("destination",), ("deliveryWithResourceIdentity", "destination"))
DEAD_LETTERS: Final[tuple[Path, ...]] = (
    ("deadLetterDestination",),
    ("deadLetterWithResourceIdentity", "deadLetterDestination"),
)
IN_PUSH: Final[Path] = (CONFIGURATION, "push")
IN_QUEUE: Final[Path] = (CONFIGURATION, "queue")
IN_DEAD_LETTER: Final[Path] = ("deadLetterDestinationWithResourceIdentity", "deadLetterDestination")
_NAMESPACE_DESTINATIONS: Final = tuple((*IN_PUSH, *path) for path in DESTINATIONS)
_NAMESPACE_DEAD_LETTERS: Final = ((*IN_PUSH, *IN_DEAD_LETTER), (*IN_QUEUE, *IN_DEAD_LETTER))


@dataclass(frozen=True, slots=True)
class AcceptedSubscription:
    """An event subscription's properties that are accepted."""

    properties: Mapping[str, Any]  # The properties as they are kept
    # The place that events are pushed to; None: they wait in a queue to be received.
    destination: DestinationForm | None
    # The filter in the words of `redrive.model.filtering.read_event_filter`; None: everything passes.
    filter_text: str | None
    expires_at: int | None  # The moment when the subscription ends (ms), if it does


def check_name(name: str) -> None:
    """Check an event subscription's name; raises AzureError if the name is not one that event subscriptions can have."""
    if not _NAME.fullmatch(name):
        raise invalid(f"The event subscription's name '{name}' must be 3 to 64 letters, digits and hyphens.")


def expires_at(properties: Document, now: int) -> int | None:
    """The moment when an event subscription ends (ms), if it does.

    Raises:
        AzureError: The `expirationTimeUtc` is not a moment, or one before `now`.
    """
    text = schema.text(properties, "expirationTimeUtc")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise invalid(f"The expirationTimeUtc '{text}' is not a time in ISO 8601.") from None
    ends_at = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    if ends_at <= now:
        raise invalid(f"The expirationTimeUtc '{text}' is in the past.")
    return ends_at


def is_over(subscription: Subscription, now: int) -> bool:
    """True if an event subscription has expired, though it has not been swept away yet."""
    return subscription.expires_at is not None and subscription.expires_at <= now


# ---- parts, wherever they stand ----------------------------------------------------------------------------------


def part_at(properties: Document, paths: tuple[Path, ...]) -> tuple[Path, Document]:
    """The path and the value of the first part that stands at one of some paths; both are empty if none does.

    Raises:
        AzureError: Something on the way is not an object.
    """
    for path in paths:
        part: Document | None = properties
        for name in path:
            part = None if part is None else schema.part(part, name)
        if part is not None:
            return path, part
    return (), {}


def with_part(properties: Document, path: Path, value: Any) -> dict[str, Any]:
    """Properties with another part at a path."""
    name, *rest = path
    return {**properties, name: with_part(properties[name], tuple(rest), value) if rest else value}


def destination_of(properties: Document) -> Document:
    """The destination of kept properties; empty where events wait in a queue."""
    return part_at(properties, _destinations(properties))[1]


def referenced_resources(properties: Document) -> list[ArmId]:
    """The resources that a destination and a dead-letter destination name."""
    parts = (destination_of(properties), part_at(properties, _dead_letters(properties))[1])
    return [resource for resource in map(resource_of, parts) if resource is not None]


def resource_of(destination: Document) -> ArmId | None:
    """The resource that a destination names; a webhook's field of that name means nothing."""
    text = (destination.get("properties") or {}).get("resourceId")
    return ArmId.parse(text) if isinstance(text, str) else None


def _destinations(properties: Document) -> tuple[Path, ...]:
    return _NAMESPACE_DESTINATIONS if CONFIGURATION in properties else DESTINATIONS


def _dead_letters(properties: Document) -> tuple[Path, ...]:
    return _NAMESPACE_DEAD_LETTERS if CONFIGURATION in properties else DEAD_LETTERS


# ---- kept and shown ----------------------------------------------------------------------------------------------


def engine_subscription(
    topic: Topic, resource_id: str, content: AcceptedSubscription, state: str = SUCCEEDED, ends_at: int = 0
) -> Subscription:
    """The engine's subscription of an event subscription; its queue's number is given when it is written.

    `state` is the provisioning state, which lasts until `ends_at` (ms) where an action is awaited.
    """
    subscription_id, destination = names.subscription_id(resource_id.rpartition("/")[2]), content.destination
    dead_letter_path, _ = part_at(content.properties, _dead_letters(content.properties))
    attributes = {
        settings.ID: resource_id,
        settings.PROPERTIES: schema.stored_text(content.properties),
        settings.STATE: state,
    }
    if state == AWAITING:
        attributes[ENDS_AT] = str(ends_at)
    return Subscription(
        id=subscription_id,
        topic=topic.name,
        queue_id=0,
        owner=topic.name.account,
        protocol=PULL if destination is None else destination.protocol,
        endpoint=queue_name(topic.name, subscription_id).key if destination is None else destination.endpoint,
        confirmed=state == SUCCEEDED,
        filter_text=content.filter_text,
        filter_language=EVENTS,
        dead_letter=names.dead_letter_queue(topic.name, subscription_id) if dead_letter_path else None,
        attributes=attributes,
        expires_at=content.expires_at,
    )


def engine_queue(subscription: Subscription, topic: Topic) -> Queue:
    """The queue that an event subscription in queue mode is received from, not made yet."""
    mode = properties_of(subscription)[CONFIGURATION]["queue"]
    kept_ms = retention_ms(topic)
    to_live_ms = duration_ms(mode.get("eventTimeToLive") or "") or kept_ms
    deliveries_max, target = mode["maxDeliveryCount"], subscription.dead_letter
    return Queue(
        0,
        ResourceName.from_key(subscription.endpoint),
        lease_ms=mode["receiveLockDurationInSeconds"] * 1000,
        retention_ms=min(to_live_ms, kept_ms),
        wait_ms=WAIT_SECONDS_DEFAULT * 1000,
        body_bytes_max=2 * BYTES_MAX,  # bytes in base64, and every text escaped
        dead_letter=None if target is None else DeadLetterTarget(target, deliveries_max),
        drops_after=deliveries_max,
        buries_expired=True,
        serves=subscription.key,
        attributes={settings.ID: subscription.attributes[settings.ID]},
    )


def properties_of(subscription: Subscription) -> dict[str, Any]:
    """The properties as they are kept, secrets included."""
    read: dict[str, Any] = orjson.loads(subscription.attributes[settings.PROPERTIES])
    return read


def state_of(subscription: Subscription, now: int) -> str:
    """The provisioning state; an action that was awaited for too long has failed."""
    state = subscription.attributes[settings.STATE]
    has_timed_out = state == AWAITING and now >= int(subscription.attributes[ENDS_AT])
    return FAILED if has_timed_out else state


def shown_properties(subscription: Subscription) -> dict[str, Any]:
    """The properties without what is secret in them."""
    properties = properties_of(subscription)
    path, destination = part_at(properties, _destinations(properties))
    return with_part(properties, path, shown_destination(destination)) if path else properties
