"""Metric alarms: put, described, evaluated minute by minute, and their history."""

from typing import Any

import pytest

from redrive.aws.wire.errors import AwsError
from tests.aws.cloudwatch.stage import ACCOUNT, REGION, Stage, of_one_metric

ARN = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:a"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:t"


OF_ONE_METRIC = ("MetricName", "Namespace", "Statistic", "Period")


def metric(name: str = "m", stat: str = "Sum", period: int = 60) -> dict[str, Any]:
    return {"Metric": {"Namespace": "test", "MetricName": name}, "Period": period, "Stat": stat}


async def all_alarms(stage: Stage, **params: Any) -> list[dict[str, Any]]:
    found = await stage.watch("DescribeAlarms", **params)
    alarms: list[dict[str, Any]] = found["MetricAlarms"]
    return alarms


# ---- described -------------------------------------------------------------------------------------------------


async def test_an_alarm_is_described_as_it_was_put(stage: Stage) -> None:
    dimensions = [{"Name": "QueueName", "Value": "q"}]
    await stage.alarm(AlarmDescription="why", Dimensions=dimensions, DatapointsToAlarm=1, Unit="Count")
    assert await stage.described() == {
        **of_one_metric(),
        "ActionsEnabled": True,
        "AlarmActions": [],
        "AlarmArn": ARN,
        "AlarmConfigurationUpdatedTimestamp": stage.now,
        "AlarmDescription": "why",
        "AlarmName": "a",
        "DatapointsToAlarm": 1,
        "Dimensions": dimensions,
        "InsufficientDataActions": [],
        "OKActions": [],
        "StateReason": "Unchecked: Initial alarm creation",
        "StateTransitionedTimestamp": stage.now,
        "StateUpdatedTimestamp": stage.now,
        "StateValue": "INSUFFICIENT_DATA",
        "Unit": "Count",
    }


async def test_a_new_definition_replaces_the_old_and_keeps_the_state(stage: Stage) -> None:
    await stage.alarm(AlarmDescription="why", Tags=[{"Key": "k", "Value": "v"}])
    await stage.watch("SetAlarmState", AlarmName="a", StateValue="OK", StateReason="by hand")
    put_at = stage.now
    await stage.advance(1)
    await stage.alarm(Threshold=5.0)
    found = await stage.described()
    assert "AlarmDescription" not in found
    assert (found["Threshold"], found["StateValue"], found["StateReason"]) == (5.0, "OK", "by hand")
    assert found["AlarmConfigurationUpdatedTimestamp"] == put_at + 1000
    tags = await stage.watch("ListTagsForResource", ResourceARN=ARN)
    assert tags["Tags"] == [{"Key": "k", "Value": "v"}]


async def names(stage: Stage, **params: Any) -> list[str]:
    return [alarm["AlarmName"] for alarm in await all_alarms(stage, **params)]


async def test_alarms_are_picked_by_every_filter(stage: Stage) -> None:
    await stage.alarm("a/1", AlarmActions=[TOPIC])
    await stage.alarm("a/2")
    await stage.alarm("b")
    await stage.call("cloudwatch", "PutMetricAlarm", region="eu-west-1", AlarmName="a/3", **of_one_metric())
    await stage.watch("SetAlarmState", AlarmName="b", StateValue="ALARM", StateReason="by hand")
    assert await names(stage) == ["a/1", "a/2", "b"]
    assert await names(stage, AlarmNamePrefix="a/") == ["a/1", "a/2"]
    assert await names(stage, AlarmNames=["b", "x", "a/2", "b"]) == ["a/2", "b"]
    assert await names(stage, StateValue="ALARM") == ["b"]
    assert await names(stage, ActionPrefix="arn:aws:sns") == ["a/1"]
    assert await names(stage, AlarmTypes=["CompositeAlarm"]) == []
    with pytest.raises(AwsError, match="mutually exclusive"):
        await names(stage, AlarmNames=["b"], AlarmNamePrefix="a")


async def test_the_alarms_of_a_metric(stage: Stage) -> None:
    dimensions = [{"Name": "QueueName", "Value": "q"}]
    await stage.alarm("plain")
    await stage.alarm("with", Dimensions=dimensions)
    math = {"Metrics": [{"Id": "m1", "MetricStat": metric()}]}
    others = {name: value for name, value in of_one_metric().items() if name not in OF_ONE_METRIC}
    await stage.watch("PutMetricAlarm", AlarmName="math", **others, **math)

    async def found(**params: Any) -> list[str]:
        answer = await stage.watch("DescribeAlarmsForMetric", Namespace="test", MetricName="m", **params)
        return [alarm["AlarmName"] for alarm in answer["MetricAlarms"]]

    assert await found() == ["math", "plain"]
    assert await found(Dimensions=dimensions) == ["with"]
    assert await found(Statistic="Sum", Period=60) == ["plain"]
    assert await found(Statistic="Average") == []


async def test_deleted_alarms_are_gone_and_others_are_passed_over(stage: Stage) -> None:
    await stage.alarm("a")
    await stage.alarm("b")
    await stage.watch("DeleteAlarms", AlarmNames=["a", "x", "a"])
    assert await names(stage) == ["b"]
    assert (await stage.watch("ListTagsForResource", ResourceARN=ARN))["Tags"] == []
    assert [item["HistorySummary"] for item in await stage.history()] == [
        'Alarm "a" deleted',
        'Alarm "a" created',
    ]
    await stage.alarm("a")  # at the same moment
    assert await stage.state() == "INSUFFICIENT_DATA"


async def test_tags(stage: Stage) -> None:
    await stage.alarm()
    await stage.watch(
        "TagResource", ResourceARN=ARN, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    )
    await stage.watch("UntagResource", ResourceARN=ARN, TagKeys=["a", "x"])
    assert (await stage.watch("ListTagsForResource", ResourceARN=ARN))["Tags"] == [{"Key": "b", "Value": "2"}]
    with pytest.raises(AwsError, match="ResourceNotFoundException"):
        await stage.watch("TagResource", ResourceARN=f"{ARN}x", Tags=[{"Key": "a", "Value": "1"}])
    many = [{"Key": str(number), "Value": ""} for number in range(51)]
    with pytest.raises(AwsError, match="at most 50 tags"):
        await stage.watch("TagResource", ResourceARN=ARN, Tags=many)


# ---- evaluated -------------------------------------------------------------------------------------------------


async def test_an_alarm_goes_off_and_ends(stage: Stage) -> None:
    await stage.alarm()
    await stage.put(Value=1.0)
    await stage.advance(60)
    found = await stage.described()
    assert found["StateReason"] == (
        "Threshold Crossed: 1 datapoint [1.0 (01/01/26 00:00:00)] was greater than the threshold (0.0)."
    )
    assert (found["StateValue"], found["StateTransitionedTimestamp"]) == ("ALARM", stage.now)
    await stage.put(Value=0.0)
    await stage.advance(60)
    assert (await stage.described())["StateReason"] == (
        "Threshold Crossed: 1 datapoint [0.0 (01/01/26 00:01:00)] was not greater than the threshold (0.0)."
    )
    await stage.advance(240)
    assert (await stage.described())["StateReason"] == "Insufficient Data: 1 datapoint was unknown."


async def test_so_many_of_the_last_points_have_to_breach(stage: Stage) -> None:
    await stage.alarm(EvaluationPeriods=3, DatapointsToAlarm=2)
    states = []
    for value in (0.0, 1.0, 0.0, 1.0, 0.0, 0.0):
        await stage.put(Value=value)
        await stage.advance(60)
        states.append(await stage.state())
    assert states == ["OK", "OK", "OK", "ALARM", "OK", "OK"]
    (ended, *_) = [
        item for item in await stage.history(type_="StateUpdate") if "to OK" in item["HistorySummary"]
    ]
    assert ended["HistoryData"]["newState"]["stateReason"] == (
        "Threshold Crossed: 2 out of the last 3 datapoints [0.0 (01/01/26 00:04:00), 0.0 (01/01/26 00:02:00)] were"
        " not greater than the threshold (0.0) (minimum 2 datapoints for ALARM -> OK transition)."
    )


CROSSED: dict[str, float] = {
    "Average": 2.0,
    "Maximum": 3.0,
    "Minimum": 1.0,
    "SampleCount": 3.0,
    "Sum": 6.0,
    "p50": 2.0,
    "tm50": 1.33,
    "PR(2:)": 33.3,
}


async def test_alarms_on_every_statistic(stage: Stage) -> None:
    params = {**of_one_metric(), "ComparisonOperator": "GreaterThanOrEqualToThreshold"}
    for name in ("Statistic", "Threshold"):
        params.pop(name)
    for statistic, crossed in CROSSED.items():
        chosen = {"Statistic" if statistic in list(CROSSED)[:5] else "ExtendedStatistic": statistic}
        for name, threshold in (("below", crossed), ("above", crossed + 0.1)):
            named = f"{statistic} {name}"
            await stage.watch("PutMetricAlarm", AlarmName=named, Threshold=threshold, **chosen, **params)
    await stage.put(Values=[1.0, 2.0, 3.0])
    await stage.advance(60)
    found = {alarm["AlarmName"]: alarm["StateValue"] for alarm in await all_alarms(stage)}
    assert found == {
        f"{statistic} {name}": state
        for statistic in CROSSED
        for name, state in (("below", "ALARM"), ("above", "OK"))
    }


async def test_a_percentile_of_few_samples_may_be_passed_over(stage: Stage) -> None:
    params = {**of_one_metric(), "ExtendedStatistic": "p90", "EvaluateLowSampleCountPercentile": "ignore"}
    params.pop("Statistic")
    await stage.watch("PutMetricAlarm", AlarmName="a", **params)
    await stage.put(Values=[1.0, 2.0], Counts=[50, 49])
    await stage.advance(60)
    assert await stage.state() == "INSUFFICIENT_DATA"
    await stage.put(Values=[1.0, 2.0], Counts=[50, 50])
    await stage.advance(60)
    assert await stage.state() == "ALARM"


async def test_points_of_other_units_do_not_count(stage: Stage) -> None:
    await stage.alarm("bytes", Unit="Bytes")
    await stage.alarm("any")
    await stage.put(Value=1.0, Unit="Seconds")
    await stage.advance(60)
    assert (await stage.state("bytes"), await stage.state("any")) == ("INSUFFICIENT_DATA", "ALARM")


@pytest.mark.parametrize(
    ("missing", "state"),
    [(None, "INSUFFICIENT_DATA"), ("ignore", "ALARM"), ("breaching", "ALARM"), ("notBreaching", "OK")],
)
async def test_a_metric_that_stops(stage: Stage, missing: str | None, state: str) -> None:
    await stage.alarm(**({} if missing is None else {"TreatMissingData": missing}))
    await stage.put(Value=1.0)
    await stage.advance(180)
    assert await stage.state() == "ALARM"  # two periods more than the alarm has are looked at
    await stage.advance(60)
    assert await stage.state() == state


async def test_an_alarm_on_ten_seconds_is_evaluated_every_ten_seconds(stage: Stage) -> None:
    await stage.alarm(Period=10)
    await stage.put(Value=1.0, StorageResolution=1)
    await stage.advance(10)
    assert await stage.state() == "ALARM"


async def test_an_alarm_on_an_expression(stage: Stage) -> None:
    params = {name: value for name, value in of_one_metric().items() if name not in OF_ONE_METRIC}
    queries = [
        {"Id": "errors", "MetricStat": metric("errors"), "ReturnData": False},
        {"Id": "calls", "MetricStat": metric("calls"), "ReturnData": False},
        {"Id": "e1", "Expression": "100 * errors / MAX([errors, calls])", "Label": "rate"},
    ]
    await stage.watch("PutMetricAlarm", AlarmName="a", **params | {"Threshold": 50.0, "Metrics": queries})
    assert (await stage.described())["Metrics"] == queries
    await stage.put("calls", Value=4.0)
    await stage.put("errors", Value=3.0)
    await stage.advance(60)
    found = await stage.described()
    assert found["StateReason"] == (
        "Threshold Crossed: 1 datapoint [75.0 (01/01/26 00:00:00)] was greater than the threshold (50.0)."
    )
    await stage.put("calls", Value=4.0)
    await stage.advance(60)
    assert await stage.state() == "ALARM"  # a point that one operand lacks is lacking in the result


async def test_expressions_are_answered_as_metrics_are(stage: Stage) -> None:
    await stage.put("errors", Value=3.0)
    await stage.put("calls", Value=4.0)
    await stage.put("calls", Value=2.0, ago=60)
    queries = [
        {"Id": "errors", "MetricStat": metric("errors"), "ReturnData": False},
        {"Id": "calls", "MetricStat": metric("calls")},
        {"Id": "rate", "Expression": "100 * FILL(errors, 0) / calls", "Label": "percent"},
        {"Id": "twice", "Expression": "2 * rate"},
    ]
    times = {"StartTime": stage.now - 60_000, "EndTime": stage.now + 60_000}
    found = await stage.watch("GetMetricData", MetricDataQueries=queries, **times)
    assert [(row["Id"], row["Label"], row["Values"]) for row in found["MetricDataResults"]] == [
        ("calls", "calls", [4.0, 2.0]),
        ("rate", "percent", [75.0, 0.0]),
        ("twice", "twice", [150.0, 0.0]),
    ]
    for wrong, text in (
        ({"Id": "e", "Expression": "SUM(calls)"}, "not one time series"),
        ({"Id": "e", "Expression": "x + calls"}, "x is not known"),
        ({"Id": "e", "Expression": "calls +"}, "Error in expression 'e'"),
        ({"Id": "e", "MetricStat": metric("calls", period=300)}, "all of one period"),
    ):
        with pytest.raises(AwsError, match=text):
            await stage.watch("GetMetricData", MetricDataQueries=[*queries, wrong], **times)


# ---- by hand ---------------------------------------------------------------------------------------------------


async def test_a_state_that_was_set_lasts_until_the_next_evaluation(stage: Stage) -> None:
    await stage.alarm(TreatMissingData="notBreaching")
    await stage.advance(60)
    data = '{"by":"hand"}'
    await stage.watch(
        "SetAlarmState", AlarmName="a", StateValue="ALARM", StateReason="try", StateReasonData=data
    )
    found = await stage.described()
    assert (found["StateValue"], found["StateReason"], found["StateReasonData"]) == ("ALARM", "try", data)
    await stage.advance(60)
    assert await stage.state() == "OK"


async def test_no_state_is_set_of_what_is_not_there(stage: Stage) -> None:
    with pytest.raises(AwsError) as refused:
        await stage.watch("SetAlarmState", AlarmName="x", StateValue="OK", StateReason="")
    assert (refused.value.code, refused.value.status, refused.value.message) == ("ResourceNotFound", 404, "")
    await stage.alarm()
    with pytest.raises(AwsError, match="InvalidFormat"):
        await stage.watch(
            "SetAlarmState", AlarmName="a", StateValue="OK", StateReason="", StateReasonData="{"
        )


# ---- history ---------------------------------------------------------------------------------------------------


async def test_history_tells_of_definitions_and_states(stage: Stage) -> None:
    await stage.alarm()
    await stage.advance(1)
    await stage.watch("SetAlarmState", AlarmName="a", StateValue="OK", StateReason="by hand")
    await stage.watch("SetAlarmState", AlarmName="a", StateValue="ALARM", StateReason="again")
    await stage.alarm(Threshold=1.0)
    found = await stage.history()
    assert [(item["HistoryItemType"], item["HistorySummary"]) for item in found] == [
        ("ConfigurationUpdate", 'Alarm "a" updated'),
        ("StateUpdate", "Alarm updated from OK to ALARM"),
        ("StateUpdate", "Alarm updated from INSUFFICIENT_DATA to OK"),
        ("ConfigurationUpdate", 'Alarm "a" created'),
    ]
    assert found[1]["HistoryData"] == {
        "version": "1.0",
        "oldState": {"stateValue": "OK", "stateReason": "by hand"},
        "newState": {"stateValue": "ALARM", "stateReason": "again"},
    }
    earliest = await stage.history(ScanBy="TimestampAscending")
    assert earliest == found[::-1]
    assert len(await stage.history(type_="StateUpdate")) == 2
    assert len(await stage.history(StartDate=stage.now)) == 3
    assert len(await stage.history(EndDate=stage.now - 1)) == 1


async def test_history_comes_page_by_page_and_of_all_alarms(stage: Stage) -> None:
    for name in ("a", "b", "a/b"):
        await stage.alarm(name)
        await stage.advance(1)
    found, params = [], {"MaxRecords": 2}
    while True:
        page = await stage.watch("DescribeAlarmHistory", **params)
        found += [item["AlarmName"] for item in page["AlarmHistoryItems"]]
        if "NextToken" not in page:
            break
        params["NextToken"] = page["NextToken"]
    assert found == ["a/b", "b", "a"]


async def test_history_is_kept_for_thirty_days(stage: Stage) -> None:
    await stage.alarm()
    await stage.watch("DeleteAlarms", AlarmNames=["a"])
    hour, day = 60 * 60, 24 * 60 * 60
    for passed, left in ((30 * day, 2), (2 * day, 0)):
        await stage.advance(passed - hour)  # while there is no alarm, no minute is computed
        await stage.alarm("b")
        await stage.advance(hour)
        await stage.watch("DeleteAlarms", AlarmNames=["b"])
        assert len(await stage.history(type_="ConfigurationUpdate")) == left
