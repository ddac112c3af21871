"""Types of Amazon API Gateway's HTTP APIs."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.apigateway import arn_of
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
from redrive.aws.cloudformation.types.stored_text import stored_text
from redrive.aws.cloudformation.types.tagging import TagCalls, is_own, own_tags

SERVICE: Final = "apigatewayv2"
_TAGS: Final = TagCalls(SERVICE, "GetTags", "TagResource", "UntagResource", pair=())
_API: Final = (
    *("Description", "Version", "CorsConfiguration", "DisableExecuteApiEndpoint", "IpAddressType"),
    *("RouteSelectionExpression", "ApiKeySelectionExpression", "DisableSchemaValidation"),
)
#: The settings that parts of APIs have again when their template says nothing more of them.
_API_DEFAULTS: Final[Mapping[str, Any]] = {
    "Description": "",
    "Version": "",
    "DisableExecuteApiEndpoint": False,
}
_PART_DEFAULTS: Final[Mapping[str, Any]] = {
    "Description": "",
    "OperationName": "",
    "AuthorizationType": "NONE",
    "PayloadFormatVersion": "1.0",
    "TimeoutInMillis": 30_000,
}
_STAGE_DEFAULTS: Final[Mapping[str, Any]] = {
    "AccessLogSettings": {},
    "AutoDeploy": False,
    "DefaultRouteSettings": {},
    "Description": "",
    "RouteSettings": {},
    "StageVariables": {},
}
_QUICK: Final = ("Target", "RouteKey", "CredentialsArn")


class ApiType(ResourceType):
    """`AWS::ApiGatewayV2::Api`; its id is what API Gateway gives it."""

    service = SERVICE
    name_property = "Name"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        api_id = await self.find(ask, spec) if spec.again else ""
        if not api_id:
            params = pick(properties, *_API, *_QUICK)
            name = text_of(properties.get("Name") or spec.name)
            kind = properties.get("ProtocolType", "HTTP")
            tags = own_tags(spec)
            answer = await ask(SERVICE, "CreateApi", Name=name, ProtocolType=kind, Tags=tags, **params)
            api_id = answer["ApiId"]
        await self._define(ask, api_id, properties)
        return await self._state(ask, api_id)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        properties = spec.properties
        if any(before.get(name) != properties.get(name) for name in ("Body", "BodyS3Location")):
            await self._define(ask, spec.physical_id, properties)
        settings = pick(properties, "Name", *_API) | cleared(before, properties, _API_DEFAULTS)
        await ask(SERVICE, "UpdateApi", ApiId=spec.physical_id, **settings)
        if "CorsConfiguration" in before and "CorsConfiguration" not in properties:
            await ask(SERVICE, "DeleteCorsConfiguration", ApiId=spec.physical_id)
        await _TAGS.set(ask, own_tags(spec), ResourceArn=arn_of(spec, f"/apis/{spec.physical_id}"))
        return await self._state(ask, spec.physical_id)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask(SERVICE, "DeleteApi", ApiId=spec.physical_id))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        answer = await ask(SERVICE, "GetApis")
        return next((api["ApiId"] for api in answer["Items"] if is_own(spec, api.get("Tags"))), "")

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        answer = await without_absence(ask(SERVICE, "GetApi", ApiId=spec.physical_id))
        return None if answer is None else pick(answer, "Name", *_API)

    async def _define(self, ask: Ask, api: str, properties: Mapping[str, Any]) -> None:
        """Let an API be what its definition says, where it has one; what the template says besides stands over it."""
        if "Body" in properties:
            body = json.dumps(properties["Body"])
        elif "BodyS3Location" in properties:
            body = (await stored_text(ask, properties["BodyS3Location"])).decode("utf-8", "replace")
        else:
            return
        await ask(SERVICE, "ReimportApi", ApiId=api, Body=body)
        if own := pick(properties, "Name", *_API):
            await ask(SERVICE, "UpdateApi", ApiId=api, **own)

    async def _state(self, ask: Ask, api: str) -> ResourceState:
        answer = await ask(SERVICE, "GetApi", ApiId=api)
        return ResourceState(api, {"ApiId": api, "ApiEndpoint": answer["ApiEndpoint"]})


class HttpApiPartType(ResourceType):
    """A type of what an API has under an id that it is given."""

    service = SERVICE
    name_chars_max = 0
    noun: ClassVar[str]  # The vendor's name of it in operations, and with `Id` that of its id
    named_by: ClassVar[str] = ""  # The property that tells it from others of its kind; empty: nothing does
    needed: ClassVar[Mapping[str, Any]] = {}  # Parameters that the API wants and templates may leave out

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        if spec.again and (part_id := await self.find(ask, spec)):
            return self._state(part_id)
        answer = await ask(SERVICE, f"Create{self.noun}", **{**self.needed, **spec.properties})
        return self._state(answer[f"{self.noun}Id"])

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        if self.noun != "Deployment":
            settings = {**spec.properties, **cleared(before, spec.properties, _PART_DEFAULTS)}
            await ask(SERVICE, f"Update{self.noun}", **{**settings, f"{self.noun}Id": spec.physical_id})
        return self._state(spec.physical_id)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {"ApiId": spec.properties["ApiId"], f"{self.noun}Id": spec.physical_id}
        await without_absence(ask(SERVICE, f"Delete{self.noun}", **identifiers))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        if not self.named_by:
            return ""
        answer = await without_absence(ask(SERVICE, f"Get{self.noun}s", ApiId=spec.properties["ApiId"]))
        for part in (answer or {}).get("Items") or ():
            if part[self.named_by] == spec.properties[self.named_by]:
                return str(part[f"{self.noun}Id"])
        return ""

    def _state(self, physical_id: str) -> ResourceState:
        return ResourceState(physical_id, {f"{self.noun}Id": physical_id})


class RouteType(HttpApiPartType):
    """`AWS::ApiGatewayV2::Route`."""

    noun, named_by = "Route", "RouteKey"


class HttpAuthorizerType(HttpApiPartType):
    """`AWS::ApiGatewayV2::Authorizer`."""

    noun, named_by = "Authorizer", "Name"
    needed: ClassVar[Mapping[str, Any]] = {"IdentitySource": []}


class IntegrationType(HttpApiPartType):
    """`AWS::ApiGatewayV2::Integration`."""

    noun = "Integration"


class HttpDeploymentType(HttpApiPartType):
    """`AWS::ApiGatewayV2::Deployment`."""

    noun = "Deployment"


class HttpStageType(ResourceType):
    """`AWS::ApiGatewayV2::Stage`; its id is its name."""

    service = SERVICE
    name_property = "StageName"
    name_chars_max = 128

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        identifiers = {"ApiId": spec.properties["ApiId"], "StageName": spec.name}
        if spec.again and await without_absence(ask(SERVICE, "GetStage", **identifiers)) is not None:
            return ResourceState(spec.name)
        await ask(SERVICE, "CreateStage", Tags=spec.all_tags(), **{**_stage(spec.properties), **identifiers})
        return ResourceState(spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        identifiers = {"ApiId": spec.properties["ApiId"], "StageName": spec.physical_id}
        settings = _stage(spec.properties) | cleared(before, spec.properties, _STAGE_DEFAULTS)
        await ask(SERVICE, "UpdateStage", **{**settings, **identifiers})
        return ResourceState(spec.physical_id)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {"ApiId": spec.properties["ApiId"], "StageName": spec.physical_id}
        await without_absence(ask(SERVICE, "DeleteStage", **identifiers))


def _stage(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name != "Tags"}


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::ApiGatewayV2::Api": ApiType,
    "AWS::ApiGatewayV2::Authorizer": HttpAuthorizerType,
    "AWS::ApiGatewayV2::Deployment": HttpDeploymentType,
    "AWS::ApiGatewayV2::Integration": IntegrationType,
    "AWS::ApiGatewayV2::Route": RouteType,
    "AWS::ApiGatewayV2::Stage": HttpStageType,
}
