"""The Runtime API of one environment: whom it answers, and what a hostile client may send it."""

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

from redrive.functions.peers import holds, peer_of
from redrive.functions.runtime_api import RuntimeApi
from redrive.model.function import Invocation

_NEXT = b"GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: x\r\n\r\n"
_PING = b"GET /ping HTTP/1.1\r\n\r\n"


class Client:
    """A connection of a function's process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def sent(self, piece: bytes, most: int) -> int:
        """Send a piece again and again, until the connection is cut off; how many bytes that took."""
        sent = 0
        while sent < most:
            try:
                self.writer.write(piece)
                await self.writer.drain()
            except OSError:
                break
            sent += len(piece)
            await asyncio.sleep(0)  # both ends are in this process
        self.writer.close()
        return sent


@pytest.fixture
async def api() -> AsyncIterator[RuntimeApi]:
    api = RuntimeApi()
    yield api
    api.close()


async def _connected(api: RuntimeApi, *, own: bool = True) -> Client:
    host, port = (await api.open(lambda _peer, _own: own)).split(":")
    return Client(*await asyncio.open_connection(host, int(port)))


async def _read(reader: asyncio.StreamReader) -> bytes:
    """A byte; none: the connection was cut off."""
    try:
        return await reader.read(1)
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    ("beginning", "piece"),
    [
        (b"GET /", b"a" * 65_536),
        (b"GET / HTTP/1.1\r\nX: ", b"a" * 65_536),
        (b"GET / HTTP/1.1\r\n", b"X: y\r\n" * 10_000),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a" * 65_536),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"a" * 65_536),
        (b"", _PING * 3_000),
    ],
    ids=["URL", "header", "headers", "extension of a chunk", "trailer", "requests"],
)
async def test_a_request_without_end_is_cut_off(api: RuntimeApi, beginning: bytes, piece: bytes) -> None:
    client = await _connected(api)
    client.writer.write(beginning)
    async with asyncio.timeout(20):
        assert await client.sent(piece, 64 * 2**20) < 16 * 2**20  # most of it lies in the sockets' buffers


async def test_a_client_that_reads_no_answer_is_cut_off(api: RuntimeApi) -> None:
    """Answers that nobody reads were held without end."""
    client = await _connected(api)
    client.reader._limit = 1  # type: ignore[attr-defined] # nothing more is read of the socket
    request = b"GET /" + b"a" * 8_000 + b" HTTP/1.1\r\n\r\n"  # the answer is as long: it repeats the path
    async with asyncio.timeout(20):
        assert 2**20 < await client.sent(request, 64 * 2**20) < 32 * 2**20


async def test_another_process_gets_no_invocation(api: RuntimeApi) -> None:
    client = await _connected(api, own=False)
    client.writer.write(_NEXT)
    api.hand_over(Invocation("r", b"secret", "arn"), 0, lambda _: None)
    assert await _read(client.reader) == b""
    client.writer.close()


async def test_a_process_that_is_gone_answers_nothing(api: RuntimeApi) -> None:
    under_way, later = [asyncio.get_running_loop().create_future() for _ in range(2)]
    api.hand_over(Invocation("r", b"{}", "arn"), 0, under_way.set_result)
    api.abandon()
    assert await under_way is None
    api.hand_over(Invocation("later", b"{}", "arn"), 0, later.set_result)
    assert await later is None


async def test_a_process_has_as_many_connections_as_it_needs(api: RuntimeApi) -> None:
    address = (await api.open(lambda _peer, _own: True)).split(":")
    clients = [await asyncio.open_connection(address[0], int(address[1])) for _ in range(65)]
    clients[0][1].write(_PING)
    assert (await clients[0][0].readline()).startswith(b"HTTP/1.1 200")
    assert await _read(clients[-1][0]) == b""
    for _, writer in clients:
        writer.close()


async def test_the_kernel_tells_who_connects() -> None:
    accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
    async with await asyncio.start_server(
        lambda _, writer: accepted.set_result(writer), "127.0.0.1", 0
    ) as server:
        _, client = await asyncio.open_connection(*server.sockets[0].getsockname())
        there = await accepted
        address, own = there.get_extra_info("peername"), there.get_extra_info("sockname")
        peer = peer_of(address, own)
        assert peer is not None
        assert peer.user == os.geteuid()
        assert holds([os.getpid()], peer.inode)
        assert not holds([1], peer.inode)
        assert peer_of((address[0], 1), own) is None
        client.close()
        there.close()
