import asyncio
import itertools
import socket

import pytest

from redrive.model.http import Request, Response
from tests.server.client import Client, get, message, post, until
from tests.server.conftest import Connect, Serve

_CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize(
    ("status", "raw", "limits"),
    [
        (413, message("POST", "/", "Content-Length: 11"), {"body_bytes_max": 10}),
        (413, message("POST", "/", _CHUNKED) + b"b\r\n" + b"x" * 11, {"body_bytes_max": 10}),
        (414, get("/" + "x" * 50), {"request_line_bytes_max": 50}),
        (431, get("/", "X-A: " + "x" * 50), {"header_bytes_max": 50}),
        (431, get("/", "X-A: b", "X-B: c"), {"header_count_max": 2}),
    ],
)
async def test_oversized_requests_are_refused(
    serve: Serve, connect: Connect, status: int, raw: bytes, limits: dict[str, int]
) -> None:
    client = await connect(await serve(**limits))
    answer = await client.ask(raw)
    assert (answer.status, answer.headers["connection"]) == (status, "close")
    assert await client.rest() == b""


async def test_a_refused_client_can_go_on_sending_and_still_reads_its_answer(
    serve: Serve, connect: Connect
) -> None:
    client = await connect(await serve(body_bytes_max=1024, linger_seconds=5))
    await client.send(message("POST", "/", "Content-Length: 4000000"), *[b"x" * 100_000] * 40)
    assert (await client.answer()).status == 413


async def test_an_endless_refused_client_is_cut_off(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve(body_bytes_max=1024, linger_seconds=0.05))
    answer = await client.ask(message("POST", "/", "Content-Length: 4000"))
    assert answer.status == 413
    with pytest.raises(ConnectionError):
        await client.send(*itertools.repeat(b"x" * 100_000, 10_000))


async def test_a_head_that_takes_too_long(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve(header_seconds=0.03))
    assert (await client.ask(get())).status == 200
    await client.send(b"G")
    answer = await client.answer()
    assert (answer.status, b"head" in answer.body) == (408, True)
    assert await client.rest() == b""


@pytest.mark.parametrize("begun", [b"GET / HTTP/1.1\r\nX-Slow: ", message("POST", "/", _CHUNKED) + b"1;ext="])
async def test_a_trickle_does_not_extend_the_time(serve: Serve, connect: Connect, begun: bytes) -> None:
    client = await connect(await serve(header_seconds=0.03, grace_seconds=0.03))
    await client.send(begun)
    refusal = asyncio.create_task(client.answer())
    while not refusal.done():
        await client.send(b"x")
    assert (await refusal).status == 408


@pytest.mark.parametrize("framing", ["Content-Length: 99999", _CHUNKED])
async def test_a_body_that_comes_too_slowly(serve: Serve, connect: Connect, framing: str) -> None:
    client = await connect(await serve(grace_seconds=0.03))
    await client.send(message("POST", "/", framing))
    answer = await client.answer()
    assert (answer.status, b"body" in answer.body) == (408, True)


async def test_a_body_earns_time_by_its_bytes(serve: Serve, connect: Connect) -> None:
    loop = asyncio.get_running_loop()
    client = await connect(await serve(grace_seconds=0.02, bytes_per_second=1000))
    begun = loop.time()
    answer = await client.ask(message("POST", "/", "Content-Length: 999"), b"x" * 100)
    assert answer.status == 408
    assert loop.time() - begun >= 0.12 - 0.001  # uvloop counts in milliseconds


async def test_an_idle_connection_is_closed_without_a_word(serve: Serve, connect: Connect) -> None:
    front = await serve(keep_alive_seconds=0.2)
    silent, used = await connect(front), await connect(front)
    await used.ask(get())
    assert await silent.rest() == b""
    assert await used.rest() == b""


async def test_a_running_handler_has_all_the_time_it_wants(serve: Serve, connect: Connect) -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def long_poll() -> Response:
        begun.set()
        await release.wait()
        return Response(body=b"at last")

    front = await serve(lambda r: long_poll() if r.path == "/poll" else Response(body=b"next"))
    client = await connect(front)
    # The head that is half here behind the poll is not timed before its turn comes.
    await client.send(get("/poll") + b"GET /next HTTP/1.1\r\n")
    await begun.wait()
    (connection,) = front.shared.connections
    connection.expire(now=1e9)
    assert connection.deadline == float("inf")
    release.set()
    assert (await client.answer()).body == b"at last"
    assert connection.deadline < asyncio.get_running_loop().time() + 11
    assert (await client.ask(b"Host: a\r\n\r\n")).body == b"next"


async def test_a_connection_over_the_limit_is_refused(serve: Serve, connect: Connect) -> None:
    front = await serve(connections_max=2)
    first, second = await connect(front), await connect(front)
    assert (await first.ask(get())).status == 200
    assert (await second.ask(get())).status == 200
    third = await connect(front)
    answer = await third.ask(get())
    assert (answer.status, answer.headers["connection"]) == (503, "close")
    await third.rest()
    await third.close()
    await first.close()
    while (await (await connect(front)).ask(get())).status != 200:
        pass


async def test_far_too_many_connections_are_closed_without_a_word(serve: Serve, connect: Connect) -> None:
    front = await serve(connections_max=-1000)
    assert await (await connect(front)).rest() == b""


async def test_requests_are_not_read_far_ahead(serve: Serve, connect: Connect) -> None:
    release = asyncio.Event()
    begun = 0

    async def slow() -> Response:
        nonlocal begun
        begun += 1
        await release.wait()
        return Response(body=b"x")

    front = await serve(lambda _: slow(), pipelined_max=2)
    client = await connect(front)
    count = 10_000  # 430 KB: more than one read
    sending = asyncio.create_task(client.send(get() * count))
    other = await connect(front)
    await other.send(get())
    await until(lambda: begun == 2)
    (connection,) = [each for each in front.shared.connections if each._is_paused]
    assert len(connection._reader.ready) < 600
    assert len(connection._unparsed) <= 256 * 1024
    release.set()
    for _ in range(count):
        assert (await client.answer()).status == 200
    await sending


def _unreading(port: int) -> socket.socket:
    """A client with little room for what it does not read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    return client


async def test_a_client_that_does_not_read_is_not_answered_further(serve: Serve) -> None:
    calls = 0

    def handler(_: Request) -> Response:
        nonlocal calls
        calls += 1
        return Response(body=b"x" * 100_000)

    front = await serve(handler, grace_seconds=0.05, bytes_per_second=1 << 30)
    with _unreading(front.port) as client:
        client.sendall(get() * 500)
        await until(lambda: calls)
        await until(lambda: not front.shared.connections)
    assert calls < 200  # the kernel took some, then the server stopped


async def test_an_unread_large_response_ends_its_connection(serve: Serve) -> None:
    front = await serve(
        lambda _: Response(body=b"x" * 30_000_000), grace_seconds=0.05, bytes_per_second=1 << 30
    )
    for request in (get(), get("/", "Connection: close")):
        with _unreading(front.port) as client:
            client.sendall(request)
            await until(lambda: front.shared.connections)
            await until(lambda: not front.shared.connections)


async def test_a_slow_reader_gets_everything(serve: Serve, connect: Connect) -> None:
    client = await connect(await serve(lambda r: Response(body=r.path.encode() * 500_000)))
    await client.send(get("/abcdefg") * 3)
    for _ in range(3):
        assert (await client.answer()).body == b"/abcdefg" * 500_000
    assert (await client.ask(post(b"still here"))).status == 200


async def test_a_wave_of_connections(serve: Serve) -> None:
    front = await serve()
    clients = await asyncio.gather(*[Client.connect(front.port) for _ in range(100)])
    answers = await asyncio.gather(*[client.ask(get()) for client in clients])
    assert {answer.status for answer in answers} == {200}
    await asyncio.gather(*[client.close() for client in clients])
