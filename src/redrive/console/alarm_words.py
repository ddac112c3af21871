"""Alarms in words: what fires them, what they last read, and what happened to them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.aws.cloudwatch.metrics.own_metrics import MetricName
from redrive.console import json_text
from redrive.console.charts import figure
from redrive.console.pages.metrics import metric_words
from redrive.console.words import many, span

_AGE: Final = "ApproximateAgeOfOldestMessage"
_SECONDS_MAX: Final = 10**12  # of an age that is told as a span: 30,000 years
STATES: Final = {"ALARM": "In alarm", "OK": "OK", "INSUFFICIENT_DATA": "No data"}
_COMPARISONS: Final = {
    "GreaterThanThreshold": ">",
    "GreaterThanOrEqualToThreshold": "≥",
    "LessThanThreshold": "<",
    "LessThanOrEqualToThreshold": "≤",
}
_COMPARED: Final = {">": "is more than", "≥": "is at least", "<": "is less than", "≤": "is at most"}
_UPDATED: Final = "Alarm updated from "
_DONE: Final = "Successfully executed action "
_NOT_DONE: Final = "Failed to execute action "


def condition(alarm: Mapping[str, Any]) -> str:
    """The condition that an alarm fires by, in words."""
    if "AlarmRule" in alarm:
        return str(alarm["AlarmRule"])
    sign = _COMPARISONS.get(alarm["ComparisonOperator"], alarm["ComparisonOperator"])
    periods = alarm["EvaluationPeriods"]
    enough = alarm.get("DatapointsToAlarm", periods)
    seconds = period_seconds(alarm)
    period = f"{seconds // 60} min" if seconds % 60 == 0 else f"{seconds} s"
    count = f"{periods} {many(periods, 'period')}" if enough == periods else f"{enough} of {periods} periods"
    return f"{measure_text(alarm)} {sign} {figure(alarm['Threshold'])} for {count} of {period}"


def condition_words(alarm: Mapping[str, Any]) -> str:
    """The condition of an alarm as one says it: `Messages visible is more than 10 for 1 min`."""
    if "AlarmRule" in alarm or not alarm.get("MetricName"):
        return condition(alarm)
    metric = alarm["MetricName"]
    sign = _COMPARISONS.get(alarm["ComparisonOperator"], alarm["ComparisonOperator"])
    limit = value_words(metric, alarm["Threshold"])
    periods, period_ms = alarm["EvaluationPeriods"], 1000 * alarm["Period"]
    enough = alarm.get("DatapointsToAlarm", periods)
    times = (
        f"{enough} of {periods} times {span(period_ms)}" if enough != periods else span(periods * period_ms)
    )
    return f"{_metric_name(metric)} {_COMPARED.get(sign, sign)} {limit} for {times}"


def metric_of(alarm: Mapping[str, Any]) -> MetricName:
    """The one metric that an alarm watches; not each alarm watches one."""
    dimensions = sorted((each["Name"], each["Value"]) for each in alarm.get("Dimensions", ()))
    return MetricName(alarm["Namespace"], alarm["MetricName"], tuple(dimensions))


def measure_text(alarm: Mapping[str, Any]) -> str:
    """The statistic and the metric that an alarm compares, as CloudWatch names them."""
    if alarm.get("Metrics"):
        query = _result_query(alarm["Metrics"])
        return str(query.get("Label") or query.get("Expression") or query["Id"])
    statistic = alarm.get("Statistic") or alarm.get("ExtendedStatistic")
    return f"{statistic} of {alarm['MetricName']}"


def metric_texts(alarm: Mapping[str, Any]) -> list[str]:
    """The metrics that an alarm looks at, with their dimensions."""
    queries = alarm.get("Metrics") or ([{"MetricStat": {"Metric": alarm}}] if alarm.get("MetricName") else [])
    texts = []
    for query in queries:
        metric = query.get("MetricStat", {}).get("Metric")
        if metric is None:
            texts.append(f"{query['Id']} = {query.get('Expression', '')}")
        else:
            dimensions = ", ".join(f"{each['Name']} {each['Value']}" for each in metric.get("Dimensions", ()))
            name = f"{query['Id']} = " if "Id" in query else ""
            texts.append(
                f"{name}{metric['Namespace']} {metric['MetricName']} ({dimensions or 'no dimensions'})"
            )
    return texts


def things_of(alarm: Mapping[str, Any]) -> str:
    """The names of the things that a metric is about: `Rentals-DLQ`."""
    return ", ".join(str(each["Value"]) for each in alarm.get("Dimensions", ()))


def subject(alarm: Mapping[str, Any]) -> str:
    """The metric and its thing as one says them: `Messages visible of Rentals-DLQ`."""
    if not alarm.get("MetricName"):
        return "Metric"
    name = _metric_name(alarm["MetricName"])
    return f"{name} of {things}" if (things := things_of(alarm)) else name


def last_value(alarm: Mapping[str, Any], data: str | None) -> str:
    """The latest value that a change of state rests on; empty: it says none.

    Args:
        alarm: As it was defined.
        data: Of the change, as CloudWatch writes it for programs; any JSON where somebody set the state by hand.
    """
    values = json_text.document(data).get("recentDatapoints")
    value = values[-1] if isinstance(values, list) and values else None
    return value_words(alarm.get("MetricName"), value) if isinstance(value, int | float) else ""


def value_words(metric: str | None, value: float) -> str:
    """A value of a metric: an age as a span of time, others as figures; and an age that nothing has, as limits may be."""
    is_span = metric == _AGE and abs(value) < _SECONDS_MAX
    return span(int(1000 * value)) if is_span else figure(value)


def _metric_name(metric: str) -> str:
    return "Oldest message" if metric == _AGE else metric_words(metric)


def history_words(summary: str, data: str = "") -> str:
    """An entry of an alarm's history in short: `In alarm, was OK`, or `Told ops-alerts`."""
    if summary.startswith(_UPDATED):
        before, _, after = summary.removeprefix(_UPDATED).partition(" to ")
        return f"{STATES.get(after, after)}, was {STATES.get(before, before)}"
    for begin, verb in ((_DONE, "Told"), (_NOT_DONE, "Could not tell")):
        if summary.startswith(begin):
            error = json_text.document(data).get("error")
            return f"{verb} {summary.rpartition(':')[2]}{f': {error}' if error else ''}"
    return summary


def _result_query(queries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The query whose values an alarm compares."""
    return next((query for query in queries if query.get("ReturnData", True)), queries[0])


def period_seconds(alarm: Mapping[str, Any]) -> int:
    """The period of an alarm's metric, or of the first metric of its expression."""
    if alarm.get("Period"):
        return int(alarm["Period"])
    periods = [query["MetricStat"]["Period"] for query in alarm.get("Metrics", ()) if "MetricStat" in query]
    return int(periods[0]) if periods else 60
