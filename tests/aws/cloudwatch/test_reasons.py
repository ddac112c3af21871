"""Reasons as CloudWatch words them: sentences and JSON of real alarms."""

from datetime import UTC, datetime

import orjson
import pytest

from redrive.aws.cloudwatch.alarms.records import ALARM, INSUFFICIENT_DATA, OK
from redrive.aws.cloudwatch.alarms.verdict import (
    BREACHING,
    NOT_BREACHING,
    AlarmVerdict,
    Datapoint,
    Rule,
    data_of,
    reason_of,
)
from redrive.aws.kit.java import java_double


def at(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc, arg-type] - year to second


def point(value: float, *moment: int) -> Datapoint:
    return Datapoint(at(*moment), value, 1.0)


def said(rule: Rule, state: str, *points: Datapoint, missing: int = 0, counted: bool = False) -> str:
    return reason_of(rule, AlarmVerdict(state, points, missing, points), is_m_of_n=counted)


def test_a_point_crossed_the_threshold() -> None:
    rule = Rule("GreaterThanThreshold", 0.0, 1, 1)
    found = said(rule, ALARM, point(1.0, 2026, 8, 13, 7, 24, 0))
    assert found == (
        "Threshold Crossed: 1 datapoint [1.0 (13/08/26 07:24:00)] was greater than the threshold (0.0)."
    )


def test_several_points_crossed_the_threshold() -> None:
    rule = Rule("LessThanThreshold", 3000.0, 2, 2)
    found = said(rule, ALARM, point(2.5, 2026, 8, 13, 7, 25, 0), point(1.0, 2026, 8, 13, 7, 24, 0))
    assert found == (
        "Threshold Crossed: 2 datapoints [2.5 (13/08/26 07:25:00), 1.0 (13/08/26 07:24:00)] were less than the"
        " threshold (3000.0)."
    )


def test_an_alarm_that_counts_its_points_says_how_many() -> None:
    rule = Rule("GreaterThanOrEqualToThreshold", 7.0, 3, 3)
    points = [
        point(value, 2021, 7, 14, 23, minute, 0) for value, minute in ((8.89, 18), (9.72, 17), (9.18, 16))
    ]
    assert said(rule, ALARM, *points, counted=True) == (
        "Threshold Crossed: 3 out of the last 3 datapoints [8.89 (14/07/21 23:18:00), 9.72 (14/07/21 23:17:00),"
        " 9.18 (14/07/21 23:16:00)] were greater than or equal to the threshold (7.0) (minimum 3 datapoints for"
        " OK -> ALARM transition)."
    )


def test_an_alarm_that_counts_its_points_ends() -> None:
    rule = Rule("GreaterThanThreshold", 0.1, 3, 3)
    assert said(rule, OK, point(0.0, 2021, 10, 4, 21, 42, 0), counted=True) == (
        "Threshold Crossed: 1 out of the last 3 datapoints [0.0 (04/10/21 21:42:00)] was not greater than the"
        " threshold (0.1) (minimum 1 datapoint for ALARM -> OK transition)."
    )


@pytest.mark.parametrize(
    ("treated", "state", "periods", "sentence"),
    [
        (
            BREACHING,
            ALARM,
            1,
            (
                "Threshold Crossed: no datapoints were received for 1 period and 1 missing datapoint was treated as"
                " [Breaching]."
            ),
        ),
        (
            NOT_BREACHING,
            OK,
            2,
            (
                "Threshold Crossed: no datapoints were received for 2 periods and 2 missing datapoints were treated as"
                " [NonBreaching]."
            ),
        ),
        ("missing", INSUFFICIENT_DATA, 1, "Insufficient Data: 1 datapoint was unknown."),
        ("missing", INSUFFICIENT_DATA, 2, "Insufficient Data: 2 datapoints were unknown."),
    ],
)
def test_missing_points(treated: str, state: str, periods: int, sentence: str) -> None:
    rule = Rule("GreaterThanThreshold", 0.0, periods, periods, treated)
    assert said(rule, state, missing=periods) == sentence


def test_the_reason_as_json_has_its_members_in_their_order() -> None:
    rule = Rule("GreaterThanThreshold", 1.0, 2, 2, BREACHING)
    newest, missing = point(3.0, 2026, 9, 25, 4, 11, 0), Datapoint(at(2026, 9, 25, 4, 10, 0))
    verdict = AlarmVerdict(ALARM, [newest], 1, [newest, missing])
    now = at(2026, 9, 25, 4, 12, 7) + 82
    text = data_of(rule, verdict, now, statistic="Average", unit="Seconds", period_seconds=60)
    assert (
        text
        == orjson.dumps(
            {
                "version": "1.0",
                "queryDate": "2026-09-25T04:12:07.082+0000",
                "startDate": "2026-09-25T04:11:00.000+0000",
                "unit": "Seconds",
                "statistic": "Average",
                "period": 60,
                "recentDatapoints": [3.0],
                "threshold": 1.0,
                "evaluatedDatapoints": [
                    {"timestamp": "2026-09-25T04:11:00.000+0000", "sampleCount": 1.0, "value": 3.0},
                    {"timestamp": "2026-09-25T04:10:00.000+0000"},
                ],
            }
        ).decode()
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (-2.5, "-2.5"),
        (3000.0, "3000.0"),
        (0.006189117634776799, "0.006189117634776799"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123_456_789.5, "1.234567895E8"),
        (-1.5e-5, "-1.5E-5"),
        (1e16, "1.0E16"),
    ],
)
def test_numbers_are_written_as_java_writes_doubles(value: float, text: str) -> None:
    assert java_double(value) == text
