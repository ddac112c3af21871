"""Escapes of forms, read in C as the standard library reads them slowly."""

from urllib.parse import quote_plus, unquote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.wire.query.input import unescape

PIECES = st.sampled_from(
    ["%", "%2", "%4g", "%41", "%c3%a9", "%C3", "%00", "+", "\\", "\\x41", "\\n", "\u00e9", "\n", "a"]
)
TEXTS = st.lists(PIECES | st.text(max_size=3)).map("".join)


@given(TEXTS)
def test_escapes_are_read_as_the_standard_library_reads_them(text: str) -> None:
    try:
        expected = unquote_plus(text, "utf-8", "strict")
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            unescape(text)
    else:
        assert unescape(text) == expected


@given(st.text())
def test_escaped_text_is_read_back(text: str) -> None:
    assert unescape(quote_plus(text)) == text


@pytest.mark.parametrize("text", ["%", "%%", "%4", "a%zz", "%\\x41"])
def test_malformed_escapes_stay_as_they_are(text: str) -> None:
    assert unescape(text) == text
