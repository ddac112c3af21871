"""Alarms, dashboards and filters once through the AWS CLI, unmodified, each call a process of its own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.services.clients import CommandFailedError, cli
from tests.services.server import Server

Aws = Callable[..., Any]
DASHBOARD = '{"widgets":[{"type":"text","properties":{"markdown":"hello"}}]}'
ALARM = (
    *(
        "--namespace",
        "AWS/SQS",
        "--metric-name",
        "NumberOfMessagesSent",
        "--statistic",
        "Sum",
        "--period",
        "60",
    ),
    *("--evaluation-periods", "1", "--threshold", "0", "--comparison-operator", "GreaterThanThreshold"),
    *("--dimensions", "Name=QueueName,Value=q", "--treat-missing-data", "notBreaching"),
)


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Make several calls at the same time; their answers in order."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(lambda call: call(), calls))


def test_the_cli_manages_alarms_and_dashboards(server_on_sqlite: Server, tmp_path: Path) -> None:
    aws: Aws = cli(server_on_sqlite, tmp_path, "cloudwatch")
    aws("put-metric-alarm", "--alarm-name", "a", *ALARM, "--tags", "Key=k,Value=v")
    arn = "arn:aws:cloudwatch:us-east-1:000000000000:alarm:a"
    together(
        lambda: aws("put-composite-alarm", "--alarm-name", "c", "--alarm-rule", "ALARM(a)"),
        lambda: aws("put-dashboard", "--dashboard-name", "d", "--dashboard-body", DASHBOARD),
        lambda: aws("disable-alarm-actions", "--alarm-names", "a"),
    )
    state = ("--alarm-name", "a", "--state-value", "ALARM", "--state-reason", "by hand")
    aws("set-alarm-state", *state)
    kinds = ("--alarm-types", "CompositeAlarm", "MetricAlarm")
    metric = ("--namespace", "AWS/SQS", "--metric-name", "NumberOfMessagesSent")
    alarms, of_metric, history, tags, dashboard, dashboards = together(
        lambda: aws("describe-alarms", *kinds),
        lambda: aws("describe-alarms-for-metric", *metric, "--dimensions", "Name=QueueName,Value=q"),
        lambda: aws("describe-alarm-history", "--alarm-name", "a"),
        lambda: aws("list-tags-for-resource", "--resource-arn", arn),
        lambda: aws("get-dashboard", "--dashboard-name", "d"),
        lambda: aws("list-dashboards"),
    )
    assert [alarm["StateValue"] for alarm in alarms["MetricAlarms"] + alarms["CompositeAlarms"]] == [
        "ALARM"
    ] * 2
    assert [alarm["AlarmArn"] for alarm in of_metric["MetricAlarms"]] == [arn]
    assert [item["HistoryItemType"] for item in history["AlarmHistoryItems"]] == [
        "StateUpdate",
        "ConfigurationUpdate",
        "ConfigurationUpdate",
    ]
    assert tags["Tags"] == [{"Key": "k", "Value": "v"}]
    assert orjson.loads(dashboard["DashboardBody"]) == orjson.loads(DASHBOARD)
    assert [entry["DashboardName"] for entry in dashboards["DashboardEntries"]] == ["d"]
    with pytest.raises(
        CommandFailedError, match="Redrive does not offer the operation cloudwatch PutAnomalyDetector"
    ):
        aws("put-anomaly-detector", *metric, "--stat", "Sum")
    together(
        lambda: aws("delete-alarms", "--alarm-names", "a", "c"),
        lambda: aws("delete-dashboards", "--dashboard-names", "d"),
    )


def test_the_cli_filters_and_queries_logs(server_on_sqlite: Server, tmp_path: Path) -> None:
    aws: Aws = cli(server_on_sqlite, tmp_path, "logs")
    group = ("--log-group-name", "g")
    aws("create-log-group", *group)
    transformation = "metricName=m,metricNamespace=test,metricValue=1"
    together(
        lambda: aws("create-log-stream", *group, "--log-stream-name", "s"),
        lambda: aws(
            "put-metric-filter",
            *group,
            *("--filter-name", "f", "--filter-pattern", "ERROR", "--metric-transformations", transformation),
        ),
    )
    now_ms = str(round(server_on_sqlite.now() * 1000))
    aws(
        "put-log-events",
        *group,
        "--log-stream-name",
        "s",
        "--log-events",
        f"timestamp={now_ms},message=ERROR",
    )
    times = ("--start-time", "0", "--end-time", str(round(server_on_sqlite.now())))
    query, filters = together(
        lambda: aws("start-query", *group, *times, "--query-string", "stats count(*) as n"),
        lambda: aws("describe-metric-filters", *group),
    )
    assert [each["filterName"] for each in filters["metricFilters"]] == ["f"]
    found = aws("get-query-results", "--query-id", query["queryId"])
    assert (found["status"], found["results"]) == ("Complete", [[{"field": "n", "value": "1"}]])
    aws("delete-log-group", *group)
