"""Points in time on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.wire import timestamps

TIMES_MS = st.integers(-62_135_596_800_000, 253_402_300_799_999)  # the years 1 to 9999


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-02T03:04:05.678Z", 1_767_323_045_678),
        ("2026-01-02T03:04:05+01:00", 1_767_319_445_000),
        ("2026-01-02T03:04:05", 1_767_323_045_000),
        ("2026-01-02", 1_767_312_000_000),
        ("20260102T030405Z", 1_767_323_045_000),
        ("1767323045", 1_767_323_045_000),
        ("1767323045.5", 1_767_323_045_500),
        ("Fri, 02 Jan 2026 03:04:05 GMT", 1_767_323_045_000),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_texts_of_timestamps_are_read(text: str, expected: int) -> None:
    assert timestamps.from_text(text) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "nan", "inf", "1e300", "2026-13-01", "0001-01-01T00:00+23:59", "\x00"]
)
def test_text_that_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        timestamps.from_text(text)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 1e300, -1e12])
def test_numbers_that_are_no_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="is no time"):
        timestamps.from_seconds(seconds)


def test_whole_seconds_are_whole() -> None:
    assert timestamps.to_seconds(1_700_000_000_000) == 1_700_000_000
    assert isinstance(timestamps.to_seconds(1_700_000_000_000), int)
    assert timestamps.to_iso8601(1_700_000_000_000) == "2023-11-14T22:13:20Z"
    assert timestamps.to_rfc822(1_700_000_000_000) == "Tue, 14 Nov 2023 22:13:20 GMT"


@given(TIMES_MS)
def test_every_time_survives(timestamp_ms: int) -> None:
    assert timestamps.from_seconds(timestamps.to_seconds(timestamp_ms)) == timestamp_ms
    assert timestamps.from_text(timestamps.to_iso8601(timestamp_ms)) == timestamp_ms


@given(st.integers(0, 253_402_300_799_999))  # RFC 822 reads small years as years of our time
def test_every_modern_time_survives_in_mail_style(timestamp_ms: int) -> None:
    assert timestamps.from_text(timestamps.to_rfc822(timestamp_ms)) == timestamp_ms // 1000 * 1000
