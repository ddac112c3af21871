import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.durations import read_duration, show_duration


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("250ms", 250),
        ("90s", 90_000),
        ("15m", 900_000),
        ("15min", 900_000),
        ("4h", 14_400_000),
        ("1h30m", 5_400_000),
        ("1.5 d", 129_600_000),
        ("1 d 10 h 46 min 40 s", 125_200_000),
        ("0s", 0),
    ],
)
def test_a_span_is_read(text: str, duration_ms: int) -> None:
    assert read_duration(text) == duration_ms


@pytest.mark.parametrize("text", ["", " ", "4", "h", "-4h", "4 weeks", "4h x", "1h30", "1..5s"])
def test_malformed_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a span of time"):
        read_duration(text)


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0 s"),
        (975, "0.975 s"),
        (1_040, "1.04 s"),
        (20_000, "20 s"),
        (59_999, "59.999 s"),
        (60_000, "1 min"),
        (2_000_049_665, "23 d 3 h 34 min 10 s"),
        (86_400_000, "1 d"),
        (3_600_400, "1 h"),
    ],
)
def test_a_span_is_shown(duration_ms: int, text: str) -> None:
    assert show_duration(duration_ms) == text


@given(st.integers(0, 10**10))
def test_a_shown_duration_reads_back_within_half_a_second(duration_ms: int) -> None:
    assert abs(read_duration(show_duration(duration_ms)) - duration_ms) <= 500
