"""Types of Amazon CloudWatch."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    PutResourceType,
    ResourceSpec,
    ResourceState,
    ResourceType,
    already_exists,
    as_text,
    tag_list,
    without_absence,
)

_ALARM: Final = (
    *("AlarmDescription", "ActionsEnabled", "OKActions", "AlarmActions", "InsufficientDataActions"),
    *("MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Dimensions", "Period", "Unit"),
    *("EvaluationPeriods", "DatapointsToAlarm", "Threshold", "ComparisonOperator", "TreatMissingData"),
    *("EvaluateLowSampleCountPercentile", "Metrics", "ThresholdMetricId"),
)
_COMPOSITE: Final = (
    *("AlarmDescription", "ActionsEnabled", "OKActions", "AlarmActions", "InsufficientDataActions"),
    *("AlarmRule", "ActionsSuppressor", "ActionsSuppressorWaitPeriod", "ActionsSuppressorExtensionPeriod"),
)


class AlarmType(ResourceType):
    """`AWS::CloudWatch::Alarm`; its id is its name."""

    service = "cloudwatch"
    name_property = "AlarmName"
    operation: ClassVar[str] = "PutMetricAlarm"
    kind: ClassVar[str] = "MetricAlarm"
    members: ClassVar[tuple[str, ...]] = _ALARM

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        if self.name_property in spec.properties and not spec.again:
            types = [self.kind]
            answer = await ask("cloudwatch", "DescribeAlarms", AlarmNames=[spec.name], AlarmTypes=types)
            if answer.get(f"{self.kind}s"):
                raise already_exists(spec)
        return await self._put(ask, spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return await self._put(ask, spec, spec.physical_id)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask("cloudwatch", "DeleteAlarms", AlarmNames=[spec.physical_id]))

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        names, types = [spec.physical_id], [self.kind]
        answer = await ask("cloudwatch", "DescribeAlarms", AlarmNames=names, AlarmTypes=types)
        alarms = answer.get(f"{self.kind}s") or ()
        return {name: alarms[0][name] for name in self.members if name in alarms[0]} if alarms else None

    async def _put(self, ask: Ask, spec: ResourceSpec, name: str) -> ResourceState:
        members = {member: spec.properties[member] for member in self.members if member in spec.properties}
        if tags := spec.all_tags():
            members["Tags"] = tag_list(tags)
        await ask("cloudwatch", self.operation, AlarmName=name, **members)
        return ResourceState(name, {"Arn": spec.arn("cloudwatch", f"alarm:{name}")})


class CompositeAlarmType(AlarmType):
    """`AWS::CloudWatch::CompositeAlarm`; its id is its name."""

    operation = "PutCompositeAlarm"
    kind = "CompositeAlarm"
    members = _COMPOSITE


class DashboardType(PutResourceType):
    """`AWS::CloudWatch::Dashboard`; its id is its name."""

    service = "cloudwatch"
    name_property = "DashboardName"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        name = spec.physical_id or spec.name
        body = as_text(spec.properties["DashboardBody"])
        await ask("cloudwatch", "PutDashboard", DashboardName=name, DashboardBody=body)
        return ResourceState(name)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask("cloudwatch", "DeleteDashboards", DashboardNames=[spec.physical_id]))


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::CloudWatch::Alarm": AlarmType,
    "AWS::CloudWatch::CompositeAlarm": CompositeAlarmType,
    "AWS::CloudWatch::Dashboard": DashboardType,
}
