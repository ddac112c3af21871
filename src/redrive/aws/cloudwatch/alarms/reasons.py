"""The reason of a state, for people and for programs, as CloudWatch words them (recorded)."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import orjson

from redrive.aws.cloudwatch.alarms.records import ALARM, INSUFFICIENT_DATA
from redrive.aws.cloudwatch.alarms.verdict import BREACHING, AlarmVerdict, Datapoint, Rule

INITIAL: Final = "Unchecked: Initial alarm creation"
_PHRASES: Final = {
    "GreaterThanOrEqualToThreshold": "greater than or equal to",
    "GreaterThanThreshold": "greater than",
    "LessThanOrEqualToThreshold": "less than or equal to",
    "LessThanThreshold": "less than",
}
_PLAIN_MIN: Final = 1e-3
_PLAIN_END: Final = 1e7


def number_text(value: float) -> str:
    """A number as Java writes doubles: `1.0`, `3000.0`, `1.0E7`."""
    number = Decimal(repr(float(value)))
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_END:
        text = f"{number:f}"
        return text if "." in text else f"{text}.0"
    first, *others = number.normalize().as_tuple().digits
    return f"{'-' if value < 0 else ''}{first}.{''.join(map(str, others)) or '0'}E{number.adjusted()}"


def moment_text(at: int) -> str:
    """A moment as reasons have it: day, month and year of two digits each, UTC."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%d/%m/%y %H:%M:%S")


def data_moment(at: int) -> str:
    """A moment as JSON has it: `2026-09-25T04:12:07.082+0000`."""
    moment = datetime.fromtimestamp(at // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}+0000"


def reason_of(rule: Rule, verdict: AlarmVerdict, *, counted: bool) -> str:
    """The sentence; `counted`: the alarm has `DatapointsToAlarm`, so that the sentence says how many it takes, too."""
    if verdict.state == INSUFFICIENT_DATA:
        return f"Insufficient Data: {_number(rule.periods, 'datapoint')} {_was(rule.periods)} unknown."
    if not verdict.decisive:
        return f"Threshold Crossed: {_of_missing(rule, verdict)}"
    return f"Threshold Crossed: {_of_points(rule, verdict, counted=counted)}"


def _of_points(rule: Rule, verdict: AlarmVerdict, *, counted: bool) -> str:
    points, alarm = verdict.decisive, verdict.state == ALARM
    values = ", ".join(f"{number_text(point.value or 0.0)} ({moment_text(point.at)})" for point in points)
    compared = f"{_was(len(points))}{'' if alarm else ' not'} {_PHRASES[rule.comparison]}"
    threshold = f"the threshold ({number_text(rule.threshold)})"
    if not counted:
        return f"{_number(len(points), 'datapoint')} [{values}] {compared} {threshold}."
    least = rule.datapoints if alarm else rule.periods - rule.datapoints + 1
    way = "OK -> ALARM" if alarm else "ALARM -> OK"
    return (
        f"{len(points)} out of the last {_number(rule.periods, 'datapoint')} [{values}] {compared} {threshold}"
        f" (minimum {_number(least, 'datapoint')} for {way} transition)."
    )


def _of_missing(rule: Rule, verdict: AlarmVerdict) -> str:
    missing = verdict.missing
    treated = "Breaching" if rule.missing == BREACHING else "NonBreaching"
    return (
        f"no datapoints were received for {_number(missing, 'period')} and"
        f" {_number(missing, 'missing datapoint')} {_was(missing)} treated as [{treated}]."
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
    data: dict[str, Any] = {"version": "1.0", "queryDate": data_moment(now)}
    if real:
        data["startDate"] = data_moment(real[-1].at)
    if unit is not None:
        data["unit"] = unit
    if statistic is not None:
        data["statistic"] = statistic
    data |= {
        "period": period_seconds,
        "recentDatapoints": [point.value for point in reversed(real)],
        "threshold": rule.threshold,
        "evaluatedDatapoints": _evaluated(verdict.judged),
    }
    return orjson.dumps(data).decode()


def _evaluated(judged: Sequence[Datapoint]) -> list[dict[str, Any]]:
    return [
        {"timestamp": data_moment(point.at)}
        if point.value is None
        else {"timestamp": data_moment(point.at), "sampleCount": point.samples, "value": point.value}
        for point in judged
    ]
