"""A webhook on a socket of its own, which can answer anything, or nothing."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"


@dataclass(frozen=True)
class Received:
    """A request as it came.

    Attributes:
        connection: Which connection it came by, from 1.
        headers: In their order, names in lower case.
    """

    connection: int
    line: str
    headers: dict[str, str]
    body: bytes


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    """The bytes of a response: `answer("404 Not Found", b"no")`."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


Script = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]
Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Webhook:
    """Serves requests by a script, which writes an answer or does not."""

    script: Script
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    scheme: str = "http"

    def url(self, path: str = "/hook") -> str:
        host = "localhost" if self.scheme == "https" else "127.0.0.1"
        return f"{self.scheme}://{host}:{self.port}{path}"

    def say(self, *answers: bytes) -> None:
        """Answer the next requests so, and all that follow like the last of them."""
        rest = list(answers)

        async def script(_: Received, writer: asyncio.StreamWriter) -> None:
            writer.write(rest.pop(0) if len(rest) > 1 else rest[0])
            await writer.drain()

        self.script = script

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                request = await _read(reader, connection)
                self.received.append(request)
                self.arrived.set()
                await self.script(request, writer)


async def hang(_: Received, __: asyncio.StreamWriter) -> None:
    """A script that keeps its client waiting for ever."""
    await asyncio.Event().wait()


@asynccontextmanager
async def webhook(tls: ssl.SSLContext | None = None) -> AsyncIterator[Webhook]:
    """A webhook on a free port, answering 200."""
    hook = Webhook(hang, scheme="https" if tls else "http")
    hook.say(OK)
    async with listening(hook.serve, tls) as hook.port:
        yield hook


@asynccontextmanager
async def listening(serve: Conversation, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A port where each connection is served so, until the end."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve_until_cancelled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve_until_cancelled, "127.0.0.1", 0, ssl=tls)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks)
    await server.wait_closed()


async def _read(reader: asyncio.StreamReader, connection: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(connection, head[0], headers, body)
