"""Messages are sealed as bytes, or as text beside older nodes; both are opened, and neither in another's place."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from redrive.access.message_seal import DataKey, MessageSeal, seal_of
from redrive.engine.ports import StoredContent
from redrive.model.delivery import Delivery, is_sealed

CONTEXT: Final = {"aws:sqs:arn": "arn:aws:sqs:us-east-1:000000000000:orders"}
BY_KMS: Final = MessageSeal(
    "arn:aws:kms:us-east-1:000000000000:key/7ecb3c62-61f9-4bcd-977e-5727380afcef", CONTEXT, "AQAAAAAAAH7LPA=="
)
BY_ROOT: Final = MessageSeal("", CONTEXT, "3914b430.NKYUUr1q2ey/")
HEADERS: Final = b'{"envelope":"sns","attributes":{"a":["String","b"]}}'
# As older versions wrote it, with the key 0, 1, 2 … 31 and the nonce 0, 1, 2 … 11.
TEXT: Final = (
    "\x02AAECAwQFBgcICQoLRwLWOL7Ho2/5M/7pxJ0dHqHs/BaRWWUnGjSR93QHZ5AtMsze8rxv+xXCvETwey5/a+y1olOa4kbH3ABw"
)
TEXT_HEADERS: Final = (
    b'{"envelope":"sns","sealed":{"key":"","context":{"aws:sqs:arn":"arn:aws:sqs:us-east-1:000000000000:orders"},'
    b'"data":"3914b430.NKYUUr1q2ey/","queue":7,"id":"6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d6d"}}'
)

Seal = Callable[[bytes, int, bytes, str, bytes | None], StoredContent]


def sealed_by(seal: Seal, queue_id: int = 7, body: str = "café", headers: bytes | None = HEADERS) -> Delivery:
    """A message of a queue, sealed; it stands in another queue now, where it has another id."""
    text, clear, sealed = seal(bytes(range(12)), queue_id, b"m" * 16, body, headers)
    return Delivery(9, 1, 0, 0, None, 0, 0, None, b"n" * 16, None, None, None, clear, text, None, sealed)


@pytest.mark.parametrize("shared", [BY_KMS, BY_ROOT], ids=["kms", "root"])
@pytest.mark.parametrize("form", ["seal", "seal_as_text"])
@pytest.mark.parametrize("headers", [None, b'{"sender":"1"}', HEADERS])
def test_a_sealed_message_says_how_to_open_it(shared: MessageSeal, form: str, headers: bytes | None) -> None:
    data_key = DataKey(bytes(range(32)), shared)
    delivery = sealed_by(getattr(data_key, form), headers=headers)
    seal = seal_of(delivery)
    assert is_sealed(delivery)
    assert seal == replace(shared, queue_id=7)
    assert data_key.open(seal, delivery) == ("café", headers)
    assert b"String" not in (delivery.headers or b"")


def test_beside_older_nodes_a_message_is_sealed_as_they_sealed_it() -> None:
    delivery = sealed_by(DataKey(bytes(range(32)), BY_ROOT).seal_as_text)
    assert (delivery.body, delivery.headers, delivery.sealed) == (TEXT, TEXT_HEADERS, None)


def changed(delivery: Delivery) -> Delivery:
    """The same with another last letter or byte of what is encrypted."""
    if delivery.sealed is None:
        return replace(delivery, body=delivery.body[:-1] + ("A" if delivery.body[-1] == "B" else "B"))
    return replace(delivery, sealed=delivery.sealed[:-1] + bytes([delivery.sealed[-1] ^ 1]))


@pytest.mark.parametrize("form", ["seal", "seal_as_text"])
def test_changed_content_and_that_of_another_message_are_not_opened(form: str) -> None:
    data_key = DataKey(bytes(range(32)), BY_KMS)
    seal = getattr(data_key, form)
    here, there = sealed_by(seal), sealed_by(seal, queue_id=8)
    for delivery, its_seal in (
        (changed(here), seal_of(here)),
        (there, seal_of(here)),
        (here, seal_of(there)),
    ):
        with pytest.raises(ValueError, match="changed"):
            data_key.open(its_seal, delivery)


def test_of_each_queue_of_a_topic_the_data_key_makes_seals_of_its_own() -> None:
    data_key = DataKey(bytes(range(32)), BY_KMS)
    for queue_id in (7, 8, 7):
        delivery = sealed_by(data_key.seal, queue_id, headers=None)
        assert seal_of(delivery).queue_id == queue_id
        assert data_key.open(seal_of(delivery), delivery) == ("café", None)
