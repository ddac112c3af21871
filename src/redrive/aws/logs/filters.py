"""Metric filters: log events that match a pattern become points of metrics, as they are written down."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby
from typing import Final

from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import each_in_turn
from redrive.aws.logs import names
from redrive.aws.logs.errors import PAGES, invalid
from redrive.aws.logs.filter_pattern import match_steps, read_pattern
from redrive.aws.logs.group_filters import CompiledFilter, GroupFilters, place_of
from redrive.aws.logs.places import LogPlaces
from redrive.aws.logs.records import METRIC_FILTER, MetricFilter
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import TelemetryStore
from redrive.model.errors import StoreUnavailable
from redrive.model.log import LogEvent
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics, rounded

logger = logging.getLogger(__name__)

FILTERS_MAX: Final = 100  # of a group
_DIMENSIONS_MAX: Final = 3
_EVENTS_AT_ONCE: Final = 50
_POINTS_AT_ONCE: Final = 500  # in one commit, which others wait for: 5 ms
_OWN: Final = "AWS/"


class MetricFilters:
    """Puts, shows and removes metric filters, and lets events pass through them."""

    def __init__(self, store: TelemetryStore, places: LogPlaces) -> None:
        self._store = store
        self._places = places
        self.stored_filters: Final = GroupFilters(METRIC_FILTER, "metric filter", FILTERS_MAX, places)

    # ---- operations --------------------------------------------------------------------------------------

    async def put_metric_filter(self, call: Call, params: Structure) -> Structure:
        for parameter in ("applyOnTransformedLogs", "fieldSelectionCriteria", "emitSystemFieldDimensions"):
            if params.get(parameter):
                raise invalid(f"{parameter} is not available.")
        (transformation,) = params["metricTransformations"]
        _check(transformation)
        read_pattern(params["filterPattern"])
        group = await self._places.stored_group(names.group_name(call, params["logGroupName"]))
        metric_filter = MetricFilter(
            group.name, group.id, params["filterName"], params["filterPattern"], call.now, transformation
        )
        await self.stored_filters.put(metric_filter)
        return {}

    async def delete_metric_filter(self, call: Call, params: Structure) -> Structure:
        await self.stored_filters.remove(call, params)
        return {}

    async def describe_metric_filters(self, call: Call, params: Structure) -> Structure:
        name, namespace = params.get("metricName"), params.get("metricNamespace")
        if (name is None) != (namespace is None):
            raise invalid("metricName and metricNamespace go together.")
        filters = [
            each
            for each in await self.stored_filters.find(call, params)
            if name is None or _metric(each) == (name, namespace)
        ]
        return PAGES.of(
            "DescribeMetricFilters", params, sorted(filters, key=place_of), _as_structure, place_of
        )

    async def test_metric_filter(self, call: Call, params: Structure) -> Structure:
        pattern = read_pattern(params["filterPattern"])
        text = params["filterPattern"]

        def match_of(message: str) -> Structure | None:
            if not pattern.matches(message):
                return None
            return {"eventMessage": message, "extractedValues": pattern.fields_of(message)}

        matches = await each_in_turn(
            call.account,
            params["logEventMessages"],
            lambda message: match_steps(text, pattern.regexes, message),
            match_of,
        )
        return {
            "matches": [
                {"eventNumber": number, **match}
                for number, match in enumerate(matches, 1)
                if match is not None
            ]
        }

    # ---- events ------------------------------------------------------------------------------------------

    async def pass_through(self, events: Sequence[LogEvent]) -> None:
        """Make points of events that were written down; a store that is away loses them, and the log says so."""
        try:
            await self.stored_filters.follow()
            for group_id, of_group in groupby(events, lambda event: event.group_id):
                points = await _points(self.stored_filters.of(group_id), list(of_group))
                for begin in range(0, len(points), _POINTS_AT_ONCE):
                    await self._store.add_points(points[begin : begin + _POINTS_AT_ONCE])
        except StoreUnavailable as away:
            logger.warning("log_filters.points_lost events=%d error=%s", len(events), away)


def _check(transformation: Structure) -> None:
    """Refuse a transformation whose namespace, dimensions or value are not acceptable."""
    if transformation["metricNamespace"].startswith(_OWN):
        raise invalid(f"Metric namespace must not begin with {_OWN}")
    dimensions = transformation.get("dimensions") or {}
    if len(dimensions) > _DIMENSIONS_MAX:
        raise invalid(f"A metric filter has at most {_DIMENSIONS_MAX} dimensions.")
    if dimensions and transformation.get("defaultValue") is not None:
        raise invalid(
            "Invalid metric transformation: dimensions and default value are mutually exclusive properties."
        )
    value: str = transformation["metricValue"]
    if not value.startswith("$") and _number(value) is None:
        raise invalid(f"Invalid metric transformation: {value} is neither a number nor a field.")


def _number(text: str | None) -> float | None:
    """The finite number that a text is; None: it is none."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


async def _points(
    filters: Sequence[CompiledFilter[MetricFilter]], events: Sequence[LogEvent]
) -> list[MetricPoint]:
    """The points that filters make of some events of their group; those of one moment of a series are one."""
    if not filters:
        return []

    def steps(batch: Sequence[LogEvent]) -> int:
        longest = max(batch, key=lambda event: len(event.message))
        return sum(compiled_filter.steps(longest) for compiled_filter in filters) * len(batch)

    def points_of(batch: Sequence[LogEvent]) -> list[MetricPoint]:
        points = (_point(compiled_filter, event) for event in batch for compiled_filter in filters)
        return _sum_points(point for point in points if point is not None)

    account = filters[0].filter.group.account
    batches = [events[begin : begin + _EVENTS_AT_ONCE] for begin in range(0, len(events), _EVENTS_AT_ONCE)]
    points_by_batch = await each_in_turn(account, batches, steps, points_of)
    return _sum_points(chain.from_iterable(points_by_batch))


def _sum_points(points: Iterable[MetricPoint]) -> list[MetricPoint]:
    """One point for each moment of a series; of those that only fill the first counts, as in the store."""
    sums: dict[tuple[Series, int, str, bool], tuple[Statistics, dict[float, float]]] = {}
    for point in points:
        key = point.series, point.at, point.unit, point.fills
        if key not in sums:
            sums[key] = point.statistics, dict(point.values)
        elif not point.fills:
            statistics, values = sums[key]
            for value, samples in point.values.items():
                values[value] = values.get(value, 0.0) + samples
            sums[key] = statistics + point.statistics, values
    return [
        MetricPoint(series, at, unit, statistics, values, fills)
        for (series, at, unit, fills), (statistics, values) in sums.items()
    ]


def _point(compiled_filter: CompiledFilter[MetricFilter], event: LogEvent) -> MetricPoint | None:
    """The point that an event adds to a metric, with the filter's default if it does not match; None: none."""
    transformation, pattern = compiled_filter.filter.transformation, compiled_filter.pattern
    if not pattern.matches(event.message):
        default = transformation.get("defaultValue")
        return (
            None if default is None else _metric_point(compiled_filter.filter, event, default, {}, fills=True)
        )
    value_text = transformation["metricValue"]
    value = _number(pattern.field(event.message, value_text) if value_text.startswith("$") else value_text)
    dimensions = {
        name: pattern.field(event.message, field)
        for name, field in (transformation.get("dimensions") or {}).items()
    }
    if value is None or any(dimension is None for dimension in dimensions.values()):
        return None
    return _metric_point(
        compiled_filter.filter, event, value, {name: str(dimension) for name, dimension in dimensions.items()}
    )


def _metric_point(
    metric_filter: MetricFilter,
    event: LogEvent,
    value: float,
    dimensions: Mapping[str, str],
    *,
    fills: bool = False,
) -> MetricPoint:
    """A point of one value in the event's minute; `fills`: it counts only where the minute has no other."""
    transformation, group = metric_filter.transformation, metric_filter.group
    series = Series(
        group.account,
        group.region,
        transformation["metricNamespace"],
        transformation["metricName"],
        tuple(sorted(dimensions.items())),
    )
    at = event.at - event.at % MINUTE_MS
    values = {} if fills else {rounded(value): 1.0}
    return MetricPoint(series, at, transformation.get("unit") or "None", Statistics.of(value), values, fills)


def _metric(metric_filter: MetricFilter) -> tuple[str, str]:
    transformation = metric_filter.transformation
    return transformation["metricName"], transformation["metricNamespace"]


def _as_structure(each: MetricFilter) -> Structure:
    return {
        "filterName": each.name,
        "filterPattern": each.pattern,
        "metricTransformations": [dict(each.transformation)],
        "creationTime": each.created_at,
        "logGroupName": each.group.name,
        "applyOnTransformedLogs": False,
    }
