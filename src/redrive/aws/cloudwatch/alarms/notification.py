"""Messages of an alarm: the notification that topics publish, its mail for people, and the event that functions get.

Members stand in their order (recorded).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import orjson

from redrive.aws.cloudwatch.alarms.records import COMPOSITE, Alarm, State, StateChange
from redrive.aws.wire.shapes import Structure
from redrive.aws.wire.timestamps import to_offset_iso8601
from redrive.model.names import id_text

SUBJECT_CHARS_MAX: Final = 100
_STATISTICS: Final = {
    "Average": "AVERAGE",
    "Maximum": "MAXIMUM",
    "Minimum": "MINIMUM",
    "SampleCount": "SAMPLE_COUNT",
    "Sum": "SUM",
}
_LABEL_WIDTH: Final = 30


@cache
def region_name(region: str) -> str:
    """A region as people know it: `US East (N. Virginia)`; one that nobody published, by its code."""
    botocore = find_spec("botocore")
    if botocore is None or not botocore.submodule_search_locations:
        return region
    file = Path(botocore.submodule_search_locations[0], "data", "partitions.json")
    partitions: list[dict[str, Any]] = orjson.loads(file.read_bytes())["partitions"]
    names = {code: about for partition in partitions for code, about in partition["regions"].items()}
    name: str = names.get(region, {}).get("description", region)
    return name


def triggering_alarms(alarm: Alarm) -> Sequence[Mapping[str, Any]]:
    """The alarms that brought a composite one to its state, as its reason names them."""
    if not alarm.state.data:
        return ()
    alarms: Sequence[Mapping[str, Any]] = orjson.loads(alarm.state.data).get("triggeringAlarms", ())
    return alarms


def publication(change: StateChange, topic_arn: str) -> Structure:
    """The parameters of `Publish` that tell a topic of a change of state."""
    subject = _subject(change.alarm)
    texts = {"default": orjson.dumps(_message(change)).decode(), "sms": subject, "email": mail(change)}
    return {
        "TopicArn": topic_arn,
        "Subject": subject,
        "Message": orjson.dumps(texts).decode(),
        "MessageStructure": "json",
    }


def _subject(alarm: Alarm) -> str:
    text = f'{alarm.state.value}: "{alarm.name.name}" in {region_name(alarm.name.region)}'
    plain = "".join(character if " " <= character <= "~" else "?" for character in text)
    return plain[:SUBJECT_CHARS_MAX]


# ---- for programs ----------------------------------------------------------------------------------------------


def _message(change: StateChange) -> dict[str, Any]:
    """The JSON message to topics, its members in CloudWatch's order."""
    alarm, settings = change.alarm, change.alarm.given
    names = ("OKActions", "AlarmActions", "InsufficientDataActions")
    lists = {name: list(settings.get(name) or ()) for name in names}
    old = {"OldStateValue": change.before.value}
    head = {
        "AlarmName": alarm.name.name,
        "AlarmDescription": settings.get("AlarmDescription"),
        "AWSAccountId": alarm.name.account,
        "AlarmConfigurationUpdatedTimestamp": to_offset_iso8601(alarm.defined_at),
        "NewStateValue": alarm.state.value,
        "NewStateReason": alarm.state.reason,
        "StateChangeTime": to_offset_iso8601(alarm.state.transitioned_at),
        "Region": region_name(alarm.name.region),
        "AlarmArn": alarm.arn,
    }
    if alarm.kind == COMPOSITE:
        return {**head, **lists, **old, "AlarmRule": settings["AlarmRule"], **_children(alarm)}
    return {**head, **old, **lists, "Trigger": _trigger(settings)}


def _children(alarm: Alarm) -> dict[str, Any]:
    """The member of a message about the children that triggered a composite alarm."""
    children = triggering_alarms(alarm)
    return {
        "TriggeringChildren": [
            {
                "Arn": child["arn"],
                "State": {"Value": child["state"]["value"], "Timestamp": child["state"]["timestamp"]},
            }
            for child in children
        ]
    }


def _trigger(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a message for the metric or the queries, and for the threshold."""
    datapoints = (
        {"DatapointsToAlarm": settings["DatapointsToAlarm"]} if settings.get("DatapointsToAlarm") else {}
    )
    comparison = {
        "ComparisonOperator": settings["ComparisonOperator"],
        "Threshold": settings["Threshold"],
        "TreatMissingData": settings.get("TreatMissingData") or "missing",
        "EvaluateLowSampleCountPercentile": settings.get("EvaluateLowSampleCountPercentile") or "",
    }
    if queries := settings.get("Metrics"):
        period_seconds = next(query["MetricStat"]["Period"] for query in queries if query.get("MetricStat"))
        periods = {"Period": period_seconds, "EvaluationPeriods": settings["EvaluationPeriods"]}
        return {**periods, **datapoints, **comparison, "Metrics": [_query(query) for query in queries]}
    return {
        "MetricName": settings["MetricName"],
        "Namespace": settings["Namespace"],
        **_statistic(settings),
        "Unit": settings.get("Unit"),
        "Dimensions": _dimensions(settings),
        "Period": settings["Period"],
        "EvaluationPeriods": settings["EvaluationPeriods"],
        **datapoints,
        **comparison,
    }


def _statistic(settings: Mapping[str, Any]) -> dict[str, Any]:
    if extended := settings.get("ExtendedStatistic"):
        return {"StatisticType": "ExtendedStatistic", "ExtendedStatistic": extended}
    return {"StatisticType": "Statistic", "Statistic": _STATISTICS[settings["Statistic"]]}


def _dimensions(metric: Mapping[str, Any]) -> list[dict[str, str]]:
    """Dimensions with their members in lower case and in this order."""
    return [
        {"value": dimension["Value"], "name": dimension["Name"]}
        for dimension in metric.get("Dimensions") or ()
    ]


def _query(query: Mapping[str, Any]) -> dict[str, Any]:
    """A query as messages have it."""
    returns_data = query.get("ReturnData") is not False
    label = {"Label": query["Label"]} if query.get("Label") else {}
    if stat := query.get("MetricStat"):
        metric = stat["Metric"]
        description = {
            "Metric": {
                "Dimensions": _dimensions(metric),
                "MetricName": metric["MetricName"],
                "Namespace": metric["Namespace"],
            },
            "Period": stat["Period"],
            "Stat": stat["Stat"],
            **({"Unit": stat["Unit"]} if stat.get("Unit") else {}),
        }
        return {"Id": query["Id"], **label, "MetricStat": description, "ReturnData": returns_data}
    return {"Expression": query["Expression"], "Id": query["Id"], **label, "ReturnData": returns_data}


def event(change: StateChange) -> dict[str, Any]:
    """The event that a function gets."""
    alarm = change.alarm
    return {
        "source": "aws.cloudwatch",
        "alarmArn": alarm.arn,
        "accountId": alarm.name.account,
        "time": to_offset_iso8601(alarm.state.transitioned_at),
        "region": alarm.name.region,
        "alarmData": {
            "alarmName": alarm.name.name,
            "state": _state(alarm.state),
            "previousState": _state(change.before),
            "configuration": _configuration(alarm),
        },
    }


def _state(state: State) -> dict[str, Any]:
    """A state as events have it."""
    state_members = {
        "value": state.value,
        "reason": state.reason,
        "reasonData": state.data,
        "timestamp": to_offset_iso8601(state.transitioned_at),
    }
    return {name: value for name, value in state_members.items() if value is not None}


def _configuration(alarm: Alarm) -> dict[str, Any]:
    """An alarm's configuration as events have it."""
    settings = alarm.given
    description = {"description": settings["AlarmDescription"]} if settings.get("AlarmDescription") else {}
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
        return {**description, "alarmRule": settings["AlarmRule"], **suppressor}
    queries = settings.get("Metrics") or [_as_query(alarm)]
    return {**description, "metrics": [_event_query(query) for query in queries]}


def _as_query(alarm: Alarm) -> dict[str, Any]:
    """The only metric of an alarm as a query: events have a list of queries."""
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
    """A query as events have it."""
    return_data = {"returnData": query.get("ReturnData") is not False}
    if expression := query.get("Expression"):
        label = {"label": query["Label"]} if query.get("Label") else {}
        return {"id": query["Id"], "expression": expression, **label, **return_data}
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
    return {"id": query["Id"], "metricStat": description, **return_data}


def mail(change: StateChange) -> str:
    """The text: a sentence, and what it is about, block by block."""
    alarm, state = change.alarm, change.alarm.state
    region, at = region_name(alarm.name.region), people_moment(state.transitioned_at)
    details = {
        "Name": alarm.name.name,
        "Description": alarm.given.get("AlarmDescription") or "",
        "State Change": f"{change.before.value} -> {state.value}",
        "Reason for State Change": state.reason,
        "Timestamp": at,
        "AWS Account": alarm.name.account,
        "Alarm Arn": alarm.arn,
    }
    sentence = (
        f'The alarm "{alarm.name.name}" in the {region} region is {state.value} since {at}, because'
        f' "{state.reason}".'
    )
    blocks = [
        _block("Alarm Details", details),
        *_about(alarm),
        _block("State Change Actions", _actions(alarm)),
    ]
    return "\n\n".join([sentence, *blocks]) + "\n"


def people_moment(at: int) -> str:
    """A moment as people read it: `Sunday 06 November, 2022 17:43:53 UTC`."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%A %d %B, %Y %H:%M:%S UTC")


def _about(alarm: Alarm) -> list[str]:
    """The blocks of a mail about what the alarm watches."""
    settings = alarm.given
    if alarm.kind == COMPOSITE:
        children = {child["arn"]: child["state"]["value"] for child in triggering_alarms(alarm)}
        return [
            _block("Alarm Rule", {"Rule": settings["AlarmRule"]}),
            _block("Triggering children", children),
        ]
    threshold = (
        f"{settings['ComparisonOperator']} {settings['Threshold']} for"
        f" {settings.get('DatapointsToAlarm') or settings['EvaluationPeriods']} of the last"
        f" {settings['EvaluationPeriods']} periods"
    )
    metric = {
        name: str(settings[key])
        for name, key in (
            ("MetricNamespace", "Namespace"),
            ("MetricName", "MetricName"),
            ("Period", "Period"),
            ("Statistic", "Statistic"),
            ("Statistic", "ExtendedStatistic"),
            ("Unit", "Unit"),
            ("TreatMissingData", "TreatMissingData"),
        )
        if settings.get(key)
    }
    dimensions = {
        "Dimensions": ", ".join(
            f"{dimension['Name']} = {dimension['Value']}" for dimension in settings.get("Dimensions") or ()
        )
    }
    return [_block("Threshold", {"Threshold": threshold}), _block("Monitored Metric", metric | dimensions)]


def _actions(alarm: Alarm) -> dict[str, str]:
    return {state: ", ".join(alarm.actions(state)) for state in ("OK", "ALARM", "INSUFFICIENT_DATA")}


def _block(title: str, fields: Mapping[str, str]) -> str:
    lines = [f"{f'- {name}:':<{_LABEL_WIDTH}}{value}".rstrip() for name, value in fields.items()]
    return "\n".join([f"{title}:", *lines])
