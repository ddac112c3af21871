"""Every condition operator, with a value that fits, one that does not, and none."""

import pytest

from redrive.access.patterns import PolicyInvalid, Values
from redrive.access.statements import parse_conditions

_TOPIC = "arn:aws:sns:us-east-1:111111111111:rentals"


def _holds(block: object, key: str = "k", value: Values | None = None) -> bool:
    keys = {} if value is None else {key: value}
    return all(condition.holds(keys.get) for condition in parse_conditions(block, variables=True))


@pytest.mark.parametrize(
    ("operator", "wanted", "fits", "fails"),
    [
        ("StringEquals", "Ab", "Ab", "ab"),
        ("StringEquals", "a*", "a*", "ab"),
        ("StringEquals", ["a", "b"], "b", "c"),
        ("StringNotEquals", "Ab", "ab", "Ab"),
        ("StringNotEquals", ["a", "b"], "c", "b"),
        ("StringEqualsIgnoreCase", "Ab", "aB", "b"),
        ("StringNotEqualsIgnoreCase", "Ab", "b", "aB"),
        ("StringLike", "a*c?", "abbcd", "abbc"),
        ("StringNotLike", "a*", "b", "a"),
        ("NumericEquals", "10", "10.0", "11"),
        ("NumericEquals", 10, "10", "ten"),
        ("NumericNotEquals", "10", "11", "10.00"),
        ("NumericLessThan", "10", "9.99", "10"),
        ("NumericLessThanEquals", "10", "10", "10.01"),
        ("NumericGreaterThan", "-1", "0", "-1"),
        ("NumericGreaterThanEquals", "-1", "-1", "-1.5"),
        ("NumericLessThan", "10", "9", "100"),
        ("DateEquals", "2026-01-01T00:00:00Z", "1767225600", "1767225601"),
        ("DateEquals", "2026-01-01", "2026-01-01T01:00:00+01:00", "2026-01-02"),
        ("DateNotEquals", "2026-01-01", "2026-01-02", "2026-01-01"),
        ("DateLessThan", "2026-01-01T00:00:00Z", "2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z"),
        ("DateLessThanEquals", 1767225600, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"),
        ("DateGreaterThan", "2026-01-01", "2026-06-01T00:00:00Z", "2026-01-01"),
        ("DateGreaterThanEquals", "2026-01-01", "2026-01-01", "2025-12-31"),
        ("Bool", "true", "True", "false"),
        ("Bool", False, "false", "true"),
        ("Bool", "true", "true", "yes"),
        ("BinaryEquals", "QmluYXJ5", "QmluYXJ5", "QmluYXJ6"),
        ("BinaryEquals", "QQ==", "QQ==", "not base 64"),
        ("IpAddress", "10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
        ("IpAddress", "10.0.0.1", "10.0.0.1", "10.0.0.2"),
        ("IpAddress", "10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"),
        ("IpAddress", "2001:db8::/32", "2001:db8:1::1", "2001:db9::1"),
        ("IpAddress", "0.0.0.0/0", "192.0.2.1", "2001:db8::1"),
        ("IpAddress", "::/0", "2001:db8::1", "192.0.2.1"),
        ("NotIpAddress", ["10.0.0.0/8", "192.168.0.0/16"], "11.0.0.1", "192.168.1.1"),
        ("ArnEquals", _TOPIC, _TOPIC, _TOPIC + "x"),
        ("ArnEquals", "arn:aws:sns:*:*:rentals", _TOPIC, "arn:aws:sns:us-east-1:111111111111:other"),
        ("ArnLike", "arn:aws:sns:us-*:111111111111:*", _TOPIC, "arn:aws:sns:eu-west-1:111111111111:rentals"),
        ("ArnNotEquals", _TOPIC, _TOPIC + "x", _TOPIC),
        ("ArnNotLike", "arn:aws:sns:*:*:rent*", "arn:aws:sns:us-east-1:111111111111:other", _TOPIC),
    ],
)
def test_each_operator_holds_for_values_that_fit_alone(
    operator: str, wanted: object, fits: str, fails: str
) -> None:
    assert _holds({operator: {"k": wanted}}, value=fits)
    assert not _holds({operator: {"k": wanted}}, value=fails)
    # A key the request does not have satisfies negated operators alone, and every operator with …IfExists.
    assert _holds({operator: {"k": wanted}}) is ("Not" in operator)
    assert _holds({f"{operator}IfExists": {"k": wanted}})
    assert not _holds({f"{operator}IfExists": {"k": wanted}}, value=fails)


@pytest.mark.parametrize(
    ("wanted", "value", "holds"),
    [
        ("true", None, True),
        ("true", "x", False),
        (False, "x", True),
        ("false", None, False),
        (["true", "false"], None, True),
        ("true", (), True),
        ("false", ("x",), True),
    ],
)
def test_null_asks_whether_a_key_is_missing(wanted: object, value: Values | None, holds: bool) -> None:
    assert _holds({"Null": {"k": wanted}}, value=value) is holds


@pytest.mark.parametrize(
    ("operator", "value", "holds"),
    [
        ("ForAnyValue:StringEquals", ("a", "x"), True),
        ("ForAnyValue:StringEquals", ("x", "y"), False),
        ("ForAnyValue:StringEquals", "a", True),
        ("ForAnyValue:StringEquals", None, False),
        ("ForAnyValue:StringEqualsIfExists", None, False),
        ("ForAnyValue:StringNotEquals", ("a", "x"), True),
        ("ForAnyValue:StringNotEquals", ("a", "b"), False),
        ("ForAnyValue:StringNotEquals", None, False),
        ("ForAllValues:StringEquals", ("a", "b"), True),
        ("ForAllValues:StringEquals", ("a", "x"), False),
        ("ForAllValues:StringEquals", (), True),
        ("ForAllValues:StringEquals", None, True),
        ("ForAllValues:StringNotEquals", ("x", "y"), True),
        ("ForAllValues:StringNotEquals", ("a", "x"), False),
        ("StringEquals", ("x", "a"), True),
        ("StringEquals", (), False),
        ("StringEqualsIfExists", (), True),
        ("StringNotEquals", ("x", "a"), False),
        ("StringNotEquals", ("x", "y"), True),
        ("forallvalues:stringlike", ("a", "b"), True),
    ],
)
def test_keys_of_several_values(operator: str, value: Values | None, holds: bool) -> None:
    assert _holds({operator: {"k": ["a", "b"]}}, value=value) is holds


def test_all_conditions_must_hold() -> None:
    block = {"StringEquals": {"a": "1", "b": "2"}, "Bool": {"c": "true"}}
    conditions = parse_conditions(block, variables=False)
    for missing in "abc":
        keys = {"a": "1", "b": "2", "c": "true"} | {missing: "no"}
        assert not all(condition.holds(keys.get) for condition in conditions)
    whole = {"a": "1", "b": "2", "c": "true"}
    assert all(condition.holds(whole.get) for condition in conditions)


def test_key_names_are_of_any_case() -> None:
    assert _holds({"ArnEquals": {"AWS:SourceArn": _TOPIC}}, "aws:sourcearn", _TOPIC)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ([], "Condition must be an object"),
        ({"StringEquals": "x"}, "must hold an object of condition keys"),
        ({"StringEquals": {}}, "must hold an object of condition keys"),
        ({"StringEquals": {"": "x"}}, "a condition key must have a name"),
        ({"StringEquals": {"k": []}}, "needs a value"),
        ({"StringEquals": {"k": None}}, "a value must be a string, a number or a boolean"),
        ({"StringEquals": {"k": {"a": "b"}}}, "a value must be a string, a number or a boolean"),
        ({"StringMatches": {"k": "x"}}, "no such operator"),
        ({"NullIfExists": {"k": "true"}}, "no such operator"),
        ({"ForNoValue:StringEquals": {"k": "x"}}, "no such set operator"),
        ({"Null": {"k": "maybe"}}, "'maybe' must be true or false"),
        ({"Bool": {"k": "maybe"}}, "'maybe' must be true or false"),
        ({"NumericEquals": {"k": "NaN"}}, "'NaN' must be a number"),
        ({"NumericEquals": {"k": "1e999999"}}, "must be a number"),
        ({"DateEquals": {"k": "tomorrow"}}, "'tomorrow' must be a date"),
        ({"IpAddress": {"k": "10.0.0.0/33"}}, "must be an IP address or range"),
        ({"BinaryEquals": {"k": "é"}}, "must be base 64"),
        ({"BinaryEquals": {"k": "QUJD QUJD"}}, "must be base 64"),
        ({"StringEquals": {"k": "${}"}}, "is not a policy variable"),
    ],
)
def test_malformed_condition_blocks_are_refused(block: object, reason: str) -> None:
    with pytest.raises(PolicyInvalid, match=reason.replace("$", r"\$")):
        parse_conditions(block, variables=True)
