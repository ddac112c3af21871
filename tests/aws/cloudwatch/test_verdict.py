"""The published tables of "Configuring how CloudWatch alarms treat missing data", and what holds of every window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.cloudwatch.alarms.records import ALARM, INSUFFICIENT_DATA, OK
from redrive.aws.cloudwatch.alarms.verdict import (
    BREACHING,
    IGNORE,
    MISSING,
    NOT_BREACHING,
    PERIODS_BEYOND,
    TREATMENTS,
    AlarmVerdict,
    Datapoint,
    Rule,
    decide,
)

KEPT = None
COLUMNS = (MISSING, IGNORE, BREACHING, NOT_BREACHING)


def window(pattern: str) -> list[Datapoint]:
    """Points as AWS's tables draw them, oldest first: X breaches, 0 does not, - is missing."""
    values = {"X": 2.0, "0": 0.0, "-": None}
    points = [Datapoint(60_000 * place, values[sign], 1.0) for place, sign in enumerate(pattern)]
    return points[::-1]


def rule(datapoints: int, missing: str = MISSING, periods: int = 3) -> Rule:
    return Rule("GreaterThanThreshold", 1.0, periods, datapoints, missing)


def state(verdict: AlarmVerdict | None) -> str | None:
    return None if verdict is None else verdict.state


@pytest.mark.parametrize(
    ("datapoints", "pattern", "states"),
    [
        (3, "0-X-X", (OK, OK, OK, OK)),
        (3, "0----", (OK, OK, OK, OK)),
        (3, "-----", (INSUFFICIENT_DATA, KEPT, ALARM, OK)),
        (3, "0XX-X", (ALARM, ALARM, ALARM, ALARM)),
        (3, "--X--", (ALARM, KEPT, ALARM, OK)),
        (2, "0-X-X", (ALARM, ALARM, ALARM, ALARM)),
        (2, "00X0X", (ALARM, ALARM, ALARM, ALARM)),
        (2, "0-X--", (OK, OK, ALARM, OK)),
        (2, "----0", (OK, OK, ALARM, OK)),
        (2, "---X-", (ALARM, KEPT, ALARM, OK)),
    ],
)
def test_published_tables(datapoints: int, pattern: str, states: tuple[str | None, ...]) -> None:
    found = tuple(state(decide(rule(datapoints, missing), window(pattern))) for missing in COLUMNS)
    assert found == states


@pytest.mark.parametrize("pattern", ["----X", "---X-"])
def test_an_alarm_is_not_raised_before_its_time(pattern: str) -> None:
    assert decide(rule(3), window(pattern)) is None


def test_decisive_points_are_told_newest_first() -> None:
    found = decide(rule(2), window("0X0XX"))
    assert found is not None
    assert [point.at for point in found.decisive] == [240_000, 180_000]
    assert [point.at for point in found.judged] == [240_000, 180_000, 120_000]
    calm = decide(rule(3), window("XX0X0"))
    assert calm is not None
    assert [point.at for point in calm.decisive] == [240_000, 120_000]


PATTERNS = st.text("X0-", min_size=3 + PERIODS_BEYOND, max_size=3 + PERIODS_BEYOND)


@given(PATTERNS, st.sampled_from(TREATMENTS), st.integers(1, 3))
def test_enough_points_decide_whatever_missing_ones_are_taken_for(
    pattern: str, missing: str, datapoints: int
) -> None:
    found = decide(rule(datapoints, missing), window(pattern))
    real = [sign for sign in pattern[::-1] if sign != "-"][:3]
    if len(real) == 3:
        assert state(found) == (ALARM if real.count("X") >= datapoints else OK)
    if found is not None and found.state == ALARM and missing == NOT_BREACHING:
        assert pattern.count("X") >= datapoints
    if found is not None:
        assert (found.state == INSUFFICIENT_DATA) <= (missing == MISSING and not real)
        assert list(found.judged) == sorted(found.judged, key=lambda point: -point.at)
        assert len(found.judged) == 3


@pytest.mark.parametrize(
    ("comparison", "breaching"),
    [
        ("GreaterThanThreshold", {2.0}),
        ("GreaterThanOrEqualToThreshold", {1.0, 2.0}),
        ("LessThanThreshold", {0.0}),
        ("LessThanOrEqualToThreshold", {0.0, 1.0}),
    ],
)
def test_comparisons(comparison: str, breaching: set[float]) -> None:
    compared = Rule(comparison, 1.0, 1, 1)
    assert {value for value in (0.0, 1.0, 2.0) if compared.breaches(Datapoint(0, value))} == breaching
