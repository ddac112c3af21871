"""Filters on events: the table of the nineteen operators, the basic filters, and what keys name."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.filtering import EventFilterInvalid, read_event_filter

EVENT: dict[str, Any] = {
    "id": "e-1",
    "topic": "/subscriptions/s/topics/t",
    "subject": "/Orders/2026/a.JSON",
    "eventType": "Order.Placed",
    "eventTime": "2026-11-20T12:00:00Z",
    "dataVersion": "2.0",
    "data": {
        "size": 5,
        "price": 2.5,
        "paid": True,
        "colour": "Blue",
        "nothing": None,
        "place": {"City": "Seoul"},
        "sizes": [1, 5, "five"],
        "colours": ["Red", "Blue", 7],
        "none": [],
        "objects": [{"a": 1}],
    },
}
CLOUD_EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "c-1",
    "source": "/shop",
    "type": "order.placed",
    "subject": "a",
    "priority": 5,
    "urgent": True,
    "data": {"priority": 5},
}


def passes(event: dict[str, Any], *, arrays: bool = False, **advanced: Any) -> bool:
    said = {"advancedFilters": [advanced], "enableAdvancedFilteringOnArrays": arrays}
    return read_event_filter(json.dumps(said)).matches(event)


# operator, operand, key of a value that matches it, key of one that does not
OPERATORS: list[tuple[str, dict[str, Any], str, str]] = [
    ("NumberIn", {"values": [1, 5.0]}, "data.size", "data.price"),
    ("NumberLessThan", {"value": 5}, "data.price", "data.size"),
    ("NumberLessThanOrEquals", {"value": 2.5}, "data.price", "data.size"),
    ("NumberGreaterThan", {"value": 2.5}, "data.size", "data.price"),
    ("NumberGreaterThanOrEquals", {"value": 5}, "data.size", "data.price"),
    ("NumberInRange", {"values": [[0, 1], [3, 5]]}, "data.size", "data.price"),
    ("BoolEquals", {"value": True}, "data.paid", "data.size"),
    ("StringIn", {"values": ["red", "BLUE"]}, "data.colour", "subject"),
    ("StringContains", {"values": ["x", "LU"]}, "data.colour", "subject"),
    ("StringBeginsWith", {"values": ["x", "bl"]}, "data.colour", "subject"),
    ("StringEndsWith", {"values": ["x", "UE"]}, "data.colour", "subject"),
]
NEGATED: list[tuple[str, dict[str, Any], str, str]] = [
    ("NumberNotIn", {"values": [1, 5]}, "data.price", "data.size"),
    ("NumberNotInRange", {"values": [[0, 1], [3, 5]]}, "data.price", "data.size"),
    ("StringNotIn", {"values": ["red", "BLUE"]}, "subject", "data.colour"),
    ("StringNotContains", {"values": ["x", "LU"]}, "eventType", "data.colour"),
    ("StringNotBeginsWith", {"values": ["x", "bl"]}, "subject", "data.colour"),
    ("StringNotEndsWith", {"values": ["x", "UE"]}, "subject", "data.colour"),
]


@pytest.mark.parametrize(("operator", "operand", "yes", "no"), [*OPERATORS, *NEGATED])
def test_an_operator_on_a_single_value(operator: str, operand: dict[str, Any], yes: str, no: str) -> None:
    assert passes(EVENT, operatorType=operator, key=yes, **operand)
    assert not passes(EVENT, operatorType=operator, key=no, **operand)


@pytest.mark.parametrize(
    ("operator", "operand", "expected"),
    [
        *((operator, operand, False) for operator, operand, _, _ in OPERATORS),
        ("NumberNotIn", {"values": [1]}, True),
        ("NumberNotInRange", {"values": [[1, 2]]}, True),
        ("StringNotIn", {"values": ["a"]}, True),
        ("StringNotContains", {"values": ["a"]}, False),
        ("StringNotBeginsWith", {"values": ["a"]}, False),
        ("StringNotEndsWith", {"values": ["a"]}, False),
        ("IsNullOrUndefined", {}, True),
        ("IsNotNull", {}, False),
    ],
)
@pytest.mark.parametrize("key", ["data.missing", "data.nothing", "data.colour.deeper", "missing"])
def test_an_event_without_the_key(operator: str, operand: dict[str, Any], expected: bool, key: str) -> None:
    assert passes(EVENT, operatorType=operator, key=key, **operand) is expected


@pytest.mark.parametrize("key", ["data.size", "data.none", "data.objects", "subject"])
def test_present_values_are_not_null(key: str) -> None:
    assert passes(EVENT, operatorType="IsNotNull", key=key)
    assert not passes(EVENT, operatorType="IsNullOrUndefined", key=key)


@pytest.mark.parametrize(("operator", "operand", "yes", "no"), [*OPERATORS, *NEGATED])
def test_a_value_of_another_kind_never_matches(
    operator: str, operand: dict[str, Any], yes: str, no: str
) -> None:
    other = "data.place" if operator.startswith("String") else "data.colour"
    assert not passes(EVENT, operatorType=operator, key=other, **operand)


@pytest.mark.parametrize(
    ("operator", "operand", "key", "expected"),
    [
        ("NumberIn", {"values": [5]}, "data.sizes", True),
        ("NumberIn", {"values": [6]}, "data.sizes", False),
        ("NumberNotIn", {"values": [5]}, "data.sizes", False),
        ("NumberNotIn", {"values": [6]}, "data.sizes", True),
        ("NumberGreaterThan", {"value": 4}, "data.sizes", True),
        ("NumberInRange", {"values": [[2, 4]]}, "data.sizes", False),
        ("NumberNotInRange", {"values": [[2, 4]]}, "data.sizes", True),
        ("StringIn", {"values": ["FIVE"]}, "data.sizes", True),
        ("StringContains", {"values": ["lu"]}, "data.colours", True),
        ("StringNotContains", {"values": ["lu"]}, "data.colours", False),
        ("StringNotContains", {"values": ["xyz"]}, "data.colours", True),
        ("StringIn", {"values": ["7"]}, "data.colours", False),
        ("StringIn", {"values": ["x"]}, "data.none", False),
        ("StringNotIn", {"values": ["x"]}, "data.none", True),
    ],
)
def test_arrays_where_the_filter_looks_into_them(
    operator: str, operand: dict[str, Any], key: str, expected: bool
) -> None:
    assert passes(EVENT, arrays=True, operatorType=operator, key=key, **operand) is expected
    assert not passes(EVENT, operatorType=operator, key=key, **operand)


@pytest.mark.parametrize(
    "key", ["Subject", "SUBJECT", "EventType", "Id", "Topic", "DataVersion", "data.COLOUR", "data.place.city"]
)
def test_a_key_is_found_whatever_its_case(key: str) -> None:
    assert passes(EVENT, operatorType="IsNotNull", key=key)


def test_the_spelling_that_is_there_wins() -> None:
    event = {"data": {"Size": 1, "size": 2}}
    assert passes(event, operatorType="NumberIn", key="data.size", values=[2])
    assert passes(event, operatorType="NumberIn", key="data.Size", values=[1])


@pytest.mark.parametrize(
    ("key", "text"), [("type", "order.placed"), ("eventtype", "order.placed"), ("eventid", "c-1")]
)
def test_a_cloud_events_type_and_id_have_two_names(key: str, text: str) -> None:
    assert passes(CLOUD_EVENT, operatorType="StringIn", key=key, values=[text])


def test_texts_compare_with_a_cloud_events_number_as_it_is_written() -> None:
    assert passes(CLOUD_EVENT, operatorType="StringBeginsWith", key="priority", values=["5"])
    assert not passes(CLOUD_EVENT, operatorType="StringNotBeginsWith", key="priority", values=["5"])
    assert passes(CLOUD_EVENT, operatorType="StringIn", key="urgent", values=["true"])
    assert not passes(CLOUD_EVENT, operatorType="StringIn", key="data.priority", values=["5"])
    assert not passes(EVENT, operatorType="StringIn", key="data.size", values=["5"])


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, True),
        ({"includedEventTypes": None}, True),
        ({"includedEventTypes": []}, True),
        ({"includedEventTypes": ["All"]}, True),
        ({"includedEventTypes": ["Order.Placed", "x"]}, True),
        ({"includedEventTypes": ["order.placed"]}, False),
        ({"subjectBeginsWith": "/orders/"}, True),
        ({"subjectBeginsWith": "/orders/", "isSubjectCaseSensitive": True}, False),
        ({"subjectBeginsWith": "/Orders/", "isSubjectCaseSensitive": True}, True),
        ({"subjectEndsWith": ".json"}, True),
        ({"subjectBeginsWith": "/orders/", "subjectEndsWith": ".xml"}, False),
        ({"subjectBeginsWith": "*"}, False),
        ({"subjectBeginsWith": "/orders", "includedEventTypes": ["x"]}, False),
    ],
)
def test_basic_filters_match_types_and_subjects(said: dict[str, Any], expected: bool) -> None:
    assert read_event_filter(json.dumps(said)).matches(EVENT) is expected


def test_a_cloud_event_without_a_subject() -> None:
    event = {"specversion": "1.0", "type": "a"}
    assert read_event_filter('{"includedEventTypes":["a"]}').matches(event)
    assert not read_event_filter('{"subjectBeginsWith":"a"}').matches(event)


def test_all_advanced_filters_have_to_hold() -> None:
    said = {
        "advancedFilters": [
            {"operatorType": "NumberIn", "key": "data.size", "values": [5]},
            {"operatorType": "StringIn", "key": "data.colour", "values": ["red"]},
        ]
    }
    assert not read_event_filter(json.dumps(said)).matches(EVENT)


@pytest.mark.parametrize(
    "advanced",
    [
        [{"operatorType": "StringIs", "key": "a", "values": ["b"]}],
        [{"operatorType": "StringIn", "values": ["b"]}],
        [{"operatorType": "StringIn", "key": "a"}],
        [{"operatorType": "StringIn", "key": "a", "values": []}],
        [{"operatorType": "StringIn", "key": "a", "values": [1]}],
        [{"operatorType": "NumberIn", "key": "a", "values": ["1"]}],
        [{"operatorType": "NumberIn", "key": "a", "values": [True]}],
        [{"operatorType": "NumberLessThan", "key": "a"}],
        [{"operatorType": "NumberInRange", "key": "a", "values": [1]}],
        [{"operatorType": "BoolEquals", "key": "a", "value": "true"}],
        [{"operatorType": "IsNotNull", "key": "a"}] * 26,
        [{"operatorType": "StringIn", "key": "a", "values": ["b"] * 13}] * 2,
        [{"operatorType": "StringIn", "key": "a", "values": ["b" * 513]}],
    ],
)
def test_malformed_filters_are_refused(advanced: list[dict[str, Any]]) -> None:
    with pytest.raises(EventFilterInvalid):
        read_event_filter(json.dumps({"advancedFilters": advanced}))


OPPOSITES = [
    ("NumberIn", "NumberNotIn"),
    ("NumberInRange", "NumberNotInRange"),
    ("StringIn", "StringNotIn"),
    ("StringContains", "StringNotContains"),
    ("StringBeginsWith", "StringNotBeginsWith"),
    ("StringEndsWith", "StringNotEndsWith"),
]
numbers = st.integers(-9, 9) | st.floats(-9, 9, allow_nan=False)
texts = st.text("aAbB", min_size=1, max_size=3)


@given(
    pair=st.sampled_from(OPPOSITES),
    number_values=st.lists(numbers, min_size=1, max_size=5),
    text_values=st.lists(texts, min_size=1, max_size=5),
    elements=st.lists(numbers | texts | st.booleans() | st.none(), max_size=5),
    whole=st.booleans(),
)
def test_an_operator_and_its_opposite_never_agree_on_a_value_of_their_kind(
    pair: tuple[str, str],
    number_values: list[float],
    text_values: list[str],
    elements: list[Any],
    whole: bool,
) -> None:
    is_text = pair[0].startswith("String")
    values: list[Any] = list(text_values) if is_text else list(number_values)
    if pair[0].endswith("Range"):
        values = [sorted((low, 0)) for low in number_values]
    kind: tuple[type, ...] = (str,) if is_text else (int, float)
    candidates = [elements] if whole else [one for one in elements if type(one) in kind]
    for value in candidates:
        event = {"data": {"x": value}}
        answers = [passes(event, arrays=True, operatorType=one, key="data.x", values=values) for one in pair]
        assert answers[0] is not answers[1]


@given(value=texts, wanted=st.lists(texts, min_size=1, max_size=5))
def test_texts_are_compared_without_regard_to_case(value: str, wanted: list[str]) -> None:
    for operator in ("StringIn", "StringContains", "StringBeginsWith", "StringEndsWith"):
        answers = {
            passes({"x": one}, operatorType=operator, key="x", values=two)
            for one in (value.upper(), value.lower())
            for two in (wanted, [part.swapcase() for part in wanted])
        }
        assert len(answers) == 1
