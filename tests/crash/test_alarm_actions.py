"""An alarm's notification, through kill -9 between the transition and the notification."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.contracts.aws.clients import client
from tests.contracts.aws.sns.client import Sns
from tests.services.server import Server, new_server

ALARM = {
    "AlarmName": "a",
    "Namespace": "test",
    "MetricName": "m",
    "Statistic": "Sum",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 0,
    "ComparisonOperator": "GreaterThanThreshold",
}
#: Actions stand in the backlog with no address of their own; a fault there keeps them from being carried out.
FAULT = {"endpoint": "", "status": 503}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = new_server(
        f"sqlite:///{tmp_path}/redrive.db", "--clock", "simulated", "--allow-reset", directory=tmp_path
    )
    made.start()
    yield made
    made.kill()


def test_a_notification_that_is_owed_survives_a_crash(server: Server) -> None:
    sns = Sns(server)
    topic, told = sns.topic(), sns.sqs.queue()
    topic.subscribe("sqs", told.arn, RawMessageDelivery="true")
    watch = client(server.url, "cloudwatch", "json")
    watch.put_metric_alarm(**ALARM, AlarmActions=[topic.arn])
    assert server.ask("POST", "/_redrive/faults", orjson.dumps(FAULT))[0] == 200
    watch.set_alarm_state(AlarmName="a", StateValue="ALARM", StateReason="by hand")
    server.advance(1)
    assert told.bodies() == []

    server.kill()
    server.start()
    server.advance(600)

    watch = client(server.url, "cloudwatch", "json")
    (message,) = told.bodies()
    assert orjson.loads(message)["NewStateReason"] == "by hand"
    moves = watch.describe_alarm_history(AlarmName="a", HistoryItemType="StateUpdate")["AlarmHistoryItems"]
    assert "Alarm updated from INSUFFICIENT_DATA to ALARM" in [item["HistorySummary"] for item in moves]
    (action,) = watch.describe_alarm_history(AlarmName="a", HistoryItemType="Action")["AlarmHistoryItems"]
    assert action["HistorySummary"] == f"Successfully executed action {topic.arn}"
