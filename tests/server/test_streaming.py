"""Bodies that are written as they come."""

import asyncio
from collections.abc import AsyncIterator

from redrive.model.http import Request, Response
from tests.server.client import PATIENCE_SECONDS, get, message
from tests.server.conftest import Connect, Serve


class Source:
    """A handler whose body's parts a test hands out; `closed` is set when nobody wants more of them."""

    def __init__(self, length: int | None = None) -> None:
        self.length = length
        self.parts: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.closed = asyncio.Event()
        self.taken = 0

    def __call__(self, request: Request) -> Response:
        if request.path == "/whole":
            return Response(200, b"whole", "text/plain")
        return Response(200, b"", "text/plain", {"X-Car": "1"}, self.length, parts=self._body())

    async def _body(self) -> AsyncIterator[bytes]:
        try:
            while (part := await self.parts.get()) is not None:
                if isinstance(part, Exception):
                    raise part
                self.taken += 1
                yield part
        finally:
            self.closed.set()


async def _soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await event.wait()


async def test_parts_are_chunks_and_the_connection_goes_on(serve: Serve, connect: Connect) -> None:
    source = Source()
    client = await connect(await serve(source))
    await client.send(get(), get("/whole"))
    source.parts.put_nowait(b"one")
    async with asyncio.timeout(PATIENCE_SECONDS):
        head = await client.reader.readuntil(b"3\r\none\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"X-Car: 1\r\n" in head
    assert b"Transfer-Encoding: chunked\r\n" in head
    assert b"Content-Length" not in head
    for part in (b"", b"two", None):
        source.parts.put_nowait(part)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await client.reader.readuntil(b"0\r\n\r\n") == b"3\r\ntwo\r\n0\r\n\r\n"
    assert (await client.answer()).body == b"whole"


async def test_a_body_that_breaks_ends_the_connection_without_an_end(serve: Serve, connect: Connect) -> None:
    source = Source()
    client = await connect(await serve(source))
    await client.send(get())
    source.parts.put_nowait(b"one")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await client.reader.readuntil(b"3\r\none\r\n")
    source.parts.put_nowait(ValueError("broken"))
    assert await client.rest() == b""


async def test_a_client_that_leaves_closes_the_body(serve: Serve, connect: Connect) -> None:
    source = Source()
    client = await connect(await serve(source))
    await client.send(get())
    source.parts.put_nowait(b"one")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await client.reader.readuntil(b"3\r\none\r\n")
    client.writer.transport.abort()
    await _soon(source.closed)


async def test_a_client_that_does_not_read_stops_the_body_and_is_hung_up_on(
    serve: Serve, connect: Connect
) -> None:
    source = Source()
    client = await connect(await serve(source, grace_seconds=0.2, bytes_per_second=10**9))
    client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # what a reader without a reader does
    for _ in range(200):
        source.parts.put_nowait(bytes(1024 * 1024))
    await client.send(get())
    await _soon(source.closed)
    assert source.taken < 100


async def test_an_old_client_gets_the_body_without_chunks(serve: Serve, connect: Connect) -> None:
    source = Source()
    client = await connect(await serve(source))
    for part in (b"one", b"two", None):
        source.parts.put_nowait(part)
    await client.send(get(version="1.0"))
    head, _, body = (await client.rest()).partition(b"\r\n\r\n")
    assert body == b"onetwo"
    assert b"Connection: close" in head
    assert b"chunked" not in head


async def test_a_head_has_no_body(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve(Source()))
    assert (await client.ask(message("HEAD", "/"), method="HEAD")).body == b""


async def test_parts_of_a_known_length_have_no_chunks_and_the_connection_goes_on(
    serve: Serve, connect: Connect
) -> None:
    source = Source(length=6)
    client = await connect(await serve(source))
    for part in (b"one", b"two", None):
        source.parts.put_nowait(part)
    await client.send(get(), get("/whole"))
    first = await client.answer()
    assert (first.headers["content-length"], first.body) == ("6", b"onetwo")
    assert "transfer-encoding" not in first.headers
    assert (await client.answer()).body == b"whole"


async def test_a_body_that_is_shorter_than_its_length_ends_the_connection(
    serve: Serve, connect: Connect
) -> None:
    source = Source(length=6)
    client = await connect(await serve(source))
    for part in (b"one", None):
        source.parts.put_nowait(part)
    await client.send(get())
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert (await client.reader.read()).endswith(b"\r\n\r\none")
