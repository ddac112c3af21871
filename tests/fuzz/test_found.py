"""Findings of the fuzz of Event Grid and of SNS: answered 500 or 503, taken and not shown, or refused too late."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote_plus

import orjson
import pytest

from tests.fuzz.grid_documents import EVENT
from tests.fuzz.grid_requests import Asked
from tests.fuzz.grid_world import BEARER, GROUP, HOOK, KEY, LOCK, PROVIDER, STORAGE, SUBSCRIPTION, GridWorld
from tests.fuzz.sns_requests import Sent
from tests.fuzz.sns_world import CLIENT, DEVICE, PHONE
from tests.fuzz.test_event_grid_fuzz import tell
from tests.fuzz.test_sns_fuzz import tell as tell_sns

_HEADERS: Final = {"authorization": f"Bearer {BEARER}", "content-type": "application/json"}
_TOPIC: Final = f"{PROVIDER}/topics/made"
_WATCHER: Final = f"{PROVIDER}/topics/orders/providers/Microsoft.EventGrid/eventSubscriptions/made"
_STARS: Final = f"{PROVIDER}/namespaces/space/topics/stars"
_CONSUMER: Final = f"{_STARS}/eventSubscriptions/made"
_AT_STARS: Final = f"{_STARS}/providers/Microsoft.EventGrid/eventSubscriptions/made"
_EVENTS: Final = f"/eventgrid/{SUBSCRIPTION}/rg/orders/api/events"
_PULLED: Final = f"/eventgrid/{SUBSCRIPTION}/rg/space/topics/stars/eventsubscriptions/pulled"
_LONG: Final = "9" * 5000
_QUEUE: Final = {"deliveryConfiguration": {"deliveryMode": "Queue"}}


def put(path: str, document: Mapping[str, Any] | bytes) -> Asked:
    body = document if isinstance(document, bytes) else orjson.dumps(document)
    return Asked("PUT", "PUT", path, "", _HEADERS, body)


def get(path: str, query: str) -> Asked:
    return Asked("GET", "GET", path, query, _HEADERS)


def webhook(**properties: Any) -> dict[str, Any]:
    return {"endpointType": "WebHook", "properties": {"endpointUrl": HOOK, **properties}}


def deep(levels: int) -> bytes:
    return b'{"location":"local","x":' + b"[" * levels + b"]" * levels + b"}"


def pushed(**properties: Any) -> dict[str, Any]:
    push = {"destination": webhook(**properties)}
    return {"properties": {"deliveryConfiguration": {"deliveryMode": "Push", "push": push}}}


def signed_for(resource: str) -> Asked:
    token = f"r={quote_plus(resource)}&e={quote_plus('1/1/2030 12:00:00 AM')}&s=<signature>"
    return Asked("publish", "POST", _EVENTS, "", {"aeg-sas-token": token}, b"[]")


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        pytest.param(get("/tenants", "a=b&" * 200), 400, id="parameters without end"),
        pytest.param(get(f"{PROVIDER}/topics", f"$top={_LONG}"), 400, id="a $top of 5,000 digits"),
        pytest.param(get(f"{PROVIDER}/topics", "$skipToken=AA=="), 400, id="a $skipToken with a NUL"),
        pytest.param(
            Asked("receive", "POST", f"{_PULLED}:receive", f"maxEvents={_LONG}", _HEADERS),
            400,
            id="a maxEvents of 5,000 digits",
        ),
        pytest.param(
            Asked("receive", "POST", f"{_PULLED}%00:receive", "", _HEADERS), 404, id="a NUL in a path"
        ),
        pytest.param(put(_TOPIC, deep(240)), 201, id="deep, and shown in lists"),
        pytest.param(put(_TOPIC, deep(252)), 400, id="too deep for lists"),
        pytest.param(
            put(_TOPIC, {"location": "l", "properties": {"eventTypeInfo": {"inlineEventTypes": {"t": "x"}}}}),
            400,
            id="event types that are texts",
        ),
        pytest.param(
            put(_TOPIC, {"location": "l", "properties": {"eventTypeInfo": {"inlineEventTypes": ["t"]}}}),
            400,
            id="event types in a list",
        ),
        pytest.param(
            put(_WATCHER, {"properties": {"destination": webhook(resourceId=5)}}),
            201,
            id="a webhook with a resourceId",
        ),
        pytest.param(put(_CONSUMER, pushed(resourceId=5)), 201, id="the same at a namespace"),
        pytest.param(
            put(_AT_STARS, {"properties": {"destination": webhook()}}),
            400,
            id="the extension form at a namespace's topic",
        ),
        pytest.param(
            put(_CONSUMER, {"properties": {**_QUEUE, "destination": {"endpointType": [{}]}}}),
            201,
            id="a destination beside a queue",
        ),
        pytest.param(
            put(_CONSUMER, {"properties": {**_QUEUE, "expirationTimeUtc": "2020-01-01T00:00:00Z"}}),
            400,
            id="over before it began",
        ),
        pytest.param(
            put(f"{PROVIDER}/systemTopics/blobs", {"location": "l", "properties": {"source": f"{STORAGE}9"}}),
            400,
            id="another source",
        ),
        pytest.param(put(GROUP, {"location": 5}), 400, id="a group's location that is a number"),
        pytest.param(put(GROUP, {"tags": {"a": [1]}}), 400, id="a group's tags that are lists"),
        pytest.param(
            put(f"/subscriptions/{SUBSCRIPTION}/resourceGroups/a%252Fb", {"location": "l"}),
            400,
            id="a group that no URL names",
        ),
        pytest.param(put(f"{GROUP}%00", {"location": "l"}), 400, id="a group with a NUL"),
        pytest.param(
            Asked("agree", "GET", "/eventsubscriptions/waits/validate", "id=%00"), 404, id="agreed by a NUL"
        ),
        pytest.param(
            Asked(
                "publish",
                "POST",
                _EVENTS,
                "",
                {"aeg-sas-key": KEY},
                orjson.dumps([EVENT]).replace(b"5,", b"9" * 400 + b","),
            ),
            400,
            id="a number that nobody who delivers it can read",
        ),
        pytest.param(signed_for("http://["), 401, id="a signed token for no URL"),
        pytest.param(
            Asked(
                "publish", "POST", f"/eventgrid/{SUBSCRIPTION}/rg/domains/orders%3Afirst/api/events", "", {}
            ),
            401,
            id="a domain's topic by a colon",
        ),
    ],
)
def test_is_answered_and_leaves_nothing_behind(asked: Asked, status: int) -> None:
    async def ask() -> int:
        world = GridWorld(secured=True)
        await world.open()
        response = await world.answer(asked.request(world.known))
        await world.close()
        return response.status

    assert asyncio.run(ask()) == status
    asyncio.run(tell([asked], secured=True))


def test_the_same_lock_twice_is_settled_once() -> None:
    body = orjson.dumps({"lockTokens": [LOCK, LOCK]})
    asyncio.run(
        tell(
            [Asked("acknowledge", "POST", f"{_PULLED}:acknowledge", "", _HEADERS, body)] * 2,
            secured=True,
        )
    )


@pytest.mark.parametrize("target", [{"TargetArn": DEVICE}, {"PhoneNumber": PHONE}])
def test_a_refused_message_makes_no_destination(target: dict[str, str]) -> None:
    """The topic that stands for a device or a telephone came with the first message, also if that was refused."""
    form = CLIENT.request("Publish", {**target, "Message": "{", "MessageStructure": "json"}).body
    asyncio.run(tell_sns([Sent("Publish", form)]))
