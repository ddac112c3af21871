"""Mail about an alarm: the form of the message that people read."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from redrive.aws.cloudwatch.alarms.change import StateChange, region_name, triggering
from redrive.aws.cloudwatch.alarms.records import COMPOSITE, Alarm

_LABEL_WIDTH: Final = 30


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
    opening = (
        f'The alarm "{alarm.name.name}" in the {region} region is {state.value} since {at}, because'
        f' "{state.reason}".'
    )
    blocks = [
        _block("Alarm Details", details),
        *_about(alarm),
        _block("State Change Actions", _actions(alarm)),
    ]
    return "\n\n".join([opening, *blocks]) + "\n"


def people_moment(at: int) -> str:
    """A moment as people read it: `Sunday 06 November, 2022 17:43:53 UTC`."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%A %d %B, %Y %H:%M:%S UTC")


def _about(alarm: Alarm) -> list[str]:
    settings = alarm.given
    if alarm.kind == COMPOSITE:
        children = {child["arn"]: child["state"]["value"] for child in triggering(alarm)}
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
