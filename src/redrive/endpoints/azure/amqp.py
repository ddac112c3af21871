"""AMQP 1.0: requests sent to Service Bus, to Event Hubs, and to any broker that speaks it."""

import asyncio
import random
import ssl
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final

from proton import Message, MessageException, ProtonException, symbol
from typing_extensions import override

from redrive.endpoints.azure.amqp_connection import AmqpConnection
from redrive.endpoints.azure.namespaces import Namespace, read_entity, read_namespace
from redrive.endpoints.kept_connection import ConnectionPool
from redrive.endpoints.verdicts import TimedEndpoint, Verdict, of_failure
from redrive.engine.ports import PushRequest

_NAMESPACES_MAX: Final = 1000


class AmqpEndpoint(TimedEndpoint):
    """Sends each request as a message.

    A request's endpoint is the resource id of a queue, a topic or an event hub. A message is delivered when the broker
    has accepted it. All messages of a namespace share a connection, which is closed after half a minute's rest.

    Whoever we are there, a shared access key's name or a user, is said by SASL PLAIN, which Service Bus and Event Hubs
    take as well as tokens.

    Args:
        now: Milliseconds, for durations.
        rng: Makes the names of connections.
        connection_string: Of the namespace of a resource id; None if the settings name none.
        ca_file: Certificates in PEM that are trusted besides the system's.
    """

    def __init__(
        self,
        now: Callable[[], int],
        rng: random.Random,
        connection_string: Callable[[str], str | None],
        ca_file: Path | None = None,
    ) -> None:
        super().__init__(now)
        self._rng = rng
        self._connection_string = connection_string
        self._trust = ssl.create_default_context()
        if ca_file is not None:
            self._trust.load_verify_locations(ca_file)
        self._namespace = lru_cache(_NAMESPACES_MAX)(read_namespace)
        self._connections: ConnectionPool[Namespace, AmqpConnection] = ConnectionPool()

    @override
    async def close(self) -> None:
        """Let go of connections."""
        await self._connections.close()

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        """Send a message over the namespace's connection, which is opened if it is not there."""
        try:
            entity, message = read_entity(push_request.endpoint), message_of(push_request)
            connection_string = self._connection_string(push_request.endpoint)
            if connection_string is None:
                raise ValueError(f"The settings name no namespace of {push_request.endpoint}")  # noqa: TRY301 - as the others
            namespace = self._namespace(connection_string)
            async with asyncio.timeout(push_request.timeout_ms / 1000):
                connection = await self._connections.of(namespace, lambda: self._open(namespace))
                return await connection.send(namespace.addresses + entity, message)
        except (ProtonException, OSError, ValueError) as error:
            # Proton raises what this end has no room for: more entities than the broker allows.
            return of_failure(error)

    async def _open(self, namespace: Namespace) -> AmqpConnection:
        """Connect to a namespace, under a container name of its own."""
        container = f"redrive-{self._rng.getrandbits(64):016x}"
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: AmqpConnection(namespace, container),
            namespace.host,
            namespace.port,
            ssl=self._trust if namespace.secure else None,
        )
        return connection


# A request as an AMQP message.
#
# Headers become application properties. Those that Azure gives a meaning become what they mean (Event Grid, "Custom
# delivery properties"; Service Bus, "AMQP protocol guide"):
#
#     MessageId            message-id; without it, the event's own id is
#     SessionId            group-id
#     CorrelationId        correlation-id
#     Label                subject
#     ReplyTo              reply-to
#     ReplyToSessionId     reply-to-group-id
#     To                   to
#     PartitionKey         the annotation x-opt-partition-key
#     ViaPartitionKey      the annotation x-opt-via-partition-key

_EVENT_ID: Final = "aeg-output-event-id"
_PROPERTIES: Final = {
    "messageid": "id",
    "sessionid": "group_id",
    "correlationid": "correlation_id",
    "label": "subject",
    "replyto": "reply_to",
    "replytosessionid": "reply_to_group_id",
    "to": "address",
}
_ANNOTATIONS: Final = {"partitionkey": "x-opt-partition-key", "viapartitionkey": "x-opt-via-partition-key"}


def message_of(push_request: PushRequest) -> bytes:
    """The message, written; its body is one section of data, and it outlives a restart of the broker.

    Raises:
        ValueError: It cannot be written.
    """
    properties: dict[str, str] = {}
    annotations: dict[symbol, str] = {}
    fields: dict[str, str] = (
        {"id": push_request.headers[_EVENT_ID]} if _EVENT_ID in push_request.headers else {}
    )
    for name, value in push_request.headers.items():
        word = name.lower()
        if word in _PROPERTIES:
            fields[_PROPERTIES[word]] = value
        elif word in _ANNOTATIONS:
            annotations[symbol(_ANNOTATIONS[word])] = value
        else:
            properties[name] = value
    message = Message(
        push_request.body,
        inferred=True,
        durable=True,
        content_type=push_request.content_type,
        properties=properties,
        annotations=annotations,
        **fields,
    )
    try:
        return message.encode()
    except MessageException as error:
        raise ValueError(str(error)) from None
