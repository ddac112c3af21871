"""Actions: what transitions lead to, held to the policies of what is called, and told in the history."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from redrive.aws.cloudwatch.alarms.records import ALARMS
from redrive.aws.cloudwatch.alarms.transitions import TargetState, Transitions
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine
from redrive.model.errors import StoreUnavailable
from redrive.model.names import ResourceName
from tests.aws.cloudwatch.stage import ACCOUNT, REGION, Stage, of_one_metric
from tests.aws.cloudwatch.stage import stage as staged

ARN = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:Rental-Billing-DLQ"
DLQ_ALARM = {
    "AlarmName": "Rental-Billing-DLQ",
    "Namespace": "AWS/SQS",
    "MetricName": "NumberOfMessagesSent",
    "Dimensions": [{"Name": "QueueName", "Value": "Rental-Billing-DLQ"}],
    "TreatMissingData": "missing",
}


async def set_state(stage: Stage, value: str, name: str = "a") -> None:
    await stage.watch("SetAlarmState", AlarmName=name, StateValue=value, StateReason="by hand")
    await stage.advance(0)


async def test_the_notification_has_its_members_in_their_order(stage: Stage) -> None:
    topic = await stage.topic()
    told = await stage.told(topic)
    await stage.watch("PutMetricAlarm", **{**of_one_metric(), **DLQ_ALARM, "AlarmActions": [topic]})
    await stage.call("sqs", "SendMessage", QueueUrl=await stage.queue("Rental-Billing-DLQ"), MessageBody="x")
    await stage.advance(60)
    (message,) = await stage.received(told)
    assert (
        message
        == orjson.dumps(
            {
                "AlarmName": "Rental-Billing-DLQ",
                "AlarmDescription": None,
                "AWSAccountId": ACCOUNT,
                "AlarmConfigurationUpdatedTimestamp": "2026-01-01T00:00:00.000+0000",
                "NewStateValue": "ALARM",
                "NewStateReason": (
                    "Threshold Crossed: 1 datapoint [1.0 (01/01/26 00:00:00)] was greater than the threshold (0.0)."
                ),
                "StateChangeTime": "2026-01-01T00:01:00.000+0000",
                "Region": "US East (N. Virginia)",
                "AlarmArn": ARN,
                "OldStateValue": "INSUFFICIENT_DATA",
                "OKActions": [],
                "AlarmActions": [topic],
                "InsufficientDataActions": [],
                "Trigger": {
                    "MetricName": "NumberOfMessagesSent",
                    "Namespace": "AWS/SQS",
                    "StatisticType": "Statistic",
                    "Statistic": "SUM",
                    "Unit": None,
                    "Dimensions": [{"value": "Rental-Billing-DLQ", "name": "QueueName"}],
                    "Period": 60,
                    "EvaluationPeriods": 1,
                    "ComparisonOperator": "GreaterThanThreshold",
                    "Threshold": 0.0,
                    "TreatMissingData": "missing",
                    "EvaluateLowSampleCountPercentile": "",
                },
            }
        ).decode()
    )
    (action,) = await stage.history("Rental-Billing-DLQ", "Action")
    assert action["HistorySummary"] == f"Successfully executed action {topic}"
    published = orjson.loads(action["HistoryData"].pop("publishedMessage"))
    assert action["HistoryData"] == {
        "actionState": "Succeeded",
        "stateUpdateTimestamp": stage.now,
        "notificationResource": topic,
        "error": None,
    }
    assert (published["default"], published["sms"]) == (
        message,
        'ALARM: "Rental-Billing-DLQ" in US East (N. Virginia)',
    )
    assert "- State Change:               INSUFFICIENT_DATA -> ALARM\n" in published["email"]


async def test_the_notification_of_metric_math(stage: Stage) -> None:
    topic = await stage.topic()
    told = await stage.told(topic)
    metric = {"Namespace": "test", "MetricName": "m", "Dimensions": [{"Name": "d", "Value": "v"}]}
    queries = [
        {"Id": "m1", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}, "ReturnData": False},
        {"Id": "e1", "Expression": "m1 * 2", "Label": "twice", "ReturnData": True},
    ]
    params = {"EvaluationPeriods": 1, "Threshold": 1.0, "ComparisonOperator": "LessThanThreshold"}
    await stage.watch("PutMetricAlarm", AlarmName="a", Metrics=queries, OKActions=[topic], **params)
    await set_state(stage, "OK")
    (message,) = await stage.received(told)
    assert orjson.dumps(orjson.loads(message)["Trigger"]) == orjson.dumps(
        {
            "Period": 60,
            "EvaluationPeriods": 1,
            "ComparisonOperator": "LessThanThreshold",
            "Threshold": 1.0,
            "TreatMissingData": "missing",
            "EvaluateLowSampleCountPercentile": "",
            "Metrics": [
                {
                    "Id": "m1",
                    "MetricStat": {
                        "Metric": {
                            "Dimensions": [{"value": "v", "name": "d"}],
                            "MetricName": "m",
                            "Namespace": "test",
                        },
                        "Period": 60,
                        "Stat": "Sum",
                    },
                    "ReturnData": False,
                },
                {"Expression": "m1 * 2", "Id": "e1", "Label": "twice", "ReturnData": True},
            ],
        }
    )


async def test_actions_are_taken_on_transitions_alone(stage: Stage) -> None:
    topic = await stage.topic()
    told = await stage.told(topic)
    await stage.alarm(AlarmActions=[topic], OKActions=[topic], TreatMissingData="ignore")
    for value in ("ALARM", "ALARM", "OK", "INSUFFICIENT_DATA"):
        await set_state(stage, value)
    values = [orjson.loads(message)["NewStateValue"] for message in await stage.received(told)]
    assert sorted(values) == ["ALARM", "OK"]


async def test_disabled_actions_are_not_taken(stage: Stage) -> None:
    topic = await stage.topic()
    told = await stage.told(topic)
    await stage.alarm(AlarmActions=[topic], OKActions=[topic])
    await stage.watch("DisableAlarmActions", AlarmNames=["a", "x"])
    assert (await stage.described())["ActionsEnabled"] is False
    await set_state(stage, "ALARM")
    assert await stage.received(told) == []
    await stage.watch("EnableAlarmActions", AlarmNames=["a"])
    await set_state(stage, "OK")
    assert len(await stage.received(told)) == 1


def policy(*statements: dict[str, Any]) -> str:
    return orjson.dumps({"Version": "2012-10-17", "Statement": list(statements)}).decode()


def allowing(topic: str, source: str = ARN) -> dict[str, Any]:
    return {
        "Effect": "Allow",
        "Principal": {"Service": "cloudwatch.amazonaws.com"},
        "Action": "SNS:Publish",
        "Resource": topic,
        "Condition": {"ArnEquals": {"aws:SourceArn": source}, "StringEquals": {"aws:SourceAccount": ACCOUNT}},
    }


@pytest.mark.parametrize("auth", ["off", "required"])
async def test_a_topics_policy_lets_alarms_in_or_not(auth: str) -> None:
    async with staged(auth=auth) as stage:
        topic = await stage.topic()
        told = await stage.told(topic)
        queue_arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:told"
        open_queue = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": queue_arn}
        await stage.call(
            "sqs", "SetQueueAttributes", QueueUrl=told, Attributes={"Policy": policy(open_queue)}
        )
        await stage.watch("PutMetricAlarm", **{**of_one_metric(), **DLQ_ALARM, "AlarmActions": [topic]})
        for statement, arrives in (
            (None, True),  # the default policy lets in whoever acts for the owner
            (allowing(topic), True),
            (allowing(topic, f"{ARN}x"), False),
        ):
            if statement is not None:
                value = policy(statement)
                await stage.call(
                    "sns", "SetTopicAttributes", TopicArn=topic, AttributeName="Policy", AttributeValue=value
                )
            await set_state(stage, "ALARM", "Rental-Billing-DLQ")
            assert len(await stage.received(told)) == arrives
            await set_state(stage, "OK", "Rental-Billing-DLQ")
        failed, *_ = await stage.history("Rental-Billing-DLQ", "Action")
        assert failed["HistoryData"] == {
            "actionState": "Failed",
            "stateUpdateTimestamp": stage.now,
            "notificationResource": topic,
            "publishedMessage": None,
            "error": (
                f"Resource: {ARN} is not authorized to perform: SNS:Publish on resource: {topic} because no"
                " resource-based policy allows the SNS:Publish action"
            ),
        }
        assert await stage.state("Rental-Billing-DLQ") == "OK"


@pytest.mark.parametrize(
    ("arn", "error"),
    [
        ("arn:aws:automate:us-east-1:ec2:stop", "Redrive does not carry out actions of automate"),
        (f"arn:aws:sns:{REGION}:{ACCOUNT}:gone", "Topic does not exist (NotFoundException)"),
        (f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:f", "This server does not offer lambda"),
    ],
)
async def test_actions_that_fail_are_told(arn: str, error: str) -> None:
    async with staged(functions="off") as stage:
        await stage.alarm(AlarmActions=[arn])
        await set_state(stage, "ALARM")
        (item,) = await stage.history(type_="Action")
    assert (item["HistoryData"]["actionState"], item["HistoryData"]["error"]) == ("Failed", error)


# ---- nodes -----------------------------------------------------------------------------------------------------


async def test_of_two_nodes_that_decide_at_once_the_second_finds_the_firsts_state(stage: Stage) -> None:
    topic = await stage.topic()
    told = await stage.told(topic)
    await stage.alarm(AlarmActions=[topic])
    core = stage.server.core
    other = Engine(core.store, core.runtime)
    name = ResourceName(ACCOUNT, REGION, "a")
    assert await other.resources.documents.get(ALARMS, name.key) is not None  # remembered as it is now
    for engine in (core.engine, other):
        await Transitions(engine).bring(name, lambda _: TargetState("ALARM", "why", None), stage.now)
    await stage.advance(0)
    assert len(await stage.received(told)) == 1
    assert len(await stage.history(type_="StateUpdate")) == 1


async def test_actions_owed_when_a_server_stops_are_taken_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = f"sqlite:///{tmp_path}/redrive.db"
    async with staged(store=file) as stage:
        topic = await stage.topic()
        told = await stage.told(topic)
        await stage.alarm(AlarmActions=[topic], TreatMissingData="ignore")
        with monkeypatch.context() as patch:
            patch.setitem(stage.facade("sns").operations, "Publish", _away)  # type: ignore[arg-type] - a dictionary
            await set_state(stage, "ALARM")
            (failed,) = await stage.history(type_="Action")
            assert failed["HistoryData"]["actionState"] == "Failed"
    async with staged(store=file) as stage:
        assert await stage.state() == "ALARM"
        await stage.advance(60)
        assert len(await stage.received(told)) == 1
        (done,) = await stage.history(type_="Action")
        assert done["HistoryData"]["actionState"] == "Succeeded"
        assert len(await stage.history(type_="StateUpdate")) == 1


async def _away(_: Call, __: Structure) -> Structure:
    raise StoreUnavailable("away")
