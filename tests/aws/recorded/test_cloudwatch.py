"""CloudWatch's recorded answers."""

from typing import Any, Final

import orjson
import pytest

from redrive.model.http import Request, Response
from tests.aws.iam.stage import HOST, Stage, on_stage, signed

_PREFIX: Final = "GraniteServiceVersion20100801"
_UNKNOWN: Final = {"AlarmName": "unknown", "StateValue": "OK", "StateReason": "r"}
_ALARM: Final = {
    "AlarmName": "high",
    "Namespace": "N",
    "MetricName": "M",
    "Statistic": "Sum",
    "Period": 60,
    "Threshold": 10,
    "EvaluationPeriods": 1,
    "ComparisonOperator": "GreaterThanThreshold",
}


async def asked(stage: Stage, operation: str, params: dict[str, Any], **headers: str) -> Response:
    """The answer of the JSON protocol as it stands."""
    target = {"x-amz-target": f"{_PREFIX}.{operation}", "content-type": "application/x-amz-json-1.0"}
    request = Request("POST", "/", "", {"host": HOST, **target, **headers}, orjson.dumps(params))
    return await stage.send(signed(request, "monitoring", stage.root))


@pytest.mark.parametrize(("headers", "status"), [({}, 400), ({"x-amzn-query-mode": "true"}, 404)])
def test_an_unknown_alarm_is_a_bad_request_unless_the_statuses_of_query_are_asked_for(
    headers: dict[str, str], status: int
) -> None:
    async def play(stage: Stage) -> None:
        answer = await asked(stage, "SetAlarmState", _UNKNOWN, **headers)
        assert (answer.status, orjson.loads(answer.body)) == (
            status,
            {"__type": "com.amazonaws.cloudwatch.v2010_08_01#ResourceNotFound"},
        )

    on_stage(play, auth="off")


def test_query_has_no_element_for_a_text_that_is_not_there() -> None:
    async def play(stage: Stage) -> None:
        body = b"Action=SetAlarmState&Version=2010-08-01&AlarmName=unknown&StateValue=OK&StateReason=r"
        headers = {"host": HOST, "content-type": "application/x-www-form-urlencoded"}
        answer = await stage.send(signed(Request("POST", "/", "", headers, body), "monitoring", stage.root))
        assert answer.status == 404
        assert b"<Error><Type>Sender</Type><Code>ResourceNotFound</Code></Error>" in answer.body

    on_stage(play, auth="off")


def test_numbers_and_moments_have_fractions() -> None:
    async def play(stage: Stage) -> None:
        await asked(stage, "PutMetricAlarm", _ALARM)
        answer = await asked(stage, "DescribeAlarms", {})
        assert b'"Threshold":10.0' in answer.body
        now = stage.server.core.runtime.clock.now()
        data = {"Namespace": "N", "MetricData": [{"MetricName": "M", "Value": 1, "Timestamp": now // 1000}]}
        await asked(stage, "PutMetricData", data)
        stat = {"Metric": {"Namespace": "N", "MetricName": "M"}, "Period": 60, "Stat": "Sum"}
        query = [{"Id": "m", "MetricStat": stat}]
        span = {"StartTime": now // 1000 - 600, "EndTime": now // 1000 + 60}
        answer = await asked(stage, "GetMetricData", {"MetricDataQueries": query, **span})
        assert f'"Timestamps":[{now // 60000 * 60}.0]'.encode() in answer.body

    on_stage(play, auth="off")


def test_states_are_told_in_amazons_order() -> None:
    async def play(stage: Stage) -> None:
        refusal = await stage.refusal(
            stage.root, "cloudwatch", "SetAlarmState", **{**_UNKNOWN, "StateValue": "x"}
        )
        assert refusal.endswith("Member must satisfy enum value set: [INSUFFICIENT_DATA, ALARM, OK]")

    on_stage(play, auth="off")


def test_a_day_from_any_second_has_1440_minutes() -> None:
    async def play(stage: Stage) -> None:
        metric = {"Namespace": "N", "MetricName": "M", "Period": 60, "Statistics": ["Sum"]}
        start = 1_700_000_007
        await asked(stage, "GetMetricStatistics", {**metric, "StartTime": start, "EndTime": start + 86_400})
        answer = await asked(
            stage, "GetMetricStatistics", {**metric, "StartTime": start, "EndTime": start + 86_400}
        )
        assert answer.status == 200
        answer = await asked(
            stage, "GetMetricStatistics", {**metric, "StartTime": start, "EndTime": start + 86_460}
        )
        assert b"You have requested up to 1441 datapoints" in answer.body

    on_stage(play, auth="off")


def test_a_new_composite_alarm_lists_its_children() -> None:
    async def play(stage: Stage) -> None:
        await asked(stage, "PutMetricAlarm", _ALARM)
        await asked(stage, "PutCompositeAlarm", {"AlarmName": "both", "AlarmRule": "ALARM(high)"})
        await stage.advance(60)
        answer = orjson.loads((await asked(stage, "DescribeAlarms", {"AlarmTypes": ["CompositeAlarm"]})).body)
        (alarm,) = answer["CompositeAlarms"]
        (child,) = orjson.loads(alarm["StateReasonData"])["triggeringAlarms"]
        assert child["arn"].endswith(":alarm:high")
        assert child["state"]["value"] == "INSUFFICIENT_DATA"

    on_stage(play, auth="off")
