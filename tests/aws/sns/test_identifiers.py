"""Findings of data identifiers, in texts that an attacker may choose."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.sns.protection.identifiers import managed
from redrive.aws.sns.protection.identifiers.custom import REGEX_CHARS_MAX, CustomRefused, custom_finder
from redrive.model.protection import Cut, Text
from tests.aws.sns.identifier_examples import EXAMPLES

_ALL = [(name, example) for name, examples in EXAMPLES.items() for example in examples]


def marked(text: str, name: str) -> str:
    """The text with its finds between « and »."""
    spans = Text(text).search({name: managed.finder_of(name)}).get(name, ())
    edges = sorted([(start, "«") for start, _ in spans] + [(end, "»") for _, end in spans])
    pieces, at = [], 0
    for edge, mark in edges:
        pieces += [text[at:edge], mark]
        at = edge
    return "".join(pieces) + text[at:]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_identifier_finds_what_it_is_for_and_nothing_else(name: str) -> None:
    for example in EXAMPLES[name]:
        assert marked(example.replace("«", "").replace("»", ""), name) == example


def test_each_identifier_has_examples_that_it_finds_and_that_it_does_not() -> None:
    assert EXAMPLES.keys() == managed.NAMES
    assert {name for name, example in _ALL if "«" in example} == managed.NAMES
    assert {name for name, example in _ALL if "«" not in example} == managed.NAMES


def test_keywords_are_near_within_30_characters_on_either_side() -> None:
    number = "536-90-4399"
    for blanks, found in ((30, True), (31, False)):
        assert ("«" in marked("ssn" + " " * blanks + number, "Ssn-US")) is found
        assert ("«" in marked(number + " " * blanks + "ssn", "Ssn-US")) is found
        assert ("«" in marked("ssn" + "é" * blanks + number, "Ssn-US")) is found


@pytest.mark.parametrize(
    "keyword", ["social security", "SocialSecurity", "SOCIAL_SECURITY", "social-security"]
)
def test_a_keyword_has_many_spellings(keyword: str) -> None:
    assert marked(f"{keyword}: 536-90-4399", "Ssn-US") == f"{keyword}: «536-90-4399»"


@pytest.mark.parametrize(
    ("key", "found"), [("customerSsn", True), ("ssnOf", True), ("lessno", False), ("assn", False)]
)
def test_a_keyword_is_a_word_or_the_hump_of_one(key: str, found: bool) -> None:
    assert ("«" in marked(f'{{"{key}": "536-90-4399"}}', "Ssn-US")) is found


@given(st.text(), st.sampled_from(sorted(EXAMPLES)), st.text())
def test_no_text_is_too_strange(before: str, name: str, after: str) -> None:
    text = Text(before + EXAMPLES[name][0].replace("«", "").replace("»", "") + after)
    spans = text.search({name: managed.finder_of(name)}).get(name, ())
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
    left = text.without(Cut(start, end, "#") for start, end in spans)
    assert len(left) == len(text.source) or text.source[:1] in '{["'


def test_a_hostile_text_is_looked_through_like_any_other() -> None:
    """Finds that are none, keywords everywhere, armour without an end: a second each would be 100 here."""
    texts = (
        "card ssn passport dob tel 123-45-67 " * 7_000,
        "-----BEGIN PRIVATE KEY-----" * 9_000,
        "1.1." * 60_000,
    )
    finders = {name: managed.finder_of(name) for name in managed.NAMES}
    found = [Text(text).search(finders) for text in texts]
    assert [len(one.get("PkcsPrivateKey", ())) for one in found] == [0, 9_000, 0]


# ---- custom ones -------------------------------------------------------------------------------------------------


def _found(regex: str, text: str) -> list[str]:
    return [
        text[start:end] for start, end in Text(text).search({"x": custom_finder("x", regex)}).get("x", ())
    ]


@pytest.mark.parametrize(
    ("regex", "text", "found"),
    [
        (r"EID-\d{9}-US", "of EID-123456789-US and EID-12-US", ["EID-123456789-US"]),
        ("a+|b", "aaéabc", ["aa", "a", "b"]),
        (r"^\w+", "first second", ["first"]),
        ("x*y", "xxyzy", ["xxy", "y"]),
    ],
)
def test_a_custom_identifier_finds_what_its_expression_matches(
    regex: str, text: str, found: list[str]
) -> None:
    assert _found(regex, text) == found


@pytest.mark.parametrize(
    ("name", "regex", "reason"),
    [
        ("x y", "a", "Name must be 1 to 128 letters, digits, hyphens and underscores"),
        ("x" * 129, "a", "Name must be 1 to 128 letters, digits, hyphens and underscores"),
        ("x", "", "Regex of x must be 1 to 200 of the supported characters"),
        ("x", "a" * (REGEX_CHARS_MAX + 1), "Regex of x must be 1 to 200 of the supported characters"),
        ("x", "(a)", "Regex of x must be 1 to 200 of the supported characters"),
        ("x", "é", "Regex of x must be 1 to 200 of the supported characters"),
        ("x", "a[", "Regex of x is not a regular expression"),
        ("x", "a{9999}", "Regex of x is not a regular expression"),
        ("x", "a{900}b{900}", "Regex of x is too complicated"),
        ("x", "a*", "Regex of x must not match an empty text"),
    ],
)
def test_a_custom_identifier_must_be_one(name: str, regex: str, reason: str) -> None:
    with pytest.raises(CustomRefused) as refused:
        custom_finder(name, regex)
    assert str(refused.value) == reason


@pytest.mark.parametrize("regex", [r"\d{4}", "[0-9]{3}[0-9]|x{1,50}"])
def test_an_expression_that_looks_no_further_than_it_matches_finds_as_much_as_there_is(regex: str) -> None:
    spans = Text("1234" * 64 * 1024).search({"x": custom_finder("x", regex)})["x"]
    assert len(spans) == 64 * 1024


@pytest.mark.parametrize(
    "regex", [".*" * 40 + "x", "[ab]*" * 30 + "c", "a.*b|a", "[ab]*a[ab]{150}c|a", "a?" * 99 + "a"]
)
def test_a_hostile_expression_is_over_soon_and_passes_nothing_unseen(regex: str) -> None:
    """Backtracking would take longer than there is time; what a budget ends counts as found."""
    text = "a" * 200_000
    spans = Text(text).search({"x": custom_finder("x", regex)}).get("x", ())
    if custom_finder("x", regex).pattern.search(text) is None:
        assert not spans
    else:
        assert sum(end - start for start, end in spans) == len(text)
