"""Calls of Amazon SQS with next to no client around them, so that the time measured is the server's."""

import asyncio
import functools
from typing import Any, Final, Self, cast
from urllib.parse import urlsplit

import orjson
from typing_extensions import override

_HEAD: Final = (
    "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-amz-json-1.0\r\n"
    "X-Amz-Target: AmazonSQS.{operation}\r\nContent-Length: {length}\r\n\r\n"
)
_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


class CallFailedError(RuntimeError):
    """A call was not answered with 200, or 202."""


def request(host: str, operation: str, document: Any) -> bytes:
    """A call as it goes over the wire, to be made once and sent often."""
    body = orjson.dumps(document)
    return _HEAD.format(host=host, operation=operation, length=len(body)).encode() + body


class Connection(asyncio.Protocol):
    """One connection that stays open, with one call under way."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._transport: asyncio.Transport
        self._answered: asyncio.Future[bytes] | None = None
        self._received = b""

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect to a server."""
        address = urlsplit(url)
        loop = asyncio.get_running_loop()
        factory = functools.partial(cls, address.netloc)
        _, protocol = await loop.create_connection(factory, address.hostname or "", address.port or 80)
        return protocol

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    async def call(self, operation: str, document: Any) -> Any:
        """Make a call; its answer as JSON."""
        return orjson.loads(await self.send(request(self.host, operation, document)))

    def send(self, call: bytes) -> asyncio.Future[bytes]:
        """Send what `request` made; the answer's body, or CallFailedError."""
        answered = self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(call)
        return answered

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        assert self._answered is not None, "an answer to no call"
        self._received += data
        head, end, body = self._received.partition(_END_OF_HEAD)
        if not end or len(body) < _body_bytes(head):
            return
        self._received = b""
        if head.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 202 ")):
            self._answered.set_result(body)
        else:
            self._answered.set_exception(CallFailedError(f"{head.decode()}\n{body.decode()}"))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or CallFailedError("the server hung up"))


def _body_bytes(head: bytes) -> int:
    lowered = head.lower()
    start = lowered.index(_LENGTH) + len(_LENGTH)
    return int(lowered[start:].partition(b"\r\n")[0])
