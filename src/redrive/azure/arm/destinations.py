"""`destination`: where an event subscription's deliveries go, checked, and turned into an endpoint of the engine's.

A WebHook may be at an http URL here, and at the ARN of a queue of this server's Amazon SQS; both are Redrive's own.
What stands behind the resource ids of the others, the settings say.

`deliveryAttributeMappings` are the headers that a subscriber wants with each delivery.
https://learn.microsoft.com/azure/event-grid/delivery-properties has the limits: ten headers, 4,096 bytes a value, no
name that begins with `aeg-`. A secret value is shown to nobody who does not ask for it by name (getDeliveryAttributes).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from redrive.azure.arm import schema
from redrive.azure.arm.schema import TLS, Document
from redrive.azure.eventgrid.settings import APPLICATION, TENANT, WEBHOOK
from redrive.azure.recognise import is_storage_account
from redrive.azure.wire.answers import AzureError, invalid
from redrive.azure.wire.arm_id import ArmId
from redrive.model.http import TOKEN
from redrive.model.names import ResourceName
from redrive.model.topic import without_secrets

MAPPINGS: Final = "deliveryAttributeMappings"
ATTRIBUTES_MAX: Final = 10
VALUE_BYTES_MAX: Final = 4096
HIDDEN: Final = "Hidden"  # stands for a secret
_OURS: Final = ("aeg-", "content-length", "content-type", "transfer-encoding", "connection", "host")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def accepted_attributes(values: Sequence[Any], before: Sequence[Any]) -> list[dict[str, Any]]:
    """The mappings as they are kept; a secret that comes back as it was shown stays as it was `before`.

    Raises:
        AzureError: One of them is malformed, or there are too many.
    """
    if len(values) > ATTRIBUTES_MAX:
        raise invalid(f"There are {len(values)} delivery attributes; {ATTRIBUTES_MAX} are allowed.")
    secrets = {each["name"].lower(): each["properties"]["value"] for each in before if _is_secret(each)}
    attributes = [_read_attribute(each, secrets) for each in values]
    names = [each["name"].lower() for each in attributes]
    if len(set(names)) < len(names):
        raise invalid("Two delivery attributes have the same name.")
    return attributes


def mask_secrets(mappings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The mappings without their secrets."""
    return [
        {**each, "properties": {**each["properties"], "value": HIDDEN}} if _is_secret(each) else each
        for each in mappings
    ]


def _read_attribute(value: Any, secrets: Mapping[str, str]) -> dict[str, Any]:
    """A delivery attribute as it is kept; `secrets`: the former secret values by name in lower case."""
    if not isinstance(value, dict):
        raise invalid(f"The property '{MAPPINGS}' must be a list of objects.")
    name = schema.text(value, "name") or ""
    if not TOKEN.fullmatch(name) or name.lower().startswith(_OURS):
        raise invalid(f"The delivery attribute '{name}' has a name that no header of a delivery can have.")
    kind = schema.one_of(value, "type", "Static", "Dynamic")
    properties = schema.present(schema.part(value, "properties") or {})
    if kind == "Static":
        return {"name": name, "type": kind, "properties": _static_attribute(name, properties, secrets)}
    if kind == "Dynamic" and schema.text(properties, "sourceField"):
        return {"name": name, "type": kind, "properties": properties}
    raise invalid(f"The delivery attribute '{name}' is neither Static nor Dynamic with a sourceField.")


def _static_attribute(name: str, properties: Document, secrets: Mapping[str, str]) -> dict[str, Any]:
    """The properties of a static attribute; a secret without a value, or masked, keeps the former one."""
    value, secret = schema.text(properties, "value"), schema.flag(properties, "isSecret") or False
    if secret and value in (None, HIDDEN):
        value = secrets.get(name.lower(), value)
    if value is None:
        raise invalid(f"The delivery attribute '{name}' has no value.")
    if len(value.encode()) > VALUE_BYTES_MAX:
        raise invalid(f"The value of the delivery attribute '{name}' has more than {VALUE_BYTES_MAX} bytes.")
    if _CONTROL.search(value):
        raise invalid(f"The value of the delivery attribute '{name}' has characters that no header can have.")
    return {**properties, "value": value, "isSecret": secret}


def _is_secret(mapping: Mapping[str, Any]) -> bool:
    return mapping.get("type") == "Static" and bool(mapping["properties"].get("isSecret"))


# What stands behind a resource id: a URL or a connection string; None: the settings do not say.
EndpointResolver = Callable[[str], str | None]

STORAGE_ACCOUNT: Final = "microsoft.storage/storageaccounts"
BATCH_EVENTS_MAX: Final = 5000
BATCH_KILOBYTES_MAX: Final = 1024
_ARN: Final = re.compile(r"arn:aws[a-z-]*:sqs:([a-z0-9-]+):(\d{12}):([A-Za-z0-9_.-]{1,85})")
_CONTAINER_NAME: Final = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
_TENANT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
_RESOURCES: Final = {
    "AzureFunction": "microsoft.web/sites/functions",
    "EventHub": "microsoft.eventhub/namespaces/eventhubs",
    "HybridConnection": "microsoft.relay/namespaces/hybridconnections",
    "NamespaceTopic": "microsoft.eventgrid/namespaces/topics",
    "ServiceBusQueue": "microsoft.servicebus/namespaces/queues",
    "ServiceBusTopic": "microsoft.servicebus/namespaces/topics",
    "StorageQueue": STORAGE_ACCOUNT,
}
KINDS: Final = (WEBHOOK, *_RESOURCES)
_AMQP: Final = ("EventHub", "ServiceBusQueue", "ServiceBusTopic")
_BATCHED: Final = (WEBHOOK, "AzureFunction")
_WITHOUT_ATTRIBUTES: Final = ("StorageQueue", "NamespaceTopic")


@dataclass(frozen=True, slots=True)
class DestinationForm:
    """A destination that is accepted."""

    # Endpoint protocol in the engine: `http`, `https`, `storage-queue`, `amqp`, `topic` or `queue`
    protocol: str
    endpoint: str  # A URL, a resource id or an ARN
    document: Mapping[str, Any]  # Stored form, which callers see

    @property
    def is_webhook(self) -> bool:
        """True if the endpoint must agree first."""
        return self.document["endpointType"] == WEBHOOK and self.protocol != "queue"


def check_storage_account(resource: ArmId) -> None:
    """A storage account's name: letters and digits, which a folder's name can be made of.

    Raises:
        AzureError: Not a valid destination.
    """
    if not is_storage_account(resource.name):
        raise invalid(f"The storage account's name '{resource.name}' must be 3 to 24 letters and digits.")


def check_container(name: str) -> None:
    """Check a blob container's name; raises AzureError if the name is not one that containers can have."""
    if not _CONTAINER_NAME.fullmatch(name):
        raise invalid(f"The blobContainerName '{name}' is not a valid name of a container.")


def accepted_destination(document: Document, before: Document, resolve: EndpointResolver) -> DestinationForm:
    """Check a destination that takes the place of the one `before`, which may be empty.

    Raises:
        AzureError: Not a valid destination, or this server cannot deliver there.
    """
    kind = schema.one_of(document, "endpointType", *KINDS)
    if kind is None:
        raise invalid("The destination has no endpointType.")
    destination = schema.present(schema.part(document, "properties") or {})
    destination.pop("endpointBaseUrl", None)
    earlier = before.get("properties") or {}
    if kind == WEBHOOK and before.get("endpointType") == WEBHOOK:
        # `az … update` leaves out what it was not shown.
        destination = {"endpointUrl": earlier["endpointUrl"], **destination}
    protocol, endpoint = _webhook(destination) if kind == WEBHOOK else _resource(kind, destination, resolve)
    if kind in _BATCHED:
        events = schema.number(destination, "maxEventsPerBatch", 1, BATCH_EVENTS_MAX)
        kilobytes = schema.number(destination, "preferredBatchSizeInKilobytes", 1, BATCH_KILOBYTES_MAX)
        destination["maxEventsPerBatch"] = events or (1 if kilobytes is None else BATCH_EVENTS_MAX)
        destination["preferredBatchSizeInKilobytes"] = kilobytes or 64
    mappings = schema.items(destination, MAPPINGS) or []
    if mappings and kind in _WITHOUT_ATTRIBUTES:
        raise invalid(f"A destination of the type {kind} has no delivery attributes.")
    if kind not in _WITHOUT_ATTRIBUTES:
        destination[MAPPINGS] = accepted_attributes(mappings, earlier.get(MAPPINGS) or ())
    if kind == WEBHOOK:
        _check_audience(destination, protocol)
    return DestinationForm(protocol, endpoint, {"endpointType": kind, "properties": destination})


def accepted_container(document: Document) -> dict[str, Any]:
    """Check a dead-letter destination; raises AzureError if it is not a valid destination."""
    schema.one_of(document, "endpointType", "StorageBlob")
    properties = schema.part(document, "properties") or {}
    _checked_id(properties, "StorageBlob", STORAGE_ACCOUNT)
    check_container(schema.text(properties, "blobContainerName") or "")
    return {"endpointType": "StorageBlob", "properties": dict(properties)}


def shown_destination(document: Document) -> dict[str, Any]:
    """A destination without what only its owner may see: the query and the password of a URL, the secrets of headers."""
    properties = dict(document["properties"])
    url = properties.pop("endpointUrl", None)
    if url is not None:
        properties["endpointBaseUrl"] = without_secrets(url)
    if MAPPINGS in properties:
        properties[MAPPINGS] = mask_secrets(properties[MAPPINGS])
    return {**document, "properties": properties}


def queue_at(endpoint: str) -> ResourceName | None:
    """The queue of this server that an ARN names; None for any other text."""
    match = _ARN.fullmatch(endpoint)
    return None if match is None else ResourceName(match[2], match[1], match[3])


def _webhook(properties: Document) -> tuple[str, str]:
    """The protocol and the endpoint of a webhook's URL, which may be a queue of this server."""
    url = schema.text(properties, "endpointUrl") or ""
    TLS.read(properties, TLS.name)  # refuses an unknown version
    if queue_at(url) is not None:
        return "queue", url
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for what is no port
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        raise invalid(
            f"The endpointUrl '{without_secrets(url)}' is not a URL that begins with https or http."
        )
    return parts.scheme, url


def _check_audience(properties: Document, protocol: str) -> None:
    """Check the audience of tokens, if there are to be any: all its fields or none.

    Raises:
        AzureError: A part is missing, or a request would have no room for them.
    """
    tenant, application = schema.text(properties, TENANT), schema.text(properties, APPLICATION)
    if not tenant and not application:
        return
    if not application or not _TENANT_NAME.fullmatch(tenant or ""):
        raise invalid(f"{TENANT}, a GUID or a domain name, and {APPLICATION} have to be set together.")
    attribute_names = {each["name"].lower() for each in properties[MAPPINGS]}
    if (
        protocol == "queue"
        or "authorization" in attribute_names
        or urlsplit(properties["endpointUrl"]).username is not None
    ):
        raise invalid(
            f"With {TENANT} requests have the header Authorization, so there can be no delivery attribute of that "
            "name, no password in the endpointUrl, and no queue."
        )


def _resource(kind: str, properties: Document, resolve: EndpointResolver) -> tuple[str, str]:
    """The protocol and the endpoint of a destination that is an Azure resource."""
    resource = _checked_id(properties, kind, _RESOURCES[kind])
    if kind == "NamespaceTopic":
        return "topic", resource.text
    if kind == "StorageQueue":
        return "storage-queue", _storage_queue(resource, properties, resolve)
    address = resolve(resource.text)
    if address is None:
        raise _nowhere(kind, resource)
    if kind in _AMQP:
        return "amqp", resource.text
    url = _url(address, resolve, resource, "/api" if kind == "AzureFunction" else "")
    return url.partition(":")[0], url


def _storage_queue(account: ArmId, properties: Document, resolve: EndpointResolver) -> str:
    """The id of the queue in a storage account that a destination names."""
    name = schema.text(properties, "queueName") or ""
    if not _CONTAINER_NAME.fullmatch(name):
        raise invalid(f"The queueName '{name}' is not a valid name of a storage queue.")
    seconds = schema.number(properties, "queueMessageTimeToLiveInSeconds", -1, None)
    if seconds == 0:
        raise invalid("The queueMessageTimeToLiveInSeconds must be more than 0, or -1 for ever.")
    if resolve(account.text) is None:
        raise _nowhere("StorageQueue", account)
    return f"{account.text}/queueServices/default/queues/{name}"


def _url(address: str, resolve: EndpointResolver, resource: ArmId, beneath: str) -> str:
    """The URL of a function or a hybrid connection: its own, or beneath that of what it is in."""
    parent = resource._replace(parts=resource.parts[:-2])
    has_own_address = address != resolve(parent.text)
    url = address if has_own_address else f"{address.rstrip('/')}{beneath}/{resource.name}"
    if not url.startswith(("http://", "https://")):
        raise invalid(f"The setting azure_endpoints has no URL for '{resource.text}'.")
    return url


def _checked_id(properties: Document, kind: str, resource_type: str) -> ArmId:
    """The resource that a destination names; raises AzureError if it has another type."""
    text = schema.text(properties, "resourceId") or ""
    resource = ArmId.parse(text)
    if resource is None or resource.type != resource_type:
        raise invalid(f"The resourceId '{text}' of a {kind} destination is not the id of a {resource_type}.")
    if resource.type == STORAGE_ACCOUNT:
        check_storage_account(resource)
    return resource


def _nowhere(kind: str, resource: ArmId) -> AzureError:
    return invalid(
        f"This server does not know where the {kind} destination '{resource.text}' is: "
        "start it with --azure-endpoints NAME=VALUE, the name being the id or the outermost resource's name."
    )
