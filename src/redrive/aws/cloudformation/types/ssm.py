"""Types of AWS Systems Manager."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    ResourceType,
    Wanted,
    pick,
    tag_list,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import Tagging
from redrive.aws.wire.errors import AwsError

_TAGS: Final = Tagging(
    "ssm", "ListTagsForResource", "AddTagsToResource", "RemoveTagsFromResource", listed="TagList"
)


class Parameter(ResourceType):
    """`AWS::SSM::Parameter`; its id is its name."""

    service = "ssm"
    name_property = "Name"
    name_chars_max = 1011

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        return await self._put(ask, wanted, overwrites=wanted.again)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        return await self._put(ask, wanted, overwrites=True)

    async def _put(self, ask: Ask, wanted: Wanted, *, overwrites: bool) -> Made:
        name = wanted.physical_id or wanted.name
        given = pick(wanted.properties, "Type", "Value", "Description", "AllowedPattern", "DataType")
        if not overwrites:
            given["Tags"] = tag_list(wanted.all_tags())
        await ask("ssm", "PutParameter", Name=name, Overwrite=overwrites, **given)
        if overwrites:  # which takes no tags
            await _TAGS.set(ask, wanted.all_tags(), ResourceType="Parameter", ResourceId=name)
        path = name if name.startswith("/") else f"/{name}"
        arn = wanted.arn("ssm", f"parameter{path}")
        return Made(name, {"Arn": arn, **pick(wanted.properties, "Type", "Value")})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(ask("ssm", "DeleteParameter", Name=wanted.physical_id))

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        try:
            found = (await ask("ssm", "GetParameter", Name=wanted.physical_id))["Parameter"]
        except AwsError as error:
            if error.code == "ParameterNotFound":
                return None
            raise
        return pick(found, "Name", "Type", "Value")


TYPES: Final[Mapping[str, Factory]] = {"AWS::SSM::Parameter": Parameter}
