"""One filter and one message: the recorded cases, and the operators one by one."""

import json
from typing import Any

import pytest

from redrive.model.filtering import FilterPolicy, FilterVerdict, Scope, Subject, read_policy
from redrive.model.topic import Attribute

Document = Any


def on_attributes(document: Document) -> FilterPolicy:
    return read_policy(json.dumps(document), Scope.ATTRIBUTES, stored=True)


def on_body(document: Document) -> FilterPolicy:
    return read_policy(json.dumps(document), Scope.BODY, stored=True)


def message(body: object = "", **attributes: tuple[str, str]) -> Subject:
    return Subject(
        {name: Attribute(*attribute) for name, attribute in attributes.items()},
        body if isinstance(body, str) else json.dumps(body),
    )


def body_matches(policy: Document, body: Document) -> bool:
    return on_body(policy).match(message(body)) is FilterVerdict.MATCHED


def value_matches(entry: Document, value: Document) -> bool:
    return body_matches({"key": [entry]}, {"key": value})


@pytest.mark.parametrize(
    ("entry", "matching", "others"),
    [
        ("a", ["a"], ["A", "ab", "", 1, None, True]),
        ("5", ["5"], [5, 5.0]),
        (5, [5, 5.0], ["5", 5.5, True]),
        (1, [1, 1.0, 1e0], [True, "1"]),
        (301.5, [301.5, 3.015e2], [301.50001]),
        (9007199254740993, [9007199254740993], [9007199254740992]),
        (True, [True], [1, "true", False]),
        (False, [False], [0, "false", None]),
        (None, [None], ["null", 0, False, ""]),
        ({"prefix": "ab"}, ["ab", "abc"], ["a", "cab", 5, None]),
        ({"prefix": ""}, ["", "x"], [5, None]),
        ({"suffix": "bc"}, ["bc", "abc"], ["c", "bcd", 5]),
        ({"equals-ignore-case": "Ab"}, ["ab", "AB", "aB"], ["abc", "a"]),
        ({"numeric": ["=", 3]}, [3, 3.0], ["3", 3.1, None]),
        ({"numeric": ["<", 3]}, [2.99999, -5], [3, 4, "2"]),
        ({"numeric": ["<=", 3]}, [3, 2], [3.00001]),
        ({"numeric": [">", 3]}, [3.00001], [3, 2, True]),
        ({"numeric": [">=", 3]}, [3], [2.99999]),
        ({"numeric": [">", 0, "<=", 100]}, [0.00001, 99, 100], [0, 100.00001, "99"]),
        ({"numeric": [">=", 0, "<", 100]}, [0, 99.99999], [100, -0.00001]),
        ({"cidr": "10.0.0.0/24"}, ["10.0.0.0", "10.0.0.255"], ["10.0.1.0", "10.0.0", "::1", 10, ""]),
        ({"cidr": "10.0.0.7/24"}, ["10.0.0.1"], ["10.0.1.1"]),
        (
            {"cidr": "2001:db8::/32"},
            ["2001:db8::1", "2001:0db8:0000:0000:0000:0000:0000:0001"],
            ["2001:db9::1", "10.0.0.1"],
        ),
        ({"wildcard": "a*c"}, ["ac", "abc", "abcc"], ["a", "abcd", "xac", 5]),
        ({"wildcard": "a*b*c"}, ["abc", "axbxc", "abbc"], ["acb", "ac", "abcb"]),
        ({"wildcard": "*.png"}, [".png", "a.png"], ["a.jpg", "png"]),
        ({"wildcard": "aba*aba"}, ["abaaba", "abaxaba"], ["aba", "ababa"]),
        ({"wildcard": "a\\*b"}, ["a*b"], ["axb"]),
        ({"wildcard": "a\\\\*"}, ["a\\", "a\\b"], ["ab"]),
        ({"wildcard": "abc"}, ["abc"], ["abcd"]),
        ({"wildcard": "*"}, ["", "anything"], [5]),
        ({"anything-but": "a"}, ["b", 5, None, True], ["a"]),
        ({"anything-but": ["a", "b"]}, ["c", ""], ["a", "b"]),
        ({"anything-but": 5}, [6, "5"], [5, 5.0]),
        ({"anything-but": [100, 500]}, [101, 100.1], [100, 500.0]),
        ({"anything-but": {"prefix": "ab"}}, ["b", 5], ["ab", "abc"]),
        ({"anything-but": {"suffix": "bc"}}, ["b", 5], ["abc"]),
        ({"anything-but": {"wildcard": "a*c"}}, ["b", 5], ["abc"]),
        ({"exists": True}, ["", 0, None, False, "x"], []),
        ({"exists": False}, [], ["", 0, None, False, "x"]),
    ],
)
def test_each_kind_of_entry_matches_its_values(
    entry: Document, matching: list[Document], others: list[Document]
) -> None:
    assert [value for value in matching if not value_matches(entry, value)] == []
    assert [value for value in others if value_matches(entry, value)] == []


@pytest.mark.parametrize("entry", ["a", None, {"prefix": ""}, {"anything-but": "a"}, {"exists": True}])
def test_a_missing_key_meets_nothing(entry: Document) -> None:
    assert not body_matches({"key": [entry]}, {"other": 1})


def test_a_missing_key_is_absent() -> None:
    assert body_matches({"key": [{"exists": False}]}, {})
    assert body_matches({"key": ["a", {"exists": False}]}, {})
    assert body_matches({"key": ["a", {"exists": False}]}, {"key": "a"})
    assert not body_matches({"key": ["a", {"exists": False}]}, {"key": "b"})


def test_null_or_anything_but_still_needs_the_attribute() -> None:
    policy = on_attributes({"attr1": [None, {"anything-but": "whatever"}]})
    assert policy.match(message("This the test message for null")) is FilterVerdict.NO_ATTRIBUTES


def test_existence_is_about_leaves() -> None:
    policy = {"a": [{"exists": True}]}
    assert not body_matches(policy, {"a": {"b": 1}})
    assert not body_matches(policy, {"a": []})
    assert not body_matches(policy, {"a": {}})
    assert body_matches(policy, {"a": [None]})
    assert body_matches({"a": [{"exists": False}]}, {"a": {"b": 1}})


# Attributes


@pytest.mark.parametrize(
    ("policy", "attribute", "verdict"),
    [
        (["value1"], ("String", "value1"), FilterVerdict.MATCHED),
        (["value1"], ("String.custom", "value1"), FilterVerdict.MATCHED),
        (["value1"], ("String.Array", '["value1","value2"]'), FilterVerdict.MATCHED),
        (["value1"], ("String.Array", '["value2","value3"]'), FilterVerdict.ATTRIBUTES),
        (["value1"], ("String.Array", "['value1']"), FilterVerdict.INVALID_ATTRIBUTES),
        (["value1"], ("String.Array", '"value1"'), FilterVerdict.INVALID_ATTRIBUTES),
        (["value1"], ("String.Array", '["value1",{}]'), FilterVerdict.INVALID_ATTRIBUTES),
        (["value1"], ("String.Array", '["value1",NaN]'), FilterVerdict.INVALID_ATTRIBUTES),
        (["value1"], ("String.Array", "[" * 100_000), FilterVerdict.INVALID_ATTRIBUTES),
        ([None], ("String.Array", "null"), FilterVerdict.INVALID_ATTRIBUTES),
        ([None, True], ("String.Array", "[1,null]"), FilterVerdict.MATCHED),
        ([5], ("String.Array", "[1,5]"), FilterVerdict.MATCHED),
        ([{"exists": False}], ("String.Array", "[]"), FilterVerdict.MATCHED),
        (
            [{"anything-but": ["rugby", "tennis"]}],
            ("String.Array", '["rugby","baseball"]'),
            FilterVerdict.MATCHED,
        ),
        ([{"anything-but": ["rugby", "tennis"]}], ("String.Array", '["rugby"]'), FilterVerdict.ATTRIBUTES),
        ([{"numeric": [">", 0, "<=", 100]}], ("Number", "99"), FilterVerdict.MATCHED),
        ([{"numeric": [">", 0, "<=", 100]}], ("Number.int", "111"), FilterVerdict.ATTRIBUTES),
        ([301.5], ("Number", "3.015e2"), FilterVerdict.MATCHED),
        ([12345678901234567890], ("Number", "12345678901234567890"), FilterVerdict.MATCHED),
        ([5], ("Number", "five"), FilterVerdict.INVALID_ATTRIBUTES),
        ([5], ("Number", "1_000"), FilterVerdict.INVALID_ATTRIBUTES),
        ([5], ("Number", "inf"), FilterVerdict.INVALID_ATTRIBUTES),
        ([5], ("Number", "nan"), FilterVerdict.INVALID_ATTRIBUTES),
        ([5], ("String", "5"), FilterVerdict.ATTRIBUTES),
        (["5"], ("Number", "5"), FilterVerdict.ATTRIBUTES),
        ([{"exists": True}], ("Binary", "x"), FilterVerdict.ATTRIBUTES),
        ([{"exists": False}], ("Binary", "x"), FilterVerdict.MATCHED),
        # Quotes and backslashes are compared escaped: in the policy's JSON they stand escaped twice.
        (['say \\"hi\\"'], ("String", 'say "hi"'), FilterVerdict.MATCHED),
        (['say "hi"'], ("String", 'say "hi"'), FilterVerdict.ATTRIBUTES),
        (["C:\\\\temp"], ("String", "C:\\temp"), FilterVerdict.MATCHED),
    ],
)
def test_attributes_match_by_type_and_value(
    policy: Document, attribute: tuple[str, str], verdict: FilterVerdict
) -> None:
    assert on_attributes({"store": policy}).match(message(store=attribute)) is verdict


def test_only_named_attributes_are_read() -> None:
    policy = on_attributes({"store": ["a"]})
    assert policy.match(message(store=("String", "a"), broken=("String.Array", "{"))) is FilterVerdict.MATCHED


def test_a_bad_attribute_spoils_the_filter_that_names_it_anywhere() -> None:
    policy = on_attributes({"$or": [{"store": ["a"]}, {"broken": ["a"]}]})
    verdict = policy.match(message(store=("String", "a"), broken=("String.Array", "{")))
    assert verdict is FilterVerdict.INVALID_ATTRIBUTES


def test_an_attribute_name_with_dots_is_one_name() -> None:
    policy = on_attributes({"a.b": ["x"]})
    assert policy.match(message(**{"a.b": ("String", "x")})) is FilterVerdict.MATCHED


def test_a_filter_on_attributes_ignores_the_body() -> None:
    assert on_attributes({"a": ["x"]}).match(message({"a": "x"})) is FilterVerdict.NO_ATTRIBUTES


# Bodies


@pytest.mark.parametrize("body", ["Regular string message", '"Regular string message"', "[]", "5", "NaN", ""])
def test_a_body_that_is_no_object(body: str) -> None:
    assert on_body({"a": [{"exists": False}]}).match(message(body)) is FilterVerdict.INVALID_BODY


@pytest.mark.parametrize("body", ['{"a":NaN}', '{"a":' + "[" * 100_000, '{"a":' + "9" * 5000 + "}"])
def test_a_body_that_only_a_lenient_parser_reads(body: str) -> None:
    assert on_body({"a": [{"exists": False}]}).match(message(body)) is FilterVerdict.INVALID_BODY


RECORDED_NESTED = {
    "object": {"key": [{"prefix": "auto-"}, "hardcodedvalue"], "nested_key": [{"exists": False}]},
    "test": [{"exists": False}],
}


@pytest.mark.parametrize(
    ("body", "passes"),
    [
        ({"object": {"key": "auto-test"}}, True),
        ({"object": {"key": "hardcodedvalue"}}, True),
        ({"object": {"key": "test-auto"}}, False),
        ({"object": {"key": "auto-test"}, "test": "just-exists"}, False),
        ({"object": {"key": "auto-test", "nested_key": "just-exists"}}, False),
        ({"object": {"test": "auto-test"}}, False),
        ({"test": "auto-test"}, False),
    ],
)
def test_recorded_nested_keys(body: Document, *, passes: bool) -> None:
    assert body_matches(RECORDED_NESTED, body) is passes


@pytest.mark.parametrize(
    "policy",
    [
        {"object.nested.test": ["v"]},
        {"object": {"nested": {"test": ["v"]}}},
        {"object": {"nested.test": ["v"]}},
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        {"object": {"nested": {"test": "v"}}},
        {"object.nested.test": "v"},
        {"object.nested": {"test": "v"}},
        {"object": {"nested.test": "v"}},
    ],
)
def test_recorded_dots_and_nesting_are_one(policy: Document, body: Document) -> None:
    assert body_matches(policy, body)
    assert not body_matches(policy, json.loads(json.dumps(body).replace('"v"', '"w"')))


@pytest.mark.parametrize(
    ("route", "passes"),
    [(["queue3"], False), (["queue1"], True), (["queue2"], False), (["queue1", "queue2"], True)],
)
def test_recorded_any_element_of_an_array(route: list[str], *, passes: bool) -> None:
    assert body_matches({"headers": {"route-to": ["queue1"]}}, {"headers": {"route-to": route}}) is passes


def s3_event(name: str, key: str) -> Document:
    return {"eventName": name, "s3": {"bucket": {"name": "b"}, "object": {"key": key, "size": 17}}}


@pytest.mark.parametrize(
    ("records", "passes"),
    [
        ([s3_event("ObjectCreated:Put", "auto-1.xml")], True),
        ([s3_event("ObjectRemoved:Delete", "auto-1.xml")], False),
        ([s3_event("ObjectCreated:Put", "home-1.xml")], False),
        # Both conditions hold, but in different elements.
        (
            [s3_event("ObjectCreated:Put", "home-1.xml"), s3_event("ObjectRemoved:Delete", "auto-1.xml")],
            False,
        ),
        (
            [  # an array of arrays of objects, as it was recorded
                {"eventName": "ObjectCreated:Put", "s3": {"object": [[{"key": "auto-1.xml"}]]}},
                s3_event("ObjectRemoved:Delete", "home-1.xml"),
            ],
            True,
        ),
    ],
)
def test_recorded_arrays_of_objects(records: Document, *, passes: bool) -> None:
    policy = {
        "Records": {
            "s3": {"object": {"key": [{"prefix": "auto-"}]}},
            "eventName": [{"prefix": "ObjectCreated:"}],
        }
    }
    assert body_matches(policy, {"Records": records}) is passes


RECORDED_OR = {
    "$or": [{"metricName": ["CPUUtilization", "ReadLatency"]}, {"namespace": ["AWS/EC2", "AWS/ES"]}],
    "detail": {
        "scope": ["Service"],
        "$or": [{"source": ["aws.cloudwatch"]}, {"type": ["CloudWatch Alarm State Change"]}],
    },
}


@pytest.mark.parametrize(
    ("body", "passes"),
    [
        ({"metricName": "CPUUtilization", "detail": {"scope": "Service", "source": "aws.cloudwatch"}}, True),
        ({"namespace": "AWS/ES", "detail": {"scope": "Service", "source": "aws.cloudwatch"}}, True),
        (
            {"namespace": "AWS/EC2", "detail": {"scope": "Service", "type": "CloudWatch Alarm State Change"}},
            True,
        ),
        ({"metricName": "AWS/EC2", "detail": {"scope": "Service", "source": "aws.cloudwatch"}}, False),
        ({"metricName": "CPUUtilization", "detail": {"scope": "x", "source": "aws.cloudwatch"}}, False),
        ({"metricName": "CPUUtilization", "detail": {"scope": "Service", "type": "CPUUtilization"}}, False),
        ({"metricName": "CPUUtilization", "detail": {"source": "aws.cloudwatch"}}, False),
        ({"metricName": "CPUUtilization", "scope": "Service"}, False),
    ],
)
def test_alternatives_match_as_recorded(body: Document, *, passes: bool) -> None:
    assert body_matches(RECORDED_OR, body) is passes


def test_an_or_with_one_branch_or_operator_names_is_a_key() -> None:
    assert body_matches({"$or": {"a": ["x"]}}, {"$or": {"a": "x"}})
    assert body_matches({"$or": ["x", "y"]}, {"$or": "y"})
    assert body_matches({"$or": [{"prefix": "x"}, {"suffix": "y"}]}, {"$or": "my"})


def test_a_key_asked_twice_keeps_the_last() -> None:
    policy = {"a": ["x"], "$or": [{"a": ["y"]}, {"b": ["z"]}]}
    assert body_matches(policy, {"a": "y"})
    assert body_matches(policy, {"a": "x", "b": "z"})
    assert not body_matches(policy, {"a": "x"})


def test_an_empty_policy_passes_every_object() -> None:
    assert body_matches({}, {})
    assert on_attributes({}).match(message("anything")) is FilterVerdict.MATCHED
