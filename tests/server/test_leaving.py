import asyncio
import itertools
import logging

import pytest

from redrive.model.http import Request, Response
from redrive.server.http import HttpFront
from redrive.server.limits import HttpLimits
from tests.server.client import PATIENCE_SECONDS, get, message, post, until
from tests.server.conftest import Connect, Serve


class _Poll:
    """A handler that waits until it is released, or its client is gone."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.released = asyncio.Event()
        self.gone = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        request.on_gone = self.gone.set
        self.begun.set()
        await self.released.wait()
        return Response(body=b"released")


async def _soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await event.wait()


async def test_a_client_that_leaves_is_told_of(serve: Serve, connect: Connect) -> None:
    poll = _Poll()
    client = await connect(await serve(poll))
    await client.send(get())
    await _soon(poll.begun)
    client.writer.transport.abort()
    await _soon(poll.gone)


async def test_a_client_that_leaves_politely_is_told_of_too(serve: Serve, connect: Connect) -> None:
    poll = _Poll()
    client = await connect(await serve(poll))
    await client.send(get())
    await _soon(poll.begun)
    client.writer.write_eof()
    await _soon(poll.gone)


async def test_a_handler_goes_on_when_its_client_left(serve: Serve, connect: Connect) -> None:
    begun, release, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def thorough() -> Response:
        begun.set()
        await release.wait()
        done.set()
        return Response()

    front = await serve(lambda r: thorough() if r.path == "/thorough" else Response())
    client = await connect(front)
    await client.send(get("/thorough"))
    await _soon(begun)
    await client.close()
    assert (await (await connect(front)).ask(get())).status == 200
    release.set()
    await _soon(done)
    assert (await (await connect(front)).ask(get())).status == 200


async def test_a_cancelled_handler_is_answered_where_the_client_waits(serve: Serve, connect: Connect) -> None:
    answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    client = await connect(await serve(lambda _: answer))
    await client.send(get())
    asyncio.get_running_loop().call_soon(answer.cancel)
    assert (await client.answer()).status == 503


async def test_a_failing_handler_costs_one_answer(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail_later() -> Response:
        await asyncio.sleep(0)
        raise KeyError("later")

    def handler(request: Request) -> object:
        if request.path == "/now":
            raise KeyError("now")
        if request.path == "/nothing":
            return None
        if request.path == "/broken":
            return Response(headers={"X-A": "line\r\nbreak"})
        return fail_later() if request.path == "/later" else Response()

    client = await connect(await serve(handler))
    for number, path in enumerate(("/now", "/later", "/broken", "/nothing"), 1):
        answer = await client.ask(get(path))
        assert answer.status == 500
        assert answer.body == b'{"message":"Internal failure","requestId":"failure-%d"}' % number
        assert f"GET {path} failed, request id failure-{number}" in caplog.text
    assert (await client.ask(get("/fine"))).status == 200
    assert {record.levelno for record in caplog.records} == {logging.ERROR}
    assert all(record.exc_info for record in caplog.records)


async def test_draining_answers_requests_in_flight_and_closes_idle_connections(
    serve: Serve, connect: Connect
) -> None:
    poll = _Poll()
    front = await serve(lambda r: poll(r) if r.path == "/poll" else Response(body=r.body))
    busy, idle, sending = await connect(front), await connect(front), await connect(front)
    await idle.ask(get())
    await sending.send(message("POST", "/", "Content-Length: 4"))
    await busy.send(get("/poll"))
    await _soon(poll.begun)
    draining = asyncio.create_task(front.drain(PATIENCE_SECONDS))
    assert await idle.rest() == b""
    with pytest.raises(ConnectionError):
        await connect(front)
    answer = await sending.ask(b"body")
    assert (answer.body, answer.headers["connection"]) == (b"body", "close")
    assert not draining.done()
    poll.released.set()
    answer = await busy.answer()
    assert (answer.body, answer.headers["connection"]) == (b"released", "close")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await draining


async def test_draining_ends_in_time(serve: Serve, connect: Connect) -> None:
    poll = _Poll()
    front = await serve(poll)
    client = await connect(front)
    await client.send(get())
    await _soon(poll.begun)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await front.drain(0.02)
    assert await client.rest() == b""
    await _soon(poll.gone)


async def test_the_date_is_renewed(connect: Connect) -> None:
    instants = itertools.count(0, 1000)
    limits = HttpLimits(sweep_seconds=0.01)
    front = HttpFront(lambda _: Response(), limits, now=lambda: next(instants), new_request_id=lambda: "")
    await front.start("127.0.0.1", 0)
    client = await connect(front)
    first = (await client.ask(get())).headers["date"]
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await client.ask(get())).headers["date"] == first:
            pass
    await front.drain(0)


async def test_draining_twice_and_before_the_start(serve: Serve) -> None:
    never = HttpFront(lambda _: Response(), HttpLimits(), now=lambda: 0, new_request_id=lambda: "")
    await never.drain(1)
    with pytest.raises(RuntimeError):
        _ = never.port
    front = await serve()
    await front.drain(1)
    await front.drain(1)


async def test_a_port_in_use(serve: Serve) -> None:
    front = await serve()
    other = HttpFront(lambda _: Response(), HttpLimits(), now=lambda: 0, new_request_id=lambda: "")
    with pytest.raises(OSError, match="in use"):
        await other.start("127.0.0.1", front.port)


async def test_a_closed_connection_is_forgotten(serve: Serve, connect: Connect) -> None:
    front = await serve()
    client = await connect(front)
    await client.ask(post(b"x"))
    await client.close()
    await until(lambda: not front.shared.connections)
