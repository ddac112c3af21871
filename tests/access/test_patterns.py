"""Wildcards and variables, against matchers simple enough to be seen to be right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.access.patterns import PolicyInvalid, Values, WildcardReach, compile_patterns

_NO_KEYS: dict[str, Values] = {}
_patterns = st.text(alphabet="ab*?:", max_size=10)
_texts = st.text(alphabet="ab:\n", max_size=12)


def _glob(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return _glob(pattern[1:], text) or (bool(text) and _glob(pattern, text[1:]))
    return bool(text) and pattern[0] in {"?", text[0]} and _glob(pattern[1:], text[1:])


def _arn_glob(pattern: str, arn: str) -> bool:
    segments, parts = pattern.split(":", 5), arn.split(":", 5)
    if "*" not in pattern and "?" not in pattern:
        return pattern == arn
    segments += ["*"] * (6 - len(segments))
    return len(parts) == 6 and all(map(_glob, segments, parts))


def _matches(pattern: str, text: str, shape: WildcardReach = WildcardReach.TEXT) -> bool:
    return compile_patterns([pattern], shape=shape).match(text, _NO_KEYS.get)


@given(_patterns, _texts)
def test_wildcards_in_a_text(pattern: str, text: str) -> None:
    assert _matches(pattern, text) is _glob(pattern, text)


_arn_patterns = st.lists(st.text(alphabet="ab*?", max_size=4), min_size=1, max_size=8).map(":".join)
_arns = st.lists(st.text(alphabet="ab", max_size=4), min_size=5, max_size=8).map(":".join)


@given(_arn_patterns, _arns)
def test_wildcards_in_an_arn_stay_in_their_segment(pattern: str, arn: str) -> None:
    everything = pattern.strip("*") == "" and pattern != ""
    assert _matches(pattern, arn, WildcardReach.ARN) is (everything or _arn_glob(pattern, arn))


@given(st.lists(_patterns, max_size=5), _texts)
def test_several_patterns_match_what_any_of_them_matches(patterns: list[str], text: str) -> None:
    assert compile_patterns(patterns).match(text, _NO_KEYS.get) is any(_glob(one, text) for one in patterns)


@given(_patterns, _texts)
def test_without_wildcards_a_pattern_is_itself(pattern: str, text: str) -> None:
    assert compile_patterns([pattern], wildcards=False).match(text, _NO_KEYS.get) is (pattern == text)


@given(_patterns, _texts, _texts)
def test_a_beginning_tells_whether_texts_below_it_match(pattern: str, beginning: str, rest: str) -> None:
    patterns = compile_patterns([pattern])
    if _glob(pattern, beginning + rest):
        assert patterns.may_match_below(beginning)
    if patterns.cover(beginning):
        assert _glob(pattern, beginning + rest)


@pytest.mark.parametrize(
    ("pattern", "beginning", "may", "covers"),
    [
        ("*", "arn:aws:sqs:", True, True),
        ("arn:aws:sqs:*", "arn:aws:sqs:us-east-1:1:", True, True),
        ("arn:aws:sqs:*:1:q", "arn:aws:sqs:us-east-1:1:", True, False),
        ("arn:aws:sqs:us-east-1:1:prod-*", "arn:aws:sqs:us-east-1:1:p", True, False),
        ("arn:aws:sqs:us-east-1:1:prod-*", "arn:aws:sqs:us-east-1:1:prod-a", True, True),
        ("arn:aws:sqs:us-east-1:1:prod-*", "arn:aws:sqs:us-east-1:1:dev", False, False),
        ("arn:aws:sqs:us-east-1:1:q", "arn:aws:sqs:us-east-1:1:", True, False),
        ("arn:aws:sqs:us-east-1:1:q", "arn:aws:sqs:us-east-1:1:qq", False, False),
        ("arn:aws:sqs:us-east-1:1:${aws:username}", "arn:aws:sqs:us-east-1:1:ann", True, False),
        ("arn:aws:s3:::*", "arn:aws:sqs:", False, False),
    ],
)
def test_beginnings_of_arns(pattern: str, beginning: str, may: bool, covers: bool) -> None:
    patterns = compile_patterns([pattern], shape=WildcardReach.ARN, variables=True)
    assert (patterns.may_match_below(beginning), patterns.cover(beginning)) == (may, covers)


def test_a_policy_cannot_keep_the_server_searching() -> None:
    # A backtracking matcher would try some 10^30 ways to divide the text before it gives up.
    assert not _matches("*a" * 20 + "b", "a" * 2000)
    assert not _matches("arn:*:*:*:*:" + "*a" * 20 + "b", "arn:::::" + "a" * 2000, WildcardReach.ARN)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("arn:aws:sqs:*", "arn:aws:sqs:us-east-1:111111111111:orders", True),
        ("arn:aws:sqs:*:orders", "arn:aws:sqs:us-east-1:111111111111:orders", False),
        ("arn:aws:sqs:*:*:orders", "arn:aws:sqs:us-east-1:111111111111:orders", True),
        ("arn:aws:s*:us-east-1:111111111111:orders", "arn:aws:sqs:us-east-1:111111111111:orders", True),
        ("arn:aws:sns:us-east-1:111111111111:*", "arn:aws:sns:us-east-1:111111111111:rentals:sub", True),
        ("arn:aws:sqs:us-east-1:11111111111?:o*s", "arn:aws:sqs:us-east-1:111111111111:orders", True),
        ("arn:aws:sqs:us-east-1:111111111111:Orders", "arn:aws:sqs:us-east-1:111111111111:orders", False),
        ("*", "anything at all", True),
    ],
)
def test_an_arn_pattern_matches_segment_by_segment(pattern: str, text: str, matches: bool) -> None:
    assert _matches(pattern, text, WildcardReach.ARN) is matches


_KEYS: dict[str, Values] = {
    "aws:principalaccount": "111",
    "star": "a*",
    "many": ("x", "y"),
    "arn": "a:b:c:d:e:f",
}


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("home/${aws:PrincipalAccount}/*", "home/111/x", True),
        ("home/${aws:PrincipalAccount}/*", "home/112/x", False),
        ("${ aws:principalaccount }", "111", True),
        ("${star}", "a*", True),
        ("${star}", "ab", False),
        ("${many}", "x", False),
        ("${nobody}", "${nobody}", False),
        ("${nobody}", "", False),
        ("${nobody, 'default'}", "default", True),
        ("${aws:PrincipalAccount, 'default'}", "default", False),
        ("a${*}b", "a*b", True),
        ("a${*}b", "axb", False),
        ("${?}", "?", True),
        ("${$}", "$", True),
        ("${$}", "x", False),
    ],
)
def test_variables_of_a_pattern_take_the_requests_keys(pattern: str, text: str, matches: bool) -> None:
    assert compile_patterns([pattern], variables=True).match(text, _KEYS.get) is matches


def test_a_variable_may_be_a_whole_arn() -> None:
    assert compile_patterns(["${arn}"], variables=True, wildcards=False).match("a:b:c:d:e:f", _KEYS.get)
    shaped = compile_patterns(["a:b:c:d:e:${star}?"], variables=True, shape=WildcardReach.ARN)
    assert shaped.match("a:b:c:d:e:a*!", _KEYS.get)
    assert not shaped.match("a:b:c:d:e:ab!", _KEYS.get)


def test_case_may_be_ignored() -> None:
    patterns = compile_patterns(["SQS:Send*", "${Name}"], folded=True, variables=True)
    assert patterns.match("sqs:SENDmessage", _NO_KEYS.get)
    assert patterns.match("BOB", {"name": "Bob"}.get)


def test_without_variables_a_dollar_is_a_letter() -> None:
    patterns = compile_patterns(["${aws:PrincipalAccount}"])
    assert patterns.match("${aws:PrincipalAccount}", _KEYS.get)
    assert not patterns.match("111", _KEYS.get)


@pytest.mark.parametrize("pattern", ["${}", "${a b}", "${a, b}", "${**}"])
def test_a_variable_needs_a_name(pattern: str) -> None:
    with pytest.raises(PolicyInvalid, match="is not a policy variable"):
        compile_patterns([pattern], variables=True)
