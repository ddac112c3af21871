"""Connections and bodies that are begun and not ended: of one address there are only so many, of all as well."""

import asyncio

import pytest

from redrive.model.http import Request, Response
from redrive.server.http import HttpFront
from tests.server.client import get, message, post, until
from tests.server.conftest import Connect, Serve

_LITTLE = {"body_bytes_unasked": 1_000_000, "held_bytes_max": 400_000, "held_bytes_per_address_max": 200_000}
_MUCH = {"body_bytes_unasked": 1_000_000, "held_bytes_max": 10**8, "held_bytes_per_address_max": 10**8}


def measured(request: Request) -> Response:
    return Response(200, b"%d" % len(request.body), "text/plain")


def two_million_for_credentials(request: Request) -> int:
    return 2_000_000 if "authorization" in request.headers else 0


def begun(body: int, sent: int, *headers: str) -> bytes:
    return message("POST", "/", f"Content-Length: {body}", *headers) + b"x" * sent


def held(front: HttpFront) -> int:
    return front.shared.load._total.bytes


async def test_bodies_of_one_address_have_a_budget(serve: Serve, connect: Connect) -> None:
    front = await serve(measured, **_LITTLE)
    waiting = [await connect(front) for _ in range(4)]
    for client in waiting[:3]:
        await client.send(begun(900_000, 60_000))
    await until(lambda: held(front) >= 180_000)
    await waiting[3].send(begun(900_000, 60_000))
    answer = await waiting[3].answer()
    assert (answer.status, answer.headers["connection"]) == (503, "close")
    usual = await connect(front)
    assert (await usual.ask(post(b"a usual call"))).body == b"12"
    for client in waiting:
        await client.close()
    await until(lambda: len(front.shared.connections) == 1)
    assert held(front) == 0
    assert (await usual.ask(post(b"x" * 150_000))).body == b"150000"
    assert held(front) == 0


async def test_all_addresses_together_have_one_too(serve: Serve, connect: Connect) -> None:
    front = await serve(measured, **_LITTLE | {"held_bytes_max": 100_000})
    first, second = await connect(front), await connect(front)
    await first.send(begun(900_000, 60_000))
    await until(lambda: held(front) > 50_000)
    await second.send(begun(900_000, 60_000))
    assert (await second.answer()).status == 503


async def test_held_bytes_include_requests_in_progress_and_those_behind_them(
    serve: Serve, connect: Connect
) -> None:
    release = asyncio.Event()

    async def slow(_: Request) -> Response:
        await release.wait()
        return Response()

    front = await serve(slow, **_MUCH)
    client = await connect(front)
    await client.send(*[post(b"x" * 150_000)] * 3)
    await until(lambda: held(front) >= 450_000)
    release.set()
    for _ in range(3):
        assert (await client.answer()).status == 200
    assert held(front) == 0


async def test_a_client_that_leaves_takes_its_bytes_along(serve: Serve, connect: Connect) -> None:
    front = await serve(measured, **_MUCH)
    client = await connect(front)
    await client.send(begun(900_000, 600_000))
    await until(lambda: held(front) >= 600_000)
    await client.close()
    await until(lambda: not front.shared.connections)
    assert (held(front), front.shared.load._by_address) == (0, {})


async def test_one_address_cannot_keep_all_others_out(serve: Serve, connect: Connect) -> None:
    front = await serve(connections_max=10, connections_per_address_max=2)
    for _ in range(2):
        assert (await (await connect(front)).ask(get())).status == 200
    assert (await (await connect(front)).ask(get())).status == 503


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (begun(1_500_000, 0), 413),
        (begun(2_500_000, 0, "Authorization: a"), 413),
        (message("POST", "/", "Transfer-Encoding: chunked") + b"f4241\r\n" + b"x" * 1_000_001, 413),
        (message("POST", "/", "Content-Length: " + "0" * 5000), 400),
        (message("POST", "/", "Content-Length: " + "9" * 19), 413),
    ],
)
async def test_the_head_says_how_large_a_body_may_be(
    serve: Serve, connect: Connect, raw: bytes, status: int
) -> None:
    client = await connect(await serve(measured, body_bound=two_million_for_credentials, **_MUCH))
    assert (await client.ask(raw)).status == status


@pytest.mark.parametrize("framing", ["Content-Length: 1500000", "Transfer-Encoding: chunked"])
async def test_a_head_may_let_more_in_than_anybody_may_send(
    serve: Serve, connect: Connect, framing: str
) -> None:
    client = await connect(await serve(measured, body_bound=two_million_for_credentials, **_MUCH))
    body = b"x" * 1_500_000
    sent = body if "Length" in framing else b"16e360\r\n" + body + b"\r\n0\r\n\r\n"
    answer = await client.ask(message("POST", "/", framing, "Authorization: a"), sent)
    assert answer.body == b"1500000"


def unread(front: HttpFront) -> int:
    return front.shared.load._total.unread


async def test_unread_answers_have_a_budget(serve: Serve, connect: Connect) -> None:
    """Forty connections that ask for 16 MiB and read nothing took 640."""
    front = await serve(
        lambda request: Response(body=b"x" * (30_000_000 if request.path == "/large" else 10)),
        unread_bytes_per_address_max=70_000_000,
    )
    clients = [await connect(front) for _ in range(4)]
    for client in clients:
        await client.send(get("/large"))
    await until(lambda: unread(front) and len(front.shared.connections) == 2)
    assert unread(front) <= 70_000_000
    usual = await connect(front)
    assert len((await usual.ask(get())).body) == 10
    for client in clients:
        await client.close()
    await until(lambda: len(front.shared.connections) == 1)
    assert unread(front) == 0
    assert len((await usual.ask(get("/large"))).body) == 30_000_000
    assert unread(front) == 0
