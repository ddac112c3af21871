import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.model.retry import RetryCurve

curves = st.sampled_from(RetryCurve)
counts = st.integers(2, 1200)
ends = st.tuples(st.integers(1, 3_600_000), st.integers(1, 3_600_000)).map(sorted)

# The published chart's case: 10 retries, 5 s to 260 s. Whole seconds.
CHART = {
    RetryCurve.LINEAR: [5, 33, 62, 90, 118, 147, 175, 203, 232, 260],
    RetryCurve.ARITHMETIC: [5, 8, 18, 33, 55, 84, 118, 159, 206, 260],
    RetryCurve.GEOMETRIC: [5, 8, 12, 19, 29, 45, 70, 108, 168, 260],
    RetryCurve.EXPONENTIAL: [5, 5, 6, 8, 12, 20, 36, 68, 132, 260],
}


@pytest.mark.parametrize("curve", RetryCurve)
def test_curves_follow_the_published_chart(curve: RetryCurve) -> None:
    assert [curve.at(i, 10, 5, 260) for i in range(1, 11)] == pytest.approx(CHART[curve], abs=0.51)


@pytest.mark.parametrize("curve", RetryCurve)
def test_one_retry_waits_the_minimum(curve: RetryCurve) -> None:
    assert curve.at(1, 1, 7, 70) == 7


@given(curves, counts, ends)
def test_pinned_at_both_ends(curve: RetryCurve, retries: int, ends: list[int]) -> None:
    first, last = ends
    assert curve.at(1, retries, first, last) == first
    assert curve.at(retries, retries, first, last) == last


@given(curves, st.integers(3, 60), ends)
def test_never_decreasing_convex_and_under_the_straight_line(
    curve: RetryCurve, retries: int, ends: list[int]
) -> None:
    first, last = ends
    slack = last * 1e-9
    delays = [curve.at(i, retries, first, last) for i in range(1, retries + 1)]
    steps = [after - before for before, after in itertools.pairwise(delays)]
    assert all(step >= -slack for step in steps)
    assert all(after >= before - slack for before, after in itertools.pairwise(steps))
    straight = [RetryCurve.LINEAR.at(i, retries, first, last) for i in range(1, retries + 1)]
    assert all(delay <= line + slack for delay, line in zip(delays, straight, strict=True))


@given(curves, counts, st.integers(1, 3_600_000))
def test_equal_ends_are_a_constant(curve: RetryCurve, retries: int, delay: int) -> None:
    middle = curve.at((retries + 1) // 2, retries, delay, delay)
    assert middle == pytest.approx(delay)


def test_a_long_exponential_does_not_overflow() -> None:
    assert RetryCurve.EXPONENTIAL.at(99_999, 100_000, 0, 8) == pytest.approx(4)
