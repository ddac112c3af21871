"""Types of Amazon API Gateway's HTTP APIs."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.apigateway import arn_of, is_own, own_tags
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    ResourceType,
    Wanted,
    cleared,
    pick,
    without_absence,
)
from redrive.aws.cloudformation.types.stored_text import stored_text
from redrive.aws.cloudformation.types.tagging import Tagging

SERVICE: Final = "apigatewayv2"
_TAGS: Final = Tagging(SERVICE, "GetTags", "TagResource", "UntagResource", pair=())
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


class Api(ResourceType):
    """`AWS::ApiGatewayV2::Api`; its id is what API Gateway gives it."""

    service = SERVICE
    name_property = "Name"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = wanted.properties
        found = await self.find(ask, wanted) if wanted.again else ""
        if not found:
            params = pick(given, *_API, *_QUICK)
            name = text_of(given.get("Name") or wanted.name)
            kind = given.get("ProtocolType", "HTTP")
            tags = own_tags(wanted)
            made = await ask(SERVICE, "CreateApi", Name=name, ProtocolType=kind, Tags=tags, **params)
            found = made["ApiId"]
        await self._define(ask, found, given)
        return await self._made(ask, found)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        given = wanted.properties
        if any(before.get(name) != given.get(name) for name in ("Body", "BodyS3Location")):
            await self._define(ask, wanted.physical_id, given)
        settings = pick(given, "Name", *_API) | cleared(before, given, _API_DEFAULTS)
        await ask(SERVICE, "UpdateApi", ApiId=wanted.physical_id, **settings)
        if "CorsConfiguration" in before and "CorsConfiguration" not in given:
            await ask(SERVICE, "DeleteCorsConfiguration", ApiId=wanted.physical_id)
        await _TAGS.set(ask, own_tags(wanted), ResourceArn=arn_of(wanted, f"/apis/{wanted.physical_id}"))
        return await self._made(ask, wanted.physical_id)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(ask(SERVICE, "DeleteApi", ApiId=wanted.physical_id))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        found = await ask(SERVICE, "GetApis")
        return next((api["ApiId"] for api in found["Items"] if is_own(wanted, api.get("Tags"))), "")

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        found = await without_absence(ask(SERVICE, "GetApi", ApiId=wanted.physical_id))
        return None if found is None else pick(found, "Name", *_API)

    async def _define(self, ask: Ask, api: str, given: Mapping[str, Any]) -> None:
        """Let an API be what its definition says, where it has one; what the template says besides stands over it."""
        if "Body" in given:
            body = json.dumps(given["Body"])
        elif "BodyS3Location" in given:
            body = (await stored_text(ask, given["BodyS3Location"])).decode("utf-8", "replace")
        else:
            return
        await ask(SERVICE, "ReimportApi", ApiId=api, Body=body)
        if own := pick(given, "Name", *_API):
            await ask(SERVICE, "UpdateApi", ApiId=api, **own)

    async def _made(self, ask: Ask, api: str) -> Made:
        found = await ask(SERVICE, "GetApi", ApiId=api)
        return Made(api, {"ApiId": api, "ApiEndpoint": found["ApiEndpoint"]})


class Part(ResourceType):
    """A type of what an API has under an id that it is given.

    Attributes:
        noun: The vendor's name of it in operations, and with `Id` that of its id.
    """

    service = SERVICE
    name_chars_max = 0
    noun: ClassVar[str]

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        if wanted.again and (found := await self.find(ask, wanted)):
            return self._made(found)
        made = await ask(SERVICE, f"Create{self.noun}", **wanted.properties)
        return self._made(made[f"{self.noun}Id"])

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        if self.noun != "Deployment":
            settings = {**wanted.properties, **cleared(before, wanted.properties, _PART_DEFAULTS)}
            await ask(SERVICE, f"Update{self.noun}", **{**settings, f"{self.noun}Id": wanted.physical_id})
        return self._made(wanted.physical_id)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {"ApiId": wanted.properties["ApiId"], f"{self.noun}Id": wanted.physical_id}
        await without_absence(ask(SERVICE, f"Delete{self.noun}", **named))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        if self.noun != "Route":
            return ""
        found = await without_absence(ask(SERVICE, "GetRoutes", ApiId=wanted.properties["ApiId"]))
        for route in (found or {}).get("Items") or ():
            if route["RouteKey"] == wanted.properties["RouteKey"]:
                return str(route["RouteId"])
        return ""

    def _made(self, physical_id: str) -> Made:
        return Made(physical_id, {f"{self.noun}Id": physical_id})


class Route(Part):
    """`AWS::ApiGatewayV2::Route`."""

    noun = "Route"


class Integration(Part):
    """`AWS::ApiGatewayV2::Integration`."""

    noun = "Integration"


class Deployment(Part):
    """`AWS::ApiGatewayV2::Deployment`."""

    noun = "Deployment"


class Stage(ResourceType):
    """`AWS::ApiGatewayV2::Stage`; its id is its name."""

    service = SERVICE
    name_property = "StageName"
    name_chars_max = 128

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        named = {"ApiId": wanted.properties["ApiId"], "StageName": wanted.name}
        if wanted.again and await without_absence(ask(SERVICE, "GetStage", **named)) is not None:
            return Made(wanted.name)
        await ask(SERVICE, "CreateStage", Tags=wanted.all_tags(), **{**_stage(wanted.properties), **named})
        return Made(wanted.name)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        named = {"ApiId": wanted.properties["ApiId"], "StageName": wanted.physical_id}
        settings = _stage(wanted.properties) | cleared(before, wanted.properties, _STAGE_DEFAULTS)
        await ask(SERVICE, "UpdateStage", **{**settings, **named})
        return Made(wanted.physical_id)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {"ApiId": wanted.properties["ApiId"], "StageName": wanted.physical_id}
        await without_absence(ask(SERVICE, "DeleteStage", **named))


def _stage(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name != "Tags"}


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::ApiGatewayV2::Api": Api,
    "AWS::ApiGatewayV2::Deployment": Deployment,
    "AWS::ApiGatewayV2::Integration": Integration,
    "AWS::ApiGatewayV2::Route": Route,
    "AWS::ApiGatewayV2::Stage": Stage,
}
