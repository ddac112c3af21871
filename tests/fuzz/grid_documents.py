"""Documents that the resource manager takes and events that topics take, before they are spoilt."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.fuzz.grid_world import LETTERS, MAPPING, PROVIDER, STORAGE, WEBHOOK

Document = Mapping[str, Any]

FUNCTION: Final = f"{PROVIDER.replace('EventGrid', 'Web')}/sites/app/functions/f"
HUB: Final = f"{PROVIDER.replace('EventGrid', 'EventHub')}/namespaces/n/eventhubs/h"
BUS: Final = f"{PROVIDER.replace('EventGrid', 'ServiceBus')}/namespaces/n/queues/q"
_ATTRIBUTES: Final = [
    {"name": "x-one", "type": "Static", "properties": {"value": "v", "isSecret": True}},
    {"name": "x-two", "type": "Dynamic", "properties": {"sourceField": "data.size"}},
]
_DESTINATIONS: Final[Sequence[Document]] = [
    WEBHOOK,
    {
        "endpointType": "WebHook",
        "properties": {
            "endpointUrl": "https://hook.example/agrees?code=secret",
            "maxEventsPerBatch": 10,
            "preferredBatchSizeInKilobytes": 64,
            "azureActiveDirectoryTenantId": "t",
            "azureActiveDirectoryApplicationIdOrUri": "api://a",
            "minimumTlsVersionAllowed": "1.2",
            "deliveryAttributeMappings": _ATTRIBUTES,
        },
    },
    {"endpointType": "WebHook", "properties": {"endpointUrl": "https://hook.example/refuses"}},
    {"endpointType": "WebHook", "properties": {"endpointUrl": "https://hook.example/later"}},
    {
        "endpointType": "AzureFunction",
        "properties": {"resourceId": FUNCTION, "deliveryAttributeMappings": _ATTRIBUTES},
    },
    {"endpointType": "EventHub", "properties": {"resourceId": HUB}},
    {"endpointType": "ServiceBusQueue", "properties": {"resourceId": BUS}},
    {
        "endpointType": "StorageQueue",
        "properties": {
            "resourceId": STORAGE,
            "queueName": "waiting",
            "queueMessageTimeToLiveInSeconds": 60,
        },
    },
    {
        "endpointType": "NamespaceTopic",
        "properties": {"resourceId": f"{PROVIDER}/namespaces/space/topics/stars"},
    },
]
_OPERATORS: Final = (
    ("NumberIn", [1, 2.5]),
    ("NumberInRange", [[1, 2]]),
    ("StringContains", ["a"]),
    ("StringNotIn", ["a", "b"]),
    ("BoolEquals", None),
    ("IsNotNull", None),
)


def _advanced(key: str) -> list[Document]:
    found: list[Document] = []
    for operator, values in _OPERATORS:
        condition: dict[str, Any] = {"operatorType": operator, "key": key}
        if operator == "BoolEquals":
            condition["value"] = True
        elif values is not None:
            condition["values"] = values
        found.append(condition)
    return found


_WATCHERS: Final[Sequence[Document]] = [
    *({"destination": one} for one in _DESTINATIONS),
    {
        "destination": WEBHOOK,
        "deadLetterDestination": LETTERS,
        "filter": {
            "subjectBeginsWith": "/a",
            "subjectEndsWith": "z",
            "isSubjectCaseSensitive": True,
            "includedEventTypes": ["t"],
            "enableAdvancedFilteringOnArrays": True,
            "advancedFilters": _advanced("data.size"),
        },
        "labels": ["one", "two"],
        "expirationTimeUtc": "2030-01-01T00:00:00Z",
        "eventDeliverySchema": "CloudEventSchemaV1_0",
        "retryPolicy": {"maxDeliveryAttempts": 3, "eventTimeToLiveInMinutes": 10},
    },
    {
        "deliveryWithResourceIdentity": {"identity": {"type": "SystemAssigned"}, "destination": WEBHOOK},
        "deadLetterWithResourceIdentity": {
            "identity": {"type": "SystemAssigned"},
            "deadLetterDestination": LETTERS,
        },
    },
]
_LIMITS: Final = {
    "maxDeliveryCount": 5,
    "eventTimeToLive": "P1DT2H",
    "deadLetterDestinationWithResourceIdentity": {"deadLetterDestination": LETTERS},
}
_CONSUMERS: Final[Sequence[Document]] = [
    {
        "deliveryConfiguration": {
            "deliveryMode": "Queue",
            "queue": {**_LIMITS, "receiveLockDurationInSeconds": 120},
        },
        "eventDeliverySchema": "CloudEventSchemaV1_0",
        "filtersConfiguration": {"includedEventTypes": ["t"], "filters": _advanced("subject")},
        "expirationTimeUtc": "2030-01-01T00:00:00+01:00",
    },
    {
        "deliveryConfiguration": {
            "deliveryMode": "Push",
            "push": {**_LIMITS, "destination": _DESTINATIONS[1]},
        }
    },
    {
        "deliveryConfiguration": {
            "deliveryMode": "Push",
            "push": {"deliveryWithResourceIdentity": {"destination": _DESTINATIONS[5]}},
        }
    },
]
_BESIDE: Final = {
    "location": "local",
    "tags": {"a": "b"},
    "identity": {"type": "SystemAssigned"},
    "sku": {"name": "Basic"},
}
_PUBLISHERS: Final[Sequence[Document]] = [
    {
        "inputSchema": "EventGridSchema",
        "publicNetworkAccess": "Enabled",
        "disableLocalAuth": False,
        "inboundIpRules": [{"ipMask": "10.0.0.0/8", "action": "Allow"}],
        "minimumTlsVersionAllowed": "1.2",
        "dataResidencyBoundary": "WithinRegion",
        "autoCreateTopicWithFirstSubscription": True,
        "autoDeleteTopicWithLastSubscription": False,
        "eventTypeInfo": {
            "kind": "Inline",
            "inlineEventTypes": {"Order.Placed": {"displayName": "d", "description": "e"}},
        },
    },
    {"inputSchema": "CloudEventSchemaV1_0"},
    {"inputSchema": "CustomEventSchema", "inputSchemaMapping": MAPPING},
]
_NAMESPACES: Final[Sequence[Document]] = [
    {
        "isZoneRedundant": True,
        "publicNetworkAccess": "Enabled",
        "topicsConfiguration": {"customDomains": []},
        "topicSpacesConfiguration": {"state": "Disabled"},
        "inboundIpRules": [],
    }
]
_STARS: Final[Sequence[Document]] = [
    {"publisherType": "Custom", "inputSchema": "CloudEventSchemaV1_0", "eventRetentionInDays": 3}
]
#: A template with parameters, copies and outputs.
_DEPLOYMENTS: Final[Sequence[Document]] = [
    {
        "mode": "Incremental",
        "parameters": {"topic": {"value": "placed"}},
        "template": {
            "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
            "contentVersion": "1.0.0.0",
            "parameters": {"topic": {"type": "string", "defaultValue": "sold"}},
            "variables": {"names": ["a", "b"]},
            "resources": [
                {
                    "type": "Microsoft.EventGrid/topics",
                    "apiVersion": "2025-02-15",
                    "name": "[concat(parameters('topic'), variables('names')[copyIndex()])]",
                    "location": "local",
                    "copy": {"name": "topics", "count": "[length(variables('names'))]"},
                    "properties": {"inputSchema": "CloudEventSchemaV1_0"},
                }
            ],
            "outputs": {"first": {"type": "string", "value": "[toUpper(variables('names')[0])]"}},
        },
    }
]


def documents_of(method: str, pattern: str) -> list[Document]:
    """Those that a route takes."""
    if "/namespaces/" in pattern and "eventSubscriptions" in pattern:
        return [{"properties": one} for one in _CONSUMERS]
    if "eventSubscriptions" in pattern:
        return list(_WATCHERS) if method == "PATCH" else [{"properties": one} for one in _WATCHERS]
    if pattern.endswith("regenerateKey"):
        return [{"keyName": "key1"}]
    if "/deployments/" in pattern:
        return [{"properties": one} for one in _DEPLOYMENTS]
    if "/namespaces/" in pattern:
        some = _STARS if "topics" in pattern else _NAMESPACES
        return [{**_BESIDE, "sku": {"name": "Standard", "capacity": 1}, "properties": one} for one in some]
    if "systemTopics" in pattern:
        source = {"source": STORAGE, "topicType": "Microsoft.Storage.StorageAccounts"}
        return [{**_BESIDE, "properties": source}]
    if "Microsoft.EventGrid" in pattern:
        return [{**_BESIDE, "properties": one} for one in _PUBLISHERS]
    return [_BESIDE]


EVENT: Final = {
    "id": "1",
    "subject": "/orders/1",
    "eventType": "Order.Placed",
    "eventTime": "2026-01-02T03:04:05Z",
    "data": {"size": 5, "lines": [{"price": 1.5}]},
    "dataVersion": "2.0",
}
CLOUD_EVENT: Final = {
    "specversion": "1.0",
    "id": "1",
    "source": "/shop",
    "type": "Order.Placed",
    "subject": "s",
    "time": "2026-01-02T03:04:05Z",
    "datacontenttype": "application/json",
    "extension": "e",
    "data": {"size": 5},
}
CUSTOM_EVENT: Final = {"number": "1", "about": "orders", "place": "first", "size": 5}
