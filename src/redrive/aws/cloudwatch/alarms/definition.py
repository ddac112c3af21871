"""Definitions of metric alarms: every parameter checked, and what was given kept as it was."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from redrive.aws.cloudwatch.alarms.records import ACTIONS
from redrive.aws.cloudwatch.alarms.verdict import COMPARISONS, TREATMENTS
from redrive.aws.cloudwatch.metrics.errors import combination, missing, unreadable
from redrive.aws.cloudwatch.metrics.expressions import ExpressionError, Node, read_expression
from redrive.aws.cloudwatch.metrics.metric_math import in_order
from redrive.aws.cloudwatch.metrics.statistic import statistic
from redrive.aws.kit.call import Call
from redrive.aws.wire.arn import read_arn
from redrive.aws.wire.shapes import Structure

QUERIES_MAX: Final = 10
TAGS_MAX: Final = 50
_FINE_PERIODS: Final = (10, 20, 30)
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_DAYS_MAX: Final = 7
_THRESHOLD_MAX: Final = 2.0**360
_ID: Final = re.compile(r"[a-z][a-zA-Z0-9_]*", re.ASCII)
_OF_ONE_METRIC: Final = (
    *("MetricName", "Namespace", "Dimensions", "Period", "Unit"),
    *("Statistic", "ExtendedStatistic"),
)
_NOT_HERE: Final = (
    *("ThresholdMetricId", "EvaluationWindow", "WarmUpConfiguration", "EvaluationCriteria"),
    *("EvaluationInterval", "ActionConfiguration"),
)
#: What is kept of a call besides the name and the tags.
_KEPT: Final = (
    *("AlarmDescription", "ActionsEnabled", *ACTIONS.values(), *_OF_ONE_METRIC, "EvaluationPeriods"),
    *("DatapointsToAlarm", "Threshold", "ComparisonOperator", "TreatMissingData"),
    *("EvaluateLowSampleCountPercentile", "Metrics"),
)


def definition(call: Call, params: Structure) -> dict[str, Any]:
    """The definition of a metric alarm in a call; raises AwsError if something is wrong, or not offered."""
    for name in _NOT_HERE:
        if params.get(name) is not None:
            raise unreadable(f"The parameter {name} is not available.")
    check_actions(call, params)
    _check_threshold(params)
    period_seconds = _check_queries(call, params) if params.get("Metrics") else _check_metric(params)
    _check_periods(params, period_seconds)
    return {name: params[name] for name in _KEPT if params.get(name) is not None}


def check_actions(call: Call, params: Structure) -> None:
    """Refuse actions that are no ARNs, or of a service in another region."""
    for parameter in ACTIONS.values():
        for arn in params.get(parameter) or ():
            _check_action(call, arn)


def _check_action(call: Call, text: str) -> None:
    arn = read_arn(text)
    if arn is None:
        raise unreadable(f"Invalid arn syntax: {text}")
    if arn.service in ("sns", "lambda") and arn.region != call.region:
        raise unreadable(f"Invalid region {arn.region} specified. Only {call.region} is supported.")


def _check_threshold(params: Structure) -> None:
    comparison = params.get("ComparisonOperator")
    if comparison is None:
        raise missing("The parameter ComparisonOperator is required.")
    if comparison not in COMPARISONS:
        raise unreadable(
            f"The ComparisonOperator {comparison} needs a band of anomalies, which is not available."
        )
    threshold = params.get("Threshold")
    if threshold is None:
        raise missing("The parameter Threshold is required.")
    if not math.isfinite(threshold) or abs(threshold) > _THRESHOLD_MAX:
        raise unreadable(f"The value {threshold} for parameter Threshold is invalid.")


# ---- periods ---------------------------------------------------------------------------------------------------


def _check_periods(params: Structure, period_seconds: int) -> None:
    periods: int | None = params.get("EvaluationPeriods")
    if periods is None:
        raise missing("The parameter EvaluationPeriods is required.")
    if (params.get("DatapointsToAlarm") or 0) > periods:
        raise unreadable("DatapointsToAlarm must be less than or equal to EvaluationPeriods.")
    if periods * period_seconds > _DAY and period_seconds < _HOUR:
        raise unreadable(
            f"Metrics cannot be checked across more than a day (EvaluationPeriods * Period must be <= {_DAY})."
        )
    if periods * period_seconds > _DAYS_MAX * _DAY:
        raise unreadable(
            f"Metrics cannot be checked across more than {_DAYS_MAX} days (EvaluationPeriods * Period must be"
            f" <= {_DAYS_MAX * _DAY})."
        )
    treatment = params.get("TreatMissingData")
    if treatment is not None and treatment not in TREATMENTS:
        raise unreadable(f"The value {treatment} for parameter TreatMissingData is not supported.")


def _check_period(seconds: int) -> None:
    if seconds not in _FINE_PERIODS and seconds % _MINUTE:
        raise unreadable("Period must be 10, 20, 30 or a multiple of 60")


# ---- one metric ------------------------------------------------------------------------------------------------


def _check_metric(params: Structure) -> int:
    """Check an alarm on one metric; returns its period (seconds).

    An extended statistic must be computed from single values, as a percentile is.
    """
    for name in ("MetricName", "Namespace", "Period"):
        if params.get(name) is None:
            raise missing(f"The parameter {name} is required.")
    basic, extended_statistic = params.get("Statistic"), params.get("ExtendedStatistic")
    if (basic is None) == (extended_statistic is None):
        raise combination("Must specify either Statistic or ExtendedStatistic.")
    requested_statistic = statistic(extended_statistic or basic or "")
    if requested_statistic is None or (
        extended_statistic is not None and not requested_statistic.needs_values
    ):
        raise unreadable(f"The value {extended_statistic} for parameter ExtendedStatistic is not supported.")
    low = params.get("EvaluateLowSampleCountPercentile")
    if low is not None and (low not in ("evaluate", "ignore") or requested_statistic.percent is None):
        raise unreadable(
            f"Option {low} is not supported for parameter EvaluateLowSampleCountPercentile: it is evaluate or ignore,"
            " for alarms on percentiles."
        )
    period_seconds: int = params["Period"]
    _check_period(period_seconds)
    return period_seconds


# ---- several queries -------------------------------------------------------------------------------------------


def _check_queries(call: Call, params: Structure) -> int:
    """Check the queries of an alarm; returns the period that they share (seconds)."""
    if members := [name for name in _OF_ONE_METRIC if params.get(name) is not None]:
        raise combination(
            f"The parameters Metrics and {members[0]} are mutually exclusive and you have specified both."
        )
    queries: Sequence[Structure] = params["Metrics"]
    if len(queries) > QUERIES_MAX:
        raise unreadable(f"The collection Metrics must not have a size greater than {QUERIES_MAX}.")
    if sum(query.get("ReturnData") is not False for query in queries) != 1:
        raise unreadable("Exactly one element of the metrics list should return data.")
    ids = [query["Id"] for query in queries]
    if len(set(ids)) < len(ids):
        raise unreadable("The values for parameter id in Metrics are not unique.")
    for query in queries:
        _check_query(call, query)
    metrics = [query["Id"] for query in queries if query.get("MetricStat")]
    if not metrics:
        raise unreadable("At least one element of the metrics list has to be a metric.")
    _check_order({query["Id"]: _read(query) for query in queries if query.get("Expression")}, metrics)
    return _common_period(queries)


def _check_query(call: Call, query: Structure) -> None:
    if not _ID.fullmatch(query["Id"]):
        raise unreadable(
            f"The value {query['Id']} for parameter Id is not matching the expected pattern ^{_ID.pattern}$."
        )
    if query.get("AccountId") not in (None, call.account):
        raise unreadable("Alarms on metrics of other accounts are not available.")
    stat = query.get("MetricStat")
    if bool(stat) == bool(query.get("Expression")):
        raise combination(f"Must specify either Expression or MetricStat for {query['Id']}.")
    if stat:
        _check_stat(stat)


def _check_stat(stat: Structure) -> None:
    for name in ("Namespace", "MetricName"):
        if not stat["Metric"].get(name):
            raise missing(f"The parameter MetricStat.Metric.{name} is required.")
    if statistic(stat["Stat"]) is None:
        raise unreadable(f"The value {stat['Stat']} for parameter MetricStat.Stat is not supported.")
    _check_period(stat["Period"])


def _read(query: Mapping[str, Any]) -> Node:
    try:
        return read_expression(query["Expression"])
    except ExpressionError as invalid:
        raise unreadable(f"Error in expression '{query['Id']}': {invalid}") from None


def _check_order(expressions: Mapping[str, Node], metrics: Iterable[str]) -> None:
    try:
        in_order(expressions, list(metrics))
    except ExpressionError as invalid:
        raise unreadable(str(invalid)) from None


def _common_period(queries: Sequence[Structure]) -> int:
    periods = {query["MetricStat"]["Period"] for query in queries if query.get("MetricStat")}
    if len(periods) > 1:
        raise unreadable("All metrics of an alarm must have the same period.")
    (period_seconds,) = periods
    return int(period_seconds)
