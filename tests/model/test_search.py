"""The search language: which deliveries a text finds, and which texts are refused."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.delivery import Delivery
from redrive.model.search import (
    TERMS,
    TERMS_MAX,
    SearchInvalidError,
    published_id,
    read_search,
    searchable_values,
)

NOW = 1_800_000_000_000
HOUR = 3_600_000
LETTER = Delivery(
    queue_id=1,
    seq=7001,
    available_at=NOW,
    attempts=4,
    token=None,
    enqueued_at=NOW - 2 * HOUR,
    sent_at=NOW - 2 * HOUR,
    first_claimed_at=None,
    message_id=bytes.fromhex("6f1c2a9e00000000000000000000aaaa"),
    group_id="customer-7",
    deduplication_id=None,
    origin=3,
    headers=b'{"id": "b5d475c7-0000-4000-8000-000000000001", "attributes": {"kind": ["String", "rental.new"]}}',
    body='{"order": 7001, "total": 512.5, "customer": {"city": "Oslo"}, "paid": true, "big": 12345678901234567890}',
    failure="server_error 503",
)
FOUND = (
    "",
    "Oslo",
    '"customer"',
    "order Oslo",
    "-Bergen",
    "body.order:7001",
    "body.customer.city:Bergen,Oslo",
    "body.customer.city:Os*",
    "body.total:>512",
    "body.total:500..600",
    "body.paid:true",
    "body.big:12345678901234567890",
    "attr.kind:rental.*",
    "reason:server_error",
    'reason:"server error"',
    "status:503",
    "status:5xx",
    "status:404,503",
    "attempts:>3",
    "attempts:4",
    "size:<64k",
    "since:3h",
    "until:1h",
    "since:2027-01-01",
    "id:7001",
    "id:6f1c2a9e",
    "id:b5d475c7",
    "group:customer-7",
    "-body.order:1 attempts:4",
)
NOT_FOUND = (
    "Bergen",
    "-Oslo",
    "body.order:700",
    "body.total:>513",
    "body.city:Oslo",
    "attr.kind:String",
    "attr.other:x",
    "reason:timeout",
    "status:4xx",
    "attempts:<4",
    "size:>64k",
    "since:1h",
    "until:3h",
    "id:6f1c",
    "id:0000aaaa",
    "group:customer",
    "-attempts:4",
)
REFUSED = {
    "bogus:1": "Did you mean body.bogus:1?",
    "staus:503": "Did you mean status:503?",
    "attempts:many": "is not an amount",
    "since:soon": "is not a time",
    "since:25:00": "is not a time",
    "reason:": "needs a value",
    " ".join(["x"] * (TERMS_MAX + 1)): "at most 10 terms",
}


@pytest.mark.parametrize("text", FOUND)
def test_a_search_finds(text: str) -> None:
    assert read_search(text, NOW)(LETTER)


@pytest.mark.parametrize("text", NOT_FOUND)
def test_a_search_passes_over(text: str) -> None:
    assert not read_search(text, NOW)(LETTER)


@pytest.mark.parametrize("text", REFUSED)
def test_a_term_that_is_not_known_is_refused_with_what_may_be_meant(text: str) -> None:
    with pytest.raises(SearchInvalidError, match=r".") as refused:
        read_search(text, NOW)
    assert REFUSED[text] in str(refused.value)


def test_a_time_of_day_is_the_last_such_time() -> None:
    midnight = NOW - NOW % (24 * HOUR)
    yesterday = replace(LETTER, sent_at=midnight - HOUR)
    assert read_search("since:22:30", midnight + HOUR)(yesterday)
    assert not read_search("since:00:30", midnight + HOUR)(yesterday)


def test_every_term_has_an_example_that_can_be_read() -> None:
    for example, _ in TERMS.values():
        read_search(example, NOW)


def test_a_copy_of_a_publication_has_its_id_and_any_other_message_its_own() -> None:
    assert published_id(LETTER) == "b5d475c7-0000-4000-8000-000000000001"
    assert published_id(replace(LETTER, headers=None)) == "6f1c2a9e-0000-0000-0000-00000000aaaa"
    assert published_id(replace(LETTER, headers=b"\xff")) == "6f1c2a9e-0000-0000-0000-00000000aaaa"


@given(st.text(max_size=80), st.text(max_size=80), st.one_of(st.none(), st.binary(max_size=40)))
def test_any_text_is_read_or_refused_and_any_delivery_looked_at(
    text: str, body: str, headers: bytes | None
) -> None:
    try:
        holds = read_search(text, NOW)
    except SearchInvalidError:
        return
    assert holds(replace(LETTER, body=body, headers=headers)) in (True, False)


def test_searchable_values_find_their_message() -> None:
    values = list(searchable_values(LETTER))
    assert ("body.order", "7001") in values
    assert ("body.paid", "true") in values
    assert ("attr.kind", "rental.new") in values
    assert ("status", "503") in values
    for name, value in values:
        assert read_search(f'{name}:"{value}"' if name[0] == "b" else f"{name}:{value}", NOW)(LETTER), name


@given(
    st.dictionaries(
        st.text(max_size=6), st.one_of(st.text(max_size=6), st.integers(), st.booleans(), st.none())
    )
)
def test_every_value_that_a_body_offers_finds_it(members: dict[str, object]) -> None:
    letter = replace(LETTER, body=json.dumps(members, ensure_ascii=False))
    for name, value in searchable_values(letter):
        if name.startswith("body."):
            assert read_search(f'{name}:"{value}"', NOW)(letter), (name, value)
