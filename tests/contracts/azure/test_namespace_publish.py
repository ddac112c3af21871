"""CloudEvents published to a namespace's topic: how they may come, and what is refused."""

import base64
from typing import Any

import orjson
import pytest
from azure.core.exceptions import HttpResponseError

from tests.contracts.azure.namespaces import Shop, orders, placed

EVENT = {"id": "1", "source": "/shop", "specversion": "1.0", "type": "Order.Placed", "data": {"order": 1}}
BATCH = "application/cloudevents-batch+json"
SINGLE = "application/cloudevents+json"
BINARY = {"ce-id": "1", "ce-source": "/shop", "ce-specversion": "1.0", "ce-type": "Order.Placed"}
MEBIBYTE = 1024 * 1024


def post(shop: Shop, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    path = f"{shop.endpoint.removeprefix(shop.server.url)}/topics/orders:publish?api-version=2024-06-01"
    status, answer = shop.server.ask("POST", path, body, headers)
    return status, orjson.loads(answer)


def events(shop: Shop) -> list[Any]:
    """The events there are, as they are sent to receivers."""
    path = f"{shop.endpoint.removeprefix(shop.server.url)}/topics/orders/eventsubscriptions/billing:receive"
    status, answer = shop.server.ask("POST", f"{path}?maxEvents=100&maxWaitTime=10")
    assert status == 200
    return [one["event"] for one in orjson.loads(answer)["value"]]


# ---- what is taken -----------------------------------------------------------------------------------------------


def test_one_event_is_published(shop: Shop) -> None:
    shop.subscribe()
    assert shop.publisher().send(placed(1)) is None
    assert orders(shop.receive()) == [1]


def test_many_are_published_at_once_and_in_their_order(shop: Shop) -> None:
    shop.subscribe()
    shop.publisher().send([placed(number) for number in range(100)])
    assert orders(shop.receive()) == list(range(100))


def test_events_may_be_dictionaries(shop: Shop) -> None:
    shop.subscribe()
    shop.publisher().send([EVENT])
    assert events(shop) == [EVENT]


def test_the_answer_is_an_empty_object(shop: Shop) -> None:
    assert post(shop, orjson.dumps([EVENT]), {"content-type": BATCH}) == (200, {})
    assert post(shop, b"[]", {"content-type": BATCH}) == (200, {})


def test_a_single_event_in_structured_mode(shop: Shop) -> None:
    shop.subscribe()
    status, _ = post(shop, orjson.dumps(EVENT), {"content-type": f"{SINGLE}; charset=utf-8"})
    assert (status, events(shop)) == (200, [EVENT])


def test_bytes_come_back_as_bytes(shop: Shop) -> None:
    shop.subscribe()
    sent = placed(1)
    sent.data = b"\x00\xff"
    shop.publisher().send(sent)
    (received,) = shop.receive()
    assert received.event.data == b"\x00\xff"


def test_in_binary_mode_json_is_data(shop: Shop) -> None:
    shop.subscribe()
    headers = {**BINARY, "ce-subject": "caf%C3%A9", "content-type": "application/json"}
    assert post(shop, b'{"order":1}', headers) == (200, {})
    assert events(shop) == [{**EVENT, "subject": "café", "datacontenttype": "application/json"}]


def test_in_binary_mode_anything_else_is_bytes(shop: Shop) -> None:
    shop.subscribe()
    assert post(shop, b"<order/>", {**BINARY, "content-type": "application/xml"}) == (200, {})
    (event,) = events(shop)
    assert event["datacontenttype"] == "application/xml"
    assert base64.b64decode(event["data_base64"]) == b"<order/>"


def test_in_binary_mode_there_may_be_no_data(shop: Shop) -> None:
    shop.subscribe()
    assert post(shop, b"", BINARY) == (200, {})
    (event,) = events(shop)
    assert "data" not in event


def test_numbers_keep_all_their_digits(shop: Shop) -> None:
    shop.subscribe()
    text = orjson.dumps([EVENT]).replace(b'{"order":1}', b"123456789012345678901234567890")
    assert post(shop, text, {"content-type": BATCH})[0] == 200
    path = f"{shop.endpoint.removeprefix(shop.server.url)}/topics/orders/eventsubscriptions/billing:receive"
    assert b'"data":123456789012345678901234567890' in shop.server.ask("POST", path)[1]


def test_an_event_may_have_a_mebibyte(shop: Shop) -> None:
    shop.subscribe()
    room = MEBIBYTE - len(orjson.dumps([{**EVENT, "data": ""}]))
    event = {**EVENT, "data": "x" * room}
    assert post(shop, orjson.dumps([event]), {"content-type": BATCH}) == (200, {})
    assert events(shop) == [event]


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"id": None}, "'id'"),
        ({"source": ""}, "'source'"),
        ({"type": 1}, "'type'"),
        ({"specversion": None}, "'specversion'"),
        ({"specversion": "0.3"}, "0.3"),
        ({"time": "yesterday"}, "yesterday"),
        ({"time": "2026-01-01T00:00:00"}, "2026-01-01T00:00:00"),
        ({"subject": 1}, "'subject'"),
        ({"Tenant": "a"}, "'Tenant'"),
        ({"tenant": {"a": 1}}, "'tenant'"),
        ({"data_base64": "AA=="}, "either data or data_base64"),
    ],
)
def test_malformed_cloud_events_are_refused(shop: Shop, change: dict[str, Any], about: str) -> None:
    event = {name: value for name, value in {**EVENT, **change}.items() if value is not None}
    status, answer = post(shop, orjson.dumps([event]), {"content-type": BATCH})
    assert (status, answer["error"]["code"]) == (400, "BadRequest")
    assert about in answer["error"]["message"]


def test_a_malformed_event_refuses_the_whole_batch(shop: Shop) -> None:
    shop.subscribe()
    status, _ = post(shop, orjson.dumps([EVENT, {"id": "2"}]), {"content-type": BATCH})
    assert status == 400
    shop.receive_nothing()


def test_base64_has_to_be_base64(shop: Shop) -> None:
    event = {name: value for name, value in EVENT.items() if name != "data"} | {"data_base64": "?"}
    status, answer = post(shop, orjson.dumps(event), {"content-type": SINGLE})
    assert (status, "data_base64" in answer["error"]["message"]) == (400, True)


def test_the_cause_of_events_as_texts_is_named(shop: Shop) -> None:
    """azure-eventgrid sends such texts for a CloudEvent of the package cloudevents from version 2 on."""
    status, answer = post(shop, b'["CloudEvent(...)"]', {"content-type": BATCH})
    assert (status, "cloudevents" in answer["error"]["message"]) == (400, True)


@pytest.mark.parametrize("body", [b"", b"nonsense", b"1", b'{"a":'])
def test_malformed_json_is_refused(shop: Shop, body: bytes) -> None:
    assert post(shop, body, {"content-type": BATCH})[0] == 400


def test_an_array_is_no_single_event(shop: Shop) -> None:
    assert post(shop, orjson.dumps([EVENT]), {"content-type": SINGLE})[0] == 400


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
def test_another_content_type_without_attributes_is_refused(shop: Shop, content_type: str) -> None:
    status, answer = post(shop, orjson.dumps([EVENT]), {"content-type": content_type})
    assert (status, answer["error"]["code"]) == (415, "UnsupportedMediaType")


def test_a_binary_event_needs_its_attributes(shop: Shop) -> None:
    status, answer = post(shop, b"{}", {"ce-id": "1", "content-type": "application/json"})
    assert (status, "'source'" in answer["error"]["message"]) == (400, True)


def test_too_many_bytes_are_refused(shop: Shop) -> None:
    with pytest.raises(HttpResponseError) as refusal:
        shop.publisher().send({**EVENT, "data": "x" * MEBIBYTE})
    assert refusal.value.status_code == 413


def test_too_many_events_are_refused(shop: Shop) -> None:
    with pytest.raises(HttpResponseError) as refusal:
        shop.publisher().send([EVENT] * 1001)
    assert refusal.value.status_code == 413


def test_events_are_posted(shop: Shop) -> None:
    path = f"{shop.endpoint.removeprefix(shop.server.url)}/topics/orders:publish"
    assert shop.server.ask("GET", path)[0] == 405
    assert shop.server.ask("POST", path.replace("publish", "shout"))[0] == 404


def test_a_namespace_may_be_called_by_its_host_name(shop: Shop) -> None:
    shop.subscribe()
    host = {"host": "Shop.local-1.eventgrid.azure.net", "content-type": BATCH}
    assert shop.server.ask("POST", "/topics/orders:publish", orjson.dumps([EVENT]), host)[0] == 200
    assert events(shop) == [EVENT]
    nobody = host | {"host": "nobody.local-1.eventgrid.azure.net"}
    assert shop.server.ask("POST", "/topics/orders:publish", orjson.dumps([EVENT]), nobody)[0] == 404
