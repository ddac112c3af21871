"""Types of Amazon CloudWatch Logs."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    ResourceSpec,
    ResourceState,
    ResourceType,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import TagCalls
from redrive.aws.wire.errors import AwsError

_TAGS: Final = TagCalls(
    "logs", "ListTagsForResource", "TagResource", "UntagResource", tags="tags", keys="tagKeys", pair=()
)


class LogGroupType(ResourceType):
    """`AWS::Logs::LogGroup`; its id is its name, and one that is there already is refused, as on AWS."""

    service = "logs"
    name_property = "LogGroupName"
    name_chars_max = 512

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        tags = spec.all_tags()
        params: dict[str, Any] = {"logGroupName": spec.name}
        if tags:
            params["tags"] = tags
        try:
            await ask("logs", "CreateLogGroup", **params)
        except AwsError as error:
            if not (spec.again and error.code == "ResourceAlreadyExistsException"):
                raise
        await self._retain(ask, spec)
        return self._state(spec, spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        await self._retain(ask, spec, clear="RetentionInDays" in before)
        group = spec.arn("logs", f"log-group:{spec.physical_id}")
        await _TAGS.set(ask, spec.all_tags(), resourceArn=group)
        return self._state(spec, spec.physical_id)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask("logs", "DeleteLogGroup", logGroupName=spec.physical_id))

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        answer = await ask("logs", "DescribeLogGroups", logGroupNamePrefix=spec.physical_id)
        for group in answer.get("logGroups") or ():
            if group["logGroupName"] == spec.physical_id:
                days = group.get("retentionInDays")
                return {"LogGroupName": spec.physical_id, **({"RetentionInDays": days} if days else {})}
        return None

    async def _retain(self, ask: Ask, spec: ResourceSpec, *, clear: bool = False) -> None:
        days = spec.properties.get("RetentionInDays")
        group = spec.physical_id or spec.name
        if days is not None:
            await ask("logs", "PutRetentionPolicy", logGroupName=group, retentionInDays=days)
        elif clear:
            await ask("logs", "DeleteRetentionPolicy", logGroupName=group)

    def _state(self, spec: ResourceSpec, name: str) -> ResourceState:
        return ResourceState(name, {"Arn": f"{spec.arn('logs', f'log-group:{name}')}:*"})


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::Logs::LogGroup": LogGroupType,
}
