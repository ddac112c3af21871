"""CloudWatch's recorded answers."""

import struct
from datetime import UTC, datetime
from typing import Any, Final

import cbor2
import orjson
import pytest

from redrive.model.http import Request, Response
from tests.aws.stage import HOST, Stage, on_stage, signed

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


async def asked_in_cbor(stage: Stage, operation: str, params: dict[str, Any], **headers: str) -> Response:
    """The answer of the CBOR protocol as it stands."""
    path = f"/service/{_PREFIX}/operation/{operation}"
    protocol = {"smithy-protocol": "rpc-v2-cbor", "content-type": "application/cbor"}
    request = Request("POST", path, "", {"host": HOST, **protocol, **headers}, cbor2.dumps(params))
    return await stage.send(signed(request, "monitoring", stage.root))


@pytest.mark.parametrize(("headers", "status"), [({}, 400), ({"x-amzn-query-mode": "true"}, 404)])
def test_cbor_has_the_statuses_of_json(headers: dict[str, str], status: int) -> None:
    async def play(stage: Stage) -> None:
        answer = await asked_in_cbor(stage, "SetAlarmState", _UNKNOWN, **headers)
        assert (answer.status, cbor2.loads(answer.body)) == (
            status,
            {"__type": "com.amazonaws.cloudwatch.v2010_08_01#ResourceNotFound"},
        )

    on_stage(play, auth="off")


def test_cbor_has_lists_without_a_length_and_moments_as_doubles() -> None:
    async def play(stage: Stage) -> None:
        now = stage.server.core.runtime.clock.now() // 1000
        data = {"Namespace": "N", "MetricData": [{"MetricName": "M", "Value": 1.0, "Timestamp": now}]}
        await asked_in_cbor(stage, "PutMetricData", data)
        stat = {"Metric": {"Namespace": "N", "MetricName": "M"}, "Period": 60, "Stat": "Sum"}
        span = {"StartTime": now - 600, "EndTime": now + 60}
        params = {"MetricDataQueries": [{"Id": "m", "MetricStat": stat}], **span}
        answer = await asked_in_cbor(stage, "GetMetricData", params)
        moment = struct.pack(">d", now // 60 * 60)
        assert b"jTimestamps\x9f\xc1\xfb" + moment + b"\xff" in answer.body

    on_stage(play, auth="off")


def test_query_lists_alarms_on_logs_too() -> None:
    async def play(stage: Stage) -> None:
        now = stage.server.core.runtime.clock.now() // 1000
        headers = {"host": HOST, "content-type": "application/x-www-form-urlencoded"}

        async def asked_by_form(text: str) -> bytes:
            body = f"Version=2010-08-01&{text}".encode()
            return (
                await stage.send(signed(Request("POST", "/", "", headers, body), "monitoring", stage.root))
            ).body

        answer = await asked_by_form("Action=DescribeAlarms")
        for name in ("CompositeAlarms", "LogAlarms", "MetricAlarms"):
            assert f"<{name}></{name}>".encode() in answer
        assert b"LogAlarms" not in (await asked(stage, "DescribeAlarms", {})).body
        data = {"Namespace": "N", "MetricData": [{"MetricName": "M", "Value": 1, "Timestamp": now}]}
        await asked(stage, "PutMetricData", data)
        stat = "MetricDataQueries.member.1.MetricStat"
        query = f"{stat}.Metric.Namespace=N&{stat}.Metric.MetricName=M&{stat}.Period=60&{stat}.Stat=Sum"
        span = f"StartTime={now - 600}&EndTime={now + 60}&MetricDataQueries.member.1.Id=m"
        answer = await asked_by_form(f"Action=GetMetricData&{span}&{query}")
        minute = datetime.fromtimestamp(now // 60 * 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert f"<Timestamps><member>{minute}</member></Timestamps>".encode() in answer

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
        for name in ("high", "low"):
            await asked(stage, "PutMetricAlarm", {**_ALARM, "AlarmName": name})
        await asked(stage, "SetAlarmState", {"AlarmName": "low", "StateValue": "OK", "StateReason": "r"})
        rule = "ALARM(high) AND ALARM(low)"
        await asked(stage, "PutCompositeAlarm", {"AlarmName": "both", "AlarmRule": rule})
        answer = orjson.loads((await asked(stage, "DescribeAlarms", {"AlarmTypes": ["CompositeAlarm"]})).body)
        (alarm,) = answer["CompositeAlarms"]
        assert alarm["StateValue"] == "OK"
        children = orjson.loads(alarm["StateReasonData"])["triggeringAlarms"]
        values = {child["arn"].rpartition(":")[2]: child["state"]["value"] for child in children}
        assert values == {"high": "INSUFFICIENT_DATA", "low": "OK"}
        assert all(child["state"]["timestamp"] for child in children)

    on_stage(play, auth="off")
