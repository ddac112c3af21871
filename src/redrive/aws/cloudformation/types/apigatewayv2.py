"""Types of Amazon API Gateway's HTTP APIs."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.apigateway import ApiPartType, arn_of
from redrive.aws.cloudformation.types.calls import (
    Ask,
    ResourceSpec,
    ResourceState,
    TagCalls,
    defaults_of_removed,
    is_own,
    own_tags,
    pick,
    read_object,
    without_absence,
)
from redrive.aws.cloudformation.types.resource_type import ID, Description, Factory, Parameters, ResourceType

SERVICE: Final = "apigatewayv2"
_TAGS: Final = TagCalls(SERVICE, "GetTags", "TagResource", "UntagResource", pair=())
_API: Final = (
    *("Description", "Version", "CorsConfiguration", "DisableExecuteApiEndpoint", "IpAddressType"),
    *("RouteSelectionExpression", "ApiKeySelectionExpression", "DisableSchemaValidation"),
)
#: The values of settings of APIs and their parts that a template no longer has.
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
_QUICK_CREATE: Final = ("Target", "RouteKey", "CredentialsArn")


class ApiType(ResourceType):
    """`AWS::ApiGatewayV2::Api`; API Gateway chooses its id."""

    service, noun = SERVICE, "Api"
    name_property = "Name"
    keys: ClassVar[Parameters] = {"ApiId": ID}
    description = Description("GetApi", ("Name", *_API))

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        api_id = await self.find(ask, spec) if spec.may_exist else ""
        if not api_id:
            params = pick(properties, *_API, *_QUICK_CREATE)
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
        settings = pick(properties, "Name", *_API) | defaults_of_removed(before, properties, _API_DEFAULTS)
        await ask(SERVICE, "UpdateApi", ApiId=spec.physical_id, **settings)
        if "CorsConfiguration" in before and "CorsConfiguration" not in properties:
            await ask(SERVICE, "DeleteCorsConfiguration", ApiId=spec.physical_id)
        await _TAGS.set(ask, own_tags(spec), ResourceArn=arn_of(spec, f"/apis/{spec.physical_id}"))
        return await self._state(ask, spec.physical_id)

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        answer = await ask(SERVICE, "GetApis")
        return next((api["ApiId"] for api in answer["Items"] if is_own(spec, api.get("Tags"))), "")

    async def _define(self, ask: Ask, api: str, properties: Mapping[str, Any]) -> None:
        """Replace an API by its definition, where it has one; other properties of the template override it."""
        if "Body" in properties:
            body = json.dumps(properties["Body"])
        elif "BodyS3Location" in properties:
            body = (await read_object(ask, properties["BodyS3Location"])).decode("utf-8", "replace")
        else:
            return
        await ask(SERVICE, "ReimportApi", ApiId=api, Body=body)
        if settings := pick(properties, "Name", *_API):
            await ask(SERVICE, "UpdateApi", ApiId=api, **settings)

    async def _state(self, ask: Ask, api: str) -> ResourceState:
        answer = await ask(SERVICE, "GetApi", ApiId=api)
        return ResourceState(api, {"ApiId": api, "ApiEndpoint": answer["ApiEndpoint"]})


class HttpApiPartType(ApiPartType):
    """A type of parts of HTTP APIs."""

    service = SERVICE
    api_property = "ApiId"
    key_properties: ClassVar[tuple[str, ...]] = ()
    default_params: ClassVar[Mapping[str, Any]] = {}  # Required parameters that a template may leave out

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.id_member = self.id_property

    @override
    def params(self, spec: ResourceSpec) -> dict[str, Any]:
        return {**self.default_params, **spec.properties}

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        if self.noun != "Deployment":
            settings = {**spec.properties, **defaults_of_removed(before, spec.properties, _PART_DEFAULTS)}
            await ask(SERVICE, f"Update{self.noun}", **{**settings, **self.identifiers(spec)})
        return self.state(spec.physical_id)


class RouteType(HttpApiPartType):
    """`AWS::ApiGatewayV2::Route`."""

    noun = "Route"
    key_properties: ClassVar[tuple[str, ...]] = ("RouteKey",)


class HttpAuthorizerType(HttpApiPartType):
    """`AWS::ApiGatewayV2::Authorizer`."""

    noun = "Authorizer"
    key_properties: ClassVar[tuple[str, ...]] = ("Name",)
    default_params: ClassVar[Mapping[str, Any]] = {"IdentitySource": []}


class IntegrationType(HttpApiPartType):
    """`AWS::ApiGatewayV2::Integration`."""

    noun = "Integration"


class HttpDeploymentType(HttpApiPartType):
    """`AWS::ApiGatewayV2::Deployment`."""

    noun = "Deployment"


class HttpStageType(ResourceType):
    """`AWS::ApiGatewayV2::Stage`; its id is its name."""

    service, noun = SERVICE, "Stage"
    name_property = "StageName"
    name_chars_max = 128
    keys: ClassVar[Parameters] = {"ApiId": "ApiId", "StageName": ID}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        identifiers = self.identifiers(spec)
        if spec.may_exist and await without_absence(ask(SERVICE, "GetStage", **identifiers)) is not None:
            return ResourceState(spec.name)
        await ask(SERVICE, "CreateStage", Tags=spec.all_tags(), **{**_stage(spec.properties), **identifiers})
        return ResourceState(spec.name)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        settings = _stage(spec.properties) | defaults_of_removed(before, spec.properties, _STAGE_DEFAULTS)
        await ask(SERVICE, "UpdateStage", **{**settings, **self.identifiers(spec)})
        return ResourceState(spec.physical_id)


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
