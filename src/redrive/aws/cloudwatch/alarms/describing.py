"""Describing alarms and their history, by every filter, page by page; history that is too old is swept."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from redrive.aws.cloudwatch.alarms.operations import resource_name
from redrive.aws.cloudwatch.alarms.records import (
    ACTIONS,
    ALARMS,
    COMPOSITE,
    HISTORY,
    HISTORY_KEPT_MS,
    METRIC,
    Alarm,
    HistoryItem,
    history_prefix,
)
from redrive.aws.cloudwatch.alarms.rule import children_of
from redrive.aws.cloudwatch.metrics.errors import PAGES, combination
from redrive.aws.cloudwatch.metrics.own_metrics import MetricName
from redrive.aws.cloudwatch.metrics.reading import dimensions_of
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import Removal
from redrive.engine.resources import Documents

ALARM_PAGES: Final = replace(PAGES, size=50, size_max=100)
_OF_RELATIVES: Final = ("ChildrenOfAlarmName", "ParentsOfAlarmName")
#: Items that one call looks at: 0.2 s of processor time.
LOOKED_AT_MAX: Final = 10_000
_SWEPT_AT_ONCE: Final = 500


class Describing:
    """Shows alarms."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def describe_alarms(self, call: Call, params: Structure) -> Structure:
        _check(params)
        alarms = [alarm for alarm in await self._select(call, params) if _matches(alarm, params)]
        page, ending = ALARM_PAGES.cut("DescribeAlarms", params, alarms, _name)
        asks_for_relatives = any(params.get(name) for name in _OF_RELATIVES)
        items = [_relative(alarm) if asks_for_relatives else describe(alarm) for alarm in page]
        return {
            "CompositeAlarms": _of_kind(page, items, COMPOSITE),
            "MetricAlarms": _of_kind(page, items, METRIC),
            **({"LogAlarms": []} if _is_form(call) else {}),
            **ending,
        }

    async def _select(self, call: Call, params: Structure) -> Sequence[Alarm]:
        """The alarms that names, a prefix or kinship pick, in order of their names."""
        prefix = f"{call.account}/{call.region}/"
        if (names := params.get("AlarmNames")) is not None:
            candidates = [await self._alarm(f"{prefix}{name}") for name in dict.fromkeys(names)]
            return sorted((alarm for alarm in candidates if alarm is not None), key=_name)
        beginning = params.get("AlarmNamePrefix") or ""
        alarms = sorted(await self._documents.find(ALARMS, f"{prefix}{beginning}"), key=_name)
        if parent := params.get("ChildrenOfAlarmName"):
            return _children(alarms, parent)
        if child := params.get("ParentsOfAlarmName"):
            return [alarm for alarm in alarms if child in children_of(alarm)]
        return alarms

    async def _alarm(self, key: str) -> Alarm | None:
        return await self._documents.get(ALARMS, key)

    async def describe_alarms_for_metric(self, call: Call, params: Structure) -> Structure:
        dimensions = dimensions_of(params.get("Dimensions"))
        metric = MetricName(params["Namespace"], params["MetricName"], dimensions)
        alarms = await self._documents.find(ALARMS, f"{call.account}/{call.region}/")
        members = ("Statistic", "ExtendedStatistic", "Period", "Unit")
        matches = [
            alarm
            for alarm in sorted(alarms, key=_name)
            if metric in _metrics(alarm)
            and all(params.get(name) in (None, alarm.given.get(name)) for name in members)
        ]
        return {"MetricAlarms": [describe(alarm) for alarm in matches]}


def _is_form(call: Call) -> bool:
    """True of the Query protocol, which alone was recorded to list the alarms on logs, of which there are none here."""
    return call.request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")


def _check(params: Structure) -> None:
    """Refuse parameters that exclude each other."""
    names = params.get("AlarmNames")
    relatives = [name for name in _OF_RELATIVES if params.get(name)]
    if names is not None and params.get("AlarmNamePrefix") is not None:
        raise combination("AlarmNamePrefix and AlarmNames are mutually exclusive.")
    others = ("AlarmNames", "AlarmNamePrefix", "StateValue", "ActionPrefix", "AlarmTypes")
    if relatives and (len(relatives) > 1 or any(params.get(name) for name in others)):
        raise combination(f"{relatives[0]} can be combined with MaxRecords and NextToken alone.")


def _matches(alarm: Alarm, params: Structure) -> bool:
    """True if an alarm is of the types, the state and the actions asked for; relatives are of any type."""
    asks_for_relatives = any(params.get(name) for name in _OF_RELATIVES)
    if not asks_for_relatives and alarm.kind not in (params.get("AlarmTypes") or (METRIC,)):
        return False
    if params.get("StateValue") not in (None, alarm.state.value):
        return False
    prefix = params.get("ActionPrefix")
    return not prefix or any(arn.startswith(prefix) for state in ACTIONS for arn in alarm.actions(state))


def _children(alarms: Sequence[Alarm], parent: str) -> list[Alarm]:
    children = {name for alarm in alarms if alarm.name.name == parent for name in children_of(alarm)}
    return [alarm for alarm in alarms if alarm.name.name in children]


def _name(alarm: Alarm) -> str:
    return alarm.name.name


def _metrics(alarm: Alarm) -> Iterator[MetricName]:
    """The metrics that an alarm looks at."""
    if alarm.kind == METRIC and not alarm.given.get("Metrics"):
        yield _metric(alarm.given)
    for query in alarm.given.get("Metrics") or ():
        if stat := query.get("MetricStat"):
            yield _metric(stat["Metric"])


def _metric(query: Mapping[str, Any]) -> MetricName:
    return MetricName(query["Namespace"], query["MetricName"], dimensions_of(query.get("Dimensions")))


def _of_kind(alarms: Iterable[Alarm], items: Iterable[Structure], kind: str) -> list[Structure]:
    return [each for alarm, each in zip(alarms, items, strict=True) if alarm.kind == kind]


# ---- one alarm -------------------------------------------------------------------------------------------------


def describe(alarm: Alarm) -> Structure:
    """An alarm as it is shown: what was given, the lists always, and its state."""
    members: Structure = {"ActionsEnabled": True, **{name: [] for name in ACTIONS.values()}}
    if alarm.kind == METRIC and not alarm.given.get("Metrics"):
        members["Dimensions"] = []
    members |= alarm.given
    members |= {
        "AlarmArn": alarm.arn,
        "AlarmConfigurationUpdatedTimestamp": alarm.defined_at,
        "AlarmName": alarm.name.name,
        "StateReason": alarm.state.reason,
        "StateTransitionedTimestamp": alarm.state.transitioned_at,
        "StateUpdatedTimestamp": alarm.state.updated_at,
        "StateValue": alarm.state.value,
    }
    if alarm.state.data is not None:
        members["StateReasonData"] = alarm.state.data
    return members | _suppression(alarm)


def _suppression(alarm: Alarm) -> Structure:
    suppression = alarm.suppression
    if suppression is None:
        return {}
    return {"ActionsSuppressedBy": suppression["by"], "ActionsSuppressedReason": suppression["reason"]}


def _relative(alarm: Alarm) -> Structure:
    """A parent or a child, of which only this is shown."""
    description = describe(alarm)
    names = ("AlarmName", "AlarmArn", "StateValue", "StateUpdatedTimestamp")
    parents = ("AlarmRule",) if alarm.kind == COMPOSITE else ()
    return {name: description[name] for name in (*names, *parents)}


class History:
    """Shows what happened to alarms."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def describe_alarm_history(self, call: Call, params: Structure) -> Structure:
        name: str | None = params.get("AlarmName")
        prefix = (
            f"{call.account}/{call.region}/" if name is None else history_prefix(resource_name(call, name))
        )
        stored = await self._documents.find_versioned(HISTORY, prefix, limit=LOOKED_AT_MAX)
        items = {_document_key(key): item for key, _, item in stored if _item_matches(item, params)}
        descending = params.get("ScanBy") != "TimestampAscending"
        keys = sorted(items, reverse=descending)
        page, ending = ALARM_PAGES.cut("DescribeAlarmHistory", params, keys, str, descending=descending)
        return {"AlarmHistoryItems": [_as_structure(items[key]) for key in page], **ending}

    async def sweep(self, now: int) -> None:
        """Remove items that are too old."""
        after = ""
        while page := await self._documents.find_versioned(HISTORY, "", after, _SWEPT_AT_ONCE):
            after = page[-1][0]
            if old := [key for key, _, item in page if item.at < now - HISTORY_KEPT_MS]:
                await self._documents.write([Removal(HISTORY, key) for key in old])


def _document_key(key: str) -> str:
    """The place among all items, as text that sorts: later ones have the greater."""
    prefix, *numbers = key.rsplit("/", 3)
    position = "/".join(f"{10 ** len(number) - 1 - int(number):0{len(number)}d}" for number in numbers)
    return f"{position}/{prefix}"


def _item_matches(item: HistoryItem, params: Structure) -> bool:
    if item.kind not in (params.get("AlarmTypes") or (METRIC,)):
        return False
    if params.get("HistoryItemType") not in (None, item.type):
        return False
    begin, end = params.get("StartDate"), params.get("EndDate")
    return (begin is None or item.at >= begin) and (end is None or item.at <= end)


def _as_structure(item: HistoryItem) -> Structure:
    return {
        "AlarmName": item.alarm,
        "AlarmType": item.kind,
        "Timestamp": item.at,
        "HistoryItemType": item.type,
        "HistorySummary": item.summary,
        "HistoryData": item.data,
    }
