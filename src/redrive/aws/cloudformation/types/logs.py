"""Types of Amazon CloudWatch Logs."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    ResourceType,
    Wanted,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import Tagging
from redrive.aws.wire.errors import AwsError

_TAGS: Final = Tagging(
    "logs", "ListTagsForResource", "TagResource", "UntagResource", tags="tags", keys="tagKeys", pair=()
)


class LogGroup(ResourceType):
    """`AWS::Logs::LogGroup`; its id is its name, and one that is there already is refused, as on AWS."""

    service = "logs"
    name_property = "LogGroupName"
    name_chars_max = 512

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        tags = wanted.all_tags()
        params: dict[str, Any] = {"logGroupName": wanted.name}
        if tags:
            params["tags"] = tags
        try:
            await ask("logs", "CreateLogGroup", **params)
        except AwsError as error:
            if not (wanted.again and error.code == "ResourceAlreadyExistsException"):
                raise
        await self._retain(ask, wanted)
        return self._made(wanted, wanted.name)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        await self._retain(ask, wanted, clear="RetentionInDays" in before)
        group = wanted.arn("logs", f"log-group:{wanted.physical_id}")
        await _TAGS.set(ask, wanted.all_tags(), resourceArn=group)
        return self._made(wanted, wanted.physical_id)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(ask("logs", "DeleteLogGroup", logGroupName=wanted.physical_id))

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        found = await ask("logs", "DescribeLogGroups", logGroupNamePrefix=wanted.physical_id)
        for group in found.get("logGroups") or ():
            if group["logGroupName"] == wanted.physical_id:
                days = group.get("retentionInDays")
                return {"LogGroupName": wanted.physical_id, **({"RetentionInDays": days} if days else {})}
        return None

    async def _retain(self, ask: Ask, wanted: Wanted, *, clear: bool = False) -> None:
        days = wanted.properties.get("RetentionInDays")
        group = wanted.physical_id or wanted.name
        if days is not None:
            await ask("logs", "PutRetentionPolicy", logGroupName=group, retentionInDays=days)
        elif clear:
            await ask("logs", "DeleteRetentionPolicy", logGroupName=group)

    def _made(self, wanted: Wanted, name: str) -> Made:
        return Made(name, {"Arn": f"{wanted.arn('logs', f'log-group:{name}')}:*"})


class LogStream(ResourceType):
    """`AWS::Logs::LogStream`; its id is its name."""

    service = "logs"
    name_property = "LogStreamName"
    name_chars_max = 512

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        named = {"logGroupName": wanted.properties["LogGroupName"], "logStreamName": wanted.name}
        try:
            await ask("logs", "CreateLogStream", **named)
        except AwsError as error:
            if not (wanted.again and error.code == "ResourceAlreadyExistsException"):
                raise
        return Made(wanted.name)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        return Made(wanted.physical_id)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {"logGroupName": wanted.properties["LogGroupName"], "logStreamName": wanted.physical_id}
        await without_absence(ask("logs", "DeleteLogStream", **named))


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::Logs::LogGroup": LogGroup,
    "AWS::Logs::LogStream": LogStream,
}
