"""A whole server, told by its settings alone what stands behind resource ids, and everybody who reads there."""

import os
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from tests.contracts.endpoints.test_amqp import receive
from tests.services.azurite import RESOURCE, Azurite
from tests.services.rabbitmq import RabbitMq
from tests.services.server import Server, serving

_GROUP: Final = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers"
_TOPIC: Final = f"{_GROUP}/Microsoft.EventGrid/topics/orders"
_EVENTS: Final = "/eventgrid/00000000-0000-0000-0000-000000000001/rg/orders/api/events"
_EVENT: Final = {
    "id": "1",
    "subject": "order",
    "eventType": "Placed",
    "eventTime": "2026-01-01T00:00:00Z",
    "dataVersion": "1",
    "data": {"car": "🚗"},
}
_MINE: Final = f"whole-{os.getpid()}"  # others use the same account and broker


@pytest.fixture
def server(azurite: Azurite, rabbitmq: RabbitMq, tmp_path: Path) -> Iterator[Server]:
    config = tmp_path / "redrive.toml"
    config.write_text(
        'clock = "simulated"\n[azure_endpoints]\n'
        f'teststore = "{azurite.connection_string}"\nbus = "{rabbitmq.url()}"\n'
    )
    with serving("sqlite://:memory:", "--config", str(config), directory=tmp_path) as server:
        yield server


def _put(server: Server, path: str, document: dict[str, Any]) -> None:
    status, body = server.ask(
        "PUT", f"{path}?api-version=2025-02-15", orjson.dumps(document), {"Content-Type": "application/json"}
    )
    assert status == 201, body


def _subscribe(server: Server, name: str, kind: str, properties: dict[str, Any], **more: Any) -> None:
    path = f"{_TOPIC}/providers/Microsoft.EventGrid/eventSubscriptions/{name}"
    _put(
        server,
        path,
        {"properties": {"destination": {"endpointType": kind, "properties": properties}, **more}},
    )


def _publish(server: Server) -> None:
    headers = {"Content-Type": "application/json", "aeg-sas-key": "any"}
    assert server.ask("POST", _EVENTS, orjson.dumps([_EVENT]), headers)[0] == 200


def test_events_go_where_the_settings_say(server: Server, azurite: Azurite, rabbitmq: RabbitMq) -> None:
    queue = QueueServiceClient.from_connection_string(azurite.connection_string).create_queue(_MINE)
    bus = f"{_GROUP}/Microsoft.ServiceBus/namespaces/bus/queues/{_MINE}"
    _put(server, _TOPIC, {"location": "local"})
    _subscribe(
        server,
        "storage",
        "StorageQueue",
        {"resourceId": RESOURCE, "queueName": _MINE, "queueMessageTimeToLiveInSeconds": 3600},
    )
    label = {"name": "Label", "type": "Static", "properties": {"value": "new"}}
    _subscribe(server, "bus", "ServiceBusQueue", {"resourceId": bus, "deliveryAttributeMappings": [label]})
    _publish(server)
    server.advance(1)
    stored: Any = queue.receive_message()
    assert (stored.expires_on - stored.inserted_on).total_seconds() == 3600
    (sent,) = receive(rabbitmq, bus, 1)
    assert (sent.subject, sent.id, sent.properties["aeg-subscription-name"]) == ("new", "1", "BUS")
    for text in (b64decode(stored.content), bytes(sent.body)):
        assert orjson.loads(text) == {**_EVENT, "topic": _TOPIC, "metadataVersion": "1"}
    queue.delete_queue()


def test_a_dead_letter_is_a_blob_five_minutes_later(server: Server, azurite: Azurite) -> None:
    account = BlobServiceClient.from_connection_string(azurite.connection_string)
    container = account.create_container(_MINE)
    _put(server, _TOPIC, {"location": "local"})
    _subscribe(
        server,
        "dead",
        "StorageQueue",
        {"resourceId": RESOURCE, "queueName": "nowhere"},
        retryPolicy={"maxDeliveryAttempts": 1},
        deadLetterDestination={
            "endpointType": "StorageBlob",
            "properties": {"resourceId": RESOURCE, "blobContainerName": _MINE},
        },
    )
    _publish(server)
    server.advance(299)
    assert not list(container.list_blobs())
    server.advance(10)
    (blob,) = container.list_blobs()
    assert blob.name.startswith("DEAD/2026/")
    (letter,) = orjson.loads(container.download_blob(blob.name).readall())
    assert (letter["id"], letter["deadLetterReason"], letter["lastDeliveryOutcome"]) == (
        "1",
        "MaxDeliveryAttemptsExceeded",
        "NotFound",
    )
    container.delete_container()
