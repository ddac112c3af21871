"""Texts with parts masked and cut out: what was not found stays as it was, and JSON stays JSON."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.protection import Cut, Detector, Either, Keywords, Text, keyword_expression
from redrive.model.protection.detector import PROXIMITY


class Plain:
    """Finds a text wherever it stands."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted.encode()

    def find(self, text: bytes) -> list[tuple[int, int]]:
        return [found.span() for found in re.finditer(re.escape(self.wanted), text)]


def without(source: str, wanted: Iterable[str], character: str = "#") -> str:
    text = Text(source)
    found = text.search({one: Plain(one) for one in wanted})
    return text.without(Cut(start, end, character) for spans in found.values() for start, end in spans)


@pytest.mark.parametrize(
    ("source", "wanted", "masked", "redacted"),
    [
        ("ssn: 123-45-6789", "123-45-6789", "ssn: ###########", "ssn: "),
        ("12", "12", "##", ""),
        ("é12é", "12", "é##é", "éé"),
        ('{"card": "12"}', "12", '{"card": "##"}', '{"card": ""}'),
        ('{"card": 12, "b": 3}', "12", '{"card": "##", "b": 3}', '{"card": null, "b": 3}'),
        ("[1, -12.5e3]", "12.5", '[1, "#######"]', "[1, null]"),
        ('{"12": true}', "12", '{"##": true}', '{"": true}'),
        ("[true, true]", "true, t", '["####", "####"]', "[null, null]"),
        (r'"a\n12\tb"', "12", r'"a\n##\tb"', r'"a\n\tb"'),
        (r'"\u0031\u0032"', "12", '"##"', '""'),
        (r'"\"12\""', '"12"', '"####"', '""'),
        (r'{"a":"x\\12","b":"é"}', "12", r'{"a":"x\\##","b":"é"}', r'{"a":"x\\","b":"é"}'),
        ('["1","2"]', '1","2', '["#","#"]', '["",""]'),
        ("{12", "12", "{##", "{"),
        ("[NaN, 12]", "12", "[NaN, ##]", "[NaN, ]"),
        ('"\\ud800 12"', "12", '"\\ud800 ##"', '"\\ud800 "'),
    ],
)
def test_findings_are_masked_or_cut_out(source: str, wanted: str, masked: str, redacted: str) -> None:
    assert without(source, [wanted]) == masked
    assert without(source, [wanted], "") == redacted


@pytest.mark.parametrize(("character", "left"), [("\\", r'["a\\\\b", "\\\\"]'), ("*", '["a**b", "**"]')])
def test_a_mask_is_written_as_json_wants_it(character: str, left: str) -> None:
    assert without('["a12b", 12]', ["12"], character) == left


def test_overlapping_cuts_are_one_of_the_first_ones_kind() -> None:
    text = Text("0123456789")
    assert text.without([Cut(2, 5, "a"), Cut(4, 8, "b")]) == "01aaaaaa89"
    assert text.without([Cut(4, 8, "b"), Cut(2, 5, "a")]) == "01bbbbbb89"
    assert text.without([Cut(4, 8, "b"), Cut(2, 4, "a")]) == "01aabbbb89"
    assert text.without([Cut(1, 9, ""), Cut(2, 3, "a"), Cut(8, 10, "b")]) == "0"


_SECRETS = st.sampled_from(["secret", "7777", "a b", "é", "\n"])


@given(st.text(), st.lists(_SECRETS, min_size=1))
def test_a_text_keeps_everything_but_what_was_found(around: str, secrets: list[str]) -> None:
    source = around.join(("x", *secrets, "x"))
    text = Text(source)
    masked = without(source, set(secrets), "\0")
    assert len(masked) == len(text.source)
    assert all(one in (other, "\0") for one, other in zip(masked, source, strict=True))
    assert not any(one in masked for one in secrets)


_DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.builds("{}{}{}".format, st.text(), _SECRETS, st.text()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(
    st.lists(_DOCUMENTS) | st.dictionaries(st.text(), _DOCUMENTS),
    st.booleans(),
    st.sampled_from([None, 1]),
    st.sampled_from("#\\ 0"),
)
def test_json_stays_json(document: Any, ascii_only: bool, indent: int | None, character: str) -> None:
    source = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    left = json.loads(without(source, ["secret", "7777"], character), object_pairs_hook=_members)
    before = json.loads(source, object_pairs_hook=_members)
    for kept, given_ in zip(_leaves(left), _leaves(before), strict=True):
        if isinstance(given_, str):
            assert kept == given_.replace("secret", character * 6).replace("7777", character * 4)
        elif "7777" not in json.dumps(given_):
            assert kept == given_
        else:
            assert kept == character * len(json.dumps(given_))


def _members(pairs: list[tuple[str, Any]]) -> list[Any]:
    """An object as a list, since two names may have become one."""
    return [list(pair) for pair in pairs]


def _leaves(document: Any) -> Iterator[Any]:
    if not isinstance(document, list):
        yield document
        return
    yield [len(document)]
    for one in document:
        yield from _leaves(one)


# ---- detectors ---------------------------------------------------------------------------------------------------


def detector(pattern: str, words: Sequence[str] = (), *, even: bool = False) -> Detector:
    keywords = Keywords(re.compile(keyword_expression(words).encode())) if words else None
    check = (lambda text: int(text) % 2 == 0) if even else None
    return Detector(re.compile(pattern.encode()), check, keywords)


def test_a_find_that_fails_its_check_may_hold_one_that_passes() -> None:
    assert detector("([0-9]{2})", even=True).find(b"134 77 8") == [(1, 3)]


def test_a_detector_with_keywords_finds_nothing_without_them() -> None:
    number = detector("(?:^|[^0-9])([0-9]{3})(?:[^0-9]|$)", ["card number", "dl#"])
    assert number.find(b"123") == []
    assert number.find(b"Card_Number: 123, dl#456") == [(13, 16), (21, 24)]
    assert number.find(b"123 cardnumber") == [(0, 3)]
    assert number.find(b"card numbers 123") == []
    assert number.find(b"card number" + b" " * PROXIMITY + b"123") == [(41, 44)]
    assert number.find(b"card number" + b" " * (PROXIMITY + 1) + b"123") == []


def test_several_detectors_find_a_thing_once() -> None:
    both = Either([detector("(abc)"), detector("(bcd)"), detector("(x)")])
    assert both.find(b"abcd x abc") == [(0, 4), (5, 6), (7, 10)]
