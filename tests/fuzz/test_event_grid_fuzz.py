"""Whatever is asked of Event Grid is answered below 500, and what is refused changed nothing."""

import asyncio
import re
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.http import Request, Response
from tests.fuzz.grid_documents import documents_of
from tests.fuzz.grid_requests import Asked, arm_routes, asked
from tests.fuzz.grid_world import BEARER, PROVIDER, STORAGE, SUBSCRIPTION, GridWorld
from tests.fuzz.spoiling import HALF

_TOP = "api-version=2025-02-15&$top=100"
_LISTS = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups",
    *(
        f"{PROVIDER}/{kind}"
        for kind in ("topics", "domains", "namespaces", "systemTopics", "eventSubscriptions")
    ),
    f"{PROVIDER}/domains/orders/topics",
    f"{PROVIDER}/namespaces/space/topics",
    f"{PROVIDER}/namespaces/space/topics/stars/eventSubscriptions",
    *(
        f"{PROVIDER}/{kind}/orders/providers/Microsoft.EventGrid/{what}"
        for kind in ("topics", "domains")
        for what in ("eventSubscriptions", "eventTypes")
    ),
    f"{STORAGE}/providers/Microsoft.EventGrid/eventSubscriptions",
)


def assert_error(one: Asked, response: Response) -> None:
    """A refusal says why, in the form that clients read."""
    if one.method == "HEAD":
        return  # the front sends the head alone
    said = orjson.loads(response.body)
    # https://www.rfc-editor.org/rfc/rfc6749#section-5.2
    if one.route == "token" and isinstance(said["error"], str):
        assert isinstance(said["error_description"], str)
        return
    assert isinstance(said["error"]["code"], str), said
    assert said["error"]["code"], said
    assert isinstance(said["error"]["message"], str), said


async def read(world: GridWorld, path: str, query: str = "", method: str = "GET") -> tuple[int, Any]:
    headers = {"host": "localhost", "authorization": f"Bearer {world.known[BEARER]}"}
    response = await world.answer(Request(method, path, query, headers, b""))
    return response.status, orjson.loads(response.body)


async def assert_stands(world: GridWorld, one: Asked) -> None:
    """Check that an accepted document can be read and is listed."""
    status, said = await read(world, one.path)
    assert status == 200, (one, said)
    if "/storageaccounts/" in one.path.lower():
        return  # they stand whether they were made or not, and are in no list
    several = one.path.rstrip("/").rpartition("/")[0]
    listed: list[Any] = []
    query = _TOP
    while query:
        status, page = await read(world, several, query)
        assert status == 200, (one, page)
        listed += page["value"]
        query = page.get("nextLink", "").partition("?")[2]
    assert said["id"] in [each["id"] for each in listed], (one, said, listed)
    if "eventsubscriptions" in several.lower():
        for verb in ("getFullUrl", "getDeliveryAttributes"):
            status, found = await read(world, f"{one.path.rstrip('/')}/{verb}", method="POST")
            assert status == 200, (one, found)


async def assert_lists(world: GridWorld, all_asked: list[Asked]) -> None:
    """No list has been spoilt for everybody by what is in it."""
    for path in _LISTS:
        status, said = await read(world, path, _TOP)
        assert status in (200, 404), (path, said, all_asked)


async def tell(all_asked: list[Asked], *, secured: bool) -> None:
    """Ask one after the other, of a world of their own."""
    world = GridWorld(secured=secured)
    await world.open()
    try:
        for one in all_asked:
            before = world.everything()
            response = await world.answer(one.request(world.known))
            assert response.status < 500, (one, response.body)
            assert not world.complaints.heard, (one, world.complaints.heard)
            if response.status >= 400:
                assert_error(one, response)
                assert world.everything() == before, (one, response.body)
            elif one.method in ("PUT", "PATCH") and one.route.startswith(("PUT", "PATCH")):
                await assert_stands(world, one)
        await assert_lists(world, all_asked)
    finally:
        await world.close()


@HALF
@given(st.lists(asked(), min_size=1, max_size=8), st.booleans())
def test_a_refusal_changes_nothing_and_nothing_fails(all_asked: list[Asked], secured: bool) -> None:
    asyncio.run(tell(all_asked, secured=secured))


def right_path(method: str, pattern: str) -> str:
    """A route's path: of what stands where it is changed, else of what is new."""
    new = method == "PUT"
    names = {
        "subscription": SUBSCRIPTION,
        "group": "rg",
        "namespace": "made" if new and pattern.endswith("{namespace}") else "space",
        "scope...": f"{PROVIDER}/topics/orders"[1:],
        "parent...": f"{PROVIDER}/topics/orders"[1:],
        "topic": "made" if new and pattern.endswith("{topic}") else "orders",
        "domain": "made" if new and pattern.endswith("{domain}") else "orders",
        "systemTopic": "made" if new else "blobs",
        "storageAccount": "letters",
        "container": "dead",
        "deployment": "made",
        "eventSubscription": "made" if new else "watcher",
    }
    if "/namespaces/" in pattern and not (new and pattern.endswith("{topic}")):
        names |= {"topic": "stars", "eventSubscription": "made" if new else "pulled"}
    return re.sub(r"\{([\w.]+)\}", lambda match: names[match[1]], pattern)


def test_the_unmodified_documents_are_accepted() -> None:
    """The oddities begin with what is accepted; otherwise they would all end at the first check."""

    async def ask_all() -> list[tuple[str, bytes]]:
        refused = []
        for route in arm_routes():
            method, _, pattern = route.partition(" ")
            if method not in ("PUT", "PATCH"):
                continue
            for document in documents_of(method, pattern):
                world = GridWorld(secured=False)
                await world.open()
                path, body = right_path(method, pattern), orjson.dumps(document)
                response = await world.answer(Request(method, path, "", {"host": "h"}, body))
                if response.status >= 300:
                    refused.append((f"{method} {path}", response.body))
                await world.close()
        return refused

    refused = asyncio.run(ask_all())
    # a webhook that does not agree; an input schema and a delivery mode that stand
    assert all(b"hook.example/refuses" in said or b"cannot be changed" in said for _, said in refused), (
        refused
    )
    assert len(refused) == 10
