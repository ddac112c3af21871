import json
import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.console import json_text, words

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_a_pretty_body_says_what_the_body_says(value: object) -> None:
    text = json.dumps([value])
    pretty = json_text.pretty(text)
    assert pretty is not None
    assert json.loads(pretty) == [value]


@pytest.mark.parametrize("number", ["12345678901234567890", "1e400", "0.10", "-0", "1E+2"])
def test_numbers_are_shown_to_the_digit(number: str) -> None:
    assert number in str(json_text.pretty(f'{{"a":{number}}}'))


@pytest.mark.parametrize("text", ["", "hello", '"text"', "12", "{", '{"a":}', "[1,]"])
def test_other_texts_are_not_made_pretty(text: str) -> None:
    assert json_text.pretty(text) is None


def test_a_deep_body_is_refused_and_ends_nothing() -> None:
    assert json_text.pretty("[" * 100_000 + "]" * 100_000) is None


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (106_000, "1 min 46 s"),
        (7_500_000, "2 h 5 min"),
        (273_600_000, "3 d 4 h"),
    ],
)
def test_spans_have_two_units(ms: int, shown: str) -> None:
    assert words.span(ms) == shown


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (10**12, "now"),
        (10**12 - 29_000, "29 s ago"),
        (10**12 + 540_000, "in 9 min"),
        (10**12 - 595_000, "9 min 55 s ago"),
        (10**12 - 1_729_000, "28 min ago"),
        (10**12 - 9 * 10**8, "2001-08-29 15:46Z"),
    ],
)
def test_moments_are_told_from_now(at: int, shown: str) -> None:
    assert words.ago(at, 10**12) == shown


def test_lone_surrogates_are_written_out() -> None:
    assert words.printable("a\ud800b") == "a\\ud800b"


@pytest.mark.parametrize(
    ("a_second", "shown"),
    [
        (0, "0/s"),
        (1 / 300, "0.2/min"),
        (1 / 60, "0.02/s"),
        (0.3, "0.3/s"),
        (1, "1/s"),
        (12.54, "12.5/s"),
        (1204.4, "1,204/s"),
    ],
)
def test_a_rate_has_no_more_digits_than_say_something(a_second: float, shown: str) -> None:
    assert words.rate(a_second) == shown


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (912, "912 B"),
        (65_536, "64.0 KiB"),
        (5 << 20, "5.0 MiB"),
        (1288 << 20, "1.3 GiB"),
        (2 << 40, "2,048.0 GiB"),
    ],
)
def test_a_size_is_said_in_the_unit_that_fits(length: int, shown: str) -> None:
    assert words.size(length) == shown


#: Words of templates that the design has others for; what stands in names of parameters, classes and fields is no text.
_OTHER_WORDS = re.compile(
    r"\b(Look|Lift|Goes off|goes off|picked|Needs you|with rests|Schedules|Insufficient data|message id)\b"
)
_MARKUP = re.compile(r"\{[{%].*?[%}]\}|<[^>]*>", re.DOTALL)


def test_templates_say_the_glossarys_words() -> None:
    templates = resources.files("redrive.console") / "templates"
    others = {
        (each.name, word)
        for each in templates.iterdir()
        for word in _OTHER_WORDS.findall(_MARKUP.sub(" ", each.read_text()))
    }
    assert others == set()
