"""A storage account that is a webhook: what it answers is scripted, which no emulator offers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from redrive.endpoints.blob import BlobEndpoint
from redrive.engine.ports import Endpoint, Parcel
from tests.contracts.endpoints.kinds import NOW, PATIENCE_MS, Place
from tests.contracts.endpoints.webhook import Received, Webhook, answer, hang, webhook
from tests.services import azurite

CONTAINER: Final = f"{azurite.RESOURCE}/blobServices/default/containers/letters"
PATH: Final = "ORDERS/2026/11/20/9/4f1c.json"
_CREATED: Final = answer("201 Created", b"", 'ETag: "0x8D"', "Last-Modified: Fri, 20 Nov 2026 09:00:00 GMT")


def blob_parcel(
    text: str = "hello", timeout_ms: int = PATIENCE_MS, *, path: str = PATH, container: str = CONTAINER
) -> Parcel:
    return Parcel(container, text.encode(), "application/json", {"path": path}, timeout_ms)


def blob_endpoint(url: str) -> BlobEndpoint:
    """An endpoint whose every blob goes to the account at this URL."""
    return BlobEndpoint(lambda: NOW, lambda _: connection_string(url), "")


def connection_string(url: str) -> str:
    services = ";".join(f"{service}Endpoint={url}" for service in ("Blob", "Queue"))
    return f"AccountName={azurite.ACCOUNT};AccountKey={azurite.KEY};{services}"


class BlobPlace:
    """A scripted container behind a BlobEndpoint."""

    def __init__(self, endpoint: Endpoint, hook: Webhook) -> None:
        self.endpoint = endpoint
        self._hook = hook

    def parcel(self, text: str = "hello", timeout_ms: int = PATIENCE_MS) -> Parcel:
        return blob_parcel(text, timeout_ms)

    def received(self) -> list[str]:
        return [request.body.decode() for request in self._hook.received]

    def refuse(self) -> None:
        self._hook.say(answer("400 Bad Request", b"never"))

    def fail(self, says: str = "in trouble") -> None:
        self._hook.say(answer("503 Service Unavailable", says.encode()))

    def hang_on(self, text: str) -> None:
        async def script(request: Received, writer: asyncio.StreamWriter) -> None:
            if request.body.decode() == text:
                await hang(request, writer)
            writer.write(_CREATED)

        self._hook.script = script

    def close_early(self) -> None:
        async def script(_: Received, writer: asyncio.StreamWriter) -> None:
            writer.close()

        self._hook.script = script

    def elsewhere(self, host: str, port: int) -> tuple[Endpoint, Parcel]:
        return blob_endpoint(f"http://{host}:{port}/{azurite.ACCOUNT}"), blob_parcel()


@asynccontextmanager
async def blob_place() -> AsyncIterator[Place]:
    async with webhook() as hook:
        hook.say(_CREATED)
        endpoint = blob_endpoint(hook.url(f"/{azurite.ACCOUNT}"))
        yield BlobPlace(endpoint, hook)
        await endpoint.close()
