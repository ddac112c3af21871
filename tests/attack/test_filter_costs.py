"""Filters and messages made for each other cost no more than a message may: the rest of a search is cut off."""

import asyncio
import itertools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from redrive.engine.configuration.matching import Turns
from redrive.model.budget import OverBudgetError
from redrive.model.filtering import (
    Event,
    FilterIndex,
    FilterPolicyInvalid,
    FilterVerdict,
    MessageBudget,
    Scope,
    Subject,
    read_event_filter,
    read_policy,
)

# As many steps of the interpreter as a message may take. What is cut off once took minutes: thousands of times as long.
STEPS = 100_000
TIMES_MAX = 100


def count() -> None:
    total = 0
    for number in range(STEPS):
        total += number


def times_counting(call: Callable[[], object]) -> float:
    """Processor time of a call as a multiple of counting to `STEPS`, the least of some readings."""
    readings = []
    for _ in range(4):
        began = time.process_time()
        call()
        between = time.process_time()
        count()
        readings.append((between - began) / (time.process_time() - between))
    return min(readings)


def index_of(*policies: Any) -> FilterIndex[int]:
    index: FilterIndex[int] = FilterIndex()
    for number, policy in enumerate(policies):
        index.add(number, read_policy(json.dumps(policy), Scope.BODY))
    return index


def orders(count: int) -> Any:
    return {
        "p": [{"a": number, "m": {"y": number}} for number in range(count)],
        "p.m": [{"x": number, "z": "no"} for number in range(count - 1)] + [{"z": "never"}],
    }


CROSSED = {
    "p": {
        "a": [{"exists": True}],
        "m": {"x": [{"exists": True}], "y": [{"anything-but": [-1]}], "z": ["never"]},
    }
}
WORDS = [f"a1a2a3{number}" for number in range(20_000)]
LONG = "a" * 250_000


def wildcards(policy: int) -> Any:
    return {"s": [{"wildcard": f"*a{condition}*b{policy}*"} for condition in range(100)]}


ATTACKS: dict[str, tuple[list[Any], Any]] = {
    "keys that alternate between two arrays": ([CROSSED], orders(300)),
    "the same, as long as a message may be": ([CROSSED], orders(5_000)),
    "the same, of many subscriptions": ([CROSSED] * 200, orders(5_000)),
    "wildcards and an array of words": ([wildcards(policy) for policy in range(20)], {"s": WORDS}),
    "wildcards and a long text": (
        [{"s": [{"wildcard": "*" + "a" * 99 + f"b{number}*"} for number in range(100)]}] * 20,
        {"s": LONG},
    ),
    "a wildcard of many stars": ([{"s": [{"wildcard": "*a" * 30_000 + "b"}]}] * 20, {"s": LONG}),
    "anything but many": ([{"s": [{"anything-but": [f"{n}" for n in range(3_000)]}]}] * 20, {"s": WORDS}),
    "networks": ([{"s": [{"cidr": f"10.{n}.0.0/16"} for n in range(100)]}] * 100, {"s": WORDS}),
    "ranges and an array of numbers": (
        [{"s": [{"numeric": [">", 100 * n + m]} for m in range(100)]} for n in range(200)],
        {"s": list(range(20_000, 60_000))},
    ),
    "prefixes of every length and an array of words": (
        [{"s": [{"prefix": "a" * (5 * n + m)} for m in range(100)]} for n in range(100)],
        {"s": WORDS},
    ),
    "keys in many groups and an array of words": (
        [{"s": ["never", {"suffix": "r"}], f"k{n}": ["y"]} for n in range(200)],
        {"s": WORDS, **{f"k{n}": "x" for n in range(200)}},
    ),
}


@pytest.mark.parametrize(("policies", "body"), ATTACKS.values(), ids=ATTACKS.keys())
def test_a_message_costs_what_a_message_may(policies: list[Any], body: Any) -> None:
    index, subject = index_of(*policies), Subject({}, json.dumps(body))
    assert subject.document is not None  # reading JSON is not what is measured
    assert times_counting(lambda: index.filter(subject)) < TIMES_MAX


def test_arrays_in_arrays_are_read_once() -> None:
    deep = "[" * 900 + '{"a":1}' + "]" * 900
    subject = Subject({}, f'{{"k":[{",".join([deep] * 140)}]}}')
    assert subject.document is not None
    index = index_of(*[{"k": {"a": [1], "b": [2]}}] * 50)
    assert not index.filter(subject).passed
    assert times_counting(lambda: index.filter(subject)) < TIMES_MAX


def test_a_match_cut_off_for_its_cost_fails_with_its_own_verdict() -> None:
    found = index_of(CROSSED, {"p": {"a": [7]}}).filter(Subject({}, json.dumps(orders(2_000))))
    assert found.passed == {1}
    assert found.refused == {FilterVerdict.TOO_COSTLY: 1}
    policy = read_policy(json.dumps(CROSSED), Scope.BODY)
    assert policy.match(Subject({}, json.dumps(orders(2_000)))) is FilterVerdict.TOO_COSTLY
    assert policy.match(Subject({}, json.dumps(orders(20)))) is FilterVerdict.BODY


def test_a_costly_filter_uses_no_steps_of_other_filters() -> None:
    """A hundred costly filters, and one that needs some steps of its own for a few order lines."""
    modest = {"few": {"id": [3], "paid": [True]}}
    body = orders(5_000) | {"few": [{"id": number, "paid": number == 3} for number in range(20)]}
    found = index_of(*[CROSSED] * 100, modest, *[CROSSED] * 99).filter(Subject({}, json.dumps(body)))
    assert found.passed == {100}


def test_long_lists_that_people_have_are_decided() -> None:
    lines = [{"sku": f"s{number}", "count": number % 7, "gift": number == 1_999} for number in range(2_000)]
    policy = {"lines": {"count": [{"numeric": [">", 3]}], "gift": [True], "sku": [{"wildcard": "s*9"}]}}
    policies = [{**policy, "lines": {**policy["lines"], "gift": [n == 7]}} for n in range(8)]
    found = index_of(*policies).filter(Subject({}, json.dumps({"lines": lines})))
    assert FilterVerdict.TOO_COSTLY not in found.refused


@pytest.mark.parametrize(
    "policy",
    [
        {".".join(["a"] * 600): ["x"]},
        {"a": [{"anything-but": list(range(5_000))}]},
        {"a": list(range(5_000))},
        {"a": [[]] * 50_000},
    ],
    ids=["a key of many names", "many in one condition", "many conditions", "junk"],
)
def test_policies_that_take_long_to_read_are_refused(policy: Any) -> None:
    text = json.dumps(policy)

    def read() -> None:
        with pytest.raises(FilterPolicyInvalid, match="too complex"):
            read_policy(text, Scope.BODY)

    assert times_counting(read) < TIMES_MAX


def test_events_have_a_budget_too() -> None:
    said = {
        "enableAdvancedFilteringOnArrays": True,
        "advancedFilters": [{"operatorType": "StringContains", "key": "data.s", "values": list("abcdefgh")}],
    }
    document = {"id": "1", "data": {"s": ["x"] * 100_000}}
    with pytest.raises(OverBudgetError):
        read_event_filter(json.dumps(said)).evaluate(Event(document), MessageBudget())


def test_a_missing_key_of_a_filter_is_looked_up_once_an_event() -> None:
    """The case of a name does not matter, so a key that is not there is compared with all that are."""
    said = {"advancedFilters": [{"operatorType": "NumberIn", "key": "Data.MISSING", "values": [1]}]}
    wants = read_event_filter(json.dumps(said))
    event = Event({"data": {f"name{number}": number for number in range(50_000)}})
    assert times_counting(lambda: [wants.evaluate(event, MessageBudget()) for _ in range(500)]) < TIMES_MAX


async def test_others_run_between_costly_messages() -> None:
    """Also between those of many who publish at once."""
    turns, order = Turns(), []
    index = index_of(CROSSED)
    publishers = 5

    async def publish() -> None:
        await turns.begin()
        budget = MessageBudget()
        index.filter(Subject({}, json.dumps(orders(2_000))), budget)
        turns.end(budget)
        order.append("filtered")

    async def others() -> None:
        while order.count("filtered") < publishers:
            order.append("served")
            await asyncio.sleep(0)

    await asyncio.gather(*[publish() for _ in range(publishers)], others())
    assert [key for key, _ in itertools.groupby(order)].count("filtered") == publishers


async def test_a_publisher_that_disconnects_does_not_delay_others() -> None:
    turns, done = Turns(), []

    async def publish(number: int) -> None:
        await turns.begin()
        budget = MessageBudget()
        budget.spend(50_000)
        turns.end(budget)
        done.append(number)

    tasks = [asyncio.create_task(publish(number)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert done == [0, 2, 3]
