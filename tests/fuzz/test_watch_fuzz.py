"""Requests to CloudWatch and Logs that were right once: each is answered below 500, and a refusal changes nothing."""

import asyncio
import json
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from redrive.model.http import Request
from tests.fuzz.spoiling import HALF, plain, spoilt
from tests.fuzz.watch_world import (
    CLIENTS,
    NOW_MS,
    POLICY,
    QUERY,
    TOPIC,
    WatchWorld,
    metric_filter,
    of_one_metric,
    query,
    subscription_filter,
)
from tests.fuzz.watched import Worlds

_ALARM: Final = {"AlarmName": "a"}
_ALARM_ARN: Final = {"ResourceARN": "arn:aws:cloudwatch:us-east-1:000000000000:alarm:a"}
_GROUP: Final = {"logGroupName": "g"}
_GROUP_ARN: Final = {"resourceArn": "arn:aws:logs:us-east-1:000000000000:log-group:g"}
_STREAM: Final = {"logGroupName": "g", "logStreamName": "s"}
_METRIC: Final = {"Namespace": "n", "MetricName": "m", "Dimensions": [{"Name": "d", "Value": "v"}]}
_STAT: Final = {"Metric": _METRIC, "Period": 60, "Stat": "p90"}
_SECONDS: Final = NOW_MS // 1000
_SPAN: Final = {"StartTime": _SECONDS - 600, "EndTime": _SECONDS}
_COMMON: Final = ("EvaluationPeriods", "Threshold", "ComparisonOperator")
_MATH: Final = [
    {"Id": "m1", "MetricStat": _STAT, "ReturnData": False},
    {"Id": "e1", "Expression": "100 * FILL(m1, 0) / SUM([m1, -m1 ^ 2]) > 1 AND m1", "Label": "l"},
]
_INSIGHTS: Final = (
    'parse @message "a*b" as x | filter status like "FAIL" and size in [1, 2] and not isblank(x) or -size < 3'
    " | stats count(*) as n, pct(size, 90) by bin(5m), status | sort n desc | limit 5"
)
_DASHBOARD: Final = '{"widgets":[{"type":"text","x":1,"width":3,"properties":{"markdown":"m"}}]}'
#: Every operation, with parameters that are accepted in the world as it is.
RIGHT: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("cloudwatch", "DeleteAlarms", {"AlarmNames": ["a", "c", "x"]}),
    ("cloudwatch", "DeleteDashboards", {"DashboardNames": ["d"]}),
    ("cloudwatch", "DescribeAlarmHistory", {**_ALARM, "ScanBy": "TimestampAscending", "MaxRecords": 1}),
    ("cloudwatch", "DescribeAlarms", {"AlarmNamePrefix": "a", "StateValue": "OK", "ActionPrefix": "arn"}),
    ("cloudwatch", "DescribeAlarms", {"ParentsOfAlarmName": "a", "MaxRecords": 1}),
    ("cloudwatch", "DescribeAlarmsForMetric", {**_METRIC, "Statistic": "Sum", "Period": 60}),
    ("cloudwatch", "DisableAlarmActions", {"AlarmNames": ["a"]}),
    ("cloudwatch", "EnableAlarmActions", {"AlarmNames": ["a"]}),
    ("cloudwatch", "GetDashboard", {"DashboardName": "d"}),
    ("cloudwatch", "GetMetricData", {"MetricDataQueries": [{"Id": "m", "MetricStat": _STAT}], **_SPAN}),
    ("cloudwatch", "GetMetricStatistics", {**_METRIC, **_SPAN, "Period": 60, "ExtendedStatistics": ["TM(1%:90%)"]}),
    ("cloudwatch", "ListDashboards", {"DashboardNamePrefix": "d"}),
    ("cloudwatch", "ListMetrics", {**_METRIC, "RecentlyActive": "PT3H"}),
    ("cloudwatch", "ListTagsForResource", _ALARM_ARN),
    ("cloudwatch", "PutCompositeAlarm", {
        "AlarmName": "c", "AlarmRule": 'ALARM("a") AND (NOT OK(a) OR TRUE)', "AlarmActions": [TOPIC],
        "ActionsSuppressor": "a", "ActionsSuppressorWaitPeriod": 1, "ActionsSuppressorExtensionPeriod": 60,
    }),
    ("cloudwatch", "PutDashboard", {"DashboardName": "e", "DashboardBody": _DASHBOARD}),
    ("cloudwatch", "PutMetricAlarm", {
        **_ALARM, **of_one_metric(), **_METRIC, "OKActions": [TOPIC], "Unit": "Bytes", "DatapointsToAlarm": 1,
        "TreatMissingData": "breaching", "Tags": [{"Key": "k", "Value": "v"}], "AlarmDescription": "d",
    }),
    ("cloudwatch", "PutMetricAlarm", {
        "AlarmName": "b", "Metrics": _MATH, **{name: of_one_metric()[name] for name in _COMMON},
    }),
    ("cloudwatch", "PutMetricData", {"Namespace": "n", "MetricData": [{"MetricName": "m", "Values": [1.0, 2.5]}]}),
    ("cloudwatch", "SetAlarmState", {
        **_ALARM, "StateValue": "ALARM", "StateReason": "r", "StateReasonData": '{"a":1}',
    }),
    ("cloudwatch", "TagResource", {**_ALARM_ARN, "Tags": [{"Key": "k", "Value": "v"}]}),
    ("cloudwatch", "UntagResource", {**_ALARM_ARN, "TagKeys": ["k"]}),
    ("logs", "CreateLogGroup", {"logGroupName": "h", "tags": {"a": "b"}}),
    ("logs", "CreateLogStream", {"logGroupName": "g", "logStreamName": "t"}),
    ("logs", "DeleteLogGroup", _GROUP),
    ("logs", "DeleteLogStream", _STREAM),
    ("logs", "DeleteMetricFilter", {**_GROUP, "filterName": "f"}),
    ("logs", "DeleteResourcePolicy", {"policyName": "p"}),
    ("logs", "DeleteRetentionPolicy", _GROUP),
    ("logs", "DeleteSubscriptionFilter", {**_GROUP, "filterName": "f"}),
    ("logs", "DescribeDestinations", {"DestinationNamePrefix": "d", "limit": 1}),
    ("logs", "DescribeLogGroups", {"logGroupNamePrefix": "g", "limit": 1}),
    ("logs", "DescribeLogStreams", {**_GROUP, "orderBy": "LastEventTime", "descending": True}),
    ("logs", "DescribeMetricFilters", {**_GROUP, "filterNamePrefix": "f", "limit": 1}),
    ("logs", "DescribeQueries", {**_GROUP, "status": "Complete", "maxResults": 1}),
    ("logs", "DescribeResourcePolicies", {"limit": 1}),
    ("logs", "DescribeSubscriptionFilters", {**_GROUP, "filterNamePrefix": "f", "limit": 1}),
    ("logs", "FilterLogEvents", {**_GROUP, "filterPattern": "[a, ..., b = 4* || b > 3]", "limit": 5}),
    ("logs", "GetLogEvents", {**_STREAM, "startFromHead": True, "limit": 1}),
    ("logs", "GetQueryResults", {"queryId": QUERY}),
    ("logs", "ListLogGroups", {"logGroupNamePattern": "^log|group", "logGroupClass": "STANDARD", "limit": 1}),
    ("logs", "ListTagsForResource", _GROUP_ARN),
    ("logs", "ListTagsLogGroup", _GROUP),
    ("logs", "PutLogEvents", {**_STREAM, "logEvents": [{"timestamp": NOW_MS, "message": '{"status":"FAILED"}'}]}),
    ("logs", "PutMetricFilter", metric_filter("g")),
    ("logs", "PutResourcePolicy", {"policyName": "q", "policyDocument": POLICY}),
    ("logs", "PutRetentionPolicy", {**_GROUP, "retentionInDays": 3}),
    ("logs", "PutSubscriptionFilter", subscription_filter("g")),
    ("logs", "StartLiveTail", {
        "logGroupIdentifiers": [_GROUP_ARN["resourceArn"]], "logStreamNamePrefixes": ["s"],
        "logEventFilterPattern": "{ $.a = 1 }",
    }),
    ("logs", "StartQuery", query(_INSIGHTS)),
    ("logs", "TagLogGroup", {**_GROUP, "tags": {"a": "b"}}),
    ("logs", "TagResource", {**_GROUP_ARN, "tags": {"a": "b"}}),
    ("logs", "TestMetricFilter", {
        "filterPattern": '{ $.a.b[0] != "x*" && $.c IS NULL }', "logEventMessages": ["{}", '{"a":{"b":["y"]}}'],
    }),
    ("logs", "UntagLogGroup", {**_GROUP, "tags": ["a"]}),
    ("logs", "UntagResource", {**_GROUP_ARN, "tagKeys": ["a"]}),
]  # fmt: skip
_NEVER_RIGHT: Final = {("logs", "StopQuery")}  # no query is ever running
_TEXTS: Final = (
    "Expression",
    "AlarmRule",
    "filterPattern",
    "logEventFilterPattern",
    "queryString",
    "DashboardBody",
    "Stat",
)


@dataclass(frozen=True, slots=True)
class Sent:
    """One request, with a stand-in for what only the server knows."""

    service: str
    operation: str
    body: bytes

    def request(self, known: dict[str, str]) -> Request:
        """The request, with what the server made in the place of the stand-in."""
        client, body = CLIENTS[self.service], self.body
        for name, value in known.items():
            body = body.replace(name.encode(), value.encode())
        made = client.request(self.operation, {})
        return Request("POST", "/", "", dict(made.headers), body)


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    """A request of any operation: the little languages in it spoilt, then its values."""
    service, operation, right = draw(st.sampled_from(RIGHT))
    document = plain(deepcopy(right))
    _spoil_texts(draw, document)
    for _ in range(draw(st.integers(0, 2))):
        document = spoilt(draw, document)
    return Sent(service, operation, json.dumps(document).encode(errors="surrogatepass"))


def _spoil_texts(draw: st.DrawFn, value: Any) -> None:
    """Cut, double or exchange characters of the texts that are languages of their own."""
    if isinstance(value, list):
        for item in value:
            _spoil_texts(draw, item)
    if not isinstance(value, dict):
        return
    for name, text in value.items():
        if name in _TEXTS and isinstance(text, str) and draw(st.booleans()):
            at = draw(st.integers(0, len(text)))
            value[name] = (
                text[:at]
                + draw(st.sampled_from(["", "(", ")", "|", '"', "-", text, "[", ","]))
                + text[at + 1 :]
            )
        else:
            _spoil_texts(draw, text)


async def tell(all_sent: list[Sent]) -> None:
    """Ask one after the other, of a world of their own, and evaluate what became of its alarms."""
    world = WatchWorld()
    await world.open()
    try:
        for sent in all_sent:
            before = world.everything()
            response = await world.answer(sent.request(world.known))
            assert response.status < 500, (sent, response.body)
            assert not world.complaints.heard, (sent, world.complaints.heard)
            if response.body:
                json.loads(response.body)
            if response.status >= 400:
                assert world.everything() == before, (sent, response.body)
        await world.evaluate()
        for listing in ("DescribeAlarms", "DescribeAlarmHistory", "ListDashboards"):
            await world.call("cloudwatch", listing)
        for listing in ("DescribeLogGroups", "DescribeMetricFilters", "DescribeQueries"):
            await world.call("logs", listing)
        assert not world.complaints.heard, (all_sent, world.complaints.heard)
    finally:
        await world.close()


@HALF
@given(st.lists(requests(), min_size=1, max_size=8))
def test_a_refusal_changes_nothing_and_nothing_fails(all_sent: list[Sent]) -> None:
    asyncio.run(tell(all_sent))


def test_every_operation_is_asked() -> None:
    world = WatchWorld()
    offered = {
        (service, operation) for service, facade in world.facades.items() for operation in facade.operations
    }
    assert {(service, operation) for service, operation, _ in RIGHT} == offered - _NEVER_RIGHT


def test_the_unmodified_requests_are_accepted() -> None:
    """The oddities begin with requests that are accepted; otherwise they would all end at the first check."""

    async def ask_all() -> dict[str, bytes]:
        refused, worlds = {}, Worlds(WatchWorld)
        for service, operation, params in RIGHT:
            world = await worlds.next()
            body = json.dumps(plain(deepcopy(params))).encode()
            response = await world.answer(Sent(service, operation, body).request(world.known))
            if response.status != 200:
                refused[operation] = response.body
        await worlds.close()
        return refused

    assert asyncio.run(ask_all()) == {}
