"""Types of AWS Lambda for invocations: event sources, URLs, permissions, and what becomes of asynchronous events."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.calls import (
    Ask,
    ResourceSpec,
    ResourceState,
    defaults_of_removed,
    pick,
    unless_created,
    without_absence,
)
from redrive.aws.cloudformation.types.lambda_ import PARAMETER_NAMES, TAGS
from redrive.aws.cloudformation.types.resource_type import (
    ID,
    Factory,
    Parameters,
    ResourceType,
    Row,
    same_names,
)

_MAPPING: Final = (
    *("BatchSize", "Enabled", "FilterCriteria", "FunctionName", "FunctionResponseTypes"),
    *("MaximumBatchingWindowInSeconds", "ScalingConfig", "KmsKeyArn", "MetricsConfig"),
)


#: The values of settings of a mapping that a template no longer has.
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
    """`AWS::Lambda::EventSourceMapping`; Lambda chooses its id."""

    service, noun = "lambda", "EventSourceMapping"
    name_chars_max = 0
    keys: ClassVar[Parameters] = {"UUID": ID}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        if spec.may_exist and (mapping_id := await self.find(ask, spec)):
            return await self._state(ask, mapping_id)
        params = _mapping_params(spec.properties) | pick(spec.properties, "EventSourceArn")
        if tags := spec.all_tags():
            params["Tags"] = tags
        answer = await ask("lambda", "CreateEventSourceMapping", **params)
        return await self._state(ask, answer["UUID"], answer)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        properties = spec.properties
        params = _mapping_params({**properties, **defaults_of_removed(before, properties, _DEFAULTS)})
        await ask("lambda", "UpdateEventSourceMapping", UUID=spec.physical_id, **params)
        resource_state = await self._state(ask, spec.physical_id)
        await TAGS.set(ask, spec.all_tags(), Resource=resource_state.attributes["EventSourceMappingArn"])
        return resource_state

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        params = pick(spec.properties, "EventSourceArn", "FunctionName")
        answer = await without_absence(ask("lambda", "ListEventSourceMappings", **params))
        mappings = (answer or {}).get("EventSourceMappings") or ()
        return mappings[0]["UUID"] if mappings else ""

    async def _state(
        self, ask: Ask, uuid: str, description: Mapping[str, Any] | None = None
    ) -> ResourceState:
        mapping = description or await ask("lambda", "GetEventSourceMapping", UUID=uuid)
        return ResourceState(
            uuid, {"Id": uuid, "EventSourceMappingArn": mapping.get("EventSourceMappingArn", uuid)}
        )


def _mapping_params(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {PARAMETER_NAMES.get(name, name): value for name, value in pick(properties, *_MAPPING).items()}


class UrlType(ResourceType):
    """`AWS::Lambda::Url`; its id is the ARN of its function."""

    service, noun = "lambda", "FunctionUrlConfig"
    name_chars_max = 0
    keys: ClassVar[Parameters] = {"FunctionName": "TargetFunctionArn", "Qualifier": "Qualifier"}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        creation = ask("lambda", "CreateFunctionUrlConfig", **self._params(spec))
        answer = await unless_created(creation, spec, "ResourceConflictException")
        return await self.update(ask, spec, {}) if answer is None else _url_state(answer)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return _url_state(await ask("lambda", "UpdateFunctionUrlConfig", **self._params(spec)))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return str(spec.properties["TargetFunctionArn"])

    def _params(self, spec: ResourceSpec) -> dict[str, Any]:
        return self.identifiers(spec) | pick(spec.properties, "AuthType", "Cors", "InvokeMode")


def _url_state(answer: Mapping[str, Any]) -> ResourceState:
    return ResourceState(answer["FunctionArn"], pick(answer, "FunctionArn", "FunctionUrl"))


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::Lambda::EventInvokeConfig": Row(
        service="lambda",
        create="PutFunctionEventInvokeConfig",
        delete="DeleteFunctionEventInvokeConfig",
        keys=same_names("FunctionName", "Qualifier"),
        params=same_names("DestinationConfig", "MaximumEventAgeInSeconds", "MaximumRetryAttempts"),
        puts=True,
    ),
    "AWS::Lambda::EventSourceMapping": EventSourceMappingType,
    "AWS::Lambda::Permission": Row(
        service="lambda",
        create="AddPermission",
        delete="RemovePermission",
        keys={"FunctionName": "FunctionName", "StatementId": ID},
        params=same_names(
            *("Action", "Principal", "SourceArn", "SourceAccount", "EventSourceToken"),
            *("FunctionUrlAuthType", "PrincipalOrgID", "InvokedViaFunctionUrl"),
        ),
        exists_code="ResourceConflictException",
        attributes=("Id",),
        name_chars_max=100,
    ),
    "AWS::Lambda::Url": UrlType,
}
