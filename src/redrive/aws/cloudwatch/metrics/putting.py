"""PutMetricData: what callers measured themselves."""

from collections.abc import Iterator
from math import isfinite

from redrive.aws.cloudwatch.metrics.errors import exclusive, invalid, invalid_value, missing
from redrive.aws.cloudwatch.metrics.own_metrics import PREFIX
from redrive.aws.cloudwatch.metrics.reading import dimensions_of
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import TelemetryStore
from redrive.model.metric import MINUTE_MS, MetricPoint, Series, Statistics, rounded
from redrive.model.queue import DAY_MS

METRICS_MAX = 1000
VALUES_MAX = 150
VALUE_MAX = 2.0**360
_PAST_MS = 14 * DAY_MS
_FUTURE_MS = 2 * 60 * MINUTE_MS


class PutMetricOperations:
    """Takes metrics from callers."""

    def __init__(self, store: TelemetryStore) -> None:
        self._store = store

    async def put_metric_data(self, call: Call, params: Structure) -> Structure:
        namespace: str = params["Namespace"]
        if namespace.startswith(PREFIX):
            raise invalid_value("Namespace", PREFIX)
        if not namespace.isprintable():
            raise invalid_value("Namespace", namespace)
        data = list(_data(params))
        if not data:
            raise missing("The parameter MetricData is required.")
        if len(data) > METRICS_MAX:
            raise invalid(f"The collection MetricData must not have a size greater than {METRICS_MAX}.")
        if complaints := [text for path, datum in data for text in _complaints(path, datum, call.now)]:
            raise invalid("\n".join(complaints))
        await self._store.add_points([_point(call, namespace, datum) for _, datum in data])
        return {}


def _data(params: Structure) -> Iterator[tuple[str, Structure]]:
    """Each datum, and where it stands. What entity it is about is not kept."""
    for index, datum in enumerate(params.get("MetricData") or (), 1):
        yield f"MetricData.member.{index}", datum
    for position, entity in enumerate(params.get("EntityMetricData") or (), 1):
        for index, datum in enumerate(entity.get("MetricData") or (), 1):
            yield f"EntityMetricData.member.{position}.MetricData.member.{index}", datum


# ---- what is wrong with a datum --------------------------------------------------------------------------------


def _complaints(path: str, datum: Structure, now: int) -> Iterator[str]:
    """The faults of a datum's values: a real answer lists all of them, a line each.

    Raises:
        AwsError: Parameters that do not go together, or are not there.
    """
    _check_kinds(path, datum)
    yield from _about_time(path, datum, now)
    for name, text in _names(datum):
        if not text.isprintable():
            yield f"The value {text} for parameter {path}.{name} is invalid."
    if datum.get("StorageResolution", 60) not in (1, 60):
        yield f"The parameter {path}.StorageResolution must be a value in the set [ 1, 60 ]."
    for name, value in _numbers(datum):
        if not isfinite(value) or abs(value) > VALUE_MAX:
            yield f"The value {value} for parameter {path}.{name} is invalid."
    values, counts = datum.get("Values"), datum.get("Counts")
    if values and counts is not None and len(values) != len(counts):
        yield f"The parameters {path}.Values and {path}.Counts must be of the same size."
    if values and len(values) > VALUES_MAX:
        yield f"The collection {path}.Values must not have a size greater than {VALUES_MAX}."
    statistic_set = datum.get("StatisticValues")
    if statistic_set and statistic_set["Maximum"] < statistic_set["Minimum"]:
        yield f"The parameter {path}.StatisticValues.Maximum must be greater than {path}.StatisticValues.Minimum."


def _check_kinds(path: str, datum: Structure) -> None:
    """Refuse a single value beside others; many values beside statistics are let through, as recorded."""
    if datum.get("Value") is not None:
        for other in ("Values", "StatisticValues"):
            if datum.get(other):
                raise exclusive(f"{path}.Value", f"{path}.{other}")
    elif not datum.get("Values") and not datum.get("StatisticValues"):
        raise missing(f"The parameter {path}.Value is required.")


def _about_time(path: str, datum: Structure, now: int) -> Iterator[str]:
    timestamp = datum.get("Timestamp")
    if timestamp is None:
        return
    if timestamp < now - _PAST_MS:
        yield f"The parameter {path}.Timestamp must specify a time within the past two weeks."
    if timestamp > now + _FUTURE_MS:
        yield f"The parameter {path}.Timestamp must specify a time no more than two hours in the future."


def _names(datum: Structure) -> Iterator[tuple[str, str]]:
    """Every name of a datum, and where it stands."""
    yield "MetricName", datum["MetricName"]
    for index, dimension in enumerate(datum.get("Dimensions") or (), 1):
        for part in ("Name", "Value"):
            yield f"Dimensions.member.{index}.{part}", dimension[part]


def _numbers(datum: Structure) -> Iterator[tuple[str, float]]:
    """Every number of a datum, and its name."""
    if datum.get("Value") is not None:
        yield "Value", datum["Value"]
    for name in ("Values", "Counts"):
        for index, number in enumerate(datum.get(name) or (), 1):
            yield f"{name}.member.{index}", number
    for name, number in (datum.get("StatisticValues") or {}).items():
        yield f"StatisticValues.{name}", number


# ---- a datum as a point ----------------------------------------------------------------------------------------


def _point(call: Call, namespace: str, datum: Structure) -> MetricPoint:
    series = Series(
        call.account, call.region, namespace, datum["MetricName"], dimensions_of(datum.get("Dimensions"))
    )
    moment: int = datum.get("Timestamp") or call.now
    grain_ms = 1000 if datum.get("StorageResolution") == 1 else MINUTE_MS
    statistics, values = _statistics_of(datum)
    return MetricPoint(series, moment - moment % grain_ms, datum.get("Unit") or "None", statistics, values)


def _statistics_of(datum: Structure) -> tuple[Statistics, dict[float, float]]:
    """The statistics of a datum, and its samples by value; none where a statistic set does not tell the values."""
    if datum.get("Value") is not None:
        return _of_values([datum["Value"]], [1.0])
    if values := datum.get("Values"):
        return _of_values(values, datum.get("Counts") or [1.0] * len(values))
    statistic_set = datum["StatisticValues"]
    statistics = Statistics(
        statistic_set["SampleCount"], statistic_set["Sum"], statistic_set["Minimum"], statistic_set["Maximum"]
    )
    if statistics.least == statistics.greatest:
        return statistics, {rounded(statistics.least): statistics.samples}
    return statistics, {}


def _of_values(values: list[float], counts: list[float]) -> tuple[Statistics, dict[float, float]]:
    """The statistics of values and their counts, and the counts by rounded value."""
    counts_by_value: dict[float, float] = {}
    for value, count in zip(values, counts, strict=True):
        counts_by_value[rounded(value)] = counts_by_value.get(rounded(value), 0) + count
    total = sum(value * count for value, count in zip(values, counts, strict=True))
    return Statistics(sum(counts), total, min(values), max(values)), counts_by_value
