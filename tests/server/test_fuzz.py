"""Whatever one client sends, the next one is served."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.model.http import Request, Response
from redrive.server.http import HttpFront
from redrive.server.limits import HttpLimits
from tests.server.client import Client, chunked, get, message, post

_LIMITS = HttpLimits(
    header_bytes_max=512,
    body_bytes_max=64,
    pipelined_max=1,
    header_seconds=0.01,
    grace_seconds=0.01,
    linger_seconds=0.01,
    sweep_seconds=0.005,
)
_SOUND = [get(), post(b"body"), message("POST", "/", "Transfer-Encoding: chunked") + chunked(b"a", b"b")]
_SENT = st.lists(st.sampled_from(_SOUND) | st.binary(max_size=200), max_size=6)


async def _respond(request: Request) -> Response:
    await asyncio.sleep(0)
    return Response(body=request.body)


def _handler(request: Request) -> Any:
    return _respond(request) if request.body else Response()


@dataclass
class _Running:
    runner: asyncio.Runner
    front: HttpFront
    complaints: list[dict[str, Any]]


@pytest.fixture(
    scope="module", params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
def running(request: pytest.FixtureRequest) -> Any:
    front = HttpFront(_handler, _LIMITS, now=lambda: 0, new_request_id=lambda: "")
    with asyncio.Runner(loop_factory=request.param) as runner:
        complaints: list[dict[str, Any]] = []
        runner.get_loop().set_exception_handler(lambda _, context: complaints.append(context))
        runner.run(front.start("127.0.0.1", 0))
        yield _Running(runner, front, complaints)
        runner.run(front.drain(0))


async def _offend(port: int, pieces: list[bytes], *, stays: bool) -> None:
    client = await Client.connect(port)
    try:
        await client.send(*pieces)
        if stays:
            client.writer.write(b"\0")  # ends in a refusal, whatever came before
            await client.rest()
    except ConnectionError:
        pass
    await client.close()
    sound = await Client.connect(port)
    assert (await sound.ask(post(b"hello"))).body == b"hello"
    await sound.close()


@settings(max_examples=150)
@given(pieces=_SENT, stays=st.booleans())
def test_no_bytes_break_the_server(running: _Running, pieces: list[bytes], stays: bool) -> None:
    running.runner.run(_offend(running.front.port, pieces, stays=stays))
    assert not running.complaints
