"""Functions as actions of alarms, on the server that has both."""

from uuid import UUID

import orjson

from tests.contracts.aws.lambda_.workshop import Workshop

_KEEPING = """
import json, os

def handler(event, context):
    with open(os.environ["FILE"], "a") as kept:
        kept.write(json.dumps(event) + "\\n")
"""


def test_an_alarm_invokes_a_function_that_lets_it(workshop: Workshop) -> None:
    file = workshop.server.log.parent / f"alarms-{workshop.server.now()}"
    name = workshop.function(_KEEPING, Environment={"Variables": {"FILE": str(file)}})
    alarm = f"arn:aws:cloudwatch:{workshop.region}:{workshop.account}:alarm:a"
    permission = {"FunctionName": name, "Action": "lambda:InvokeFunction"}
    principal = "lambda.alarms.cloudwatch.amazonaws.com"
    watch = workshop.of("cloudwatch")
    watch.put_metric_alarm(
        AlarmName="a",
        AlarmDescription="why",
        Namespace="test",
        MetricName="m",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[workshop.arn(name)],
    )
    for source, invoked in ((f"{alarm}x", 0), (alarm, 1)):
        workshop.client.add_permission(
            **permission, StatementId=f"s{invoked}", Principal=principal, SourceArn=source
        )
        for state in ("OK", "ALARM"):
            watch.set_alarm_state(AlarmName="a", StateValue=state, StateReason="by hand")
            workshop.server.advance(1)
        kept = file.read_text().splitlines() if file.exists() else []
        assert len(kept) == invoked
    event = orjson.loads(kept[0])
    assert (event["source"], event["alarmArn"], event["alarmData"]["alarmName"]) == (
        "aws.cloudwatch",
        alarm,
        "a",
    )
    assert [event["alarmData"][each]["value"] for each in ("previousState", "state")] == ["OK", "ALARM"]
    assert UUID(event["alarmData"]["configuration"]["metrics"][0]["id"])
    assert event["alarmData"]["configuration"]["metrics"][0]["metricStat"]["metric"] == {
        "namespace": "test",
        "name": "m",
        "dimensions": {},
    }
    found = watch.describe_alarm_history(AlarmName="a", HistoryItemType="Action")["AlarmHistoryItems"]
    data = [orjson.loads(item["HistoryData"]) for item in found]
    assert [each["actionState"] for each in data] == ["Succeeded", "Failed"]
    assert "is not authorized to perform: lambda:InvokeFunction" in data[1]["error"]
