"""A topic in the words tests use, spoken by azure-eventgrid and azure-mgmt-eventgrid, and a webhook that agrees."""

import contextlib
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson
from azure.core.credentials import AzureKeyCredential
from azure.eventgrid import EventGridPublisherClient
from azure.mgmt.eventgrid import models
from typing_extensions import override

from tests.contracts.azure.namespaces import make_container
from tests.contracts.azure.resources import STORAGE, Resources, Webhook
from tests.services.answering import answering
from tests.services.server import Server


@dataclass(frozen=True)
class Hit:
    """One request that a webhook got."""

    headers: dict[str, str]
    document: Any


class Subscriber:
    """A webhook that agrees to get events, keeps them, and answers as it was told to."""

    def __init__(self) -> None:
        self.status = 200
        self._hits: queue.Queue[Hit] = queue.Queue()
        subscriber = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_OPTIONS(self) -> None:
                self._answer(200, b"", ("WebHook-Allowed-Origin", "*"))

            def do_POST(self) -> None:
                document = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                if headers.get("aeg-event-type") == "SubscriptionValidation":
                    code = document[0]["data"]["validationCode"]
                    self._answer(200, orjson.dumps({"validationResponse": code}))
                    return
                subscriber._hits.put(Hit(headers, document))
                self._answer(subscriber.status, b"")

            def _answer(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
                self.send_response(status)
                for name, value in (*headers, ("Content-Length", str(len(body)))):
                    self.send_header(name, value)
                with contextlib.suppress(ConnectionError):  # a server that was killed listens no more
                    self.end_headers()
                    self.wfile.write(body)

            @override
            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def next(self) -> Hit:
        """The next request; a test fails that waits for 10 seconds."""
        return self._hits.get(timeout=10)

    @property
    def is_idle(self) -> bool:
        return self._hits.empty()

    @contextlib.contextmanager
    def serving(self) -> Iterator["Subscriber"]:
        with answering(self._server):
            yield self


@dataclass
class Grid:
    """Topics and domains at a server, published to by azure-eventgrid."""

    resources: Resources
    _clients: list[Any] = field(default_factory=list)

    @property
    def server(self) -> Server:
        return self.resources.server

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def topic(self, schema: str = "EventGridSchema", **fields: Any) -> Any:
        return self.resources.topic(input_schema=schema, **fields)

    def subscribe(
        self, scope: str, subscriber: Subscriber, name: str = "watcher", *, container: str = "", **fields: Any
    ) -> None:
        """Subscribe a webhook to a topic, or to whatever else sends events."""
        if container:
            make_container(self.server, container)
            fields["dead_letter_destination"] = models.StorageBlobDeadLetterDestination(
                resource_id=STORAGE, blob_container_name=container
            )
        destination = models.WebHookEventSubscriptionDestination(
            endpoint_url=subscriber.url, **fields.pop("destination", {})
        )
        self.resources.subscribe(scope, name, destination=destination, **fields)

    def letters(self, name: str) -> list[Any]:
        """The dead letters of an event subscription, from the folder that the server keeps blobs in."""
        container = self.server.log.parent / "redrive-blobs" / "letters" / "dead"
        files = sorted((container / name.upper()).glob("*/*/*/*/*.json"))
        return [letter for file in files for letter in orjson.loads(file.read_bytes())]

    def publish(self, resource: Any, events: Any) -> int:
        """Publish; the status of the answer."""
        client = EventGridPublisherClient(resource.endpoint, AzureKeyCredential("any"))
        self._clients.append(client)
        return status_of(lambda hook: client.send(events, raw_response_hook=hook))


@contextlib.contextmanager
def grid_at(server: Server) -> Iterator[Grid]:
    """A server's topics and domains, for tests whose webhooks are subscribers of their own."""
    resources = Resources(server, Webhook())
    with contextlib.closing(resources.client), contextlib.closing(Grid(resources)) as grid:
        yield grid


def status_of(call: Callable[[Callable[[Any], None]], object]) -> int:
    """The status of the answer that a call of an Azure client got, which takes this hook for it."""
    statuses: list[int] = []
    call(lambda response: statuses.append(response.http_response.status_code))
    return statuses[-1]
