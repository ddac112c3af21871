"""The decision: what the points of an alarm's periods say about its state, and the reason as CloudWatch words it.

CloudWatch looks at more periods than the alarm has, so that late points count: here two more, as its published tables
have it for three. Where enough of them have a point, the newest decide and missing ones do not matter. Where not, the
missing ones are taken as `TreatMissingData` says. Source: CloudWatch user guide, "Configuring how CloudWatch alarms treat
missing data", whose tables are tests.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import orjson

from redrive.aws.cloudwatch.alarms.records import ALARM, INSUFFICIENT_DATA, OK
from redrive.aws.kit.java import java_double
from redrive.aws.wire.timestamps import to_offset_iso8601

PERIODS_BEYOND: Final = 2
MISSING: Final = "missing"
IGNORE: Final = "ignore"
BREACHING: Final = "breaching"
NOT_BREACHING: Final = "notBreaching"
TREATMENTS: Final = (BREACHING, NOT_BREACHING, IGNORE, MISSING)

COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanOrEqualToThreshold": operator.le,
    "LessThanThreshold": operator.lt,
}


class Datapoint(NamedTuple):
    """One period of an alarm's metric."""

    at: int  # When it begins (ms)
    value: float | None = None  # Value of the alarm's statistic; None: no data
    samples: float = 0.0  # How many samples it is of


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule by which an alarm judges its metric."""

    comparison: str  # `GreaterThanThreshold` …
    threshold: float  # Threshold for the points
    periods: int  # How many of the newest periods count: N
    datapoints: int  # How many of those have to breach: M
    missing: str = MISSING  # Treatment of missing points

    def breaches(self, datapoint: Datapoint) -> bool:
        """True if a point breaches the threshold."""
        return datapoint.value is not None and COMPARISONS[self.comparison](datapoint.value, self.threshold)


class AlarmVerdict(NamedTuple):
    """A state, and what decided it."""

    state: str  # `OK`, `ALARM` or `INSUFFICIENT_DATA`
    decisive: Sequence[Datapoint]  # The points that decided, newest first; none where missing ones did
    missing: int  # Number of periods without data that were treated as data
    judged: Sequence[Datapoint]  # All periods that were looked at, newest first


def decide(rule: Rule, window: Sequence[Datapoint]) -> AlarmVerdict | None:
    """The state that follows from the points; None if it stays as it is.

    The window has the newest periods, newest first, `rule.periods + PERIODS_BEYOND` of them.
    """
    real = [datapoint for datapoint in window if datapoint.value is not None][: rule.periods]
    missing = rule.periods - len(real)
    points = real if not missing else _judged_points(window, real, missing)
    breaches = [datapoint for datapoint in real if rule.breaches(datapoint)]
    calm = [datapoint for datapoint in real if not rule.breaches(datapoint)]
    assumed_breaches = missing if rule.missing == BREACHING else 0
    if len(breaches) + assumed_breaches >= rule.datapoints:
        return AlarmVerdict(ALARM, breaches, missing, points)
    if rule.missing in (BREACHING, NOT_BREACHING) or calm:
        return AlarmVerdict(OK, calm, missing, points)
    if rule.missing == IGNORE:
        return None
    if not breaches:
        return AlarmVerdict(INSUFFICIENT_DATA, (), missing, points)
    # Only breaching points, but fewer than M: ALARM once the oldest of them is as old as M periods.
    age = window.index(breaches[-1]) + 1
    return AlarmVerdict(ALARM, breaches, missing, points) if age >= rule.datapoints else None


def _judged_points(
    window: Sequence[Datapoint], real: Sequence[Datapoint], missing: int
) -> Sequence[Datapoint]:
    """The points that there are, and the newest periods without one, as many as are missing."""
    absent = [datapoint for datapoint in window if datapoint.value is None][:missing]
    return sorted((*real, *absent), reverse=True)


INITIAL: Final = "Unchecked: Initial alarm creation"
_PHRASES: Final = {
    "GreaterThanOrEqualToThreshold": "greater than or equal to",
    "GreaterThanThreshold": "greater than",
    "LessThanOrEqualToThreshold": "less than or equal to",
    "LessThanThreshold": "less than",
}


def moment_text(at: int) -> str:
    """A moment as reasons have it: day, month and year of two digits each, UTC."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%d/%m/%y %H:%M:%S")


def reason_of(rule: Rule, verdict: AlarmVerdict, *, is_m_of_n: bool) -> str:
    """The sentence; of an alarm with `DatapointsToAlarm` (`is_m_of_n`) it says how many it takes, too."""
    if verdict.state == INSUFFICIENT_DATA:
        return f"Insufficient Data: {_number(rule.periods, 'datapoint')} {_was(rule.periods)} unknown."
    if not verdict.decisive:
        return f"Threshold Crossed: {_of_missing(rule, verdict)}"
    return f"Threshold Crossed: {_of_points(rule, verdict, is_m_of_n=is_m_of_n)}"


def _of_points(rule: Rule, verdict: AlarmVerdict, *, is_m_of_n: bool) -> str:
    """The part of a reason about the datapoints that decided."""
    points, is_alarm = verdict.decisive, verdict.state == ALARM
    values = ", ".join(f"{java_double(point.value or 0.0)} ({moment_text(point.at)})" for point in points)
    comparison = f"{_was(len(points))}{'' if is_alarm else ' not'} {_PHRASES[rule.comparison]}"
    threshold = f"the threshold ({java_double(float(rule.threshold))})"
    if not is_m_of_n:
        return f"{_number(len(points), 'datapoint')} [{values}] {comparison} {threshold}."
    minimum = rule.datapoints if is_alarm else rule.periods - rule.datapoints + 1
    transition = "OK -> ALARM" if is_alarm else "ALARM -> OK"
    return (
        f"{len(points)} out of the last {_number(rule.periods, 'datapoint')} [{values}] {comparison} {threshold}"
        f" (minimum {_number(minimum, 'datapoint')} for {transition} transition)."
    )


def _of_missing(rule: Rule, verdict: AlarmVerdict) -> str:
    """The part of a reason about periods without datapoints."""
    missing = verdict.missing
    treatment = "Breaching" if rule.missing == BREACHING else "NonBreaching"
    return (
        f"no datapoints were received for {_number(missing, 'period')} and"
        f" {_number(missing, 'missing datapoint')} {_was(missing)} treated as [{treatment}]."
    )


def _number(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def data_of(
    rule: Rule,
    verdict: AlarmVerdict,
    now: int,
    *,
    statistic: str | None,  # the alarm's; None: it computes an expression
    unit: str | None,
    period_seconds: int,
) -> str:
    """The reason as JSON, with its members in their recorded order."""
    real = [point for point in verdict.judged if point.value is not None]
    data: dict[str, Any] = {"version": "1.0", "queryDate": to_offset_iso8601(now)}
    if real:
        data["startDate"] = to_offset_iso8601(real[-1].at)
    if unit is not None:
        data["unit"] = unit
    if statistic is not None:
        data["statistic"] = statistic
    data |= {
        "period": period_seconds,
        "recentDatapoints": [point.value for point in reversed(real)],
        "threshold": rule.threshold,
        "evaluatedDatapoints": _evaluated_points(verdict.judged),
    }
    return orjson.dumps(data).decode()


def _evaluated_points(judged: Sequence[Datapoint]) -> list[dict[str, Any]]:
    return [
        {"timestamp": to_offset_iso8601(point.at)}
        if point.value is None
        else {"timestamp": to_offset_iso8601(point.at), "sampleCount": point.samples, "value": point.value}
        for point in judged
    ]
