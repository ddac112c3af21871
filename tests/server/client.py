"""A client that says exactly the bytes it is told to, and the requests and answers tests speak in."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass

PATIENCE_SECONDS = 5  # how long a test waits before it calls the server hung


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


async def until(happens: Callable[[], object]) -> None:
    """Let the loop turn until something is so that nothing announces."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not happens():  # noqa: ASYNC110  there is no event to wait for
            await asyncio.sleep(0)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int, tls: ssl.SSLContext | None = None) -> "Client":
        name = "localhost" if tls else None
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name))

    async def send(self, *pieces: bytes) -> None:
        """Each piece is a write of its own, and most likely a read of its own for the server."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def answer(self, method: str = "GET") -> Answer:
        async with asyncio.timeout(PATIENCE_SECONDS):
            status_line, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value for name, _, value in (line.partition(": ") for line in lines) if name
            }
            length = 0 if method == "HEAD" else int(headers.get("content-length", 0))
            return Answer(int(status_line.split()[1]), headers, await self.reader.readexactly(length))

    async def ask(self, *pieces: bytes, method: str = "GET") -> Answer:
        await self.send(*pieces)
        return await self.answer(method)

    async def rest(self) -> bytes:
        """Read everything that comes until the server closes the connection, in whichever way."""
        received = b""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                while piece := await self.reader.read(65536):
                    received += piece
            except ConnectionError:
                pass
        return received

    async def close(self) -> None:
        self.writer.close()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            pass


def get(target: str = "/", *headers: str, version: str = "1.1") -> bytes:
    return message("GET", target, *headers, version=version)


def post(body: bytes, *headers: str, target: str = "/") -> bytes:
    return message("POST", target, f"Content-Length: {len(body)}", *headers) + body


def message(method: str, target: str, *headers: str, version: str = "1.1") -> bytes:
    lines = [f"{method} {target} HTTP/{version}", "Host: redrive.test", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def chunked(*chunks: bytes, trailer: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + (
        b"0\r\n" + trailer + b"\r\n"
    )
