"""Topics' and domains' documents: what is sent is checked, kept, and shown again with what is read-only.

What a client sends beyond what is known here is kept and shown too: older and newer versions of the interface differ
in such fields (`sku`, `kind`, `extendedLocation`), and clients compare what they sent with what they read.
"""

import re
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from redrive.model.topic import Topic
from redrive.protocols.azure.arm import fields
from redrive.protocols.azure.arm.fields import Document
from redrive.protocols.azure.arm.network_rules import accepted_network
from redrive.protocols.azure.eventgrid import names, settings
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import AzureError, conflict, invalid

RESOURCE: Final = "resource"  # of an engine topic's attributes: JSON of what stands beside `properties`

INPUT_SCHEMAS: Final = (
    settings.EVENT_GRID_SCHEMA,
    settings.CUSTOM_EVENT_SCHEMA,
    settings.CLOUD_EVENT_SCHEMA,
)
_NAME: Final = re.compile(r"[A-Za-z0-9-]{3,50}")
_RESERVED: Final = ("microsoft", "eventgrid", "system")
_READ_ONLY: Final = frozenset(
    {"provisioningState", "endpoint", "metricResourceId", "privateEndpointConnections"}
)
_OUTSIDE: Final = frozenset({"id", "name", "type", "systemData", "properties"})
_TAGS_MAX: Final = 50
_MAPPED: Final = ("id", "topic", "eventTime", "eventType", "subject", "dataVersion")


def check_name(name: str) -> None:
    """A topic's or a domain's: https://learn.microsoft.com/azure/event-grid/troubleshoot-errors.

    Raises:
        AzureError: It is none.
    """
    if not _NAME.fullmatch(name) or name.lower().startswith(_RESERVED):
        raise invalid(
            f"The name '{name}' must be 3 to 50 letters, digits and hyphens, and begin with none of "
            "Microsoft, EventGrid and System."
        )


def accepted(topic: Topic, document: Document) -> Topic:
    """The topic that a PUT asks for, in place of one of the same name or of none.

    Args:
        topic: What stands, or a new one without attributes save its id.
        document: The request's.

    Raises:
        AzureError: It is not acceptable.
    """
    location = fields.text(document, "location")
    if not location:
        raise invalid("The location property is required for this definition.", "LocationRequired")
    properties = _properties(fields.part(document, "properties") or {})
    if settings.PROPERTIES in topic.attributes:
        _check_same(topic, location, properties)
    return _with(topic, _outside(document), properties)


def patched(topic: Topic, document: Document) -> Topic:
    """The topic as a PATCH leaves it: tags and identity are replaced, properties changed one by one.

    Raises:
        AzureError: It is not acceptable.
    """
    change = fields.part(document, "properties") or {}
    before = orjson.loads(topic.attributes[settings.PROPERTIES])
    properties = _properties(fields.merged(before, change))
    if properties["inputSchema"] != before["inputSchema"]:
        raise _fixed("inputSchema", before["inputSchema"])
    resource = orjson.loads(topic.attributes[RESOURCE])
    return _with(topic, {**resource, **_outside(document, resource.get("location", ""))}, properties)


def shown(topic: Topic, base_url: str) -> Mapping[str, Any]:
    """A topic or a domain as the resource manager shows it."""
    resource = ArmId.parse(topic.attributes[settings.ID])
    if resource is None:
        raise ValueError(f"no resource id: {topic.attributes[settings.ID]}")
    properties = orjson.loads(topic.attributes[settings.PROPERTIES])
    return {
        "id": resource.text,
        "name": resource.name,
        "type": "/".join((resource.provider, *resource.parts[::2])),
        **orjson.loads(topic.attributes[RESOURCE]),
        "properties": {
            **properties,
            "provisioningState": "Succeeded",
            "endpoint": f"{base_url}{names.publishing_path(resource)}",
            "metricResourceId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{resource.key}/{topic.id}")),
            "privateEndpointConnections": [],
        },
    }


def _outside(document: Document, location: str = "") -> dict[str, Any]:
    """What stands beside `properties`."""
    tags = fields.part(document, "tags")
    if tags is not None and (len(tags) > _TAGS_MAX or not all(isinstance(one, str) for one in tags.values())):
        raise invalid(f"The property 'tags' must be at most {_TAGS_MAX} texts by name.")
    fields.part(document, "identity")
    kept = {name: value for name, value in fields.present(document).items() if name not in _OUTSIDE}
    return kept | ({"location": location} if location else {})


def _properties(given: Document) -> dict[str, Any]:
    """Properties as they are kept: checked, with the defaults of what is missing, without what is read-only."""
    kept = {name: value for name, value in fields.present(given).items() if name not in _READ_ONLY}
    schema = fields.one_of(kept, "inputSchema", INPUT_SCHEMAS) or settings.EVENT_GRID_SCHEMA
    _check_mapping(kept, schema)
    fields.one_of(kept, "dataResidencyBoundary", ("WithinGeopair", "WithinRegion"))
    for name in ("autoCreateTopicWithFirstSubscription", "autoDeleteTopicWithLastSubscription"):
        fields.flag(kept, name)
    _check_event_types(fields.part(kept, "eventTypeInfo") or {})
    return {
        **kept,
        "inputSchema": schema,
        **accepted_network(kept),
        "disableLocalAuth": fields.flag(kept, "disableLocalAuth") or False,
    }


def _check_mapping(kept: Document, schema: str) -> None:
    mapping = fields.part(kept, "inputSchemaMapping")
    if mapping is None:
        return
    if schema != settings.CUSTOM_EVENT_SCHEMA:
        raise invalid(
            f"An inputSchemaMapping goes with the input schema {settings.CUSTOM_EVENT_SCHEMA} alone."
        )
    fields.one_of(mapping, "inputSchemaMappingType", ("Json",))
    mapped = fields.part(mapping, "properties") or {}
    for name in mapped:
        if name not in _MAPPED:
            raise invalid(f"The inputSchemaMapping has '{name}', which is none of {', '.join(_MAPPED)}.")
        one = fields.part(mapped, name) or {}
        fields.text(one, "sourceField")
        fields.text(one, "defaultValue")


def _check_event_types(info: Document) -> None:
    fields.one_of(info, "kind", ("Inline",))
    inline = fields.part(info, "inlineEventTypes") or {}
    for name in inline:
        said = fields.part(inline, name) or {}
        for text in ("displayName", "description", "dataSchemaUrl", "documentationUrl"):
            fields.text(said, text)


def _check_same(topic: Topic, location: str, properties: Document) -> None:
    before = orjson.loads(topic.attributes[settings.PROPERTIES])
    stands = orjson.loads(topic.attributes[RESOURCE]).get("location", "")
    if properties["inputSchema"] != before["inputSchema"]:
        raise _fixed("inputSchema", before["inputSchema"])
    if stands.replace(" ", "").lower() != location.replace(" ", "").lower():
        name = topic.attributes[settings.ID].rpartition("/")[2]
        raise conflict(
            f"The resource '{name}' already exists in location '{stands}'. A resource with the same name cannot be "
            f"created in location '{location}'. Please select a new resource name.",
            "InvalidResourceLocation",
        )


def _fixed(name: str, value: str) -> AzureError:
    return invalid(f"The property '{name}' is '{value}' and cannot be changed.")


def _with(topic: Topic, outside: Document, properties: Document) -> Topic:
    written = {
        RESOURCE: orjson.dumps(outside).decode(),
        settings.PROPERTIES: orjson.dumps(properties).decode(),
    }
    return replace(topic, attributes={**topic.attributes, **written})
