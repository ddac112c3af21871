"""Namespaces of message brokers: their connection strings, and the resource ids of what is in them."""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

_PORT: Final = 5672
_PORT_TLS: Final = 5671
_ENTITY: Final = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.(?:ServiceBus|EventHub)/namespaces/[^/]+"
    r"/(?:queues|topics|eventhubs)/(?P<name>[\w.~-]+(?:/[\w.~-]+)*)",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Namespace:
    """The address of a namespace's broker, and the credentials for it."""

    host: str  # Its name
    port: int  # 5671 with TLS, 5672 without
    secure: bool  # Whether the connection is TLS from its first byte
    user: str  # The name of a shared access key, or a user
    password: str = field(repr=False)  # The key
    addresses: str = ""  # Prefix of an entity's address


def read_namespace(text: str) -> Namespace:
    """Take apart a connection string of Azure's, or a URL: `amqps://USER:PASSWORD@HOST[:PORT][/ADDRESSES/]`.

    Raises:
        ValueError: Malformed, or has no key. A token (`SharedAccessSignature`) is none: it would end one day.
    """
    if text.startswith(("amqp://", "amqps://")):
        return _of_url(text)
    parts = {name.lower(): value for name, _, value in (part.partition("=") for part in text.split(";"))}
    endpoint = urlsplit(parts.get("endpoint", ""))
    user, password = parts.get("sharedaccesskeyname", ""), parts.get("sharedaccesskey", "")
    if endpoint.scheme != "sb" or not endpoint.hostname or not user or not password:
        raise ValueError(
            "A namespace's connection string has Endpoint=sb://…, SharedAccessKeyName, SharedAccessKey"
        )
    secure = parts.get("usedevelopmentemulator", "").lower() != "true"
    return Namespace(endpoint.hostname, endpoint.port or _port(secure=secure), secure, user, password)


def read_entity(resource: str) -> str:
    """The queue, topic or event hub that a resource id names; raises ValueError if it names none."""
    match = _ENTITY.fullmatch(resource)
    if match is None:
        raise ValueError(f"{resource} is not the resource id of a queue, a topic or an event hub")
    return match["name"]


def _of_url(text: str) -> Namespace:
    """Take an AMQP URL apart; its path is put before the names of entities."""
    url = urlsplit(text)
    if not url.hostname:
        raise ValueError("An AMQP URL has a host")
    user, password = unquote(url.username or ""), unquote(url.password or "")
    secure = url.scheme == "amqps"
    addresses = "" if url.path in ("", "/") else unquote(url.path)
    return Namespace(url.hostname, url.port or _port(secure=secure), secure, user, password, addresses)


def _port(*, secure: bool) -> int:
    return _PORT_TLS if secure else _PORT
