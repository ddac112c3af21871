"""Metric filters: events become points of metrics, whoever wrote them."""

from typing import Any

import orjson
import pytest

from redrive.aws.wire.errors import AwsError
from tests.aws.cloudwatch.stage import ACCOUNT, REGION, Stage


async def put_filter(
    stage: Stage, pattern: str, group: str = "g", name: str = "f", **transformation: Any
) -> None:
    wanted = {"metricName": "m", "metricNamespace": "test", "metricValue": "1", **transformation}
    await stage.call(
        "logs",
        "PutMetricFilter",
        logGroupName=group,
        filterName=name,
        filterPattern=pattern,
        metricTransformations=[wanted],
    )


async def log(stage: Stage, *messages: str) -> None:
    events = [{"timestamp": stage.now, "message": message} for message in messages]
    await stage.call("logs", "PutLogEvents", logGroupName="g", logStreamName="s", logEvents=events)


async def statistics(stage: Stage, *names: str, **dimensions: str) -> list[dict[str, Any]]:
    found = await stage.watch(
        "GetMetricStatistics",
        Namespace="test",
        MetricName="m",
        Dimensions=[{"Name": name, "Value": value} for name, value in dimensions.items()],
        StartTime=stage.now - 300_000,
        EndTime=stage.now + 300_000,
        Period=60,
        Statistics=list(names) or ["Sum"],
    )
    return [{name: point[name] for name in (*(names or ["Sum"]), "Unit")} for point in found["Datapoints"]]


async def test_matching_events_are_counted(stage: Stage) -> None:
    await put_filter(stage, "ERROR")
    await log(stage, "ERROR one", "fine", "ERROR two")
    assert await statistics(stage) == [{"Sum": 2.0, "Unit": "None"}]


async def test_values_and_dimensions_come_from_the_event(stage: Stage) -> None:
    size = {"metricValue": "$.size", "unit": "Bytes", "dimensions": {"kind": "$.kind"}}
    await put_filter(stage, "{ $.size > 0 }", **size)
    events = [{"size": 2, "kind": "a"}, {"size": 5, "kind": "a"}, {"size": 7, "kind": "b"}, {"size": 9}]
    await log(stage, *(orjson.dumps(event).decode() for event in events))
    assert await statistics(stage, "Sum", "Maximum", kind="a") == [
        {"Sum": 7.0, "Maximum": 5.0, "Unit": "Bytes"}
    ]
    assert await statistics(stage, kind="b") == [{"Sum": 7.0, "Unit": "Bytes"}]
    assert await statistics(stage) == []


async def test_columns_have_names(stage: Stage) -> None:
    await put_filter(stage, "[ip, ..., status=5*, size]", metricValue="$size")
    await log(stage, '10.0.0.1 - - "GET / HTTP" 503 12', '10.0.0.1 - - "GET / HTTP" 200 99', "503 1")
    assert await statistics(stage) == [{"Sum": 12.0, "Unit": "None"}]


async def test_other_events_have_the_default_value(stage: Stage) -> None:
    await put_filter(stage, "ERROR", defaultValue=0.0)
    await log(stage, "fine", "fine as well")
    assert await statistics(stage, "Sum") == [{"Sum": 0.0, "Unit": "None"}]
    await log(stage, "ERROR")
    assert await statistics(stage, "Sum") == [{"Sum": 1.0, "Unit": "None"}]


async def test_delivery_status_of_a_topic_feeds_an_alarm(stage: Stage) -> None:
    topic = await stage.topic("orders")
    for name, value in (("SQSFailureFeedbackRoleArn", f"arn:aws:iam::{ACCOUNT}:role/logs"),):
        await stage.call(
            "sns", "SetTopicAttributes", TopicArn=topic, AttributeName=name, AttributeValue=value
        )
    absent = f"arn:aws:sqs:{REGION}:{ACCOUNT}:absent"
    await stage.call("sns", "Subscribe", TopicArn=topic, Protocol="sqs", Endpoint=absent)
    group = f"sns/{REGION}/{ACCOUNT}/orders/Failure"
    await stage.call("logs", "CreateLogGroup", logGroupName=group)
    await put_filter(stage, '{ $.status = "FAILURE" && $.delivery.statusCode = 400 }', group)
    await stage.alarm()
    await stage.call("sns", "Publish", TopicArn=topic, Message="order 1")
    await stage.advance(60)
    assert await stage.state() == "ALARM"
    described = await stage.call("logs", "DescribeLogGroups", logGroupNamePrefix="sns/")
    assert [each["metricFilterCount"] for each in described["logGroups"]] == [1]


async def test_filters_are_described_and_deleted(stage: Stage) -> None:
    for name in ("b", "a1", "a2"):
        await put_filter(stage, "ERROR", name=name)
    found = await stage.call("logs", "DescribeMetricFilters", logGroupName="g", filterNamePrefix="a")
    assert found["metricFilters"][0] == {
        "filterName": "a1",
        "filterPattern": "ERROR",
        "metricTransformations": [{"metricName": "m", "metricNamespace": "test", "metricValue": "1"}],
        "creationTime": stage.now,
        "logGroupName": "g",
        "applyOnTransformedLogs": False,
    }
    assert [each["filterName"] for each in found["metricFilters"]] == ["a1", "a2"]
    by_metric = await stage.call("logs", "DescribeMetricFilters", metricName="m", metricNamespace="test")
    assert len(by_metric["metricFilters"]) == 3
    for name in ("a1", "a2"):
        await stage.call("logs", "DeleteMetricFilter", logGroupName="g", filterName=name)
    with pytest.raises(AwsError, match="does not exist"):
        await stage.call("logs", "DeleteMetricFilter", logGroupName="g", filterName="a1")
    await stage.call("logs", "DeleteLogGroup", logGroupName="g")
    assert (await stage.call("logs", "DescribeMetricFilters"))["metricFilters"] == []


@pytest.mark.parametrize(
    ("pattern", "transformation", "text"),
    [
        ("{ $.a", {}, "Invalid filter pattern"),
        ("[..., ...]", {}, "Invalid filter pattern"),
        ("ERROR", {"metricValue": "many"}, "neither a number nor a field"),
        ("ERROR", {"metricNamespace": "AWS/SQS"}, "must not begin with AWS/"),
        ("ERROR", {"dimensions": {"a": "$.a"}, "defaultValue": 0.0}, "mutually exclusive"),
        ("ERROR", {"dimensions": {str(number): "$.a" for number in range(4)}}, "at most 3 dimensions"),
    ],
)
async def test_impossible_filters_are_refused(
    stage: Stage, pattern: str, transformation: dict[str, Any], text: str
) -> None:
    with pytest.raises(AwsError, match=text):
        await put_filter(stage, pattern, **transformation)


async def test_a_pattern_is_tried_on_messages(stage: Stage) -> None:
    json = ['{"eventType":"Update","n":2}', '{"eventType":"Read"}', "text"]
    found = await stage.call(
        "logs",
        "TestMetricFilter",
        filterPattern='{ $.eventType = "Upd*" && $.n IS NULL || $.n > 1 }',
        logEventMessages=json,
    )
    assert found["matches"] == [
        {"eventNumber": 1, "eventMessage": json[0], "extractedValues": {"$.eventType": "Update", "$.n": "2"}}
    ]
    lines = ["127.0.0.1 [10/Oct] 404", "127.0.0.1 200"]
    found = await stage.call(
        "logs",
        "TestMetricFilter",
        filterPattern="[ip, at, status = 4* || status = 5*]",
        logEventMessages=lines,
    )
    assert found["matches"] == [
        {
            "eventNumber": 1,
            "eventMessage": lines[0],
            "extractedValues": {"$ip": "127.0.0.1", "$at": "10/Oct", "$status": "404"},
        }
    ]
