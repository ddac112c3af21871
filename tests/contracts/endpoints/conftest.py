"""Every test that asks for `place` runs on every kind of endpoint, and every test on both event loops."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import pytest
import uvloop

from redrive.endpoints.http import HttpEndpoint
from tests.contracts.endpoints import aws, kinds, namespaces, push, storage, telephones
from tests.contracts.endpoints.kinds import Place
from tests.contracts.endpoints.webhook import Webhook, webhook


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


_PLACES: Final[dict[str, Callable[[], AbstractAsyncContextManager[Place]]]] = {
    "http": kinds.webhook_place,
    "email": kinds.mail_place,
    "blob": partial(storage.storage_place, storage.BLOBS),
    "storage queue": partial(storage.storage_place, storage.QUEUES),
    "amqp": namespaces.amqp_place,
    "sms": telephones.telephone_place,
    "function": partial(aws.aws_place, aws.FUNCTIONS),
    "stream": partial(aws.aws_place, aws.STREAMS),
    "apns": push.apple_place,
    "fcm": push.google_place,
}


@pytest.fixture(params=_PLACES)
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """Any kind of endpoint, and what it pushes to."""
    async with _PLACES[request.param]() as place:
        yield place


@pytest.fixture
async def hook() -> AsyncIterator[Webhook]:
    """A webhook that answers 200."""
    async with webhook() as hook:
        yield hook


@pytest.fixture
async def endpoint() -> AsyncIterator[HttpEndpoint]:
    """An endpoint without restrictions."""
    endpoint = kinds.http_endpoint()
    yield endpoint
    await endpoint.close()
