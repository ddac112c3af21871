"""Alarms and filters on each store, over each protocol, through boto3."""

from datetime import timedelta

import pytest

from tests.contracts.aws.clients import WireProtocol, client
from tests.contracts.aws.cloudwatch.client import Watch
from tests.services.server import Server


@pytest.mark.parametrize("protocol", ["json", "query", "smithy-rpc-v2-cbor"])
def test_an_alarm_goes_off_and_its_parent_follows(server: Server, protocol: WireProtocol) -> None:
    watch = Watch(server, protocol)
    child, composite = f"child-{protocol}", f"composite-{protocol}"  # histories outlive their alarms
    metric = {"Namespace": "test", "MetricName": "m", "Dimensions": [{"Name": "d", "Value": "v"}]}
    watch.client.put_metric_alarm(
        AlarmName=child,
        **metric,
        ExtendedStatistic="p90",
        Period=60,
        EvaluationPeriods=2,
        DatapointsToAlarm=1,
        Threshold=1.5,
        ComparisonOperator="GreaterThanThreshold",
    )
    watch.client.put_composite_alarm(AlarmName=composite, AlarmRule=f'ALARM("{child}")')
    watch.put("m", Values=[1.0, 2.0], Dimensions=metric["Dimensions"], Timestamp=watch.now())
    began = watch.now()
    server.advance(60)
    found = watch.client.describe_alarms(AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    (alarm,), (parent,) = found["MetricAlarms"], found["CompositeAlarms"]
    assert (alarm["StateValue"], parent["StateValue"]) == ("ALARM", "ALARM")
    assert (alarm["Threshold"], alarm["Dimensions"]) == (1.5, metric["Dimensions"])
    assert began < alarm["StateTransitionedTimestamp"] <= began + timedelta(seconds=60)
    assert alarm["StateReason"].startswith("Threshold Crossed: 1 out of the last 2 datapoints [2.0 (")
    history = watch.client.describe_alarm_history(AlarmName=child, HistoryItemType="StateUpdate")
    assert [item["HistorySummary"] for item in history["AlarmHistoryItems"]] == [
        "Alarm updated from INSUFFICIENT_DATA to ALARM"
    ]


def test_events_become_points_on_each_store(server: Server) -> None:
    logs, watch = client(server.url, "logs", "json"), Watch(server)
    logs.create_log_group(logGroupName="g")
    logs.create_log_stream(logGroupName="g", logStreamName="s")
    logs.put_metric_filter(
        logGroupName="g",
        filterName="f",
        filterPattern="{ $.size > 1 }",
        metricTransformations=[{"metricName": "m", "metricNamespace": "test", "metricValue": "$.size"}],
    )
    now_ms = round(server.now() * 1000)
    events = [{"timestamp": now_ms, "message": f'{{"size":{size}}}'} for size in (1, 2, 3)]
    logs.put_log_events(logGroupName="g", logStreamName="s", logEvents=events)
    assert watch.statistics("m", "Sum", "Maximum") == [{"Sum": 5.0, "Maximum": 3.0, "Unit": "None"}]
    times = {"startTime": now_ms // 1000 - 1, "endTime": now_ms // 1000 + 1}
    query = logs.start_query(logGroupName="g", queryString="stats sum(size) as total", **times)
    found = logs.get_query_results(queryId=query["queryId"])
    assert found["results"] == [[{"field": "total", "value": "6"}]]
