"""Filter patterns: what they find, what they leave, what they refuse, and that none takes long."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.logs.filter_pattern import read_pattern
from redrive.aws.wire.errors import AwsError

MESSAGES = ["hello", "world", "hello world", "goodbye world", "hello cruela", "goodbye cruel world"]
EVENT = (
    '{"status": "FAILURE", "attempts": 3, "ok": false, "none": null, "user-id": "u:1", "message": "say \\"hi\\"",'
    ' "delivery": {"statusCode": 400, "destination": "arn:aws:sqs:us-east-1:000000000000:q"}, "tags": ["a", {"b": 1}]}'
)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("", MESSAGES),
        ("   ", MESSAGES),
        ("hello", ["hello", "hello world", "hello cruela"]),
        ("Hello", []),
        ("goodbye world", ["goodbye world", "goodbye cruel world"]),
        ('"goodbye world"', ["goodbye world"]),
        ('"hello cruel"', ["hello cruela"]),
        ("world -cruel", ["world", "hello world", "goodbye world"]),
        ("-world", ["hello", "hello cruela"]),
        ("?hello ?goodbye", ["hello", "hello world", "goodbye world", "hello cruela", "goodbye cruel world"]),
        ("?hello world", ["world", "hello world", "goodbye world", "goodbye cruel world"]),
        ('?hello -"hello w"', ["hello", "hello cruela"]),
        ('world "good"', ["goodbye world", "goodbye cruel world"]),
    ],
)
def test_a_pattern_of_terms_finds_its_messages(pattern: str, found: list[str]) -> None:
    matches = read_pattern(pattern).matches
    assert [message for message in MESSAGES if matches(message)] == found


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ('{ $.status = "FAILURE" }', True),
        ("{ $.status = FAILURE }", True),
        ("{$.status=FAIL*}", True),
        ('{ $.status = "*LUR*" }', True),
        ('{ $.status = "FAILURE*FAILURE" }', False),
        ('{ $.status = "success" }', False),
        ('{ $.status != "SUCCESS" }', True),
        ('{ $.absent != "SUCCESS" }', False),
        ('{ $.absent = "*" }', False),
        ("{ $.delivery.statusCode = 400 }", True),
        ("{ $.delivery.statusCode = 4e2 }", True),
        ("{ $.delivery.statusCode = 4* }", True),
        ('{ $.delivery.statusCode = "400" }', True),
        ("{ $.delivery.statusCode >= 400 }", True),
        ("{ $.delivery.statusCode > 400 }", False),
        ("{ $.delivery.statusCode < 401 }", True),
        ("{ $.delivery.statusCode <= 399.9 }", False),
        ("{ $.status > 1 }", False),
        ("{ $.ok > -1 }", False),
        ("{ $.ok = 0 }", False),
        ("{ $.delivery.destination = arn:aws:sqs:*:q }", True),
        ('{ $.message = "say \\"hi\\"" }', True),
        ("{ $.user-id = u:1 }", True),
        ('{ $["user-id"] = u:1 }', True),
        ("{ $.tags[0] = a }", True),
        ("{ $.tags[1].b = 1 }", True),
        ("{ $.tags[2] = a }", False),
        ("{ $.status[0] = F }", False),
        ("{ $.none IS NULL }", True),
        ("{ $.absent IS NULL }", False),
        ("{ $.absent NOT EXISTS }", True),
        ("{ $.none NOT EXISTS }", False),
        ("{ $.ok IS FALSE }", True),
        ("{ $.ok IS TRUE }", False),
        ("{ $.ok = false }", True),
        ("{ $.attempts = 3 && $.ok IS FALSE }", True),
        ("{ $.attempts = 4 || $.ok IS FALSE }", True),
        ("{ $.attempts = 4 && $.ok IS FALSE || $.status = FAILURE }", True),
        ("{ $.attempts = 4 && ($.ok IS FALSE || $.status = FAILURE) }", False),
        ("{ ($.attempts = 4 || $.attempts = 3) && (($.ok IS FALSE)) }", True),
    ],
)
def test_a_json_pattern_matches_its_events(pattern: str, matched: bool) -> None:
    assert read_pattern(pattern).matches(EVENT) is matched


def test_json_patterns_find_json_alone() -> None:
    matches = read_pattern("{ $.a NOT EXISTS }").matches
    assert [matches(message) for message in ("{}", "[]", "1", "no json", "{")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "pattern",
    [
        "{ }",
        "{ $.status }",
        "{ $.status = }",
        "{ $.status = FAILURE",
        "{ status = FAILURE }",
        "{ $.status == FAILURE }",
        "{ $.status > FAILURE }",
        '{ $.attempts > "3" }',
        "{ $.status IS MAYBE }",
        "{ $.status LIKE x }",
        "{ $.a = 1 && }",
        "{ ($.a = 1 }",
        "{ $.a = 1) }",
        "{ $.a = 1 $.b = 2 }",
        "{ $.a = %(% }",
        "{ $.a = 1 & $.b = 2 }",
        "[ip, user",
        "%(%",
        '"open',
        "{ " + "(" * 400 + " }",
        "{ " + "(" * 500 + "$.a = 1" + ")" * 500 + " }",
    ],
)
def test_malformed_filter_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(AwsError) as refused:
        read_pattern(pattern)
    assert (refused.value.code, refused.value.message) == (
        "InvalidParameterException",
        "Invalid filter pattern",
    )


@given(st.text(alphabet=string.printable + "é{}$.\"'()&|=", max_size=60), st.text(max_size=20))
def test_no_pattern_does_harm(pattern: str, message: str) -> None:
    try:
        matches = read_pattern(pattern).matches
    except AwsError:
        return
    assert matches(message) in (True, False)


@given(
    st.lists(st.text(alphabet="ab", max_size=3), min_size=1, max_size=6), st.text(alphabet="ab", max_size=12)
)
def test_a_star_stands_for_any_text(parts: list[str], value: str) -> None:
    expected = re.fullmatch(".*".join(parts), value) is not None
    pattern = '{ $.a = "' + "*".join(parts) + '" }'
    assert read_pattern(pattern).matches('{"a": "' + value + '"}') is expected


def test_stars_take_linear_time() -> None:
    matches = read_pattern('{ $.a = "' + "*a" * 400 + '*b" }').matches
    assert not matches('{"a": "' + "a" * 1_000_000 + '"}')
