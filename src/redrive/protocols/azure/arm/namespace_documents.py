"""Namespaces' and their topics' documents: what is sent is checked, kept, and shown again with what is read-only."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.model.queue import DAY_MS
from redrive.model.topic import Topic
from redrive.protocols.azure.arm import fields
from redrive.protocols.azure.arm.documents import RESOURCE
from redrive.protocols.azure.arm.fields import Document
from redrive.protocols.azure.arm.network_rules import accepted_network
from redrive.protocols.azure.eventgrid import settings
from redrive.protocols.azure.namespaces.places import Namespace, path_of
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import conflict, invalid

RETENTION_DAYS_MAX: Final = 7
_UNITS_MAX: Final = 40
_READ_ONLY: Final = frozenset({"provisioningState", "privateEndpointConnections"})
_OUTSIDE: Final = frozenset({"id", "name", "type", "systemData", "properties"})
_SKU: Final = {"name": "Standard", "capacity": 1}


def accepted(namespace: Namespace, document: Document) -> Namespace:
    """The namespace that a PUT asks for, in place of one of the same name or of none.

    Raises:
        AzureError: It is not acceptable.
    """
    location = fields.text(document, "location")
    if not location:
        raise invalid("The location property is required for this definition.", "LocationRequired")
    if RESOURCE in namespace.attributes:
        _check_location(namespace, location)
    outside = {"sku": _SKU, **_outside(document), "location": location}
    return _with(namespace, outside, _properties(fields.part(document, "properties") or {}))


def patched(namespace: Namespace, document: Document) -> Namespace:
    """The namespace as a PATCH leaves it.

    Raises:
        AzureError: It is not acceptable.
    """
    change = fields.part(document, "properties") or {}
    properties = fields.merged(orjson.loads(namespace.attributes[settings.PROPERTIES]), change)
    resource = orjson.loads(namespace.attributes[RESOURCE])
    outside = {**resource, **_outside(document), "location": resource["location"]}
    return _with(namespace, outside, _properties(properties))


def shown(namespace: Namespace, base_url: str) -> Mapping[str, Any]:
    """A namespace as the resource manager shows it.

    Its host name is what clients want behind `https://`, or `http://` where the server has no certificate: the
    server's own, with the path that its namespaces have there.
    """
    resource = id_of(namespace.attributes)
    properties = orjson.loads(namespace.attributes[settings.PROPERTIES])
    hostname = f"{base_url.partition('://')[2]}{path_of(resource)}"
    topics = {**properties.get("topicsConfiguration", {}), "hostname": hostname}
    return {
        **_named(resource),
        **orjson.loads(namespace.attributes[RESOURCE]),
        "properties": {
            **properties,
            "provisioningState": "Succeeded",
            "topicsConfiguration": topics,
            "privateEndpointConnections": [],
        },
    }


def _check_location(namespace: Namespace, location: str) -> None:
    stands: str = orjson.loads(namespace.attributes[RESOURCE])["location"]
    if stands.replace(" ", "").lower() != location.replace(" ", "").lower():
        raise conflict(
            f"The namespace already exists in location '{stands}' and cannot be moved to '{location}'.",
            "InvalidResourceLocation",
        )


def _outside(document: Document) -> dict[str, Any]:
    """What stands beside `properties`."""
    fields.part(document, "tags")
    fields.part(document, "identity")
    sku = fields.part(document, "sku")
    kept = {name: value for name, value in fields.present(document).items() if name not in _OUTSIDE}
    if sku is not None:
        name = fields.one_of(sku, "name", ("Standard",)) or "Standard"
        kept["sku"] = {"name": name, "capacity": fields.number(sku, "capacity", 1, _UNITS_MAX) or 1}
    return kept


def _properties(given: Document) -> dict[str, Any]:
    kept = {name: value for name, value in fields.present(given).items() if name not in _READ_ONLY}
    spaces = fields.part(kept, "topicSpacesConfiguration") or {}
    if fields.one_of(spaces, "state", ("Enabled", "Disabled")) == "Enabled":
        raise invalid("Topic spaces, which are MQTT's, are not offered.", "FeatureNotSupported")
    fields.part(kept, "topicsConfiguration")
    return {
        **kept,
        **accepted_network(kept),
        "isZoneRedundant": fields.flag(kept, "isZoneRedundant") or False,
    }


def _with(namespace: Namespace, outside: Document, properties: Document) -> Namespace:
    written = {
        RESOURCE: orjson.dumps(outside).decode(),
        settings.PROPERTIES: orjson.dumps(properties).decode(),
    }
    return replace(namespace, attributes={**namespace.attributes, **written})


# ---- topics ------------------------------------------------------------------------------------------------------


def accepted_topic(topic: Topic, document: Document) -> Topic:
    """The topic that a PUT asks for.

    Raises:
        AzureError: It is not acceptable.
    """
    return _topic_with(topic, fields.part(document, "properties") or {})


def patched_topic(topic: Topic, document: Document) -> Topic:
    """The topic as a PATCH leaves it.

    Raises:
        AzureError: It is not acceptable.
    """
    change = fields.part(document, "properties") or {}
    return _topic_with(topic, fields.merged(orjson.loads(topic.attributes[settings.PROPERTIES]), change))


def shown_topic(topic: Topic) -> Mapping[str, Any]:
    """A topic as the resource manager shows it."""
    properties = orjson.loads(topic.attributes[settings.PROPERTIES])
    return {
        **_named(id_of(topic.attributes)),
        "properties": {**properties, "provisioningState": "Succeeded"},
    }


def retention_ms(topic: Topic) -> int:
    """How long a topic's events are kept for those who have not received them."""
    days: int = orjson.loads(topic.attributes[settings.PROPERTIES])["eventRetentionInDays"]
    return days * DAY_MS


def _topic_with(topic: Topic, given: Document) -> Topic:
    kept = {name: value for name, value in fields.present(given).items() if name not in _READ_ONLY}
    schema = fields.one_of(kept, "inputSchema", (settings.CLOUD_EVENT_SCHEMA,))
    publisher = fields.one_of(kept, "publisherType", ("Custom",))
    days = fields.number(kept, "eventRetentionInDays", 1, RETENTION_DAYS_MAX)
    properties = {
        **kept,
        "inputSchema": schema or settings.CLOUD_EVENT_SCHEMA,
        "publisherType": publisher or "Custom",
        "eventRetentionInDays": days or RETENTION_DAYS_MAX,
    }
    written = {settings.PROPERTIES: orjson.dumps(properties).decode()}
    return replace(topic, attributes={**topic.attributes, **written})


def id_of(attributes: Mapping[str, str]) -> ArmId:
    """The ARM id that is kept in an engine document."""
    resource = ArmId.parse(attributes[settings.ID])
    if resource is None:
        raise ValueError(f"no resource id: {attributes[settings.ID]}")
    return resource


def _named(resource: ArmId) -> dict[str, str]:
    kind = "/".join((resource.provider, *resource.parts[::2]))
    return {"id": resource.text, "name": resource.name, "type": kind}
