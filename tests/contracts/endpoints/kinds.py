"""The kinds of endpoint in one form: somewhere to push to, and ways to make it behave badly."""

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from redrive.endpoints.email import EmailEndpoint, Relay
from redrive.endpoints.http import HttpEndpoint, HttpPolicy
from redrive.engine.ports import Endpoint, PushRequest
from tests.contracts.endpoints.relay import SENDER, MailServer, mail_server
from tests.contracts.endpoints.webhook import OK, Received, Webhook, answer, hang, webhook

NOW = 1_767_225_600_000
PATIENCE_MS = 5_000  # for what is to succeed
IMPATIENCE_MS = 100  # for what is to hang


class Place(Protocol):
    """Somewhere to push to."""

    endpoint: Endpoint

    def push_request(self, text: str = "hello", timeout_ms: int = PATIENCE_MS) -> PushRequest: ...
    def received(self) -> list[str]:
        """The texts that arrived."""
        ...

    def refuse(self) -> None:
        """Say from now on that this will never do."""
        ...

    def fail(self, says: str = "in trouble") -> None:
        """Say from now on that it is in trouble."""
        ...

    def hang_on(self, text: str) -> None:
        """Never answer a request with this text."""
        ...

    def close_early(self) -> None:
        """Close from now on instead of answering."""
        ...

    def elsewhere(self, host: str, port: int) -> tuple[Endpoint, PushRequest]:
        """The same kind of endpoint, and a request for it, at another host and port."""
        ...


def http_endpoint(policy: HttpPolicy | None = None, now: Callable[[], int] = lambda: NOW) -> HttpEndpoint:
    return HttpEndpoint(now, random.Random(7), policy)


def http_push(url: str, text: str = "hello", timeout_ms: int = PATIENCE_MS) -> PushRequest:
    return PushRequest(url, text.encode(), "text/plain; charset=UTF-8", {"x-test": "yes"}, timeout_ms)


class WebhookPlace:
    """A webhook behind an HttpEndpoint."""

    def __init__(self, endpoint: Endpoint, hook: Webhook) -> None:
        self.endpoint = endpoint
        self._hook = hook

    def push_request(self, text: str = "hello", timeout_ms: int = PATIENCE_MS) -> PushRequest:
        return http_push(self._hook.url(), text, timeout_ms)

    def received(self) -> list[str]:
        return [request.body.decode() for request in self._hook.received]

    def refuse(self) -> None:
        self._hook.say(answer("403 Forbidden", b"never"))

    def fail(self, says: str = "in trouble") -> None:
        self._hook.say(answer("503 Service Unavailable", says.encode()))

    def hang_on(self, text: str) -> None:
        async def script(request: Received, writer: asyncio.StreamWriter) -> None:
            if request.body.decode() == text:
                await hang(request, writer)
            writer.write(OK)

        self._hook.script = script

    def close_early(self) -> None:
        async def script(_: Received, writer: asyncio.StreamWriter) -> None:
            writer.close()

        self._hook.script = script

    def elsewhere(self, host: str, port: int) -> tuple[Endpoint, PushRequest]:
        return self.endpoint, http_push(f"http://{host}:{port}/")


class MailPlace:
    """A mail server behind an EmailEndpoint."""

    def __init__(self, endpoint: Endpoint, server: MailServer) -> None:
        self.endpoint = endpoint
        self._server = server

    def push_request(self, text: str = "hello", timeout_ms: int = PATIENCE_MS) -> PushRequest:
        return mail_push(text, timeout_ms)

    def received(self) -> list[str]:
        """Mail ends its lines with CRLF, and its last line as well."""
        texts = [mail.get_content().replace("\r\n", "\n") for mail in self._server.mails]
        return [text.removesuffix("\n") for text in texts]

    def refuse(self) -> None:
        self._server.reply = "554 5.7.1 never"

    def fail(self, says: str = "in trouble") -> None:
        self._server.reply = f"451 4.3.0 {says[:400]}"

    def hang_on(self, text: str) -> None:
        async def script(server: object) -> None:
            envelope = server.envelope  # type: ignore[attr-defined]  # aiosmtpd's, which is typed loosely
            if text in envelope.content.decode():
                await asyncio.Event().wait()

        self._server.script = script

    def close_early(self) -> None:
        async def script(server: object) -> None:
            server.transport.close()  # type: ignore[attr-defined]  # as above

        self._server.script = script

    def elsewhere(self, host: str, port: int) -> tuple[Endpoint, PushRequest]:
        return EmailEndpoint(lambda: NOW, Relay(host, port, SENDER)), self.push_request()


def mail_push(text: str = "hello", timeout_ms: int = PATIENCE_MS, to: str = "ann@example.org") -> PushRequest:
    headers = {"Subject": "News", "From": "Rentals", "Message-ID": "<1.2@redrive.test>"}
    return PushRequest(to, text.encode(), "text/plain; charset=UTF-8", headers, timeout_ms)


@asynccontextmanager
async def webhook_place() -> AsyncIterator[Place]:
    endpoint = http_endpoint()
    async with webhook() as hook:
        yield WebhookPlace(endpoint, hook)
        await endpoint.close()


@asynccontextmanager
async def mail_place() -> AsyncIterator[Place]:
    async with mail_server() as server:
        endpoint = EmailEndpoint(lambda: NOW, Relay("127.0.0.1", server.port, SENDER))
        yield MailPlace(endpoint, server)
        await endpoint.close()


def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
    return port
