import asyncio
import contextlib
from collections.abc import Iterator
from urllib.parse import quote
from xml.etree import ElementTree as ET

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.http import Request, Response
from tests.fuzz.oddities import RIGHT, Odd, requests
from tests.fuzz.spoiling import HALF
from tests.fuzz.world import World
from tests.services.server import Server, serving


def as_request(odd: Odd, known: dict[str, str]) -> Request:
    query, body = odd.query, odd.body
    for name, value in known.items():
        for spelt in (name, name.replace("<", "%3C").replace(">", "%3E").replace(" ", "+")):
            query, body = (
                query.replace(spelt.encode(), value.encode()),
                body.replace(spelt.encode(), value.encode()),
            )
    headers = {"host": "localhost", "accept": "application/json"} if len(body) % 2 else {"host": "localhost"}
    if odd.target:
        headers |= {
            "x-amz-target": f"AmazonSQS.{odd.operation}",
            "content-type": "application/x-amz-json-1.0",
        }
    else:
        headers |= {"content-type": "application/x-www-form-urlencoded"}
    return Request("POST", odd.path, query.decode("latin-1"), headers, body)


def assert_readable(response: Response) -> None:
    """The answer is what its content type says."""
    if not response.body:
        return
    if "json" in response.content_type:
        orjson.loads(response.body)
    else:
        ET.fromstring(response.body)


async def tell(odds: list[Odd]) -> None:
    """Ask them one after the other, of a world of their own."""
    world = World()
    await world.open()
    try:
        for odd in odds:
            before = world.everything()
            response = await world.answer(as_request(odd, world.known))
            assert response.status < 500, (odd, response.body)
            assert_readable(response)
            if response.status >= 400:
                assert world.everything() == before, (odd, response.body)
    finally:
        await world.close()


@HALF
@given(st.lists(requests(), min_size=1, max_size=12))
def test_a_refusal_changes_nothing_and_nothing_fails(odds: list[Odd]) -> None:
    asyncio.run(tell(odds))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("sqlite://:memory:", "--clock", "simulated", "--allow-reset") as started:
        yield started
        log = started.log.read_text()
        assert "Traceback" not in log, log


@HALF
@given(st.lists(requests(), min_size=1, max_size=5))
def test_odd_requests_over_the_wire_are_no_server_errors(server: Server, odds: list[Odd]) -> None:
    server.reset()
    with contextlib.closing(server.connect()) as connection:
        for odd in odds:
            request = as_request(odd, {})
            if b'"WaitTimeSeconds"' in request.body or b"WaitTimeSeconds" in request.body + odd.query:
                continue  # would wait for a clock that stands
            written = quote(odd.query, safe="%&=+.-_~")  # a client writes ASCII into a request line
            target = request.path + (f"?{written}" if written else "")
            connection.request("POST", target, request.body, request.headers)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status < 500, (odd, body)
    assert server.ask("GET", "/_redrive/health")[0] == 200


def test_every_operation_is_asked() -> None:
    asked = {operation for operation, _ in RIGHT}
    assert len(asked) == 23


def test_the_unmodified_requests_are_accepted() -> None:
    """The oddities begin with requests that are accepted; otherwise they would all end at the first check."""

    async def ask_all() -> list[str]:
        refused = []
        for operation, params in RIGHT:
            world = World()
            await world.open()
            body = orjson.dumps(params, default=lambda value: "AP8=")
            response = await world.answer(as_request(Odd(operation, True, b"", body), world.known))
            if response.status != 200:
                refused.append(operation)
            await world.close()
        return refused

    # of a queue that is there and differs, a label that is not, and a source that has its task already
    assert asyncio.run(ask_all()) == ["CreateQueue", "RemovePermission", "StartMessageMoveTask"]
