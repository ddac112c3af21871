"""Serves a handler on a free port, on both event loops; tests of async functions run twice."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import uvloop

from redrive.model.http import Request, Response
from redrive.server.connection import Handler
from redrive.server.http import HttpFront
from redrive.server.limits import HttpLimits
from redrive.server.reading import BodyBound
from tests.server.client import Client

NOW = 784_111_777_000  # Sun, 06 Nov 1994 08:49:37 GMT
_LIMITS = HttpLimits(sweep_seconds=0.01, linger_seconds=0.2)

# Nothing there depends on how a loop reads and writes, and a scrape of 100,000 queues takes 5 s of a processor.
_WITHOUT_CONNECTIONS = frozenset({"test_exposition"})

Serve = Callable[..., Awaitable[HttpFront]]
Connect = Callable[[HttpFront], Awaitable[Client]]


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.path.stem in _WITHOUT_CONNECTIONS:
        return {"uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def echo(request: Request) -> Response:
    return Response(200, request.body or request.path.encode(), "text/plain")


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """`await serve(handler, header_seconds=…)` gives a started front; its failures are numbered from 1."""
    fronts = []

    async def start(handler: Handler = echo, body_bound: BodyBound | None = None, **limits: Any) -> HttpFront:
        ids = itertools.count(1)
        front = HttpFront(
            handler,
            replace(_LIMITS, **limits),
            now=lambda: NOW,
            new_request_id=lambda: f"failure-{next(ids)}",
            body_bound=body_bound,
        )
        await front.start("127.0.0.1", 0)
        fronts.append(front)
        return front

    yield start
    for front in fronts:
        await front.drain(0)


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    clients = []

    async def to(front: HttpFront) -> Client:
        clients.append(client := await Client.connect(front.port))
        return client

    yield to
    for client in clients:
        await client.close()


@pytest.fixture(autouse=True)
def _nothing_escapes(caplog: pytest.LogCaptureFixture) -> Any:
    """The loop reports what escapes a callback by logging it, which no client would notice."""
    caplog.set_level(logging.WARNING)
    yield
    assert not [record.getMessage() for record in caplog.get_records("call") if record.name == "asyncio"]
