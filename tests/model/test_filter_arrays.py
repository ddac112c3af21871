"""Array consistency: conditions on several keys hold within the same elements."""

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.model.budget import MessageBudget
from redrive.model.filtering import FilterPolicy, FilterVerdict, Scope, Subject, read_policy
from redrive.model.filtering.arrays import Elements
from redrive.model.filtering.condition import Exactly, KeyTest
from redrive.model.filtering.subject import FilterKeys, SubjectFields

Document = Any


def on_body(document: Document) -> FilterPolicy:
    return read_policy(json.dumps(document), Scope.BODY)


def message(body: Document) -> Subject:
    return Subject({}, body if isinstance(body, str) else json.dumps(body))


def body_matches(policy: Document, body: Document) -> bool:
    return on_body(policy).match(message(body)) is FilterVerdict.MATCHED


@pytest.mark.parametrize(
    ("policy", "body", "passes"),
    [
        # Scalars side by side belong together.
        ({"a": ["x"], "b": ["y"]}, {"a": ["x", "y"], "b": ["x", "y"]}, True),
        # Independent arrays do not restrict one another.
        ({"a": {"k": [1]}, "b": {"k": [2]}}, {"a": [{"k": 0}, {"k": 1}], "b": [{"k": 2}, {"k": 3}]}, True),
        # The inner element must agree as well as the outer one.
        ({"a": {"b": {"k": [1], "l": [2]}}}, {"a": [{"b": [{"k": 1}, {"l": 2}]}]}, False),
        ({"a": {"b": {"k": [1], "l": [2]}}}, {"a": [{"b": [{"k": 0}]}, {"b": [{"k": 1, "l": 2}]}]}, True),
        # A value above the inner array goes with each of its elements.
        ({"a": {"b": {"k": [1]}, "m": [2]}}, {"a": [{"b": [{"k": 0}, {"k": 1}], "m": 2}]}, True),
        ({"a": {"b": {"k": [1]}, "m": [2]}}, {"a": [{"b": [{"k": 1}]}, {"m": 2}]}, False),
        # An absent key is looked for where the keys before it were found, so the alphabet decides.
        ({"r": {"b": ["x"], "z": [{"exists": False}]}}, {"r": [{"z": 1, "b": "y"}, {"b": "x"}]}, True),
        ({"r": {"b": ["x"], "a": [{"exists": False}]}}, {"r": [{"a": 1, "b": "y"}, {"b": "x"}]}, False),
        ({"r": {"b": ["x"], "z": [{"exists": False}]}}, {"r": [{"b": "x", "z": 1}]}, False),
    ],
)
def test_conditions_on_array_elements_hold_for_one_element_together(
    policy: Document, body: Document, *, passes: bool
) -> None:
    assert body_matches(policy, body) is passes


def test_long_independent_arrays_cost_their_sum() -> None:
    names = ["a", "b", "c", "d"]
    policy = on_body({**{name: {"k": [1]} for name in names}, "e": {"k": [2]}})
    body = {name: [{"k": 1}] * 2000 for name in [*names, "e"]}
    assert policy.match(message(body)) is FilterVerdict.BODY  # 2000⁴ choices, were they tried


def test_reading_a_body_deeper_than_python_calls() -> None:
    deep = '{"a":' * 400 + "1" + "}" * 400
    assert on_body({".".join(["a"] * 400): [1]}).match(message(deep)) is FilterVerdict.MATCHED


KEYS = ["a.b.x", "a.b.y", "a.m", "a.x", "a.y", "c.x", "c.y"]


def random_tests(rng: random.Random) -> list[KeyTest]:
    keys = sorted(rng.sample(KEYS, rng.randint(2, 5)))
    return [KeyTest(key, (Exactly(rng.randint(0, 1)),), absent=rng.random() < 0.2) for key in keys]


def random_body(rng: random.Random) -> Document:
    def scalars() -> Document:
        return {name: rng.randint(0, 1) for name in "xy" if rng.random() < 0.7}

    inner = [
        {**scalars(), "b": [scalars() for _ in range(rng.randint(0, 3))]} for _ in range(rng.randint(1, 4))
    ]
    # "a.m" stands outside the array, in the alphabet between keys that share it.
    return {"a": inner, "a.m": rng.randint(0, 1), "c": [scalars() for _ in range(rng.randint(1, 4))]}


def around(place: int, fields: SubjectFields) -> dict[int, int]:
    """Of each array around a place, the element."""
    assert fields.places is not None
    elements = {}
    while place:
        elements[fields.places.arrays[place]] = place
        place = fields.places.around[place]
    return elements


def try_everything(tests: Sequence[KeyTest], fields: SubjectFields, chosen: dict[int, int]) -> bool:
    """The rule as it is told: every choice of values, one key after the other."""
    if not tests:
        return True
    test, *others = tests
    values, standing = fields.values.get(test.key, ()), fields.value_places.get(test.key, ())
    places = [(value, around(place, fields)) for value, place in zip(values, standing, strict=True)]
    reachable = [
        (value, place)
        for value, place in places
        if all(chosen.get(array, element) == element for array, element in place.items())
    ]
    if not reachable:
        return test.absent and try_everything(others, fields, chosen)
    return any(
        test.accepts(value) and try_everything(others, fields, {**chosen, **place})
        for value, place in reachable
    )


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_the_search_finds_what_trying_everything_finds(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        tests, body = random_tests(rng), random_body(rng)
        fields = message(body).body_fields(FilterKeys(KEYS))
        assert fields is not None
        elements = Elements.of(fields)
        if elements is not None:
            assert elements.consistent(tests, MessageBudget()) is try_everything(tests, fields, {})
