"""The index answers as trying every filter would."""

import json
import random
from collections import Counter
from contextlib import suppress
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.model.filtering import (
    FilterIndex,
    FilterPolicy,
    FilterPolicyInvalid,
    FilterVerdict,
    Scope,
    Subject,
    read_policy,
)
from redrive.model.filtering.condition import NumberRange
from redrive.model.filtering.postings import RangeTable
from redrive.model.topic import Attribute

Document = Any

# Few and similar names and values, so that random filters and messages meet.
NAMES = ["a", "b", "c", "a.b"]
TEXTS = ["", "x", "X", "xy", "xyz", "yz", "z", "zyz", "10.0.0.1", "10.0.0.9"]
NUMBERS = [-1, 0, 1, 1.0, 1.5, 2, 3]


class Maker:
    """Makes filters and messages out of a seed; Hypothesis's own trees stay too small to meet one another."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def often(self, share: float) -> bool:
        return self.rng.random() < share

    def scalar(self) -> Document:
        return self.rng.choice([*TEXTS, *NUMBERS, True, False, None])

    def expression(self) -> Document:
        text, number = self.rng.choice(TEXTS), self.rng.choice(NUMBERS)
        ends = self.rng.choice([">", ">="]), self.rng.choice(["<", "<="])
        low, high = sorted(self.rng.sample([-1, 0, 1, 1.5, 2, 3], 2))
        return self.rng.choice(
            [
                {"prefix": text},
                {"suffix": text},
                {"equals-ignore-case": text},
                {"anything-but": text},
                {"anything-but": [number]},
                {"anything-but": {"suffix": "z"}},
                {"exists": True},
                {"exists": False},
                {"exists": False},
                {"numeric": [self.rng.choice(["=", "<", "<=", ">", ">="]), number]},
                {"numeric": [ends[0], low, ends[1], high]},
                {"cidr": "10.0.0.0/29"},
                {"wildcard": "x*z"},
            ]
        )

    def entries(self) -> Document:
        return [
            self.expression() if self.often(0.6) else self.scalar() for _ in range(self.rng.choice([1, 1, 2]))
        ]

    def document(self, nesting: int) -> Document:
        names = self.rng.sample(NAMES, self.rng.choice([1, 1, 2, 2, 3]))
        document: Document = {
            name: self.document(nesting - 1) if nesting and self.often(0.4) else self.entries()
            for name in names
        }
        if self.often(0.15):
            document["$or"] = [self.document(0), self.document(0)]
        return document

    def policy(self) -> FilterPolicy:
        scope = self.rng.choice(list(Scope))
        while True:
            document = {} if self.often(0.02) else self.document(2 if scope is Scope.BODY else 0)
            with suppress(FilterPolicyInvalid):  # more than 150 combinations
                return read_policy(json.dumps(document), scope, stored=True)

    def attribute(self) -> Attribute:
        values = [self.scalar() for _ in range(self.rng.randrange(3))]
        return self.rng.choice(
            [
                Attribute("String", self.rng.choice(TEXTS)),
                Attribute("String", self.rng.choice(TEXTS)),
                Attribute("Number", str(self.rng.choice(NUMBERS))),
                Attribute("String.Array", json.dumps(values)),
                Attribute("Binary", ""),
                self.rng.choice([Attribute("Number", "x"), Attribute("String.Array", "{")]),
            ]
        )

    def value(self, nesting: int) -> Document:
        if not nesting or self.often(0.4):
            return self.scalar()
        if self.often(0.5):
            return [self.value(nesting - 1) for _ in range(self.rng.randrange(4))]
        return {name: self.value(nesting - 1) for name in NAMES if self.often(0.6)}

    def subject(self) -> Subject:
        attributes = {name: self.attribute() for name in NAMES if self.often(0.5)}
        if self.often(0.1):
            return Subject(attributes, self.rng.choice(["", "text", "[]"]))
        return Subject(attributes, json.dumps({name: self.value(3) for name in NAMES if self.often(0.7)}))


makers = st.integers(0, 2**32).map(Maker)


def check(index: FilterIndex[int], kept: dict[int, FilterPolicy], subject: Subject) -> None:
    verdicts = {key: policy.match(subject) for key, policy in kept.items()}
    found = index.filter(subject)
    assert found.passed == {key for key, verdict in verdicts.items() if verdict is FilterVerdict.MATCHED}
    refused = Counter(verdict for verdict in verdicts.values() if verdict is not FilterVerdict.MATCHED)
    assert found.refused == refused


@settings(max_examples=300)
@given(makers)
def test_the_index_finds_the_same_filters_as_brute_force(maker: Maker) -> None:
    filters = {key: maker.policy() for key in range(20)}
    index: FilterIndex[int] = FilterIndex()
    for key, policy in filters.items():
        index.add(key, policy)
    for _ in range(5):
        check(index, filters, maker.subject())


@settings(max_examples=100)
@given(makers)
def test_index_follows_changes(maker: Maker) -> None:
    index: FilterIndex[int] = FilterIndex()
    kept: dict[int, FilterPolicy] = {}
    for _ in range(30):
        key = maker.rng.randrange(8)
        if maker.often(0.4):
            index.remove(key)
            kept.pop(key, None)
        else:
            kept[key] = maker.policy()
            index.add(key, kept[key])
        assert len(index) == len(kept)
        check(index, kept, maker.subject())


@given(makers)
def test_an_emptied_index_keeps_nothing(maker: Maker) -> None:
    index: FilterIndex[int] = FilterIndex()
    for key in range(20):
        index.add(key, maker.policy())
    for key in range(20):
        index.remove(key)
    for scope in index._scopes.values():
        assert (scope.policies, scope._entries) == ({}, {})
        assert (scope._filter_keys.keys, scope._filter_keys.root.below) == ({}, {})
        assert (scope._groups._by_keys, scope._groups._anchored) == ({}, {})


def test_random_filters_and_messages_meet() -> None:
    maker = Maker(1)
    verdicts = Counter(maker.policy().match(maker.subject()) for _ in range(2000))
    assert set(verdicts) == set(FilterVerdict) - {FilterVerdict.EVENT, FilterVerdict.TOO_COSTLY}
    assert verdicts[FilterVerdict.MATCHED] > 100


@settings(max_examples=100)
@given(makers)
def test_a_range_table_finds_the_ranges_around_a_number(maker: Maker) -> None:
    table = RangeTable()
    ranges = {}
    for clause in range(maker.rng.choice([5, 100, 400])):
        low, high = maker.rng.randint(-5, 5), maker.rng.choice([-3, 0, 4, inf])
        ranges[clause] = NumberRange(low, high, above=maker.often(0.5), below=maker.often(0.5))
        table.add(clause, ranges[clause])
        if maker.often(0.01):
            table.around([0])  # has the tree made from what there is
    for clause in maker.rng.sample(list(ranges), len(ranges) // 4):
        table.discard(clause)
        del ranges[clause]
    for number in (-5, -3, -0.5, 0, 4, 4.5, 5, 6):
        expected = {clause for clause, condition in ranges.items() if condition.matches(number)}
        assert table.around([number]) == expected
        assert {clause for clause in ranges if table.holds(clause, [number])} == expected
    for size in (2, 40):
        numbers = sorted(maker.rng.choices([-5.5, -5, -3, -0.5, 0, 3.5, 4, 4.5, 5, 6], k=size))
        expected = {clause for clause, condition in ranges.items() if any(map(condition.matches, numbers))}
        assert table.around(numbers) == expected
        assert {clause for clause in ranges if table.holds(clause, numbers)} == expected


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
        "redrive.model.filtering.policy.Clause.matches", lambda clause, *_: tried.append(clause)
    )
    subject = Subject({}, '{"tenant":"t7","type":"order","price":5000}')
    assert index.matches(subject) == set(range(70, 80))
    assert tried == []


def test_other_operators_are_tried_only_where_the_indexed_ones_match(monkeypatch: pytest.MonkeyPatch) -> None:
    index: FilterIndex[int] = FilterIndex()
    for number in range(1000):
        document = {"tenant": [f"t{number // 10}"], "source": [{"cidr": "10.0.0.0/8"}]}
        index.add(number, read_policy(json.dumps(document), Scope.BODY))
    tried: list[object] = []
    monkeypatch.setattr(
        "redrive.model.filtering.policy.Clause.matches", lambda clause, *_: tried.append(clause)
    )
    index.matches(Subject({}, '{"tenant":"t7","source":"10.1.1.1"}'))
    assert len(tried) == 10


def test_filters_on_attributes_leave_the_body_alone() -> None:
    index: FilterIndex[str] = FilterIndex()
    index.add("one", read_policy('{"a":["x"]}', Scope.ATTRIBUTES))
    subject = Subject({"a": Attribute("String", "x")}, "not JSON")
    assert index.matches(subject) == {"one"}
    assert not isinstance(subject._document, dict | None)
