"""The filter language against what the original service answered, to the column."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.filtering import FilterPolicyInvalid, NestedPolicyRefused, Scope, read_policy

Document = Any

RECORDED = [
    ({"key": [["value"]]}, "Match value must be String, number, true, false, or null", 10),
    ({"key": [{"wrong-operator": True}]}, "Unrecognized match type wrong-operator", 31),
    ({"key": [{"suffix": "value", "prefix": "value2"}]}, "Only one key allowed in match expression", 37),
    ({"key": [{"suffix": 100}]}, "suffix match pattern must be a string", 22),
    ({"key": [{"suffix": None}]}, "suffix match pattern must be a string", 23),
    ({"key": [{"suffix": []}]}, "suffix match pattern must be a string", 20),
    ({"key": [{"suffix": ["test", "test2"]}]}, "suffix match pattern must be a string", 20),
    ({"key": {"suffix": "value"}}, '"suffix" must be an object or an array', 19),
    ({"key": {"suffix": "value", "prefix": "value"}}, '"suffix" must be an object or an array', 19),
    ({"key": {"not-an-operator": "value"}}, '"not-an-operator" must be an object or an array', 28),
    ({"key_a": "value_one"}, '"key_a" must be an object or an array', 11),
    ({"key": [{"numeric": []}]}, "Invalid member in numeric match: ]", 22),
    ({"key": [{"numeric": ["operator"]}]}, "Unrecognized numeric range operator: operator", 32),
    ({"key": [{"numeric": [1, "<="]}]}, "Invalid member in numeric match: 1", 22),
    ({"key": [{"numeric": ["=", "000"]}]}, "Value of equals must be numeric", 26),
    ({"key": [{"numeric": [">="]}]}, "Value of >= must be numeric", 26),
    ({"key": [{"numeric": ["<", 100, ">", 10]}]}, "Too many elements in numeric expression", 30),
    ({"key": [{"numeric": [">=", 1, ">", 2]}]}, "Bad numeric range operator: >", 31),
    ({"key": [{"numeric": [">", 3, "<", 1]}]}, "Bottom must be less than top", 33),
    ({"key": [{"numeric": [">", 20, "<="]}]}, "Value of <= must be numeric", 33),
    ({"key": [{"numeric": [">", 20, 30]}]}, "Bad value in numeric range: 30", 30),
    ({"key": [{"numeric": [">", 20, "test"]}]}, "Bad numeric range operator: test", 34),
    ({"key": [{"numeric": [">", "20", "<", "30"]}]}, "Value of > must be numeric", 26),
    ({"key": [{"numeric": [">", 20, "<", "30"]}]}, "Value of < must be numeric", 33),
    ({"key": [{"numeric": [">", 20, "<", 30, "<", 50]}]}, "Too many terms in numeric range expression", 36),
    ({"key": [{"exists": None}]}, "exists match pattern must be either true or false.", 23),
    ({"key": [{"exists": "no"}]}, "exists match pattern must be either true or false.", 20),
    (
        {"key": [{"anything-but": {"wrong-operator": None}}]},
        "Unsupported anything-but pattern: wrong-operator",
        47,
    ),
    ({"key": [{"anything-but": {"exists": False}}]}, "Unsupported anything-but pattern: exists", 40),
    ({"key": [{"anything-but": {"suffix": "test"}}]}, "Unsupported anything-but pattern: suffix", 36),
    ({"key": [{"anything-but": {"prefix": False}}]}, "prefix match pattern must be a string", 40),
]


def refusal(document: Document, scope: Scope = Scope.ATTRIBUTES) -> str:
    with pytest.raises(FilterPolicyInvalid) as refused:
        read_policy(json.dumps(document), scope)
    return str(refused.value)


@pytest.mark.parametrize(("document", "reason", "column"), RECORDED)
def test_refusals_are_worded_as_recorded(document: Document, reason: str, column: int) -> None:
    source = json.dumps(document, separators=(",", ":"))
    assert refusal(document) == f'{reason}\n at [Source: (String)"{source}"; line: 1, column: {column}]'


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"key": []}, "Empty arrays are not allowed"),
        ({"key": {}}, "Empty objects are not allowed"),
        ({"$or": [{}, {"a": ["b"]}]}, "Empty objects are not allowed"),
        (["key"], "Filter is not an object"),
        ({"key": [{}]}, "Match expression name not found"),
        ({"key": [{"prefix": 1}]}, "prefix match pattern must be a string"),
        ({"key": [{"equals-ignore-case": 1}]}, "equals-ignore-case match pattern must be a string"),
        ({"key": [{"cidr": 5}]}, "prefix match pattern must be a string"),
        ({"key": [{"wildcard": 5}]}, "wildcard match pattern must be a string"),
        ({"key": [{"wildcard": "a**b"}]}, "Consecutive wildcard characters at pos 2"),
        ({"key": [{"wildcard": "a\\b"}]}, "Invalid escape character at pos 2"),
        ({"key": [{"wildcard": "ab\\"}]}, "Invalid escape character at pos 3"),
        ({"key": [{"numeric": 5}]}, "Value of numeric must be an array."),
        ({"key": [{"numeric": ["=", 1], "x": 1}]}, "Too many elements in numeric expression"),
        ({"key": [{"exists": True, "x": 1}]}, "Only one key allowed in match expression"),
        (
            {"key": [{"anything-but": None}]},
            "Value of anything-but must be an array or single string/number value.",
        ),
        (
            {"key": [{"anything-but": ["a", None]}]},
            "Inside anything but list, start|null|boolean is not supported.",
        ),
        *(
            (
                {"key": [{"anything-but": values}]},
                "Inside anything but list, either all values are number or string, mixed type is not supported",
            )
            for values in ([], ["a", 1])
        ),
        ({"key": [{"anything-but": {}}]}, "Anything-But expression name not found"),
        ({"key": [{"anything-but": {"prefix": ""}}]}, "Null prefix/suffix not allowed"),
        ({"key": [{"anything-but": "a", "x": 1}]}, "Too many elements in numeric expression"),
        # One branch is no choice, so `$or` is a key, and its entry no match expression.
        ({"$or": [{"metric": ["a"]}]}, "Unrecognized match type metric"),
    ],
)
def test_other_refusals_name_a_place(document: Document, reason: str) -> None:
    assert refusal(document).startswith(f"{reason}\n at [Source: (String)")


@pytest.mark.parametrize(
    ("network", "text"),
    [
        ("10.0.0.0", "Malformed CIDR, one '/' required"),
        ("10.0.0.0/8/8", "Malformed CIDR, one '/' required"),
        ("10.0.0.0/", "Malformed CIDR, one '/' required"),
        ("10.0.0.0/x", "Malformed CIDR, mask bits must be an integer"),
        ("10.0.0.0/²", "Malformed CIDR, mask bits must be an integer"),
        ("10.0.0.0/33", "IPv4 mask bits must be < 33"),
        ("::/129", "IPv6 mask bits must be < 129"),
        ("10.0.0/8", "Nonstandard IP address: 10.0.0"),
        ("example.com/8", "Nonstandard IP address: example.com"),
    ],
)
def test_network_refusals_name_no_place(network: str, text: str) -> None:
    assert refusal({"key": [{"cidr": network}]}) == text


def test_text_that_is_no_json() -> None:
    with pytest.raises(FilterPolicyInvalid) as refused:
        read_policy("{a", Scope.BODY)
    assert str(refused.value).startswith("failed to parse JSON. ")
    assert str(refused.value).endswith("; line: 1, column: 2]")


@pytest.mark.parametrize("text", ['{"a":[NaN]}', '{"a":[1e999]}', "[" * 100_000])
def test_json_that_only_python_reads(text: str) -> None:
    with pytest.raises(FilterPolicyInvalid, match=r"^failed to parse JSON"):
        read_policy(text, Scope.BODY)


def test_a_long_policy_is_not_repeated_whole() -> None:
    text = refusal({"key": "x" * 1000})
    assert "[truncated 510 chars]; line: 1, column: 9]" in text
    assert len(text) < 700


def values(count: int) -> list[str]:
    return [f"value{number}" for number in range(count)]


FLAT_OR = {
    "source": values(3),
    "$or": [
        {"metricName": values(6)},
        {"metricType": values(4), "$or": [{"metricId": [1, 2, 3, 4]}, {"spaceId": [1, 2, 3, 4, 5, 6, 7]}]},
    ],
}
NESTED = {"key_a": {"key_b": {"key_c": values(4)}}, "key_d": {"key_e": values(3)}}
NESTED_OR = {
    "$or": [{"metricName": values(3)}, {"namespace": values(2)}],
    "detail": {"scope": values(2), "$or": [{"source": values(1)}, {"type": values(3)}]},
}


@pytest.mark.parametrize(
    ("document", "scope"),
    [
        ({"key": values(151)}, Scope.ATTRIBUTES),
        ({"key1": values(100), "key2": values(51)}, Scope.ATTRIBUTES),
        ({**NESTED, "key_f": values(3)}, Scope.BODY),  # 4·3 by 3·2 by 3·1 is 216
        ({**FLAT_OR, "source": values(4)}, Scope.ATTRIBUTES),  # 4·(6 + 4·(4 + 7)) is 200
        (  # 4·(6 + 4·(4 + 4)) is 152
            {
                "source": values(4),
                "$or": [
                    {"metricName": values(6)},
                    {"metricType": values(4), "$or": [{"metricId": [1, 2, 3, 4]}, {"spaceId": [1, 2, 3, 4]}]},
                ],
            },
            Scope.ATTRIBUTES,
        ),
        (NESTED_OR, Scope.BODY),  # (3 + 2)·(2·2)·(2 + 6) is 160
    ],
)
def test_recorded_as_too_complex(document: Document, scope: Scope) -> None:
    assert refusal(document, scope) == "Filter policy is too complex"


@pytest.mark.parametrize(
    ("document", "scope"),
    [
        ({"key": values(150)}, Scope.ATTRIBUTES),
        (FLAT_OR, Scope.ATTRIBUTES),  # 3·(6 + 4·(4 + 7)) is 150
        ({**NESTED, "key_f": values(2)}, Scope.BODY),  # 144
    ],
)
def test_recorded_as_still_accepted(document: Document, scope: Scope) -> None:
    keys = read_policy(json.dumps(document), scope).keys
    assert {key.partition(".")[0] for key in keys} >= set(document) - {"$or"}


def test_five_keys_at_the_top() -> None:
    six = {f"key{number}": ["value"] for number in range(6)}
    assert refusal(six) == "Filter policy can not have more than 5 keys"
    del six["key0"]
    assert len(read_policy(json.dumps(six), Scope.ATTRIBUTES).keys) == 5
    nested = {"top": {f"key{number}": ["value"] for number in range(6)}}
    assert len(read_policy(json.dumps(nested), Scope.BODY).keys) == 6


def test_policies_over_the_size_limit_are_refused() -> None:
    assert refusal({"key": ["x" * 262_144]}) == "Filter policy can not be larger than 262144 bytes"


def test_nesting_needs_the_body() -> None:
    nested = json.dumps({"object": {"key": [{"prefix": "auto-"}]}})
    with pytest.raises(NestedPolicyRefused) as refused:
        read_policy(nested, Scope.ATTRIBUTES)
    assert str(refused.value) == "Filter policy scope MessageAttributes does not support nested filter policy"
    assert read_policy(nested, Scope.BODY).keys == {"object.key"}


def test_endless_nesting_is_too_complex() -> None:
    document: Document = ["x"]
    for _ in range(300):
        document = {"a": document}
    assert refusal(document, Scope.BODY) == "Filter policy is too complex"


def test_endless_alternatives_within_alternatives_are_too_complex() -> None:
    document: Document = {"a": ["x"]}
    for _ in range(300):
        document = {"$or": [{"b": ["x"]}, document]}
    assert refusal(document, Scope.BODY) == "Filter policy is too complex"


def test_many_alternatives_are_counted_before_they_are_multiplied() -> None:
    document: Document = {"a": ["x"]}
    for _ in range(60):
        document = {"$or": [{"a": ["x"]}, {"b": ["x"]}], "further": document}
    assert refusal(document, Scope.BODY) == "Filter policy is too complex"


def test_an_empty_policy_asks_nothing() -> None:
    policy = read_policy("{}", Scope.ATTRIBUTES)
    assert (len(policy.clauses), policy.keys) == (1, frozenset())


json_documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "$or", "prefix", "numeric", "anything-but", "exists"]), inner)
    ),
    max_leaves=12,
)


@given(json_documents, st.sampled_from(Scope))
def test_any_json_is_a_policy_or_a_refusal(document: Document, scope: Scope) -> None:
    with suppress(FilterPolicyInvalid):
        read_policy(json.dumps(document), scope)
