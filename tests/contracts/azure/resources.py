"""Event Grid's resources in the words tests use, made by azure-mgmt-eventgrid, and a webhook that shakes hands."""

import contextlib
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import orjson
import pytest
from azure.core.exceptions import HttpResponseError
from azure.mgmt.eventgrid import models
from typing_extensions import override

from tests.contracts.azure.namespaces import GROUP, SUBSCRIPTION, management
from tests.services.answering import answering
from tests.services.server import Server

PROVIDERS: Final = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers"
EVENT_GRID: Final = f"{PROVIDERS}/Microsoft.EventGrid"
STORAGE: Final = f"{PROVIDERS}/Microsoft.Storage/storageAccounts/letters"
CONTAINER: Final = {"resource_id": STORAGE, "blob_container_name": "dead"}


@dataclass(frozen=True)
class Asked:
    """One request that a webhook got."""

    method: str
    headers: dict[str, str]
    body: Any


@dataclass
class Webhook:
    """Answers by its manners: the status and the body for an event's code, and headers."""

    answers: Callable[[str], tuple[int, Any]] = lambda code: (200, {"validationResponse": code})
    headers: dict[str, str] = field(default_factory=lambda: {"WebHook-Allowed-Origin": "eventgrid.azure.net"})
    asked: "queue.Queue[Asked]" = field(default_factory=queue.Queue)
    url: str = ""

    def next(self) -> Asked:
        """The next request; a test fails that waits for 10 seconds."""
        return self.asked.get(timeout=10)

    @contextlib.contextmanager
    def serving(self) -> Iterator["Webhook"]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{server.server_port}/hook?code=s3cret"
        with answering(server):
            yield self

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer("POST", body, *hook.answers(body[0]["data"].get("validationCode", "")))

            def do_OPTIONS(self) -> None:
                self._answer("OPTIONS", None, *hook.answers(""))

            def _answer(self, method: str, body: Any, status: int, said: Any) -> None:
                hook.asked.put(Asked(method, {name.lower(): one for name, one in self.headers.items()}, body))
                content = orjson.dumps(said)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                for name, value in hook.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            @override
            def log_message(self, *_: object) -> None:
                pass

        return Handler


@dataclass
class Resources:
    """The group `rg` at a server."""

    server: Server
    hook: Webhook

    @cached_property
    def client(self) -> Any:
        return management(self.server.url)

    def topic(self, name: str = "orders", **fields: Any) -> Any:
        wanted = models.Topic(**{"location": "local", **fields})
        return self.client.topics.begin_create_or_update(GROUP, name, wanted).result()

    def domain(self, name: str = "shops", **fields: Any) -> Any:
        wanted = models.Domain(**{"location": "local", **fields})
        return self.client.domains.begin_create_or_update(GROUP, name, wanted).result()

    def webhook(self, **fields: Any) -> Any:
        return models.WebHookEventSubscriptionDestination(**{"endpoint_url": self.hook.url, **fields})

    def subscribe(self, scope: str, name: str = "billing", **fields: Any) -> Any:
        """Make an event subscription in the extension form, without waiting for anybody's action."""
        wanted = models.EventSubscription(**{"destination": self.webhook(), **fields})
        return self.client.event_subscriptions.begin_create_or_update(
            scope, name, wanted, polling=False
        ).result()

    def shown(self, scope: str, name: str = "billing") -> Any:
        return self.client.event_subscriptions.get(scope, name)

    def ask(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        """One request as no client sends it; status and JSON."""
        body = b"" if document is None else orjson.dumps(document)
        status, answer = self.server.ask(method, f"{path}?api-version=2025-02-15", body)
        return status, orjson.loads(answer) if answer else None


def refused(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """The error of a call that is refused: status, code and message."""
    with pytest.raises(HttpResponseError) as refusal:
        call(*arguments, **named)
    error = refusal.value
    assert error.error is not None
    return error.status_code, error.error.code, error.error.message
