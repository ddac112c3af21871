"""The decision: what the points of an alarm's periods say about its state.

CloudWatch looks at more periods than the alarm has, so that late points count: here two more, as its published tables
have it for three. Where enough of them have a point, the newest decide and missing ones do not matter. Where not, the
missing ones are taken as `TreatMissingData` says. Source: CloudWatch user guide, "Configuring how CloudWatch alarms treat
missing data", whose tables are tests.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from redrive.aws.cloudwatch.alarms.records import ALARM, INSUFFICIENT_DATA, OK

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
    judged = real if not missing else _judged(window, real, missing)
    breaching = [datapoint for datapoint in real if rule.breaches(datapoint)]
    calm = [datapoint for datapoint in real if not rule.breaches(datapoint)]
    assumed = missing if rule.missing == BREACHING else 0
    if len(breaching) + assumed >= rule.datapoints:
        return AlarmVerdict(ALARM, breaching, missing, judged)
    if rule.missing in (BREACHING, NOT_BREACHING) or calm:
        return AlarmVerdict(OK, calm, missing, judged)
    if rule.missing == IGNORE:
        return None
    if not breaching:
        return AlarmVerdict(INSUFFICIENT_DATA, (), missing, judged)
    age = window.index(breaching[-1]) + 1
    return AlarmVerdict(ALARM, breaching, missing, judged) if age >= rule.datapoints else None


def _judged(window: Sequence[Datapoint], real: Sequence[Datapoint], missing: int) -> Sequence[Datapoint]:
    """The points that there are, and the newest periods without one, as many as are missing."""
    absent = [datapoint for datapoint in window if datapoint.value is None][:missing]
    return sorted((*real, *absent), reverse=True)
