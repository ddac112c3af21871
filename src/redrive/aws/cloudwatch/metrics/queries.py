"""GetMetricData: many metrics at once, each as one row of values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from redrive.aws.cloudwatch.metrics.errors import PAGES, unreadable
from redrive.aws.cloudwatch.metrics.expressions import ExpressionError, Node, read_expression
from redrive.aws.cloudwatch.metrics.metric_math import compute_values, in_order
from redrive.aws.cloudwatch.metrics.own_metrics import MetricName
from redrive.aws.cloudwatch.metrics.reading import (
    MetricReader,
    TimeSpan,
    at_once_or_beside,
    dimensions_of,
    is_period,
)
from redrive.aws.cloudwatch.metrics.statistic import Measurement, Statistic, statistic
from redrive.aws.kit.call import Call
from redrive.aws.kit.offloading import within_budget
from redrive.aws.wire.shapes import Structure
from redrive.model.budget import Budget, OverBudgetError

QUERIES_MAX: Final = 500
DATAPOINTS_MAX: Final = 100_800
#: Of expressions and of the metrics that they name, each in memory at once: 100 bytes.
EXPRESSION_POINTS_MAX: Final = 1_000_000
_ID: Final = re.compile(r"[a-z][a-zA-Z0-9_]*", re.ASCII)

# Where a metric has points of several units and none is asked for, the first of these is answered (recorded).
UNITS_IN_ORDER: Final = (
    *("Megabits", "Terabits", "Gigabits", "Count", "Bytes", "Gigabytes", "Gigabytes/Second", "Kilobytes"),
    *("Kilobits/Second", "Terabytes", "Terabits/Second", "Bytes/Second", "Percent", "Megabytes"),
    *("Megabits/Second", "Milliseconds", "Microseconds", "Kilobytes/Second", "Gigabits/Second"),
    *(
        "Megabytes/Second",
        "Bits",
        "Bits/Second",
        "Count/Second",
        "Seconds",
        "Kilobits",
        "Terabytes/Second",
        "None",
    ),
)


@dataclass(frozen=True, slots=True)
class _Query:
    """One row that is asked for."""

    id: str
    metric: MetricName
    statistic: Statistic
    period_seconds: int
    unit: str | None
    label: str | None


@dataclass(frozen=True, slots=True)
class _Math:
    """One row that is computed of others."""

    id: str
    node: Node
    label: str | None


@dataclass(frozen=True, slots=True)
class _DataRequest:
    """All that is asked for."""

    metrics: Sequence[_Query]  # The rows of metrics, those included that only expressions need
    expressions: Sequence[_Math]  # The rows that are computed
    returned_ids: Sequence[str]  # Ids of the queries whose results are returned, in order


@dataclass(frozen=True, slots=True)
class _Row:
    """The answer to one row, before it is cut into pages."""

    query: _Query | _Math  # Which
    points: Sequence[Any]  # Moments (ms) and values; of one that stands before the page a range, as long
    units: Sequence[str]  # Units of the points


class Queries:
    """Answers queries for metrics, and for expressions on them."""

    def __init__(self, reading: MetricReader) -> None:
        self._reading = reading

    async def get_metric_data(self, call: Call, params: Structure) -> Structure:
        start, end = params["StartTime"], params["EndTime"]
        _check_times(start, end)
        request = _request(params["MetricDataQueries"])
        begin = PAGES.count_before("GetMetricData", params)
        await self._reading.settle()
        room = min(params.get("MaxDatapoints") or DATAPOINTS_MAX, DATAPOINTS_MAX)
        if request.expressions:
            rows = await self._rows_of_expressions(call, request, start, end)
        else:
            rows = await self._rows(call, request, start, end, begin, room)
        latest_first = params.get("ScanBy") != "TimestampAscending"
        results, more = _page(rows, _labels(request), begin, room, latest_first=latest_first)
        ending = PAGES.ending("GetMetricData", str(begin + room) if more else "")
        return {"MetricDataResults": results, "Messages": [], **ending}

    async def _rows(
        self, call: Call, request: _DataRequest, start: int, end: int, begin: int, room: int
    ) -> list[_Row]:
        """The rows of metrics up to the end of a page; of one before the page no points are kept, but their number."""
        rows: list[_Row] = []
        point_count = 0
        for query in request.metrics:
            row = await self._row(call, query, TimeSpan.of(start, end, query.period_seconds))
            point_count += len(row.points)
            rows.append(row if point_count > begin else replace(row, points=range(len(row.points))))
            if point_count > begin + room:
                break
        return rows

    async def _rows_of_expressions(
        self, call: Call, request: _DataRequest, start: int, end: int
    ) -> list[_Row]:
        """All rows that are shown, of metrics and expressions; raises AwsError if they have too many points."""
        span = TimeSpan.of(start, end, request.metrics[0].period_seconds)
        metric_rows: list[_Row] = []
        points_budget = Budget(EXPRESSION_POINTS_MAX)
        try:
            for query in request.metrics:
                metric_rows.append(await self._row(call, query, span))
                points_budget.spend(len(metric_rows[-1].points))
            rows = [
                *metric_rows,
                *await within_budget(
                    call.account,
                    lambda budget: _expression_rows(request, metric_rows, span, budget),
                    EXPRESSION_POINTS_MAX,
                ),
            ]
        except OverBudgetError:
            raise unreadable(
                f"Expressions, and the metrics that they name, have at most {EXPRESSION_POINTS_MAX} datapoints."
                " Ask for longer periods, or a shorter time."
            ) from None
        by_id = {row.query.id: row for row in rows}
        return [by_id[name] for name in request.returned_ids]

    async def _row(self, call: Call, query: _Query, span: TimeSpan) -> _Row:
        """The row of a metric, with the points of one unit, where there are several."""
        wants_values = query.statistic.needs_values
        measurements = await self._reading.measurements(
            call, query.metric, span, unit=query.unit, values=wants_values
        )
        units = sorted({point.unit for point in measurements})
        if len(units) > 1:
            first = min(units, key=UNITS_IN_ORDER.index)
            measurements = [point for point in measurements if point.unit == first]
        points = await at_once_or_beside(
            call, len(measurements), lambda: _points(measurements, query.statistic)
        )
        return _Row(query, points, units)


def _expression_rows(
    request: _DataRequest, metric_rows: Sequence[_Row], span: TimeSpan, budget: Budget
) -> list[_Row]:
    """The rows of expressions, by those of metrics."""
    if span.periods > DATAPOINTS_MAX:
        raise unreadable(f"Expressions have at most {DATAPOINTS_MAX} periods.")
    expressions = {each.id: each.node for each in request.expressions}
    series = {row.query.id: dict(row.points) for row in metric_rows}
    moments = range(span.since, span.until, span.period_ms)
    try:
        values = compute_values(expressions, series, moments, span.period_ms // 1000, budget)
    except ExpressionError as invalid:
        raise unreadable(str(invalid)) from None
    rows = []
    for each in request.expressions:
        value = values[each.id]
        if isinstance(value, Mapping):
            rows.append(_Row(each, sorted(value.items()), ()))
        elif each.id in request.returned_ids:
            raise unreadable(f"Error in expression '{each.id}': its result is not one time series.")
    return rows


def _points(measurements: Sequence[Measurement], statistic: Statistic) -> Sequence[tuple[int, float]]:
    """The moments and values of a statistic, of those periods that have one."""
    values = ((point.at, statistic.of(point)) for point in measurements)
    return [(at, value) for at, value in values if value is not None]


# ---- what is asked for -----------------------------------------------------------------------------------------


def _check_times(start: int, end: int) -> None:
    if start == end:
        raise unreadable("The parameter StartTime must not equal parameter EndTime.")
    if start > end:
        raise unreadable("The parameter StartTime must be less than the parameter EndTime.")


def _request(structures: Sequence[Structure]) -> _DataRequest:
    """The queries of a call, checked; raises AwsError."""
    if len(structures) > QUERIES_MAX:
        raise unreadable(f"The collection MetricDataQueries must not have a size greater than {QUERIES_MAX}.")
    ids = [query["Id"] for query in structures]
    if len(set(ids)) < len(ids):
        raise unreadable("The values for parameter id in MetricDataQueries are not unique.")
    queries = [
        _query(f"MetricDataQueries.member.{index}", query) for index, query in enumerate(structures, 1)
    ]
    returned_ids = [query["Id"] for query in structures if query.get("ReturnData") is not False]
    if not returned_ids:
        raise unreadable("At least one query must return data.")
    metrics = [query for query in queries if isinstance(query, _Query)]
    expressions = [query for query in queries if isinstance(query, _Math)]
    _check_expressions(metrics, expressions)
    if not expressions:  # which alone would need the others
        metrics = [query for query in metrics if query.id in returned_ids]
    return _DataRequest(metrics, expressions, returned_ids)


def _check_expressions(metrics: Sequence[_Query], expressions: Sequence[_Math]) -> None:
    if not expressions:
        return
    if len({query.period_seconds for query in metrics}) != 1:
        raise unreadable("Expressions need metrics, all of one period.")
    try:
        in_order({each.id: each.node for each in expressions}, [query.id for query in metrics])
    except ExpressionError as invalid:
        raise unreadable(str(invalid)) from None


def _query(path: str, query: Structure) -> _Query | _Math:
    """The query of a structure, checked; `path` names it in errors. Raises AwsError."""
    if not _ID.fullmatch(query["Id"]):
        raise unreadable(
            f"The value {query['Id']} for parameter {path}.Id is not matching the expected pattern"
            f" ^{_ID.pattern}$."
        )
    metric_stat = query.get("MetricStat")
    if expression := query.get("Expression"):
        if metric_stat:
            raise unreadable(
                f"The parameters {path}.Expression and {path}.MetricStat are mutually exclusive and you have"
                " specified both."
            )
        try:
            return _Math(query["Id"], read_expression(expression), query.get("Label"))
        except ExpressionError as invalid:
            raise unreadable(f"Error in expression '{query['Id']}': {invalid}") from None
    if not metric_stat:
        raise unreadable(f"The parameter {path}.MetricStat is required.")
    return _of_metric(path, query, metric_stat)


def _of_metric(path: str, query: Structure, metric_stat: Structure) -> _Query:
    """The query for a metric, checked; `path` names it in errors. Raises AwsError."""
    metric_params, period_seconds = metric_stat["Metric"], metric_stat["Period"]
    for name in ("Namespace", "MetricName"):
        if not metric_params.get(name):
            raise unreadable(f"The parameter {path}.MetricStat.Metric.{name} is required.")
    if not is_period(period_seconds):
        raise unreadable(
            f"The parameter {path}.MetricStat.Period must be 1, 5, 10, 20, 30, or a multiple of 60."
        )
    requested_statistic = statistic(metric_stat["Stat"])
    if requested_statistic is None:
        raise unreadable(
            f"The value {metric_stat['Stat']} for parameter {path}.MetricStat.Stat is not supported."
        )
    dimensions = dimensions_of(metric_params.get("Dimensions"))
    metric = MetricName(metric_params["Namespace"], metric_params["MetricName"], dimensions)
    return _Query(
        query["Id"],
        metric,
        requested_statistic,
        period_seconds,
        metric_stat.get("Unit"),
        query.get("Label"),
    )


def _page(
    rows: Sequence[_Row], labels: Mapping[str, str], begin: int, room: int, *, latest_first: bool
) -> tuple[list[Structure], bool]:
    """The results from datapoint `begin` on, `room` of them, counted over all rows; and whether there are more."""
    results: list[Structure] = []
    point_count = 0
    for row in rows:
        points = row.points[::-1] if latest_first else row.points
        first, last = max(0, begin - point_count), max(0, begin + room - point_count)
        point_count += len(points)
        if first < len(points) or not (begin or points):  # a row without points is on the first page
            results.append(_result(row, labels[row.query.id], points[first:last], whole=last >= len(points)))
    return results, point_count > begin + room


def _result(row: _Row, label: str, points: Sequence[tuple[int, float]], *, whole: bool) -> Structure:
    """A query's result as answers have it; `whole`: no later page has more of it."""
    result: Structure = {
        "Id": row.query.id,
        "Label": label,
        "Timestamps": [at for at, _ in points],
        "Values": [value for _, value in points],
        "StatusCode": "Complete" if whole else "PartialData",
    }
    if len(row.units) > 1:
        text = f"Multiple units returned: '[{', '.join(row.units)}]'"
        result["Messages"] = [{"Code": "MultipleUnits", "Value": text}]
    return result


def _labels(request: _DataRequest) -> dict[str, str]:
    """The metric's name, and where queries differ in statistic or period, that too (recorded); an expression's id."""
    every: Sequence[_Query | _Math] = [*request.metrics, *request.expressions]
    queries = [query for query in every if query.id in request.returned_ids]
    metrics = [query for query in queries if isinstance(query, _Query)]
    statistics_differ = len({query.statistic.name for query in metrics}) > 1
    periods_differ = len({query.period_seconds for query in metrics}) > 1

    def default_label(query: _Query | _Math) -> str:
        if isinstance(query, _Math):
            return query.id
        parts = [query.metric.name]
        if statistics_differ:
            parts.append(query.statistic.name)
        if periods_differ:
            parts.append(str(query.period_seconds))
        return " ".join(parts)

    return {query.id: query.label or default_label(query) for query in queries}
