"""Types of Amazon CloudWatch and CloudWatch Logs."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.calls import (
    Ask,
    ResourceSpec,
    ResourceState,
    TagCalls,
    already_exists,
    as_text,
    lower_first_keys,
    pick,
    tag_params,
    unless_created,
)
from redrive.aws.cloudformation.types.resource_type import (
    ID,
    Description,
    Factory,
    Parameters,
    PutResourceType,
    ResourceType,
    Row,
    lower_first_names,
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
    deletion = "DeleteAlarms"
    kind: ClassVar[str] = "MetricAlarm"
    members: ClassVar[tuple[str, ...]] = _ALARM

    def __init__(self, name: str) -> None:
        super().__init__(name)
        types = {"AlarmTypes": [self.kind]}
        self.description = Description(
            "DescribeAlarms", self.members, f"{self.kind}s", id="AlarmName", params=types
        )

    @override
    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        return {"AlarmNames": [spec.physical_id]}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        if self.name_property in spec.properties and not spec.may_exist:
            types = [self.kind]
            answer = await ask("cloudwatch", "DescribeAlarms", AlarmNames=[spec.name], AlarmTypes=types)
            if answer.get(f"{self.kind}s"):
                raise already_exists(spec)
        return await self._put(ask, spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return await self._put(ask, spec, spec.physical_id)

    async def _put(self, ask: Ask, spec: ResourceSpec, name: str) -> ResourceState:
        members = pick(spec.properties, *self.members) | tag_params(spec)
        await ask("cloudwatch", f"Put{self.kind}", AlarmName=name, **members)
        return ResourceState(name, {"Arn": spec.arn("cloudwatch", f"alarm:{name}")})


class CompositeAlarmType(AlarmType):
    """`AWS::CloudWatch::CompositeAlarm`; its id is its name."""

    kind = "CompositeAlarm"
    members = _COMPOSITE


class DashboardType(PutResourceType):
    """`AWS::CloudWatch::Dashboard`; its id is its name."""

    service = "cloudwatch"
    name_property = "DashboardName"
    deletion = "DeleteDashboards"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        name = spec.physical_id or spec.name
        body = as_text(spec.properties["DashboardBody"])
        await ask("cloudwatch", "PutDashboard", DashboardName=name, DashboardBody=body)
        return ResourceState(name)

    @override
    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        return {"DashboardNames": [spec.physical_id]}


# ---- CloudWatch Logs ------------------------------------------------------------------------------------------

_TAGS: Final = TagCalls(
    "logs", "ListTagsForResource", "TagResource", "UntagResource", tags="tags", keys="tagKeys", pair=()
)


class LogGroupType(ResourceType):
    """`AWS::Logs::LogGroup`; its id is its name, and one that exists is refused, as on AWS."""

    service, noun = "logs", "LogGroup"
    name_property = "LogGroupName"
    name_chars_max = 512
    keys: ClassVar[Parameters] = {"logGroupName": ID}
    description = Description(
        "DescribeLogGroups",
        ("LogGroupName", "RetentionInDays"),
        "logGroups",
        is_lowered=True,
        keys={"logGroupNamePrefix": ID},
        id="logGroupName",
    )

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        tags = spec.all_tags()
        params: dict[str, Any] = {"logGroupName": spec.name}
        if tags:
            params["tags"] = tags
        await unless_created(ask("logs", "CreateLogGroup", **params), spec, "ResourceAlreadyExistsException")
        await self._set_retention(ask, spec)
        return self._state(spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        await self._set_retention(ask, spec, clear="RetentionInDays" in before)
        group = spec.arn("logs", f"log-group:{spec.physical_id}")
        await _TAGS.set(ask, spec.all_tags(), resourceArn=group)
        return self._state(spec, spec.physical_id)

    async def _set_retention(self, ask: Ask, spec: ResourceSpec, *, clear: bool = False) -> None:
        """Set the retention; if the properties have none, `clear` removes an earlier one."""
        days = spec.properties.get("RetentionInDays")
        group = spec.physical_id or spec.name
        if days is not None:
            await ask("logs", "PutRetentionPolicy", logGroupName=group, retentionInDays=days)
        elif clear:
            await ask("logs", "DeleteRetentionPolicy", logGroupName=group)

    def _state(self, spec: ResourceSpec, name: str) -> ResourceState:
        return ResourceState(name, {"Arn": f"{spec.arn('logs', f'log-group:{name}')}:*"})


def _transformation(transformation: Mapping[str, Any]) -> dict[str, Any]:
    members = lower_first_keys(transformation)
    if "dimensions" in members:
        members["dimensions"] = {pair["Key"]: pair["Value"] for pair in members["dimensions"]}
    return members


def _transformations(transformations: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [_transformation(each) for each in transformations]


def _filter(kind: str, list_member: str, *properties: str) -> Row:
    """The type of a filter of a log group, with further properties; `list_member`: of the answer that lists filters."""
    return Row(
        service="logs",
        create=f"Put{kind}",
        delete=f"Delete{kind}",
        keys={"logGroupName": "LogGroupName", "filterName": ID},
        params=lower_first_names(
            "FilterPattern", "ApplyOnTransformedLogs", "FieldSelectionCriteria", *properties
        ),
        writers={"metricTransformations": _transformations},
        puts=True,
        name_property="FilterName",
        name_chars_max=512,
        description=Description(
            f"Describe{kind}s",
            ("FilterName", "LogGroupName", "FilterPattern"),
            list_member,
            is_lowered=True,
            keys={"logGroupName": "LogGroupName", "filterNamePrefix": ID},
            id="filterName",
        ),
    )


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::CloudWatch::Alarm": AlarmType,
    "AWS::CloudWatch::CompositeAlarm": CompositeAlarmType,
    "AWS::CloudWatch::Dashboard": DashboardType,
    "AWS::Logs::LogGroup": LogGroupType,
    "AWS::Logs::LogStream": Row(
        service="logs",
        create="CreateLogStream",
        delete="DeleteLogStream",
        keys={"logGroupName": "LogGroupName", "logStreamName": ID},
        exists_code="ResourceAlreadyExistsException",
        name_property="LogStreamName",
        name_chars_max=512,
    ),
    "AWS::Logs::MetricFilter": _filter(
        "MetricFilter", "metricFilters", "EmitSystemFieldDimensions", "MetricTransformations"
    ),
    "AWS::Logs::ResourcePolicy": Row(
        service="logs",
        create="PutResourcePolicy",
        delete="DeleteResourcePolicy",
        keys=lower_first_names("PolicyName"),
        params=lower_first_names("PolicyDocument"),
        writers={"policyDocument": as_text},
        puts=True,
        id="{PolicyName}",
        name_property="PolicyName",
    ),
    "AWS::Logs::SubscriptionFilter": _filter(
        "SubscriptionFilter",
        "subscriptionFilters",
        *("DestinationArn", "RoleArn", "Distribution", "EmitSystemFields"),
    ),
}
