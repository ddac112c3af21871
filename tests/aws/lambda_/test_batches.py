"""Batches of messages for functions: how they are parted, and what an answer says of them."""

from typing import Any

import orjson
import pytest

from redrive.aws.lambda_.documents.records import EventSourceMapping
from redrive.aws.lambda_.mappings import batches
from redrive.aws.lambda_.mappings.batches import Item, MappingFilter, event_of, failed_of, item_of, split
from redrive.model.delivery import Delivery
from redrive.model.names import ResourceName

QUEUE = ResourceName("000000000000", "us-east-1", "orders")
MAPPING = EventSourceMapping("id", QUEUE, QUEUE._replace(name="billing"))


def item(number: int, body: str = "x") -> Item:
    delivery = Delivery(1, number, 0, 1, 7, 0, 0, 0, bytes(16), None, None, None, None, body)
    message = {
        "MessageId": f"m{number}",
        "ReceiptHandle": "r",
        "Body": body,
        "MD5OfBody": "d",
        "Attributes": {},
    }
    return item_of(MAPPING, delivery, message)


ITEMS = [item(1), item(2)]


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (b"", []),
        (b"null", []),
        (b"{}", []),
        (b'{"batchItemFailures":null}', []),
        (b'{"batchItemFailures":[]}', []),
        (b'{"batchItemFailures":[{"itemIdentifier":"m2"}]}', ["m2"]),
        (b"no JSON", ["m1", "m2"]),
        (b'"a text"', ["m1", "m2"]),
        (b'{"batchItemFailures":"m1"}', ["m1", "m2"]),
        (b'{"batchItemFailures":[{"itemIdentifier":""}]}', ["m1", "m2"]),
        (b'{"batchItemFailures":[{"itemIdentifier":null}]}', ["m1", "m2"]),
        (b'{"batchItemFailures":[{"id":"m1"}]}', ["m1", "m2"]),
        (b'{"batchItemFailures":[{"itemIdentifier":"m1"},{"itemIdentifier":"other"}]}', ["m1", "m2"]),
    ],
)
def test_an_answer_names_failed_messages_or_fails_all(answer: bytes, failed: list[str]) -> None:
    assert sorted(failed_of(answer, ITEMS)) == failed


def test_a_batch_too_large_for_an_event_is_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "EVENT_BYTES_MAX", 1500)
    items = [item(number, "x" * 400) for number in range(7)]
    parts = list(split(items))
    assert [each for part in parts for each in part] == items
    assert all(len(event_of(part)) <= 1500 for part in parts)
    assert 1 < len(parts) < 7
    assert len(list(split([item(1, "x" * 5000)]))) == 1


@pytest.mark.parametrize(
    ("pattern", "record", "wanted"),
    [
        ({"body": {"a": [1]}}, {"body": '{"a":1}'}, True),
        ({"body": {"a": [1]}}, {"body": '{"a":2}'}, False),
        ({"body": {"a": [1]}}, {"body": "plain"}, False),
        ({"body": ["plain"]}, {"body": "plain"}, True),
        ({"body": ["plain"]}, {"body": '{"a":1}'}, False),
        ({"attributes": {"MessageGroupId": ["g"]}}, {"body": "x", "attributes": {"MessageGroupId": "g"}}, True),
        ({"messageAttributes": {"n": {"stringValue": [{"prefix": "a"}]}}},
         {"body": "x", "messageAttributes": {"n": {"stringValue": "abc"}}}, True),
    ],
)  # fmt: skip
def test_patterns_see_a_message_as_its_record_has_it(
    pattern: dict[str, Any], record: dict[str, Any], wanted: bool
) -> None:
    assert MappingFilter([orjson.dumps(pattern).decode()]).matches(record) is wanted
