"""The event that a function gets of an alarm (recorded)."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from redrive.aws.cloudwatch.alarms.change import StateChange
from redrive.aws.cloudwatch.alarms.reasons import data_moment
from redrive.aws.cloudwatch.alarms.records import COMPOSITE, Alarm, State
from redrive.model.ids import id_text


def event(change: StateChange) -> dict[str, Any]:
    """The event that a function gets."""
    alarm = change.alarm
    return {
        "source": "aws.cloudwatch",
        "alarmArn": alarm.arn,
        "accountId": alarm.name.account,
        "time": data_moment(alarm.state.transitioned_at),
        "region": alarm.name.region,
        "alarmData": {
            "alarmName": alarm.name.name,
            "state": _state(alarm.state),
            "previousState": _state(change.before),
            "configuration": _configuration(alarm),
        },
    }


def _state(state: State) -> dict[str, Any]:
    state_members = {
        "value": state.value,
        "reason": state.reason,
        "reasonData": state.data,
        "timestamp": data_moment(state.transitioned_at),
    }
    return {name: value for name, value in state_members.items() if value is not None}


def _configuration(alarm: Alarm) -> dict[str, Any]:
    settings = alarm.given
    described = {"description": settings["AlarmDescription"]} if settings.get("AlarmDescription") else {}
    if alarm.kind == COMPOSITE:
        suppressor = {
            member: settings[name]
            for member, name in (
                ("actionsSuppressor", "ActionsSuppressor"),
                ("actionsSuppressorWaitPeriod", "ActionsSuppressorWaitPeriod"),
                ("actionsSuppressorExtensionPeriod", "ActionsSuppressorExtensionPeriod"),
            )
            if settings.get(name) is not None
        }
        return {**described, "alarmRule": settings["AlarmRule"], **suppressor}
    queries = settings.get("Metrics") or [_as_query(alarm)]
    return {**described, "metrics": [_event_query(query) for query in queries]}


def _as_query(alarm: Alarm) -> dict[str, Any]:
    settings = alarm.given
    metric = {name: settings[name] for name in ("Namespace", "MetricName", "Dimensions") if name in settings}
    stat = settings.get("Statistic") or settings["ExtendedStatistic"]
    unit = {"Unit": settings["Unit"]} if settings.get("Unit") else {}
    identity = id_text(sha256(alarm.arn.encode()).digest()[:16])  # a UUID of its own (recorded)
    return {
        "Id": identity,
        "MetricStat": {"Metric": metric, "Period": settings["Period"], "Stat": stat, **unit},
    }


def _event_query(query: Mapping[str, Any]) -> dict[str, Any]:
    returned = {"returnData": query.get("ReturnData") is not False}
    if expression := query.get("Expression"):
        labelled = {"label": query["Label"]} if query.get("Label") else {}
        return {"id": query["Id"], "expression": expression, **labelled, **returned}
    stat = query["MetricStat"]
    metric = {
        "namespace": stat["Metric"]["Namespace"],
        "name": stat["Metric"]["MetricName"],
        "dimensions": {
            dimension["Name"]: dimension["Value"] for dimension in stat["Metric"].get("Dimensions") or ()
        },
    }
    unit = {"unit": stat["Unit"]} if stat.get("Unit") else {}
    description = {"metric": metric, "period": stat["Period"], "stat": stat["Stat"], **unit}
    return {"id": query["Id"], "metricStat": description, **returned}
