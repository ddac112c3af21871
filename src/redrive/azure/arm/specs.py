"""The types of resources that Event Grid has: a table of what their documents may say and how they are shown."""

import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from redrive.azure.arm import schema
from redrive.azure.arm.destinations import STORAGE_ACCOUNT
from redrive.azure.arm.resource import (
    LOCATION,
    READ_ONLY_BESIDE,
    ArmResourceSpec,
    Record,
    id_of,
    properties_of,
)
from redrive.azure.arm.schema import (
    NETWORK,
    Document,
    DocumentSchema,
    SchemaField,
    each,
    nested,
    whole,
    words,
)
from redrive.azure.eventgrid import names
from redrive.azure.eventgrid.documents import path_of
from redrive.azure.eventgrid.settings import CLOUD_EVENT_SCHEMA, CUSTOM_EVENT_SCHEMA, EVENT_GRID_SCHEMA
from redrive.azure.wire.answers import invalid
from redrive.azure.wire.arm_id import ArmId
from redrive.model.queue import DAY_MS
from redrive.model.topic import Topic

INPUT_SCHEMAS: Final = (EVENT_GRID_SCHEMA, CUSTOM_EVENT_SCHEMA, CLOUD_EVENT_SCHEMA)
RETENTION_DAYS_MAX: Final = 7
STORAGE_ACCOUNTS: Final = "Microsoft.Storage.StorageAccounts"
_TAGS_MAX: Final = 50
_UNITS_MAX: Final = 40
_MAPPED: Final = ("id", "topic", "eventTime", "eventType", "subject", "dataVersion")
_STATE: Final = {"provisioningState": "Succeeded"}


def _texts(*fields: str) -> DocumentSchema:
    return DocumentSchema(tuple(SchemaField(name, schema.text) for name in fields))


# ---- topics and domains ------------------------------------------------------------------------------------------


def _read_mapping(document: Document, name: str) -> Document | None:
    """A mapping of custom events, all of whose fields are known; raises AzureError."""
    for field in schema.part(document, name) or ():
        if field not in _MAPPED:
            raise invalid(f"The inputSchemaMapping has '{field}', which is not one of {', '.join(_MAPPED)}.")
    mapping: Document | None = each(_texts("sourceField", "defaultValue"))(document, name)
    return mapping


_MAPPING: Final = DocumentSchema(
    (SchemaField("inputSchemaMappingType", words("Json")), SchemaField("properties", _read_mapping))
)
_EVENT_TYPE: Final = _texts("displayName", "description", "dataSchemaUrl", "documentationUrl")
_EVENT_TYPES: Final = DocumentSchema(
    (SchemaField("kind", words("Inline")), SchemaField("inlineEventTypes", each(_EVENT_TYPE)))
)


def _tags(document: Document, name: str) -> Document | None:
    """The tags, at most so many and all texts; raises AzureError."""
    tags = schema.part(document, name)
    if tags is not None and (len(tags) > _TAGS_MAX or not all(isinstance(tag, str) for tag in tags.values())):
        raise invalid(
            f"The property '{name}' must have at most {_TAGS_MAX} names with strings as their values."
        )
    return tags


def _input_mapping(document: Document, name: str) -> Document | None:
    if schema.part(document, name) is not None and document["inputSchema"] != CUSTOM_EVENT_SCHEMA:
        raise invalid(f"An {name} is allowed with the input schema {CUSTOM_EVENT_SCHEMA} only.")
    mapping: Document | None = nested(_MAPPING)(document, name)
    return mapping


def _show_publisher(record: Record, properties: Mapping[str, Any], base_url: str) -> Mapping[str, Any]:
    """The properties of a topic or a domain, with those that the server sets: its URL and state."""
    resource = id_of(record.attributes)
    number = record.id if isinstance(record, Topic) else 0
    return {
        **properties,
        **_STATE,
        "endpoint": f"{base_url}{names.publishing_path(resource)}",
        "metricResourceId": _metric_id(f"{resource.key}/{number}"),
        "privateEndpointConnections": [],
    }


def _publishers(kind: str) -> ArmResourceSpec:
    """The type of topics, or of domains: the interface is the same."""
    return ArmResourceSpec(
        types=(kind,),
        properties_shown=_show_publisher,
        properties=DocumentSchema(
            (
                SchemaField("inputSchema", words(*INPUT_SCHEMAS), default=EVENT_GRID_SCHEMA, fixed=True),
                SchemaField("inputSchemaMapping", _input_mapping),
                SchemaField("dataResidencyBoundary", words("WithinGeopair", "WithinRegion")),
                SchemaField("autoCreateTopicWithFirstSubscription", schema.flag),
                SchemaField("autoDeleteTopicWithLastSubscription", schema.flag),
                SchemaField("eventTypeInfo", nested(_EVENT_TYPES)),
                *NETWORK,
                SchemaField("disableLocalAuth", schema.flag, default=False),
            ),
            read_only=frozenset({*_STATE, "endpoint", "metricResourceId", "privateEndpointConnections"}),
        ),
        beside=DocumentSchema(
            (LOCATION, SchemaField("tags", _tags), SchemaField("identity", schema.part)), READ_ONLY_BESIDE
        ),
        moved="The resource '{name}' already exists in location '{stands}'. A resource with the same name cannot be "
        "created in location '{location}'. Please select a new resource name.",
        has_keys=True,
        patch_status=HTTPStatus.CREATED,
        # Clients ask again for what has types within it.
        in_steps=lambda document: "inputSchemaMapping" in document,
    )


TOPICS: Final = _publishers("topics")
DOMAINS: Final = _publishers("domains")
DOMAIN_TOPICS: Final = ArmResourceSpec(("domains", "topics"), properties_shown=lambda *_: _STATE)


# ---- system topics -----------------------------------------------------------------------------------------------


def _source(document: Document, name: str) -> str:
    """The id of a system topic's source, which has to be a storage account; raises AzureError."""
    text = schema.text(document, name)
    if not text:
        raise invalid(f"The property '{name}' is missing.")
    source = ArmId.parse(text)
    if source is None or source.type != STORAGE_ACCOUNT:
        raise invalid(
            f"The {name} '{text}' is not the id of a storage account; no other resource publishes events."
        )
    return text


SYSTEM_TOPICS: Final = ArmResourceSpec(
    types=("systemTopics",),
    properties_shown=lambda record, properties, _: {
        **_STATE,
        **properties,
        "metricResourceId": _metric_id(id_of(record.attributes).key),
    },
    properties=DocumentSchema(
        (
            SchemaField("source", _source, fixed=True),
            SchemaField("topicType", words(STORAGE_ACCOUNTS), default=STORAGE_ACCOUNTS),
        ),
        closed=True,
    ),
    beside=DocumentSchema(
        (LOCATION, SchemaField("tags", schema.anything), SchemaField("identity", schema.anything)),
        closed=True,
    ),
    patch_status=HTTPStatus.OK,
    patches_properties=False,
)


# ---- namespaces --------------------------------------------------------------------------------------------------

_SKU: Final = DocumentSchema(
    (
        SchemaField("name", words("Standard"), default="Standard"),
        SchemaField("capacity", whole(1, _UNITS_MAX), default=1),
    ),
    closed=True,
)


def _topic_spaces(document: Document, name: str) -> Document | None:
    spaces = schema.part(document, name)
    if schema.one_of(spaces or {}, "state", "Enabled", "Disabled") == "Enabled":
        raise invalid("Topic spaces (MQTT) are not offered.", "FeatureNotSupported")
    return spaces


def _show_namespace(record: Record, properties: Mapping[str, Any], base_url: str) -> Mapping[str, Any]:
    """The host name is what clients want behind `https://`: the server's own, with the namespace's path there."""
    hostname = f"{base_url.partition('://')[2]}{path_of(id_of(record.attributes))}"
    topics = {**properties.get("topicsConfiguration", {}), "hostname": hostname}
    return {**properties, **_STATE, "topicsConfiguration": topics, "privateEndpointConnections": []}


NAMESPACES: Final = ArmResourceSpec(
    types=("namespaces",),
    properties_shown=_show_namespace,
    properties=DocumentSchema(
        (
            SchemaField("topicSpacesConfiguration", _topic_spaces),
            SchemaField("topicsConfiguration", schema.part),
            *NETWORK,
            SchemaField("isZoneRedundant", schema.flag, default=False),
        ),
        read_only=frozenset({*_STATE, "privateEndpointConnections"}),
    ),
    beside=DocumentSchema(
        (
            LOCATION,
            SchemaField("tags", schema.part),
            SchemaField("identity", schema.part),
            SchemaField("sku", nested(_SKU), default=_SKU.accept({})),
        ),
        READ_ONLY_BESIDE,
    ),
    moved="The namespace already exists in location '{stands}' and cannot be moved to '{location}'.",
    has_keys=True,
    replaced_status=HTTPStatus.OK,
    patch_status=HTTPStatus.OK,
)

NAMESPACE_TOPICS: Final = ArmResourceSpec(
    types=("namespaces", "topics"),
    properties_shown=lambda _, properties, __: {**properties, **_STATE},
    properties=DocumentSchema(
        (
            SchemaField("inputSchema", words(CLOUD_EVENT_SCHEMA), default=CLOUD_EVENT_SCHEMA),
            SchemaField("publisherType", words("Custom"), default="Custom"),
            SchemaField("eventRetentionInDays", whole(1, RETENTION_DAYS_MAX), default=RETENTION_DAYS_MAX),
        ),
        read_only=frozenset({*_STATE, "privateEndpointConnections"}),
    ),
    has_keys=True,
    replaced_status=HTTPStatus.OK,
    patch_status=HTTPStatus.OK,
)


def retention_ms(topic: Topic) -> int:
    """The retention (ms) of a namespace's topic."""
    days: int = properties_of(topic)["eventRetentionInDays"]
    return days * DAY_MS


def _metric_id(text: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, text))
