"""The notification of an alarm that topics publish, with its members in their order (recorded)."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from redrive.aws.cloudwatch.alarms.change import StateChange, region_name, triggering
from redrive.aws.cloudwatch.alarms.mail import mail
from redrive.aws.cloudwatch.alarms.reasons import data_moment
from redrive.aws.cloudwatch.alarms.records import COMPOSITE, Alarm
from redrive.aws.wire.shapes import Structure

SUBJECT_CHARS_MAX: Final = 100
_STATISTICS: Final = {
    "Average": "AVERAGE",
    "Maximum": "MAXIMUM",
    "Minimum": "MINIMUM",
    "SampleCount": "SAMPLE_COUNT",
    "Sum": "SUM",
}


def publication(change: StateChange, topic_arn: str) -> Structure:
    """The parameters of `Publish`."""
    subject = _subject(change.alarm)
    texts = {
        "default": orjson.dumps(_message(change)).decode(),
        "sms": subject,
        "email": mail(change),
    }
    return {
        "TopicArn": topic_arn,
        "Subject": subject,
        "Message": orjson.dumps(texts).decode(),
        "MessageStructure": "json",
    }


def _subject(alarm: Alarm) -> str:
    whole = f'{alarm.state.value}: "{alarm.name.name}" in {region_name(alarm.name.region)}'
    plain = "".join(character if " " <= character <= "~" else "?" for character in whole)
    return plain[:SUBJECT_CHARS_MAX]


# ---- for programs ----------------------------------------------------------------------------------------------


def _message(change: StateChange) -> dict[str, Any]:
    alarm, settings = change.alarm, change.alarm.given
    lists = {name: list(settings.get(name) or ()) for name in ("OKActions", "AlarmActions")}
    lists["InsufficientDataActions"] = list(settings.get("InsufficientDataActions") or ())
    old = {"OldStateValue": change.before.value}
    head = {
        "AlarmName": alarm.name.name,
        "AlarmDescription": settings.get("AlarmDescription"),
        "AWSAccountId": alarm.name.account,
        "AlarmConfigurationUpdatedTimestamp": data_moment(alarm.defined_at),
        "NewStateValue": alarm.state.value,
        "NewStateReason": alarm.state.reason,
        "StateChangeTime": data_moment(alarm.state.transitioned_at),
        "Region": region_name(alarm.name.region),
        "AlarmArn": alarm.arn,
    }
    if alarm.kind == COMPOSITE:
        return {**head, **lists, **old, "AlarmRule": settings["AlarmRule"], **_children(alarm)}
    return {**head, **old, **lists, "Trigger": _trigger(settings)}


def _children(alarm: Alarm) -> dict[str, Any]:
    children = triggering(alarm)
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
    counted = (
        {"DatapointsToAlarm": settings["DatapointsToAlarm"]} if settings.get("DatapointsToAlarm") else {}
    )
    compared = {
        "ComparisonOperator": settings["ComparisonOperator"],
        "Threshold": settings["Threshold"],
        "TreatMissingData": settings.get("TreatMissingData") or "missing",
        "EvaluateLowSampleCountPercentile": settings.get("EvaluateLowSampleCountPercentile") or "",
    }
    if queries := settings.get("Metrics"):
        period_seconds = next(query["MetricStat"]["Period"] for query in queries if query.get("MetricStat"))
        periods = {"Period": period_seconds, "EvaluationPeriods": settings["EvaluationPeriods"]}
        return {**periods, **counted, **compared, "Metrics": [_query(query) for query in queries]}
    return {
        "MetricName": settings["MetricName"],
        "Namespace": settings["Namespace"],
        **_statistic(settings),
        "Unit": settings.get("Unit"),
        "Dimensions": _dimensions(settings),
        "Period": settings["Period"],
        "EvaluationPeriods": settings["EvaluationPeriods"],
        **counted,
        **compared,
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
    returned = query.get("ReturnData") is not False
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
        labelled = {"Label": query["Label"]} if query.get("Label") else {}
        return {"Id": query["Id"], **labelled, "MetricStat": description, "ReturnData": returned}
    labelled = {"Label": query["Label"]} if query.get("Label") else {}
    return {"Expression": query["Expression"], "Id": query["Id"], **labelled, "ReturnData": returned}
