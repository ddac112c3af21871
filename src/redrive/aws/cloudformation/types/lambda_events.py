"""Types of AWS Lambda that say who invokes functions, and how."""

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from redrive.aws.cloudformation.types.lambda_ import TAGS
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    PutResourceType,
    ResourceType,
    Wanted,
    cleared,
    pick,
    without_absence,
)
from redrive.aws.wire.errors import AwsError

_RENAMED: Final = {"KmsKeyArn": "KMSKeyArn"}


class Permission(ResourceType):
    """`AWS::Lambda::Permission`: a statement of a function's policy, known by its generated id."""

    service = "lambda"
    name_chars_max = 100

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = pick(
            wanted.properties,
            *("FunctionName", "Action", "Principal", "SourceArn", "SourceAccount"),
            *("EventSourceToken", "FunctionUrlAuthType", "PrincipalOrgID", "InvokedViaFunctionUrl"),
        )
        try:
            await ask("lambda", "AddPermission", StatementId=wanted.name, **given)
        except AwsError as error:
            if not (wanted.again and error.code == "ResourceConflictException"):
                raise
        return Made(wanted.name, {"Id": wanted.name})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        return Made(wanted.physical_id, {"Id": wanted.physical_id})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        function = wanted.properties["FunctionName"]
        statement = {"FunctionName": function, "StatementId": wanted.physical_id}
        await without_absence(ask("lambda", "RemovePermission", **statement))


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


class EventSourceMapping(ResourceType):
    """`AWS::Lambda::EventSourceMapping`; its id is what Lambda gives it."""

    service = "lambda"
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        if wanted.again and (found := await self.find(ask, wanted)):
            return await self._made(ask, found)
        params = _mapping(wanted.properties) | pick(wanted.properties, "EventSourceArn")
        if tags := wanted.all_tags():
            params["Tags"] = tags
        made = await ask("lambda", "CreateEventSourceMapping", **params)
        return await self._made(ask, made["UUID"], made)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        given = wanted.properties
        params = _mapping({**given, **cleared(before, given, _DEFAULTS)})
        await ask("lambda", "UpdateEventSourceMapping", UUID=wanted.physical_id, **params)
        made = await self._made(ask, wanted.physical_id)
        await TAGS.set(ask, wanted.all_tags(), Resource=made.attributes["EventSourceMappingArn"])
        return made

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(ask("lambda", "DeleteEventSourceMapping", UUID=wanted.physical_id))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        params = pick(wanted.properties, "EventSourceArn", "FunctionName")
        found = await without_absence(ask("lambda", "ListEventSourceMappings", **params))
        if found is None:
            return ""
        mappings = found.get("EventSourceMappings") or ()
        return mappings[0]["UUID"] if mappings else ""

    async def _made(self, ask: Ask, uuid: str, shown: Mapping[str, Any] | None = None) -> Made:
        found = shown or await ask("lambda", "GetEventSourceMapping", UUID=uuid)
        return Made(uuid, {"Id": uuid, "EventSourceMappingArn": found.get("EventSourceMappingArn", uuid)})


def _mapping(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {_RENAMED.get(name, name): properties[name] for name in _MAPPING if name in properties}


class EventInvokeConfig(PutResourceType):
    """`AWS::Lambda::EventInvokeConfig`: the settings of asynchronous invocations, known by a generated id."""

    service = "lambda"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        settings = pick(
            wanted.properties,
            *("FunctionName", "Qualifier", "DestinationConfig", "MaximumEventAgeInSeconds"),
            "MaximumRetryAttempts",
        )
        await ask("lambda", "PutFunctionEventInvokeConfig", **settings)
        return Made(wanted.physical_id or wanted.name)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = pick(wanted.properties, "FunctionName", "Qualifier")
        await without_absence(ask("lambda", "DeleteFunctionEventInvokeConfig", **named))


class Url(ResourceType):
    """`AWS::Lambda::Url`; its id is the ARN of its function."""

    service = "lambda"
    needs = "CreateFunctionUrlConfig"
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        try:
            made = await ask("lambda", "CreateFunctionUrlConfig", **_url(wanted.properties))
        except AwsError as error:
            if not (wanted.again and error.code == "ResourceConflictException"):
                raise
            made = await ask("lambda", "UpdateFunctionUrlConfig", **_url(wanted.properties))
        return _made_url(made)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        return _made_url(await ask("lambda", "UpdateFunctionUrlConfig", **_url(wanted.properties)))

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {
            key: value
            for key, value in _url(wanted.properties).items()
            if key in ("FunctionName", "Qualifier")
        }
        await without_absence(ask("lambda", "DeleteFunctionUrlConfig", **named))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        return str(wanted.properties["TargetFunctionArn"])


def _url(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "FunctionName": properties["TargetFunctionArn"],
        **pick(properties, "Qualifier", "AuthType", "Cors", "InvokeMode"),
    }


def _made_url(made: Mapping[str, Any]) -> Made:
    return Made(made["FunctionArn"], {"FunctionArn": made["FunctionArn"], "FunctionUrl": made["FunctionUrl"]})


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::Lambda::EventInvokeConfig": EventInvokeConfig,
    "AWS::Lambda::EventSourceMapping": EventSourceMapping,
    "AWS::Lambda::Permission": Permission,
    "AWS::Lambda::Url": Url,
}
