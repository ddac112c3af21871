"""Types of AWS Systems Manager."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    ResourceSpec,
    ResourceState,
    ResourceType,
    pick,
    tag_list,
    without_absence,
)
from redrive.aws.cloudformation.types.tagging import TagCalls
from redrive.aws.wire.errors import AwsError

_TAGS: Final = TagCalls(
    "ssm", "ListTagsForResource", "AddTagsToResource", "RemoveTagsFromResource", listed="TagList"
)


class ParameterType(ResourceType):
    """`AWS::SSM::Parameter`; its id is its name."""

    service = "ssm"
    name_property = "Name"
    name_chars_max = 1011
    name_beginning = "CFN"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        return await self._put(ask, spec, overwrites=spec.again)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return await self._put(ask, spec, overwrites=True)

    async def _put(self, ask: Ask, spec: ResourceSpec, *, overwrites: bool) -> ResourceState:
        name = spec.physical_id or spec.name
        params = pick(spec.properties, "Type", "Value", "Description", "AllowedPattern", "DataType")
        if not overwrites:
            params["Tags"] = tag_list(spec.all_tags())
        await ask("ssm", "PutParameter", Name=name, Overwrite=overwrites, **params)
        if overwrites:  # which takes no tags
            await _TAGS.set(ask, spec.all_tags(), ResourceType="Parameter", ResourceId=name)
        path = name if name.startswith("/") else f"/{name}"
        arn = spec.arn("ssm", f"parameter{path}")
        return ResourceState(name, {"Arn": arn, **pick(spec.properties, "Type", "Value")})

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask("ssm", "DeleteParameter", Name=spec.physical_id))

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        try:
            parameter = (await ask("ssm", "GetParameter", Name=spec.physical_id))["Parameter"]
        except AwsError as error:
            if error.code == "ParameterNotFound":
                return None
            raise
        return pick(parameter, "Name", "Type", "Value")


TYPES: Final[Mapping[str, Factory]] = {"AWS::SSM::Parameter": ParameterType}
