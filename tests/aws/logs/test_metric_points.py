"""Points that metric filters make of many events: one for each moment of a series, however many events there are."""

import json

from redrive.aws.logs.filter_pattern import read_pattern
from redrive.aws.logs.filters import _points
from redrive.aws.logs.group_filters import CompiledFilter
from redrive.aws.logs.records import MetricFilter
from redrive.model.log import LogEvent
from redrive.model.metric import MINUTE_MS, Statistics
from redrive.model.names import ResourceName

GROUP = ResourceName("1" * 12, "us-east-1", "shop")


def compiled(pattern: str, **transformation: object) -> CompiledFilter[MetricFilter]:
    metric = {"metricName": "m", "metricNamespace": "n", "metricValue": "$.ms", **transformation}
    return CompiledFilter(MetricFilter(GROUP, 1, "f", pattern, 0, metric), read_pattern(pattern))


async def test_points_of_one_moment_are_summed() -> None:
    """5,500 events on 60 filters were 330,000 points in one commit, for which every other call waited 4 s."""
    events = [
        LogEvent(1, 1, number * 20_000, 0, json.dumps({"ms": number % 3, "id": f"i{number % 2}"}))
        for number in range(300)
    ]
    found = await _points([compiled("{ $.ms >= 0 }"), compiled("{ $.ms > 1 }", defaultValue=0.0)], events)
    every = [point for point in found if not point.fills]
    assert len(every) == 100, "a minute has three events"
    assert every[0].statistics == Statistics(4, 5, 0, 2), "0, 1 and 2 of one filter, and 2 of the other"
    assert dict(every[0].values) == {0.0: 1.0, 1.0: 1.0, 2.0: 2.0}
    filling = [point for point in found if point.fills]
    assert [(point.at, point.statistics) for point in filling[:2]] == [
        (0, Statistics(1, 0, 0, 0)),
        (MINUTE_MS, Statistics(1, 0, 0, 0)),
    ]


async def test_points_of_other_dimensions_stay_apart() -> None:
    events = [LogEvent(1, 1, 0, 0, json.dumps({"ms": 1, "id": f"i{number % 7}"})) for number in range(200)]
    found = await _points([compiled("{ $.ms = 1 }", dimensions={"id": "$.id"})], events)
    assert len(found) == 7
    assert sum(point.statistics.samples for point in found) == 200
