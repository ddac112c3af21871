"""Metric math: expressions over time series."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.cloudwatch.metrics.expressions import ExpressionError, read_expression
from redrive.aws.cloudwatch.metrics.metric_math import Computation, Value, compute_values
from redrive.model.budget import Budget, OverBudgetError

A, B, C = 0, 60_000, 120_000
M1 = {A: 1.0, B: 3.0}
M2 = {B: 0.0, C: 4.0}


def value(text: str) -> Value:
    known: dict[str, Value] = {"m1": M1, "m2": M2}
    return Computation(known, list(known), [A, B, C], 60).value(read_expression(text))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("m1 + 1", {A: 2.0, B: 4.0}),
        ("2 * m1 - m1", {A: 1.0, B: 3.0}),
        ("m1 + m2", {B: 3.0}),
        ("m1 / m2", {}),
        ("m2 / m1", {B: 0.0}),
        ("-m1 ^ 2", {A: -1.0, B: -9.0}),
        ("2 + 3 * 4 ^ 2 / 8 - 1", 7.0),
        ("m1 > 1", {A: 0.0, B: 1.0}),
        ("m1 >= 1 AND m1 != 3", {A: 1.0, B: 0.0}),
        ("m1 == 1 || m1 == 3", {A: 1.0, B: 1.0}),
        ("SUM([m1, m2])", {A: 1.0, B: 3.0, C: 4.0}),
        ("AVG(METRICS())", {A: 1.0, B: 1.5, C: 4.0}),
        ('MAX(METRICS("2"))', {B: 0.0, C: 4.0}),
        ("MIN(m1)", 1.0),
        ("SUM(m1)", 4.0),
        ("STDDEV(m1)", 1.0),
        ("DATAPOINT_COUNT(m1)", 2.0),
        ("100 * m1 / MAX([m1, m2])", {A: 100.0, B: 100.0}),
        ("FILL(m1, 0)", {A: 1.0, B: 3.0, C: 0.0}),
        ("FILL(m2, m1)", {A: 1.0, B: 0.0, C: 4.0}),
        ("FILL(m1, REPEAT)", {A: 1.0, B: 3.0, C: 3.0}),
        ("FILL(IF(m1 > 5, m1), 7)", {A: 7.0, B: 7.0, C: 7.0}),
        ("IF(m1 > 1, m1, 5)", {A: 5.0, B: 3.0}),
        ("IF(m1 > 1, m1)", {B: 3.0}),
        ("ABS(0 - m1)", {A: 1.0, B: 3.0}),
        ("CEIL(m1 / 2)", {A: 1.0, B: 2.0}),
        ("FLOOR(m1 / 2)", {A: 0.0, B: 1.0}),
        ("DIFF(m1)", {B: 2.0}),
        ("RATE(m1)", {B: 2.0 / 60}),
        ("RUNNING_SUM(m1)", {A: 1.0, B: 4.0}),
        ("m1 * PERIOD(m1)", {A: 60.0, B: 180.0}),
        ("TIME_SERIES(3)", {A: 3.0, B: 3.0, C: 3.0}),
        ("METRICS() * 2", [{A: 2.0, B: 6.0}, {B: 0.0, C: 8.0}]),
    ],
)
def test_expressions(text: str, result: Value) -> None:
    assert value(text) == result


def test_gaps_are_filled_in_a_straight_line() -> None:
    computation = Computation({"m": {A: 1.0, C: 3.0}}, ["m"], [A, B, C], 60)
    assert computation.value(read_expression("FILL(m, LINEAR)")) == {A: 1.0, B: 2.0, C: 3.0}


@pytest.mark.parametrize(
    "text",
    [
        *("", "m1 +", "(m1", "m1)", "m1 m2", "FOO(m1)", "IF(m1)", "m1 @ 2", "[m1] + [m2]", "SUM(", "m9"),
        *(
            'SEARCH("{AWS/SQS} x", "Sum", 60)',
            "ANOMALY_DETECTION_BAND(m1)",
            'METRICS(1) + "a"',
            "TIME_SERIES(m1)",
        ),
        *("(" * 200 + "m1" + ")" * 200, "-" * 500 + "m1", "m1" + "+m1" * 400, "2" + "^2" * 400, "ABS(" * 200),
        "RATE(3)",
    ],
)
def test_expressions_without_a_value_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        value(text)


def test_expressions_are_computed_in_the_order_that_they_need() -> None:
    expressions = {
        "e1": read_expression("e2 * 2"),
        "e2": read_expression("m1 + e3"),
        "e3": read_expression("1 + 1"),
    }
    assert compute_values(expressions, {"m1": M1}, [A, B], 60, Budget())["e1"] == {A: 6.0, B: 10.0}


@pytest.mark.parametrize(("one", "other"), [("e2", "e1"), ("e1", "m1"), ("m9", "m1")])
def test_expressions_that_depend_on_themselves_or_on_nothing_are_refused(one: str, other: str) -> None:
    with pytest.raises(ExpressionError, match="Error in expression 'e1'"):
        compute_values(
            {"e1": read_expression(one), "e2": read_expression(other)}, {"m1": M1}, [A], 60, Budget()
        )


@given(st.text("m12 +-*/^()[],.<>=!&|ABSUMFIL\"'", max_size=40))
def test_any_text_is_computed_or_refused(text: str) -> None:
    try:
        found = value(text)
    except ExpressionError:
        return
    series = [found] if isinstance(found, dict) else []
    assert all(math.isfinite(each) for points in series for each in points.values())


WEEKS = range(0, 14 * 24 * 3_600_000, 60_000)
SPARSE = dict.fromkeys(WEEKS[::10000], 1.0)
FULL = dict.fromkeys(WEEKS, 1.0)


@pytest.mark.parametrize(
    "text",
    [
        "FILL(METRICS(), 0)",
        "FILL(METRICS(), LINEAR)",
        f"[{','.join(['FILL(m0, 0)'] * 20)}] + 1",
        f"SUM([{','.join(['METRICS()'] * 30)}])",
        "+".join(["full"] * 30),
        "+".join(["IF(m0, full, full)"] * 40),
        "+".join(["TIME_SERIES(1)"] * 30),
    ],
)
def test_points_are_paid_for_before_they_are_computed(text: str) -> None:
    """Two weeks by the minute: 200 rows of it took 750 MB and stopped the server for 3.8 s."""
    known: dict[str, Value] = {"full": FULL, **{f"m{number}": SPARSE for number in range(200)}}
    with pytest.raises(OverBudgetError):
        Computation(known, list(known), WEEKS, 60, Budget()).value(read_expression(text))


@given(st.dictionaries(st.integers(0, 60).map(lambda n: n * 60_000), st.integers(-9, 9).map(float)))
def test_a_gap_is_filled_by_the_line_between_its_ends(series: dict[int, float]) -> None:
    moments = range(0, 61 * 60_000, 60_000)
    found = Computation({"m": series}, ["m"], moments, 60).value(read_expression("FILL(m, LINEAR)"))
    expected = dict(series)
    known = sorted(series)
    for at in moments:
        before, after = [each for each in known if each < at], [each for each in known if each > at]
        if at not in series and before and after:
            slope = (series[after[0]] - series[before[-1]]) / (after[0] - before[-1])
            expected[at] = series[before[-1]] + slope * (at - before[-1])
    assert found == expected
