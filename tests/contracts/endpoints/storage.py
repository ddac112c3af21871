"""A storage account that is a webhook: what it answers is scripted, which no emulator offers."""

import asyncio
import re
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from redrive.endpoints.azure.storage_queue import StorageQueueEndpoint
from redrive.endpoints.blob import BlobEndpoint
from redrive.engine.ports import Endpoint, PushRequest
from tests.contracts.endpoints.kinds import NOW, PATIENCE_MS, Place
from tests.contracts.endpoints.webhook import Received, Webhook, answer, hang, webhook
from tests.services import azurite

CONTAINER: Final = f"{azurite.RESOURCE}/blobServices/default/containers/letters"
PATH: Final = "ORDERS/2026/11/20/9/4f1c.json"
CREATED: Final = answer("201 Created", b"", 'ETag: "0x8D"', "Last-Modified: Fri, 20 Nov 2026 09:00:00 GMT")


def blob_push(
    text: str = "hello", timeout_ms: int = PATIENCE_MS, *, path: str = PATH, container: str = CONTAINER
) -> PushRequest:
    return PushRequest(container, text.encode(), "application/json", {"path": path}, timeout_ms)


def blob_endpoint(url: str) -> BlobEndpoint:
    """An endpoint whose every blob goes to the account at this URL."""
    return BlobEndpoint(lambda: NOW, lambda _: connection_string(url), "")


def connection_string(url: str) -> str:
    services = ";".join(f"{service}Endpoint={url}" for service in ("Blob", "Queue"))
    return f"AccountName={azurite.ACCOUNT};AccountKey={azurite.KEY};{services}"


QUEUE: Final = f"{azurite.RESOURCE}/queueServices/default/queues/events"
_TEXT: Final = re.compile(rb"<MessageText>(.*)</MessageText>", re.DOTALL)


def queue_push(text: str = "hello", timeout_ms: int = PATIENCE_MS, *, queue: str = QUEUE) -> PushRequest:
    return PushRequest(
        queue, text.encode(), "application/json", {"aeg-event-type": "Notification"}, timeout_ms
    )


def queue_endpoint(url: str) -> StorageQueueEndpoint:
    """An endpoint whose every queue is of the account at this URL."""
    return StorageQueueEndpoint(lambda: NOW, lambda _: connection_string(url))


def message_text(body: bytes) -> str:
    """Return a message's text, from the request that puts it into a queue."""
    found = _TEXT.search(body)
    assert found is not None
    return b64decode(found[1]).decode()


@dataclass(frozen=True)
class Service:
    """A service of a storage account.

    Attributes:
        endpoint: Pushes to the account at a URL.
        push_request: For it.
        text: What a request brought.
    """

    endpoint: Callable[[str], Endpoint]
    push_request: Callable[[str, int], PushRequest]
    text: Callable[[bytes], str]


BLOBS: Final = Service(blob_endpoint, blob_push, bytes.decode)
QUEUES: Final = Service(queue_endpoint, queue_push, message_text)


class StoragePlace:
    """A scripted service of an account, behind its kind of endpoint."""

    def __init__(self, service: Service, endpoint: Endpoint, hook: Webhook) -> None:
        self.endpoint = endpoint
        self._service = service
        self._hook = hook

    def push_request(self, text: str = "hello", timeout_ms: int = PATIENCE_MS) -> PushRequest:
        return self._service.push_request(text, timeout_ms)

    def received(self) -> list[str]:
        return [self._service.text(request.body) for request in self._hook.received]

    def refuse(self) -> None:
        self._hook.say(answer("400 Bad Request", b"never"))

    def fail(self, says: str = "in trouble") -> None:
        self._hook.say(answer("503 Service Unavailable", says.encode()))

    def hang_on(self, text: str) -> None:
        async def script(request: Received, writer: asyncio.StreamWriter) -> None:
            if self._service.text(request.body) == text:
                await hang(request, writer)
            writer.write(CREATED)

        self._hook.script = script

    def close_early(self) -> None:
        async def script(_: Received, writer: asyncio.StreamWriter) -> None:
            writer.close()

        self._hook.script = script

    def elsewhere(self, host: str, port: int) -> tuple[Endpoint, PushRequest]:
        return self._service.endpoint(f"http://{host}:{port}/{azurite.ACCOUNT}"), self.push_request()


@asynccontextmanager
async def storage_place(service: Service) -> AsyncIterator[Place]:
    async with webhook() as hook:
        hook.say(CREATED)
        endpoint = service.endpoint(hook.url(f"/{azurite.ACCOUNT}"))
        yield StoragePlace(service, endpoint, hook)
        await endpoint.close()
