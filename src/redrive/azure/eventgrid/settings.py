"""An event subscription's and a topic's properties, typed: what publishing and delivering go by.

The resource manager's facade writes the engine's documents, with what it accepted word for word under
`attributes["properties"]`; this module is the one place that reads it.

Network rules say from where a topic, a domain or a namespace may be reached (`publicNetworkAccess`, `inboundIpRules`).
Azure tells the public side from private endpoints. Here the private side is who comes from this machine or a private
network; a reverse proxy in front of the server is the client of all who come through it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

import orjson

from redrive.azure.eventgrid.notation import duration_ms
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.ports import ONE_EACH, Batch
from redrive.model.durations import MINUTE_MS
from redrive.model.memo import remembered
from redrive.model.queue import DAY_MS
from redrive.model.topic import Subscription, Topic

ACCESS: Final = "publicNetworkAccess"
RULES: Final = "inboundIpRules"
MASK: Final = "ipMask"
DISABLED: Final = "Disabled"

Mask = IPv4Network | IPv6Network

# Loopback, RFC 1918, RFC 4193 and link-local. Not `is_private`: it has test networks and benchmarks in it too.
_PRIVATE_SIDE: Final = tuple(
    ip_network(text)
    for text in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
)


@dataclass(frozen=True, slots=True)
class Network:
    """The addresses that may call a topic."""

    # Where they have to be in one of; None: they may come from anywhere.
    masks: tuple[Mask, ...] | None = None

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> "Network":
        """The network rules of accepted ARM properties."""
        if properties.get(ACCESS) == DISABLED:
            return _PRIVATE
        rules = properties.get(RULES)
        return cls(tuple(read_mask(rule[MASK]) for rule in rules)) if rules else OPEN

    def admits(self, client_host: str) -> bool:
        """True if who comes from an IP address may come in; what is not an address may not, where there are masks."""
        if self.masks is None:
            return True
        try:
            address = ip_address(client_host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address):  # a socket for both families has IPv4's wrapped
            address = address.ipv4_mapped or address
        return any(address in mask for mask in self.masks)


def read_mask(text: str) -> Mask:
    """An address, or a range in CIDR's notation; bits beyond the range's are cut off.

    Raises:
        ValueError: Not an address or a network.
    """
    return ip_network(text, strict=False)


OPEN: Final = Network()
_PRIVATE: Final = Network(_PRIVATE_SIDE)


EVENT_GRID_SCHEMA: Final = "EventGridSchema"
CLOUD_EVENT_SCHEMA: Final = "CloudEventSchemaV1_0"
CUSTOM_EVENT_SCHEMA: Final = "CustomEventSchema"  # a topic's
CUSTOM_INPUT_SCHEMA: Final = "CustomInputSchema"  # a subscription's

ID: Final = "id"  # the resource's ARM id, as it was spelt
PROPERTIES: Final = "properties"  # JSON: its ARM properties, as accepted
KEYS: Final = ("key1", "key2")  # a topic's access keys, in base64
# An attribute of what writes dead letters: whether their container has to be there. Without it a folder's is made.
CONTAINER: Final = "container"
REQUIRED: Final = "required"
STATE: Final = "state"  # an event subscription's provisioning state

WEBHOOK: Final = "WebHook"
TENANT: Final = "azureActiveDirectoryTenantId"  # of a webhook
APPLICATION: Final = "azureActiveDirectoryApplicationIdOrUri"

ATTEMPTS_MAX: Final = 30
MINUTES_TO_LIVE_MAX: Final = 1440
_NAMESPACE_TO_LIVE_MS: Final = 7 * DAY_MS  # as long as a topic may keep it
_EVENTS_DEFAULT: Final = 5000  # where the bytes alone are given, they alone bound a batch
_KILOBYTES_DEFAULT: Final = 64

# Asked for at each publication and each delivery. Most resources say little; one with many filters or rules says 100 kB.
_ENTRIES_MAX: Final = 4096
_CHARS_MAX: Final = 4096
_LONGER_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The settings for publishing to a topic."""

    id: str  # Its ARM id
    input_schema: str = EVENT_GRID_SCHEMA  # Schema of published events
    # For custom events: `{"subject": {"sourceField": …, "defaultValue": …}, …}`.
    mapping: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    local_auth_disabled: bool = False  # Keys and tokens made with them are refused
    # How long events are kept, where that is the topic's own: of namespaces' topics.
    retention_days: int | None = None
    network: Network = OPEN  # Networks that publishers may use


@dataclass(frozen=True, slots=True)
class DeliveryAttribute:
    """One header that goes with each delivery: a value, or the path of a field of the event."""

    name: str
    value: str | None = None
    source_field: str | None = None


@dataclass(frozen=True, slots=True)
class TokenAudience:
    """The audience of a webhook's tokens."""

    tenant: str  # A GUID, or a domain's name
    application: str  # An id, or a URI
    subscription: str  # On whose behalf they come: the Azure subscription that the event subscription is in


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """The settings for delivering to an event subscription."""

    id: str  # Its ARM id
    name: str  # As it was spelt
    destination_type: str  # `WebHook`, `AzureFunction`, `StorageQueue` …
    destination: Mapping[str, Any]  # The destination's ARM properties
    schema: str  # Schema of its events
    attempts_max: int = ATTEMPTS_MAX  # 1 to 30
    minutes_to_live: int = MINUTES_TO_LIVE_MAX  # 1 to 1,440, from publication
    batch: Batch = ONE_EACH  # Limits of events per request
    attributes: tuple[DeliveryAttribute, ...] = ()  # Headers that go with each delivery
    dead_letter_container: str | None = None  # The ARM id of a blob container, or None
    audience: TokenAudience | None = None  # Audience of the bearer token of each request, or None


def topic_settings(topic: Topic) -> TopicSettings:
    """A topic's settings."""
    return _topic(topic.attributes[ID], topic.attributes[PROPERTIES])


def delivery_settings(subscription: Subscription) -> DeliverySettings:
    """An event subscription's settings."""
    return _delivery(subscription.attributes[ID], subscription.attributes[PROPERTIES])


@remembered(_ENTRIES_MAX, _CHARS_MAX, longer_max=_LONGER_MAX)
def network(text: str) -> Network:
    """From where a namespace of these stored properties may be reached."""
    return Network.of(orjson.loads(text))


@remembered(_ENTRIES_MAX, _CHARS_MAX, longer_max=_LONGER_MAX)
def _topic(resource_id: str, text: str) -> TopicSettings:
    """The settings in a topic's properties (JSON), with the defaults of those that are missing."""
    properties = orjson.loads(text)
    mapping = (properties.get("inputSchemaMapping") or {}).get("properties") or {}
    return TopicSettings(
        id=resource_id,
        input_schema=properties.get("inputSchema") or EVENT_GRID_SCHEMA,
        mapping={name: fields for name, fields in mapping.items() if fields},
        local_auth_disabled=bool(properties.get("disableLocalAuth")),
        retention_days=properties.get("eventRetentionInDays"),
        network=Network.of(properties),
    )


@remembered(_ENTRIES_MAX, _CHARS_MAX, longer_max=_LONGER_MAX)
def _delivery(resource_id: str, text: str) -> DeliverySettings:
    """The settings in an event subscription's properties (JSON), whichever form it has."""
    properties = _as_of_topics(orjson.loads(text))
    destination = _unwrap(properties, "destination", "deliveryWithResourceIdentity")
    dead_letter = _unwrap(properties, "deadLetterDestination", "deadLetterWithResourceIdentity")
    retry = properties.get("retryPolicy") or {}
    endpoint_properties = destination.get("properties") or {}
    return DeliverySettings(
        id=resource_id,
        name=resource_id.rpartition("/")[2],
        destination_type=destination.get("endpointType", ""),
        destination=endpoint_properties,
        schema=properties.get("eventDeliverySchema") or EVENT_GRID_SCHEMA,
        attempts_max=retry.get("maxDeliveryAttempts") or ATTEMPTS_MAX,
        minutes_to_live=retry.get("eventTimeToLiveInMinutes") or MINUTES_TO_LIVE_MAX,
        batch=_batch(endpoint_properties),
        attributes=tuple(
            _attribute(each) for each in endpoint_properties.get("deliveryAttributeMappings") or ()
        ),
        dead_letter_container=_container(dead_letter.get("properties") or {}),
        audience=_audience(resource_id, endpoint_properties)
        if destination.get("endpointType") == WEBHOOK
        else None,
    )


def _as_of_topics(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The properties of a namespace topic's event subscription, in the form that those of other topics have."""
    configuration = properties.get("deliveryConfiguration")
    if configuration is None:
        return properties
    mode = configuration.get("queue") or configuration.get("push") or {}
    to_live_ms = duration_ms(mode.get("eventTimeToLive") or "") or _NAMESPACE_TO_LIVE_MS
    push = configuration.get("push") or {}
    return {
        "eventDeliverySchema": properties.get("eventDeliverySchema"),
        "destination": push.get("destination"),
        "deliveryWithResourceIdentity": push.get("deliveryWithResourceIdentity"),
        "retryPolicy": {
            "maxDeliveryAttempts": mode["maxDeliveryCount"],
            "eventTimeToLiveInMinutes": to_live_ms // MINUTE_MS,
        },
        "deadLetterWithResourceIdentity": mode.get("deadLetterDestinationWithResourceIdentity"),
    }


def _unwrap(properties: Mapping[str, Any], name: str, with_identity: str) -> Mapping[str, Any]:
    value: Mapping[str, Any] | None = properties.get(name) or (properties.get(with_identity) or {}).get(name)
    return value or {}


def _batch(document: Mapping[str, Any]) -> Batch:
    """Off unless either field is set; the other has then its default."""
    events, kilobytes = document.get("maxEventsPerBatch"), document.get("preferredBatchSizeInKilobytes")
    if events is None and kilobytes is None:
        return ONE_EACH
    return Batch(events or _EVENTS_DEFAULT, (kilobytes or _KILOBYTES_DEFAULT) * 1024)


def _attribute(document: Mapping[str, Any]) -> DeliveryAttribute:
    properties = document.get("properties") or {}
    return DeliveryAttribute(document["name"], properties.get("value"), properties.get("sourceField"))


def _container(document: Mapping[str, Any]) -> str | None:
    account, container = document.get("resourceId"), document.get("blobContainerName")
    return f"{account}/blobServices/default/containers/{container}" if account and container else None


def _audience(resource_id: str, document: Mapping[str, Any]) -> TokenAudience | None:
    tenant, application, resource = document.get(TENANT), document.get(APPLICATION), ArmId.parse(resource_id)
    if not tenant or not application or resource is None:
        return None
    return TokenAudience(tenant, application, resource.subscription)
