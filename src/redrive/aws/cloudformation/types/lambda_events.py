"""Types of AWS Lambda that say who invokes functions, and how."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.lambda_ import TAGS
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    ResourceSpec,
    ResourceState,
    ResourceType,
    cleared,
    pick,
    without_absence,
)
from redrive.aws.wire.errors import AwsError

_RENAMED: Final = {"KmsKeyArn": "KMSKeyArn"}


_MAPPING: Final = (
    *("BatchSize", "Enabled", "FilterCriteria", "FunctionName", "FunctionResponseTypes"),
    *("MaximumBatchingWindowInSeconds", "ScalingConfig", "KmsKeyArn", "MetricsConfig"),
)


#: The settings that a mapping has again when its template says nothing more of them.
_DEFAULTS: Final[Mapping[str, Any]] = {
    "BatchSize": 10,
    "Enabled": True,
    "FilterCriteria": {"Filters": []},
    "FunctionResponseTypes": [],
    "MaximumBatchingWindowInSeconds": 0,
    "MetricsConfig": {"Metrics": []},
    "ScalingConfig": {},
}


class EventSourceMappingType(ResourceType):
    """`AWS::Lambda::EventSourceMapping`; its id is what Lambda gives it."""

    service = "lambda"
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        if spec.again and (mapping_id := await self.find(ask, spec)):
            return await self._state(ask, mapping_id)
        params = _mapping(spec.properties) | pick(spec.properties, "EventSourceArn")
        if tags := spec.all_tags():
            params["Tags"] = tags
        answer = await ask("lambda", "CreateEventSourceMapping", **params)
        return await self._state(ask, answer["UUID"], answer)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        properties = spec.properties
        params = _mapping({**properties, **cleared(before, properties, _DEFAULTS)})
        await ask("lambda", "UpdateEventSourceMapping", UUID=spec.physical_id, **params)
        resource_state = await self._state(ask, spec.physical_id)
        await TAGS.set(ask, spec.all_tags(), Resource=resource_state.attributes["EventSourceMappingArn"])
        return resource_state

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask("lambda", "DeleteEventSourceMapping", UUID=spec.physical_id))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        params = pick(spec.properties, "EventSourceArn", "FunctionName")
        answer = await without_absence(ask("lambda", "ListEventSourceMappings", **params))
        if answer is None:
            return ""
        mappings = answer.get("EventSourceMappings") or ()
        return mappings[0]["UUID"] if mappings else ""

    async def _state(
        self, ask: Ask, uuid: str, description: Mapping[str, Any] | None = None
    ) -> ResourceState:
        mapping = description or await ask("lambda", "GetEventSourceMapping", UUID=uuid)
        return ResourceState(
            uuid, {"Id": uuid, "EventSourceMappingArn": mapping.get("EventSourceMappingArn", uuid)}
        )


def _mapping(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {_RENAMED.get(name, name): properties[name] for name in _MAPPING if name in properties}


class UrlType(ResourceType):
    """`AWS::Lambda::Url`; its id is the ARN of its function."""

    service = "lambda"
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        try:
            answer = await ask("lambda", "CreateFunctionUrlConfig", **_url(spec.properties))
        except AwsError as error:
            if not (spec.again and error.code == "ResourceConflictException"):
                raise
            answer = await ask("lambda", "UpdateFunctionUrlConfig", **_url(spec.properties))
        return _made_url(answer)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return _made_url(await ask("lambda", "UpdateFunctionUrlConfig", **_url(spec.properties)))

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {
            key: value for key, value in _url(spec.properties).items() if key in ("FunctionName", "Qualifier")
        }
        await without_absence(ask("lambda", "DeleteFunctionUrlConfig", **identifiers))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return str(spec.properties["TargetFunctionArn"])


def _url(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "FunctionName": properties["TargetFunctionArn"],
        **pick(properties, "Qualifier", "AuthType", "Cors", "InvokeMode"),
    }


def _made_url(answer: Mapping[str, Any]) -> ResourceState:
    return ResourceState(
        answer["FunctionArn"], {"FunctionArn": answer["FunctionArn"], "FunctionUrl": answer["FunctionUrl"]}
    )


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::Lambda::EventSourceMapping": EventSourceMappingType,
    "AWS::Lambda::Url": UrlType,
}
