"""Event Grid is made when somebody asks for it; what it owes is delivered though nobody does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import orjson
import pytest

from redrive.app import Server, assembled
from redrive.azure.arm.accounts import GROUP
from redrive.azure.eventgrid import names, settings
from redrive.azure.eventgrid.published import PublishedEvent
from redrive.azure.recognise import is_for_azure
from redrive.composition.event_grid import DeferredEventGrid
from redrive.composition.event_grid_delivery import event_grid_delivery
from redrive.composition.event_grid_gateway import azure_gateway
from redrive.model.delivery import DeadLetterReason
from redrive.model.http import Request, Response
from redrive.model.queue import Queue
from redrive.model.topic import EVENTS, Publication, Subscription, Topic
from redrive.settings import Settings
from tests.azure.stage import EVENT, TOPIC

URL: Final = "http://127.0.0.1:4566"
GROUP_PATH: Final = f"/subscriptions/{TOPIC.subscription}/resourceGroups/{TOPIC.group}"


@asynccontextmanager
async def serving(store: str = "sqlite://:memory:") -> AsyncIterator[tuple[Server, DeferredEventGrid]]:
    async with assembled(Settings(store=store, clock="simulated"), URL) as server:
        await server.open()
        grid = next(each for each in server.parts.deferred if isinstance(each, DeferredEventGrid))
        yield server, grid


async def asked(server: Server, method: str, path: str, query: str = "", body: bytes = b"") -> Response:
    answer = server.router.answer(Request(method, path, query, {"host": "localhost"}, body))
    return answer if isinstance(answer, Response) else await answer


class Webhook:
    """Answers 503 until it is told to answer 200; notes the bodies that it took."""

    def __init__(self) -> None:
        self.status = "503 Busy"
        self.bodies: list[bytes] = []

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        self.bodies.append(await reader.readexactly(length))
        writer.write(f"HTTP/1.1 {self.status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        writer.close()


async def subscribe(server: Server, url: str) -> Topic:
    """A topic with one subscription to a webhook, as the resource manager makes them."""
    resources, name = server.core.engine.resources, names.topic_name_of(TOPIC)
    topic = await resources.topics.create(
        Topic(0, name, names.DIALECT, attributes={"id": TOPIC.text, "properties": "{}"})
    )
    properties = {"destination": {"endpointType": "WebHook", "properties": {}}}
    attributes = {
        "id": f"{TOPIC.text}/eventSubscriptions/one",
        "properties": orjson.dumps(properties).decode(),
    }
    await resources.subscriptions.create(
        Subscription(
            names.subscription_id("one"),
            name,
            0,
            name.account,
            "http",
            url,
            filter_language=EVENTS,
            attributes=attributes,
        )
    )
    return topic


async def publish(server: Server, topic: Topic) -> None:
    engine = server.core.engine
    envelope = PublishedEvent(settings.EVENT_GRID_SCHEMA, TOPIC.text, engine.clock.now()).envelope()
    text = orjson.dumps(EVENT).decode()
    publication = Publication(engine.runtime.message_id(), text, {}, {}, envelope, len(text))
    await engine.messages.publish(topic, [publication])


async def test_a_backlog_in_the_store_is_delivered_before_any_request(tmp_path: Path) -> None:
    webhook = Webhook()
    listener = await asyncio.start_server(webhook.hear, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
    async with listener:
        async with serving(f"sqlite:///{tmp_path}/redrive.db") as (server, _):
            await publish(server, await subscribe(server, url))
            assert server.time is not None
            await server.time.advance(1_000)
            assert len(webhook.bodies) == 1
        webhook.status = "200 OK"
        async with serving(f"sqlite:///{tmp_path}/redrive.db") as (server, grid):
            assert server.time is not None
            await server.time.advance(60_000)
            assert [orjson.loads(body)[0]["id"] for body in webhook.bodies] == [EVENT["id"]] * 2
            assert not grid.is_open
            delivered = await _count(server, "DeliverySuccessCount")
    assert delivered == 1


async def _count(server: Server, metric: str) -> float:
    """The metric in the minutes so far, by what Azure Monitor's interface answers."""
    await server.core.telemetry.flush()
    path = f"{TOPIC.text}/providers/Microsoft.Insights/metrics"
    response = await asked(server, "GET", path, f"metricnames={metric}&aggregation=Total")
    [series] = orjson.loads(response.body)["value"][0]["timeseries"]
    return sum(point.get("total", 0) for point in series["data"])


async def test_drops_from_a_namespaces_queue_are_counted_before_any_request() -> None:
    async with serving() as (server, grid):
        name = names.topic_name_of(TOPIC)._replace(name="namespaces:n:t:s")
        queue = Queue(1, name, attributes={settings.ID: "/n/topics/t/eventSubscriptions/s"})
        server.core.engine.parts.listeners.queues.dropped(queue, 3, DeadLetterReason.EXPIRED, 0)
        assert not grid.is_open
        points = server.core.telemetry.metrics.take()
    assert [point.statistics.total for point in points if point.series.name == "DroppedEventCount"] == [3]


async def test_the_first_request_opens_it_with_the_documents_of_a_reset() -> None:
    async with serving() as (server, grid):
        assert not grid.is_open
        response = await asked(server, "PUT", GROUP_PATH, body=b'{"location":"local"}')
        assert response.status == 201
        assert grid.is_open
        kinds = {kind.name for extension in server.extensions for kind in extension.interface.kinds}
        assert GROUP.name in kinds


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/subscriptions/s/resourceGroups/g", "localhost"),
        ("/providers/Microsoft.EventGrid/operations", "localhost"),
        ("/eventgrid/s/g/t/api/events", "localhost"),
        ("/EventGrid/s/g/domains/d/API/events/", "localhost"),
        ("/api/events", "t.local.eventgrid.azure.net:443"),
        ("/eventgrid/s/g/n/topics/t:publish", "localhost"),
        ("/topics/t/eventsubscriptions/e:receive", "n.local.eventgrid.azure.net"),
        ("/eventsubscriptions/e/validate", "localhost"),
        ("/_storage/letters/dead", "localhost"),
        ("/dead", "letters.blob.localhost"),
        ("/common/oauth2/v2.0/token", "localhost"),
        ("/metadata/endpoints", "localhost"),
        ("/t/discovery/v2.0/keys", "localhost"),
        ("/", "localhost"),
        ("/api/events", "localhost"),
        ("/topics/t", "n.local.eventgrid.azure.net"),
        ("/bucket/key:1", "localhost"),
        ("/dead", "no.blob.localhost"),
    ],
)
async def test_a_request_is_recognised_as_azures_if_one_of_its_services_answers_it(
    path: str, host: str
) -> None:
    async with serving() as (server, _):
        gateway = azure_gateway(server.core, event_grid_delivery(server.core))
    assert gateway.handles(Request("GET", path, "", {"host": host}, b"")) is is_for_azure(path, host)
