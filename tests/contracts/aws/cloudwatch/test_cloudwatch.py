"""CloudWatch's metrics, held to recorded answers and refusals, over each of its three protocols."""

from datetime import timedelta
from typing import Any

import pytest

from tests.contracts.aws.clients import WireProtocol
from tests.contracts.aws.cloudwatch.client import Watch, pairs, query
from tests.contracts.aws.sqs.client import refused
from tests.services.server import Server

ALL = ("SampleCount", "Average", "Sum", "Minimum", "Maximum")


@pytest.fixture
def watch(server: Server) -> Watch:
    return Watch(server)


@pytest.fixture(params=["json", "query", "smithy-rpc-v2-cbor"])
def any_watch(server: Server, request: pytest.FixtureRequest) -> Watch:
    protocol: WireProtocol = request.param
    return Watch(server, protocol)


# ---- put and get -----------------------------------------------------------------------------------------------


def test_values_and_counts(any_watch: Watch) -> None:
    any_watch.put("m", Values=[1.0, 10.0], Counts=[2, 4], Unit="Count", Timestamp=any_watch.now())
    assert any_watch.statistics("m", "SampleCount", "Sum", "Maximum") == [
        {"SampleCount": 6.0, "Sum": 42.0, "Maximum": 10.0, "Unit": "Count"}
    ]
    (row,) = any_watch.rows(query("m", "Average"))
    assert (row["Label"], row["Values"], row["StatusCode"]) == ("m", [7.0], "Complete")
    assert row["Timestamps"] == [any_watch.now().replace(second=0, microsecond=0)]
    assert any_watch.listed(Namespace="test") == ["test m"]


def test_values_of_one_minute_are_one_datapoint(watch: Watch) -> None:
    for value in range(10):
        watch.put("m", Value=value)
    assert watch.statistics("m", *ALL) == [
        {"Average": 4.5, "Maximum": 9.0, "Minimum": 0.0, "SampleCount": 10.0, "Sum": 45.0, "Unit": "None"}
    ]


@pytest.mark.parametrize(
    ("statistic", "value"),
    [("Sum", 66.0), ("SampleCount", 11.0), ("Minimum", 1.0), ("Maximum", 11.0), ("Average", 6.0)],
)
def test_a_value_and_a_set_of_statistics_add_up(watch: Watch, statistic: str, value: float) -> None:
    watch.put("m", Value=11, Unit="Seconds")
    ends = {"SampleCount": 10, "Sum": 55, "Minimum": 1, "Maximum": 10}
    watch.put("m", StatisticValues=ends, Unit="Seconds")
    (row,) = watch.rows(query("m", statistic))
    assert row["Values"] == [value]


def test_statistics_are_summed_by_period(watch: Watch) -> None:
    now = watch.now().replace(second=0, microsecond=0)
    for minute in range(6):
        watch.put("m", Value=minute, Timestamp=now - timedelta(minutes=minute))
    span = {"StartTime": now - timedelta(minutes=5), "EndTime": now + timedelta(minutes=1)}
    points = watch.client.get_metric_statistics(
        Namespace="test", MetricName="m", Period=120, Statistics=["Sum"], **span
    )["Datapoints"]
    assert [(now - one["Timestamp"], one["Sum"]) for one in points] == [
        (timedelta(minutes=5), 9.0),
        (timedelta(minutes=3), 5.0),
        (timedelta(minutes=1), 1.0),
    ]


def test_fine_metrics_are_kept_by_the_second(watch: Watch) -> None:
    now = watch.now().replace(second=0, microsecond=0)
    for second in range(4):
        watch.put("m", Value=1, Timestamp=now + timedelta(seconds=second), StorageResolution=1)
    assert [one["Sum"] for one in watch.statistics("m", "Sum", period=1, StartTime=now)] == [1, 1, 1, 1]
    assert [one["Sum"] for one in watch.statistics("m", "Sum", period=60)] == [4]


def test_dimensions_must_be_the_very_same(watch: Watch) -> None:
    watch.put("m", Value=1, Dimensions=pairs({"a": "1", "b": "2"}))
    assert watch.sums("test", "m") == []
    assert watch.sums("test", "m", a="1") == []
    assert watch.sums("test", "m", b="2", a="1") == [1.0]
    assert watch.sums("test", "m", b="2", a="2") == []


def test_units_are_kept_apart(watch: Watch) -> None:
    for unit, value in [("Seconds", 1), ("Count", 5), ("None", 10)]:
        watch.put("m", Value=value, Unit=unit)
    found = watch.statistics("m", "Average")
    assert sorted((one["Unit"], one["Average"]) for one in found) == [
        ("Count", 5.0),
        ("None", 10.0),
        ("Seconds", 1.0),
    ]
    assert watch.statistics("m", "Average", Unit="Seconds") == [{"Average": 1.0, "Unit": "Seconds"}]
    assert watch.statistics("m", "Average", Unit="Bytes") == []


def test_callers_see_their_own_region_s_metrics(server: Server) -> None:
    Watch(server).put("m", Value=1)
    assert Watch(server, account="111111111111").listed() == []
    assert Watch(server, region="eu-west-1").listed() == []
    assert Watch(server).listed() == ["test m"]


def test_a_large_request_comes_compressed(watch: Watch) -> None:
    metrics = [{"MetricName": f"metric-{number}", "Value": number} for number in range(500)]
    watch.client.put_metric_data(Namespace="test", MetricData=metrics)
    assert watch.sums("test", "metric-499") == [499.0]


def test_percentiles_are_computed_from_the_values(watch: Watch) -> None:
    watch.put("m", Values=[float(value) for value in range(1, 101)])
    found = watch.statistics("m", ExtendedStatistics=["p0", "p50", "p99.5", "p100"])
    assert found == [
        {"ExtendedStatistics": {"p0": 1.0, "p50": 50.0, "p99.5": 100.0, "p100": 100.0}, "Unit": "None"}
    ]
    (row,) = watch.rows(query("m", "p90"))
    assert row["Values"] == [90.0]


def test_a_percentile_needs_values(watch: Watch) -> None:
    watch.put("m", Values=[1.0, 2.0])
    watch.put("m", StatisticValues={"SampleCount": 2, "Sum": 9, "Minimum": 4, "Maximum": 5})
    assert watch.statistics("m", ExtendedStatistics=["p50"]) == []
    watch.put("equal", StatisticValues={"SampleCount": 2, "Sum": 8, "Minimum": 4, "Maximum": 4})
    assert watch.statistics("equal", ExtendedStatistics=["p50"])[0]["ExtendedStatistics"] == {"p50": 4.0}


# ---- what is refused -------------------------------------------------------------------------------------------

_ID_TEXT = (
    "The value M for parameter MetricDataQueries.member.1.Id is not matching the expected pattern"
    " ^[a-z][a-zA-Z0-9_]*$."
)


def exclusive(one: str, other: str) -> str:
    return f"The parameters {one} and {other} are mutually exclusive and you have specified both."


_ENDS = {"SampleCount": 10, "Sum": 55, "Minimum": 1, "Maximum": 10}


@pytest.mark.parametrize(
    ("datum", "code", "text"),
    [
        (
            {"Value": 1.5, "Values": [1.0, 10.0]},
            "InvalidParameterCombination",
            exclusive("MetricData.member.1.Value", "MetricData.member.1.Values"),
        ),
        (
            {"Value": 1.5, "StatisticValues": _ENDS},
            "InvalidParameterCombination",
            exclusive("MetricData.member.1.Value", "MetricData.member.1.StatisticValues"),
        ),
        (
            {"Values": [1.0, 10.0], "Counts": [2, 4, 5]},
            "InvalidParameterValue",
            "The parameters MetricData.member.1.Values and MetricData.member.1.Counts must be of the same size.",
        ),
        (
            {"Value": 1, "StorageResolution": 300},
            "InvalidParameterValue",
            "The parameter MetricData.member.1.StorageResolution must be a value in the set [ 1, 60 ].",
        ),
        (
            {"Value": 2.0**361},
            "InvalidParameterValue",
            f"The value {2.0**361} for parameter MetricData.member.1.Value is invalid.",
        ),
        ({}, "MissingParameter", "The parameter MetricData.member.1.Value is required."),
        (
            {"Values": [1.0] * 151},
            "InvalidParameterValue",
            "The collection MetricData.member.1.Values must not have a size greater than 150.",
        ),
    ],
)
def test_a_datum_that_is_refused(any_watch: Watch, datum: dict[str, Any], code: str, text: str) -> None:
    with refused(code, text):
        any_watch.put("m", **datum)
    assert any_watch.listed() == []


def test_numbers_that_are_none_are_refused(watch: Watch) -> None:
    for number in (float("nan"), float("inf")):
        with refused("InvalidParameterValue"):
            watch.put("m", Value=number)


def test_names_with_control_characters_are_refused(watch: Watch) -> None:
    with refused("InvalidParameterValue"):
        watch.put("a\0b", Value=1)
    with refused("InvalidParameterValue"):
        watch.put("m", Value=1, Dimensions=pairs({"a": "b\n"}))
    with refused("InvalidParameterValue"):
        watch.put("m", Value=1, namespace="a\0")


def test_all_that_is_wrong_is_said_at_once(watch: Watch) -> None:
    old = watch.now() - timedelta(days=15)
    data = [{"MetricName": "m", "Value": 1, "Timestamp": old} for _ in range(2)]
    text = "\n".join(
        f"The parameter MetricData.member.{number}.Timestamp must specify a time within the past two weeks."
        for number in (1, 2)
    )
    with refused("InvalidParameterValue", text):
        watch.client.put_metric_data(Namespace="test", MetricData=data)


def test_values_beside_statistics_are_let_through(watch: Watch) -> None:
    watch.put("m", Values=[1.0, 10.0], StatisticValues=_ENDS)
    assert watch.sums("test", "m") == [11.0]


@pytest.mark.parametrize(
    ("namespace", "data", "code", "text"),
    [
        ("AWS/SQS", [{}], "InvalidParameterValue", "The value AWS/ for parameter Namespace is invalid."),
        ("test", [], "MissingParameter", "The parameter MetricData is required."),
        (
            "test",
            [{"MetricName": "m", "Value": 1}] * 1001,
            "InvalidParameterValue",
            "The collection MetricData must not have a size greater than 1000.",
        ),
    ],
)
def test_a_request_that_is_refused(
    watch: Watch, namespace: str, data: list[dict[str, Any]], code: str, text: str
) -> None:
    given = data if data != [{}] else [{"MetricName": "m", "Value": 1}]
    with refused(code, text):
        watch.client.put_metric_data(Namespace=namespace, MetricData=given)


def test_statistics_that_cannot_be_asked_for(any_watch: Watch) -> None:
    now = any_watch.now()
    with refused("InvalidParameterValue", "The parameter StartTime must be less than the parameter EndTime."):
        any_watch.statistics("m", "Sum", StartTime=now, EndTime=now)
    text = (
        "You have requested up to 86400 datapoints, which exceeds the limit of 1440. You may reduce the datapoints"
        " requested by increasing Period, or decreasing the time range."
    )
    with refused("InvalidParameterCombination", text):
        any_watch.statistics("m", "Sum", period=1, StartTime=now, EndTime=now + timedelta(days=1))
    with refused("InvalidParameterCombination", "Must specify either Statistics or ExtendedStatistics"):
        any_watch.statistics("m")
    with refused("InvalidParameterValue"):
        any_watch.statistics("m", "Sum", period=90)
    with refused("InvalidParameterValue", "The value tm101 for parameter ExtendedStatistics is invalid."):
        any_watch.statistics("m", ExtendedStatistics=["tm101"])
    with refused("ValidationError"):
        any_watch.statistics("m", "Median")


@pytest.mark.parametrize(
    ("queries", "text"),
    [
        (
            [query("m"), query("n")],
            "The values for parameter id in MetricDataQueries are not unique.",
        ),
        (
            [{"Id": "e", "Expression": "m1 + 1"}],
            "Expressions need metrics, all of one period.",
        ),
        ([{"Id": "m"}], "The parameter MetricDataQueries.member.1.MetricStat is required."),
        (
            [query("m", query_id="M")],
            _ID_TEXT,
        ),
        (
            [query("m", "tm101")],
            "The value tm101 for parameter MetricDataQueries.member.1.MetricStat.Stat is not supported.",
        ),
        (
            [query("m", query_id=f"m{number}") for number in range(501)],
            "The collection MetricDataQueries must not have a size greater than 500.",
        ),
    ],
)
def test_queries_that_are_refused(watch: Watch, queries: list[dict[str, Any]], text: str) -> None:
    with refused("ValidationError", text):
        watch.rows(*queries)


def test_a_range_without_time_is_refused(any_watch: Watch) -> None:
    now = any_watch.now()
    with refused("ValidationError", "The parameter StartTime must not equal parameter EndTime."):
        any_watch.rows(query("m"), StartTime=now, EndTime=now)


def test_an_operation_that_is_not_offered(any_watch: Watch) -> None:
    with refused("InvalidAction"):
        any_watch.client.list_metric_streams()


# ---- GetMetricData ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs_asked", "labels", "sums"),
    [  # recorded
        ([("Sum", 60, "Seconds"), ("Minimum", 30, "Seconds")], ["m Sum 60", "m Minimum 30"], 1),
        ([("Sum", 60, "Seconds"), ("Minimum", 60, "Seconds")], ["m Sum", "m Minimum"], 1),
        ([("Sum", 60, "Seconds"), ("Sum", 30, "Seconds")], ["m 60", "m 30"], 1),
        ([("Sum", 60, "Seconds"), ("Minimum", 30, "Milliseconds")], ["m Sum 60", "m Minimum 30"], 0),
        ([("Sum", 60, "Seconds"), ("Sum", 60, "Milliseconds")], ["m", "m"], 0),
    ],
)
def test_labels_say_what_differs(
    watch: Watch, pairs_asked: list[tuple[str, int, str]], labels: list[str], sums: int
) -> None:
    for value in (0, 2, 7, 100):
        watch.put("m", Value=value, Unit="Seconds")
    rows = watch.rows(*(query("m", *asked, query_id=f"m{n}") for n, asked in enumerate(pairs_asked)))
    assert [row["Label"] for row in rows] == labels
    assert rows[0]["Values"] == [109.0]
    assert len(rows[1]["Values"]) == sums
    assert {row["StatusCode"] for row in rows} == {"Complete"}


def test_a_label_of_one_s_own(watch: Watch) -> None:
    (row,) = watch.rows(query("m") | {"Label": "mine"})
    assert (row["Label"], row["Values"]) == ("mine", [])


@pytest.mark.parametrize(
    ("repetitions", "counted", "units", "value"),
    [  # recorded
        (1, False, "[Milliseconds, Seconds]", 60_000.0),
        (2, False, "[Milliseconds, Seconds]", 120_000.0),
        (2, True, "[Count, Milliseconds, Seconds]", 5.0),
    ],
)
def test_of_several_units_one_is_answered(
    watch: Watch, repetitions: int, counted: bool, units: str, value: float
) -> None:
    for _ in range(repetitions):
        watch.put("m", Value=60_000, Unit="Milliseconds")
        watch.put("m", Value=60, Unit="Seconds")
    if counted:
        watch.put("m", Value=5, Unit="Count")
    (row,) = watch.rows(query("m"))
    assert row["Messages"] == [{"Code": "MultipleUnits", "Value": f"Multiple units returned: '{units}'"}]
    assert row["Values"] == [value]


def put_minutes(watch: Watch, name: str, minutes: int) -> None:
    now = watch.now()
    for minute in range(minutes):
        watch.put(name, Value=minute, Timestamp=now - timedelta(minutes=minute))


def test_rows_are_read_either_way(watch: Watch) -> None:
    put_minutes(watch, "m", 3)
    assert watch.rows(query("m"))[0]["Values"] == [0, 1, 2]
    assert watch.rows(query("m"), ScanBy="TimestampAscending")[0]["Values"] == [2, 1, 0]
    assert watch.rows(query("m") | {"ReturnData": False}, query("n", query_id="n"))[0]["Id"] == "n"


def test_rows_are_read_page_by_page(watch: Watch) -> None:
    put_minutes(watch, "a", 5)
    put_minutes(watch, "b", 3)
    asked = {"MetricDataQueries": [query("a", query_id="a"), query("b", query_id="b")], **watch.around(10)}
    pages = []
    token: dict[str, str] = {}
    while True:
        answer = watch.client.get_metric_data(**asked, **token, MaxDatapoints=3)
        pages.append(
            [
                (row["Id"], row["Values"], row["StatusCode"])
                for row in answer["MetricDataResults"]
                if row["Values"]
            ]
        )
        if "NextToken" not in answer:
            break
        token = {"NextToken": answer["NextToken"]}
    assert pages == [
        [("a", [0, 1, 2], "PartialData")],
        [("a", [3, 4], "Complete"), ("b", [0], "PartialData")],
        [("b", [1, 2], "Complete")],
    ]
    with refused("InvalidNextToken"):
        watch.client.get_metric_data(**asked, NextToken="nonsense!")


# ---- ListMetrics -----------------------------------------------------------------------------------------------


def test_metrics_are_listed_by_what_they_are(watch: Watch) -> None:
    watch.put("m", Value=1, Dimensions=pairs({"a": "1", "b": "2"}))
    watch.put("m", Value=1, Dimensions=pairs({"a": "2"}))
    watch.put("n", Value=1)
    watch.put("m", Value=1, namespace="other")
    assert watch.listed() == ["other m", "test m a=1 b=2", "test m a=2", "test n"]
    assert watch.listed(Namespace="test", MetricName="m") == ["test m a=1 b=2", "test m a=2"]
    assert watch.listed(MetricName="m") == ["other m", "test m a=1 b=2", "test m a=2"]
    assert watch.listed(Dimensions=[{"Name": "b"}]) == ["test m a=1 b=2"]
    assert watch.listed(Dimensions=[{"Name": "a", "Value": "2"}]) == ["test m a=2"]
    assert watch.listed(Namespace="nothing") == []


def test_metrics_are_listed_page_by_page(watch: Watch) -> None:
    names = [f"m{number:04}" for number in range(1_100)]
    for some in (names[:1000], names[1000:]):
        data = [{"MetricName": name, "Value": 1} for name in some]
        watch.client.put_metric_data(Namespace="test", MetricData=data)
    pages = list(watch.client.get_paginator("list_metrics").paginate(Namespace="test"))
    assert [len(page["Metrics"]) for page in pages] == [500, 500, 100]
    assert [metric["MetricName"] for page in pages for metric in page["Metrics"]] == names
    for token in ("nonsense!", "W10=", "WzEsMl0="):
        with refused("InvalidParameterValue"):
            watch.client.list_metrics(NextToken=token)


def test_metrics_without_points_for_two_weeks_are_not_listed(watch: Watch) -> None:
    watch.put("m", Value=1)
    watch.server.advance(2 * 3600)
    assert watch.listed(RecentlyActive="PT3H") == ["test m"]
    watch.server.advance(2 * 3600)
    assert watch.listed(RecentlyActive="PT3H") == []
    assert watch.listed() == ["test m"]
    watch.server.advance(14 * 86_400)
    assert watch.listed() == []
