import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.claiming import Pace

NOON = 1_000_000


def test_the_first_may_be_taken_at_once() -> None:
    assert Pace(2, 0).wait_until(NOON) is None
    assert Pace(2, 0).allowance(NOON) == 1


@pytest.mark.parametrize(("rate_max", "wait_ms"), [(1, 1000), (2, 500), (3, 333), (300, 3), (1000, 1)])
def test_the_next_waits_its_part_of_a_second(rate_max: int, wait_ms: int) -> None:
    pace = Pace(rate_max, Pace(rate_max, 0).after(1, NOON))
    assert pace.wait_until(NOON) == NOON + wait_ms
    assert pace.allowance(NOON) == 0


@given(st.integers(1, 5000), st.lists(st.integers(0, 50), min_size=1, max_size=200))
def test_never_more_than_the_rate_and_no_burst(rate_max: int, pauses: list[int]) -> None:
    pace, now, taken = Pace(rate_max, 0), NOON, 0
    for pause in pauses:
        now += pause
        allowed = pace.allowance(now)
        assert (allowed == 0) == (pace.wait_until(now) is not None)
        assert allowed <= rate_max // 1000 + 1  # one millisecond's worth
        if allowed:
            pace = Pace(rate_max, pace.after(allowed, now))
        taken += allowed
    assert taken <= (now - NOON + 1) * rate_max // 1000 + 1


@pytest.mark.parametrize("rate_max", [1, 7, 300, 999, 2500])
def test_a_caller_that_waits_as_told_gets_the_whole_rate(rate_max: int) -> None:
    pace, now, taken = Pace(rate_max, 0), NOON, 0
    while now < NOON + 10_000:
        allowed = pace.allowance(now)
        taken += allowed
        pace = Pace(rate_max, pace.after(allowed, now))
        now = pace.wait_until(now) or now + 1
    assert taken >= rate_max * 10 * 0.99
