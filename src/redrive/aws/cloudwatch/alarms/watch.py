"""Watches: the parts of an alarm's definition that evaluations need, made once for each definition.

They stay in memory with their alarms: reading a thousand documents a minute would cost more than evaluating them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

from redrive.aws.cloudwatch.alarms.records import ALARMS, METRIC, Alarm
from redrive.aws.cloudwatch.alarms.verdict import MISSING, PERIODS_BEYOND, Rule
from redrive.aws.cloudwatch.metrics.errors import error
from redrive.aws.cloudwatch.metrics.expressions import Node, read_expression
from redrive.aws.cloudwatch.metrics.own_metrics import MetricName, series_of, unit_of
from redrive.aws.cloudwatch.metrics.reading import dimensions_of
from redrive.aws.cloudwatch.metrics.statistic import Statistic, statistic
from redrive.engine.resources import Documents
from redrive.model.metric import Series
from redrive.model.names import ResourceName

_FEW: Final = 10
_HALF: Final = 50
ALARMS_MAX: Final = 5_000  # of an account's region (CloudWatch quotas); to count them takes 0.3 ms
_FINE_SECONDS = 60


@dataclass(frozen=True)
class WatchedMetric:
    """One metric that an alarm looks at."""

    id: str  # In expressions; empty if the alarm has none
    account: str  # Whose
    region: str  # Where
    metric: MetricName  # Which
    statistic: Statistic  # Statistic of its points
    unit: str | None  # Only points of that unit; None: of any

    @cached_property
    def series(self) -> Sequence[Series]:
        """The series whose points the metric's are."""
        return series_of(self.account, self.region, self.metric)

    @cached_property
    def own_unit(self) -> str | None:
        """The unit of all its points; None where each has its own."""
        return unit_of(self.metric)


@dataclass(frozen=True)
class AlarmWatch:
    """A metric alarm as evaluations need it."""

    alarm: Alarm
    rule: Rule  # Rule that its points are tested against
    period_seconds: int  # How long each period is
    sources: Sequence[WatchedMetric]
    expressions: Mapping[str, Node]  # On them, by their ids
    returned: str  # The id of what is compared with the threshold
    samples_min: float = 0  # With fewer samples a point decides nothing
    statistic: str | None = None  # In the words of CloudWatch, for reasons; None for expressions
    unit: str | None = None  # As the definition has it

    @property
    def periods(self) -> int:
        """The number of periods that each evaluation looks at."""
        return self.rule.periods + PERIODS_BEYOND

    @classmethod
    def of(cls, alarm: Alarm) -> Self:
        """The watch of a definition that has been checked."""
        settings = alarm.given
        rule = Rule(
            settings["ComparisonOperator"],
            settings["Threshold"],
            settings["EvaluationPeriods"],
            settings.get("DatapointsToAlarm") or settings["EvaluationPeriods"],
            settings.get("TreatMissingData") or MISSING,
        )
        if settings.get("Metrics"):
            return cls._of_queries(alarm, rule)
        source = _source(alarm, "", settings, settings.get("Statistic") or settings["ExtendedStatistic"])
        return cls(
            alarm,
            rule,
            settings["Period"],
            sources=[source],
            expressions={},
            returned="",
            samples_min=_samples_min(settings, source.statistic),
            statistic=source.statistic.name,
            unit=settings.get("Unit"),
        )

    @classmethod
    def _of_queries(cls, alarm: Alarm, rule: Rule) -> Self:
        """The watch of an alarm on queries, one of which returns data."""
        queries: list[Mapping[str, Any]] = alarm.given["Metrics"]
        metrics = [(query["Id"], query["MetricStat"]) for query in queries if "MetricStat" in query]
        expressions = [(query["Id"], query["Expression"]) for query in queries if "Expression" in query]
        (returned_id,) = (query["Id"] for query in queries if query.get("ReturnData") is not False)
        return cls(
            alarm,
            rule,
            period_of(queries),
            sources=[_source(alarm, id_, {**stat["Metric"], **stat}, stat["Stat"]) for id_, stat in metrics],
            expressions={id_: read_expression(text) for id_, text in expressions},
            returned=returned_id,
        )


def period_of(queries: Sequence[Mapping[str, Any]]) -> int:
    """The period of an alarm's queries (seconds), which all of its metrics share."""
    period_seconds: int = next(query["MetricStat"]["Period"] for query in queries if "MetricStat" in query)
    return period_seconds


def _source(alarm: Alarm, name: str, query: Mapping[str, Any], statistic_name: str) -> WatchedMetric:
    """The metric that an alarm, or one of its queries, watches."""
    requested_statistic = statistic(statistic_name)
    if requested_statistic is None:
        raise ValueError(f"there is no statistic {statistic_name}")
    metric = MetricName(query["Namespace"], query["MetricName"], dimensions_of(query.get("Dimensions")))
    return WatchedMetric(
        name, alarm.name.account, alarm.name.region, metric, requested_statistic, query.get("Unit")
    )


def _samples_min(settings: Mapping[str, Any], statistic: Statistic) -> float:
    """With fewer samples a percentile says nothing (CloudWatch user guide, "Percentile-based alarms and low data")."""
    if settings.get("EvaluateLowSampleCountPercentile") != "ignore" or statistic.percent is None:
        return 0
    share = (100 - statistic.percent if statistic.percent >= _HALF else statistic.percent) / 100
    return _FEW / share if share else 0


class AlarmRegistry:
    """Every alarm, as this node last read or wrote it, and what evaluations need of it."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._alarms: dict[str, Alarm] = {}
        self._watches: dict[str, AlarmWatch] = {}
        self._is_outdated = True
        self.on_change: Callable[[], None] = _nothing
        documents.on_write(self._follow_write)
        documents.on_change_elsewhere(self._follow_forget)

    async def follow(self) -> None:
        """Read all alarms again if another node changed any."""
        if not self._is_outdated:
            return
        self._is_outdated = False
        try:
            alarms = await self._documents.entries(ALARMS)
        except BaseException:
            self._is_outdated = True
            raise
        self._alarms.clear()
        self._watches.clear()
        for key, alarm in alarms:
            self._keep(key, alarm)

    @property
    def alarms(self) -> Iterable[Alarm]:
        """Every alarm."""
        return self._alarms.values()

    @property
    def watches(self) -> Iterable[AlarmWatch]:
        """The watch of each metric alarm."""
        return self._watches.values()

    @property
    def grain_seconds(self) -> int | None:
        """The time between two evaluations; None: there are no alarms."""
        if not self._alarms:
            return None
        fine = any(watch.period_seconds < _FINE_SECONDS for watch in self._watches.values())
        return 10 if fine else _FINE_SECONDS

    async def check_room(self, name: ResourceName) -> None:
        """Refuse an alarm that is new where its region has as many as it may; raises AwsError (`LimitExceededFault`)."""
        await self.follow()
        if name.key in self._alarms:
            return
        regions = [(each.name.account, each.name.region) for each in self._alarms.values()]
        if regions.count((name.account, name.region)) >= ALARMS_MAX:
            raise error(
                "LimitExceededFault",
                "The quota for the number of alarms for this customer has already been reached.",
            )

    def get(self, key: str) -> Alarm | None:
        """The alarm under a key."""
        return self._alarms.get(key)

    def _keep(self, key: str, alarm: Alarm) -> None:
        """Remember an alarm, and the watch of one that is evaluated by itself."""
        self._alarms[key] = alarm
        if alarm.kind == METRIC:
            self._watches[key] = AlarmWatch.of(alarm)
        else:
            self._watches.pop(key, None)

    def _follow_write(self, kind: str, key: str, value: object | None) -> None:
        """Keep up with a write of an alarm, or (`value` is None) its removal."""
        if kind != ALARMS.name:
            return
        if isinstance(value, Alarm):
            self._keep(key, value)
        else:
            self._alarms.pop(key, None)
            self._watches.pop(key, None)
        self.on_change()

    def _follow_forget(self, kind: str, _: str) -> None:
        if kind in ("", ALARMS.name):
            self._is_outdated = True
            self.on_change()


def _nothing() -> None:
    pass
