"""Statistics of a part of a period's values, by the examples of "CloudWatch statistics definitions"."""

import pytest

from redrive.aws.cloudwatch.metrics.statistic import Measurement, statistic
from redrive.model.metric import Statistics, ValueCount

HUNDRED = [ValueCount(0, "", float(value), 1) for value in range(1, 101)]


def measured(values: list[ValueCount]) -> Measurement:
    total = sum(value.value * value.samples for value in values)
    samples = sum(value.samples for value in values)
    return Measurement(0, "", Statistics(samples, total, values[0].value, values[-1].value), values)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tm90", 45.5),
        ("TM(10%:90%)", 50.5),
        ("TM(:50)", 25.5),
        ("TM(90:)", 95.5),
        ("IQM", 50.5),
        ("wm98", sum(range(1, 99)) / 100 + 0.98 * 2),
        ("WM(10%:90%)", 50.5),
        ("tc90", 90.0),
        ("TC(10:20)", 10.0),
        ("ts90", 4095.0),
        ("TS(80%:)", sum(range(81, 101))),
        ("PR(:30)", 30.0),
        ("PR(20:30)", 10.0),
        ("p90", 90.0),
    ],
)
def test_of_a_hundred_values(name: str, value: float) -> None:
    found = statistic(name)
    assert found is not None
    assert found.of(measured(HUNDRED)) == pytest.approx(value)


def test_a_value_that_came_often_is_cut_through() -> None:
    found = statistic("TS(:50%)")
    assert found is not None
    assert found.of(measured([ValueCount(0, "", 1.0, 2), ValueCount(0, "", 5.0, 6)])) == 12.0


@pytest.mark.parametrize(
    "name",
    ["tm", "tm101", "TM(:)", "TM(1%:2)", "TM(9:3)", "PR(1%:2%)", "PR(%:2)", "TM(-1%:5%)", "p101", "IQR"],
)
def test_other_names_are_no_statistics(name: str) -> None:
    assert statistic(name) is None


def test_a_period_with_unknown_values_has_no_trimmed_statistic() -> None:
    found = statistic("tm90")
    assert found is not None
    whole = Measurement(0, "", Statistics(10, 100.0, 1.0, 20.0), HUNDRED[:2])
    assert found.of(whole) is None
