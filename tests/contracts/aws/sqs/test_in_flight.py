"""The cap on messages in flight, lowered from 120,000: as many would take a real server a minute to hand out."""

from collections.abc import AsyncIterator

import orjson
import pytest

from redrive.engine.receive.receiver import IN_FLIGHT_MAX
from redrive.model.http import Request, Response
from tests.fuzz.world import FIFO, STANDARD, World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A queue of each kind, with messages waiting and one in flight, which is now as many as may be."""
    small = World()
    await small.open()
    small.engine.parts.receiver.in_flight._limit = 1
    yield small
    await small.close()


async def receive(world: World, url: str, **params: int) -> Response:
    body = orjson.dumps({"QueueUrl": url, **params})
    return await world.answer(Request("POST", "/", "", {"x-amz-target": "AmazonSQS.ReceiveMessage"}, body))


def test_a_queue_allows_120000_messages_in_flight() -> None:
    assert IN_FLIGHT_MAX == 120_000


async def test_a_short_poll_of_a_standard_queue_is_told(world: World) -> None:
    response = await receive(world, STANDARD)
    assert response.status == 403
    assert response.headers["x-amzn-query-error"] == "OverLimit;Sender"
    assert orjson.loads(response.body)["__type"] == "com.amazonaws.sqs#OverLimit"


async def test_a_long_poll_over_the_limit_is_no_error(world: World) -> None:
    response = await receive(world, STANDARD, WaitTimeSeconds=1)
    assert response.status == 200


async def test_a_fifo_queue_has_nothing_more(world: World) -> None:
    response = await receive(world, FIFO)
    assert (response.status, response.body) == (200, b"{}")
