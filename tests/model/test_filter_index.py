"""The index answers as trying every filter would."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from redrive.model.filtering import (
    Attribute,
    FilterIndex,
    FilterPolicy,
    FilterPolicyInvalid,
    Scope,
    Subject,
    Verdict,
    read_policy,
)
from redrive.model.filtering.condition import NumberRange
from redrive.model.filtering.ranges import RangeTable

Document = Any

# Few and similar names and values, so that random filters and messages meet.
NAMES = ["a", "b", "c", "a.b"]
texts = st.sampled_from(["", "x", "X", "xy", "xyz", "zy", "10.0.0.1", "10.0.0.9"])
numbers = st.sampled_from([-1, 0, 1, 1.0, 1.5, 2, 3])
scalars = texts | numbers | st.booleans() | st.none()
bounds = st.tuples(st.integers(-1, 1), st.integers(2, 3))
expressions = st.one_of(
    st.builds(lambda text: {"prefix": text}, texts),
    st.builds(lambda text: {"suffix": text}, texts),
    st.builds(lambda text: {"equals-ignore-case": text}, texts),
    st.builds(lambda text: {"anything-but": text}, texts),
    st.builds(lambda ones: {"anything-but": ones}, st.lists(numbers, min_size=1, max_size=2)),
    st.builds(lambda text: {"anything-but": {"prefix": text}}, st.sampled_from(["x", "1"])),
    st.builds(lambda exists: {"exists": exists}, st.booleans()),
    st.builds(
        lambda sign, number: {"numeric": [sign, number]},
        st.sampled_from(["=", "<", "<=", ">", ">="]),
        numbers,
    ),
    st.builds(
        lambda low, high, ends: {"numeric": [low, ends[0], high, ends[1]]},
        st.sampled_from([">", ">="]),
        st.sampled_from(["<", "<="]),
        bounds,
    ),
    st.sampled_from([{"cidr": "10.0.0.0/29"}, {"wildcard": "x*z"}, {"wildcard": "*y"}]),
)
entries = st.lists(scalars | expressions, min_size=1, max_size=2)
flat = st.dictionaries(st.sampled_from(NAMES), entries, min_size=1, max_size=3)
alternatives = st.builds(
    lambda keys, branches: {**keys, "$or": branches}, flat, st.lists(flat, min_size=2, max_size=3)
)
nested = st.recursive(
    flat | alternatives,
    lambda inner: st.dictionaries(st.sampled_from(NAMES), entries | inner, min_size=1, max_size=3),
    max_leaves=4,
)


def compiled(document: Document, scope: Scope) -> FilterPolicy:
    try:
        return read_policy(json.dumps(document), scope)
    except FilterPolicyInvalid:  # more than 150 combinations
        reject()


attribute_policies = st.builds(compiled, st.just({}) | flat | alternatives, st.just(Scope.ATTRIBUTES))
body_policies = st.builds(compiled, st.just({}) | nested, st.just(Scope.BODY))
policies = attribute_policies | body_policies

attributes = st.one_of(
    st.builds(lambda text: Attribute("String", text), texts),
    st.builds(lambda number: Attribute("Number", str(number)), numbers),
    st.builds(lambda values: Attribute("String.Array", json.dumps(values)), st.lists(scalars, max_size=3)),
    st.sampled_from([Attribute("Binary", ""), Attribute("Number", "x"), Attribute("String.Array", "{")]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=10,
)
bodies = st.one_of(
    st.sampled_from(["", "text", "[]"]),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=4).map(json.dumps),
)
subjects = st.builds(Subject, st.dictionaries(st.sampled_from(NAMES), attributes, max_size=3), bodies)


def check(index: FilterIndex[int], kept: dict[int, FilterPolicy], subject: Subject) -> None:
    verdicts = {key: policy.match(subject) for key, policy in kept.items()}
    found = index.filter(subject)
    assert found.passed == {key for key, verdict in verdicts.items() if verdict is Verdict.MATCHED}
    refused = Counter(verdict for verdict in verdicts.values() if verdict is not Verdict.MATCHED)
    assert found.refused == refused


@settings(max_examples=400)
@given(st.lists(policies, max_size=12), st.lists(subjects, min_size=1, max_size=4))
def test_index_is_brute_force(filters: list[FilterPolicy], messages: list[Subject]) -> None:
    index: FilterIndex[int] = FilterIndex()
    for key, policy in enumerate(filters):
        index.add(key, policy)
    for message in messages:
        check(index, dict(enumerate(filters)), message)


changes = st.lists(st.tuples(st.integers(0, 5), st.none() | policies), max_size=25)


@settings(max_examples=200)
@given(changes, st.lists(subjects, min_size=1, max_size=3))
def test_index_follows_changes(steps: list[tuple[int, FilterPolicy | None]], messages: list[Subject]) -> None:
    index: FilterIndex[int] = FilterIndex()
    kept: dict[int, FilterPolicy] = {}
    for key, policy in steps:
        if policy is None:
            index.remove(key)
            kept.pop(key, None)
        else:
            index.add(key, policy)
            kept[key] = policy
        assert len(index) == len(kept)
        check(index, kept, messages[0])
    for message in messages:
        check(index, kept, message)


@given(st.lists(policies, max_size=8))
def test_an_emptied_index_keeps_nothing(filters: list[FilterPolicy]) -> None:
    index: FilterIndex[int] = FilterIndex()
    for key, policy in enumerate(filters):
        index.add(key, policy)
    for key in range(len(filters)):
        index.remove(key)
    for scope in index._scopes.values():
        assert (scope.policies, scope._entries, scope._wanted) == ({}, {}, {})
        assert (scope._groups._by_keys, scope._groups._anchored) == ({}, {})


intervals = st.builds(
    NumberRange, st.integers(-5, 5), st.integers(-5, 5), st.booleans(), st.booleans()
) | st.builds(NumberRange, low=st.integers(-5, 5))


@settings(max_examples=100)
@given(
    st.lists(intervals, max_size=300), st.sets(st.integers(0, 299)), st.sampled_from([-5, -0.5, 0, 1, 4.5, 5])
)
def test_ranges(ranges: list[NumberRange], gone: set[int], number: float) -> None:
    table = RangeTable()
    for clause, condition in enumerate(ranges):
        table.add(clause, condition)
        if clause in (130, 200):
            table.around(0)  # has the tree made from what there is
    for clause in gone:
        table.discard(clause)
    expected = {
        clause for clause, condition in enumerate(ranges) if clause not in gone and condition.matches(number)
    }
    assert table.around(number) == expected


def test_a_topic_of_filters_tries_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    index: FilterIndex[int] = FilterIndex()
    for number in range(1000):
        document = {
            "tenant": [f"t{number // 10}"],
            "type": ["order", {"prefix": "ord"}],
            "price": [{"numeric": [">", number]}],
        }
        index.add(number, read_policy(json.dumps(document), Scope.BODY))
    tried: list[object] = []
    monkeypatch.setattr(
        "redrive.model.filtering.policy.Clause.matches", lambda clause, fields: tried.append(clause)
    )
    subject = Subject({}, '{"tenant":"t7","type":"order","price":5000}')
    assert index.matches(subject) == set(range(70, 80))
    assert tried == []


def test_other_operators_are_tried_only_where_the_rest_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    index: FilterIndex[int] = FilterIndex()
    for number in range(1000):
        document = {"tenant": [f"t{number // 10}"], "source": [{"cidr": "10.0.0.0/8"}]}
        index.add(number, read_policy(json.dumps(document), Scope.BODY))
    tried: list[object] = []
    monkeypatch.setattr(
        "redrive.model.filtering.policy.Clause.matches", lambda clause, fields: tried.append(clause)
    )
    index.matches(Subject({}, '{"tenant":"t7","source":"10.1.1.1"}'))
    assert len(tried) == 10


def test_filters_on_attributes_leave_the_body_alone() -> None:
    index: FilterIndex[str] = FilterIndex()
    index.add("one", read_policy('{"a":["x"]}', Scope.ATTRIBUTES))
    subject = Subject({"a": Attribute("String", "x")}, "not JSON")
    assert index.matches(subject) == {"one"}
    assert not isinstance(subject._document, dict | None)
