"""JSON in and out: whatever a publisher sent is what a subscriber gets, to the last digit."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.azure.eventgrid.notation import read_text, written_text

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(value=values)
def test_json_read_and_written_is_unchanged(value: Any) -> None:
    document = [value, {"value": value}]
    content = json.dumps(document, ensure_ascii=False).encode()
    read = read_text(content)
    assert read == document
    assert json.loads(written_text(read)) == document


@pytest.mark.parametrize("digits", ["18446744073709551616", "-9223372036854775809", "1" * 40])
@pytest.mark.parametrize("around", ["%s", "[%s]", '{"a":%s}', '{"a": [1, %s]}'])
def test_no_digit_is_lost(digits: str, around: str) -> None:
    content = f"[{around % digits}]"
    assert written_text(read_text(content.encode())) == content.replace(": ", ":").replace(", ", ",")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        '{"a":NaN}',
        "[12345678901234567890123, NaN]",
        "[Infinity]",
        '["\\ud800"]',
        '[12345678901234567890123, "\\ud800"]',
        f"{'[12345678901234567890123,' * 5000}1{']' * 5000}",
        "[" * 5000 + "]" * 5000,
    ],
)
def test_malformed_json_is_refused(content: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_text(content.encode())
