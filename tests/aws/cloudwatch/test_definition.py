"""Definitions that PutMetricAlarm refuses, and what is kept of others."""

from typing import Any

import pytest

from redrive.access.principals import account_root
from redrive.aws.cloudwatch.alarms import watch
from redrive.aws.cloudwatch.alarms.definition import definition
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.model.http import Request
from tests.aws.cloudwatch.stage import ACCOUNT, REGION, Stage, of_one_metric
from tests.aws.cloudwatch.test_alarms import metric

TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:t"
CALL = Call(Request("POST", "/", "", {}, b""), account_root(ACCOUNT), REGION, 0, "id", "")
ONE_QUERY: list[dict[str, Any]] = [{"Id": "m1", "MetricStat": metric()}]
NO_METRIC = dict.fromkeys(("MetricName", "Namespace", "Statistic", "Period"))


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"Period": 45}, "Period must be 10, 20, 30 or a multiple of 60"),
        ({"Statistic": None}, "Must specify either Statistic or ExtendedStatistic"),
        ({"ExtendedStatistic": "p90"}, "Must specify either Statistic or ExtendedStatistic"),
        (
            {"Statistic": None, "ExtendedStatistic": "p101"},
            "p101 for parameter ExtendedStatistic is not supported",
        ),
        ({"Namespace": None}, "The parameter Namespace is required"),
        ({"Threshold": None}, "The parameter Threshold is required"),
        ({"Threshold": float("inf")}, "parameter Threshold is invalid"),
        ({"ComparisonOperator": None}, "The parameter ComparisonOperator is required"),
        ({"ComparisonOperator": "GreaterThanUpperThreshold"}, "needs a band of anomalies"),
        ({"EvaluationPeriods": None}, "The parameter EvaluationPeriods is required"),
        ({"EvaluationPeriods": 1441}, "cannot be checked across more than a day"),
        ({"EvaluationPeriods": 169, "Period": 3600}, "cannot be checked across more than 7 days"),
        ({"DatapointsToAlarm": 2}, "DatapointsToAlarm must be less than or equal to EvaluationPeriods"),
        ({"TreatMissingData": "maybe"}, "maybe for parameter TreatMissingData is not supported"),
        ({"EvaluateLowSampleCountPercentile": "ignore"}, "EvaluateLowSampleCountPercentile"),
        ({"AlarmActions": ["nothing"]}, "Invalid arn syntax: nothing"),
        ({"OKActions": [TOPIC.replace(REGION, "eu-west-1")]}, "Invalid region eu-west-1 specified"),
        ({"EvaluationInterval": 60}, "EvaluationInterval is not available"),
        ({"Metrics": ONE_QUERY}, "Metrics and MetricName are mutually exclusive"),
        (NO_METRIC | {"Metrics": [*ONE_QUERY, *ONE_QUERY]}, "Exactly one element"),
        (
            NO_METRIC | {"Metrics": [*ONE_QUERY, {**ONE_QUERY[0], "ReturnData": False}]},
            "parameter id in Metrics are not unique",
        ),
        (
            NO_METRIC
            | {
                "Metrics": [
                    *ONE_QUERY,
                    {"Id": "m2", "MetricStat": metric(period=300), "ReturnData": False},
                ]
            },
            "same period",
        ),
        (NO_METRIC | {"Metrics": [{"Id": "e1", "Expression": "TIME_SERIES(1)"}]}, "has to be a metric"),
        (
            NO_METRIC
            | {"Metrics": [{**ONE_QUERY[0], "ReturnData": False}, {"Id": "e1", "Expression": "m1 / x"}]},
            "Error in expression 'e1': x is not known",
        ),
        (
            NO_METRIC
            | {"Metrics": [{**ONE_QUERY[0], "ReturnData": False}, {"Id": "e1", "Expression": "SEARCH('x')"}]},
            "SEARCH is not available",
        ),
        (NO_METRIC | {"Metrics": [{"Id": "M1", "MetricStat": metric()}]}, "expected pattern"),
    ],
)
def test_impossible_definitions_are_refused(params: dict[str, Any], text: str) -> None:
    given = {name: value for name, value in {**of_one_metric(), **params}.items() if value is not None}
    with pytest.raises(AwsError, match=text):
        definition(CALL, given)


def test_given_parameters_are_kept() -> None:
    given = {**of_one_metric(), "AlarmActions": [TOPIC], "Threshold": 2.5}
    assert definition(CALL, {**given, "AlarmName": "a", "Tags": []}) == given


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"AlarmName": ""}, "length greater than or equal to 1"),
        ({"AlarmName": "a" * 256}, "length less than or equal to 255"),
        ({"AlarmDescription": "a" * 1025}, "length less than or equal to 1024"),
        (
            {"Dimensions": [{"Name": f"d{number}", "Value": "v"} for number in range(31)]},
            "less than or equal to 30",
        ),
        ({"AlarmActions": [TOPIC] * 6}, "length less than or equal to 5"),
        ({"EvaluationPeriods": 0}, "value greater than or equal to 1"),
        ({"Period": 0}, "value greater than or equal to 1"),
        (
            NO_METRIC | {"Metrics": [{"Id": f"m{number}", "MetricStat": metric()} for number in range(11)]},
            "10",
        ),
    ],
)
async def test_limits_are_those_of_cloudwatch(stage: Stage, params: dict[str, Any], text: str) -> None:
    wanted = {
        name: value
        for name, value in {**of_one_metric(), "AlarmName": "a", **params}.items()
        if value is not None
    }
    with pytest.raises(AwsError) as refused:
        await stage.watch("PutMetricAlarm", **wanted)
    assert text in refused.value.message


async def test_a_region_has_so_many_alarms(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "ALARMS_MAX", 2)
    await stage.alarm("a")
    await stage.watch("PutCompositeAlarm", AlarmName="c", AlarmRule="ALARM(a)")
    await stage.alarm("a", Threshold=5.0)
    await stage.watch("PutMetricAlarm", **of_one_metric(), AlarmName="b", region="eu-west-1")
    for operation, rest in (
        ("PutMetricAlarm", of_one_metric()),
        ("PutCompositeAlarm", {"AlarmRule": "ALARM(a)"}),
    ):
        with pytest.raises(AwsError) as refused:
            await stage.watch(operation, AlarmName="b", **rest)
        assert refused.value.query_code == "LimitExceeded"
    await stage.watch("DeleteAlarms", AlarmNames=["c"])
    await stage.alarm("b")
