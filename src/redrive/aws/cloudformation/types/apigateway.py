"""Types of Amazon API Gateway's REST APIs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    Made,
    PutResourceType,
    ResourceType,
    Wanted,
    as_text,
    lowered,
    lowered_keys,
    pick,
    without_absence,
)
from redrive.aws.cloudformation.types.stored_text import stored_text
from redrive.aws.cloudformation.types.tagging import Tagging

SERVICE: Final = "apigateway"
_STACK_ID: Final = "aws:cloudformation:stack-id"
_LOGICAL_ID: Final = "aws:cloudformation:logical-id"
_PAGE_MAX: Final = 500


def own_tags(wanted: Wanted) -> dict[str, str]:
    """The tags of what a stack made, by which it finds again what it made before it was cut short."""
    return {**wanted.all_tags(), _STACK_ID: wanted.stack_id, _LOGICAL_ID: wanted.logical_id}


def is_own(wanted: Wanted, tags: Mapping[str, str] | None) -> bool:
    """True if tags are those of what the stack made."""
    known = tags or {}
    return (known.get(_STACK_ID), known.get(_LOGICAL_ID)) == (wanted.stack_id, wanted.logical_id)


def arn_of(wanted: Wanted, path: str) -> str:
    """The ARN by which API Gateway knows a resource for its tags: no account stands in it."""
    return f"arn:aws:apigateway:{wanted.stack.region}::{path}"


def patches(
    before: Mapping[str, Any], after: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, str]]:
    """The patch operations that lead from properties to others.

    Args:
        before: As they were.
        after: As they shall be.
        names: Properties, and the paths that they have; those of maps have a path for each key.
    """
    found: list[dict[str, str]] = []
    for name, path in names.items():
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            found += _of_map(old or {}, new or {}, path)
        elif new is None:
            found.append({"op": "remove", "path": path})
        else:
            value = ",".join(map(text_of, new)) if isinstance(new, list) else as_text(new)
            found.append({"op": "replace", "path": path, "value": value})
    return found


def _of_map(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[dict[str, str]]:
    for key in sorted(old.keys() | new.keys()):
        at = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in new:
            yield {"op": "remove", "path": at}
        elif old.get(key) != new[key]:
            yield {"op": "add" if key not in old else "replace", "path": at, "value": as_text(new[key])}


# ---- APIs ------------------------------------------------------------------------------------------------------------

_API: Final[Mapping[str, str]] = {
    "Name": "/name",
    "Description": "/description",
    "ApiKeySourceType": "/apiKeySource",
    "DisableExecuteApiEndpoint": "/disableExecuteApiEndpoint",
    "MinimumCompressionSize": "/minimumCompressionSize",
    "Policy": "/policy",
    "BinaryMediaTypes": "/binaryMediaTypes",
}
#: Of whatever it keeps tags for, named by ARNs.
TAGS: Final = Tagging(
    SERVICE, "GetTags", "TagResource", "UntagResource", tags="tags", keys="tagKeys", pair=()
)


class RestApi(ResourceType):
    """`AWS::ApiGateway::RestApi`; its id is what API Gateway gives it."""

    service = SERVICE
    name_property = "Name"

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = wanted.properties
        found = await self.find(ask, wanted) if wanted.again else ""
        if found:
            made = await ask(SERVICE, "GetRestApi", restApiId=found)
        else:
            settings = lowered_keys(pick(given, *_SETTINGS))
            if "Policy" in given:
                settings["policy"] = as_text(given["Policy"])
            if "ApiKeySourceType" in given:
                settings["apiKeySource"] = given["ApiKeySourceType"]
            if "EndpointConfiguration" in given:
                settings["endpointConfiguration"] = _endpoints(given["EndpointConfiguration"])
            name = text_of(given.get("Name") or wanted.name)
            made = await ask(SERVICE, "CreateRestApi", tags=own_tags(wanted), **{**settings, "name": name})
        await _put_body(ask, made["id"], given)
        return _made_api(made)

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        api_id, given = wanted.physical_id, wanted.properties
        if any(before.get(name) != given.get(name) for name in _BODY):
            await _put_body(ask, api_id, given)
        operations = patches(before, given, _API)
        made = await ask(SERVICE, "UpdateRestApi", restApiId=api_id, patchOperations=operations)
        await TAGS.set(ask, own_tags(wanted), resourceArn=arn_of(wanted, f"/restapis/{api_id}"))
        return _made_api(made)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        await without_absence(ask(SERVICE, "DeleteRestApi", restApiId=wanted.physical_id))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        return await found_by_tags(ask, wanted, "GetRestApis")

    @override
    async def read(self, ask: Ask, wanted: Wanted) -> Mapping[str, Any] | None:
        found = await without_absence(ask(SERVICE, "GetRestApi", restApiId=wanted.physical_id))
        if found is None:
            return None
        return {name: found[lowered(name)] for name in ("Name", "Description") if lowered(name) in found}


_SETTINGS: Final = (
    "Description",
    "BinaryMediaTypes",
    "MinimumCompressionSize",
    "DisableExecuteApiEndpoint",
    "CloneFrom",
)
_BODY: Final = ("Body", "BodyS3Location", "Mode", "Parameters")


async def found_by_tags(ask: Ask, wanted: Wanted, operation: str) -> str:
    """The id of what the stack made, among all that an operation lists; empty: it is not there."""
    position: dict[str, str] = {}
    while True:
        page = await ask(SERVICE, operation, limit=_PAGE_MAX, **position)
        for item in page.get("items") or ():
            if is_own(wanted, item.get("tags")):
                return str(item["id"])
        if "position" not in page:
            return ""
        position = {"position": page["position"]}


def _endpoints(given: Mapping[str, Any]) -> dict[str, Any]:
    return lowered_keys(pick(given, "Types", "IpAddressType"))


async def _put_body(ask: Ask, api_id: str, properties: Mapping[str, Any]) -> None:
    """Let an API be what its definition says, where it has one."""
    if "Body" in properties:
        body = json.dumps(properties["Body"]).encode()
    elif "BodyS3Location" in properties:
        body = await stored_text(ask, properties["BodyS3Location"])
    else:
        return
    mode = properties.get("Mode", "overwrite")
    await ask(
        SERVICE,
        "PutRestApi",
        restApiId=api_id,
        mode=mode,
        body=body,
        parameters={name: text_of(value) for name, value in (properties.get("Parameters") or {}).items()},
    )
    if "Name" in properties:  # which a definition's title does not take the place of
        operation = {"op": "replace", "path": "/name", "value": text_of(properties["Name"])}
        await ask(SERVICE, "UpdateRestApi", restApiId=api_id, patchOperations=[operation])


def _made_api(made: Mapping[str, Any]) -> Made:
    return Made(made["id"], {"RestApiId": made["id"], "RootResourceId": made["rootResourceId"]})


# ---- what APIs consist of --------------------------------------------------------------------------------------------


class Resource(ResourceType):
    """`AWS::ApiGateway::Resource`."""

    service = SERVICE
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = wanted.properties
        if wanted.again and (found := await self.find(ask, wanted)):
            return Made(found, {"ResourceId": found})
        params = lowered_keys(pick(given, "ParentId", "PathPart"))
        made = await ask(SERVICE, "CreateResource", restApiId=given["RestApiId"], **params)
        return Made(made["id"], {"ResourceId": made["id"]})

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        return Made(wanted.physical_id, {"ResourceId": wanted.physical_id})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {"restApiId": wanted.properties["RestApiId"], "resourceId": wanted.physical_id}
        await without_absence(ask(SERVICE, "DeleteResource", **named))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        given = wanted.properties
        asked = ask(SERVICE, "GetResources", restApiId=given["RestApiId"], limit=_PAGE_MAX)
        found = await without_absence(asked)
        for item in (found or {}).get("items") or ():
            if (item.get("parentId"), item.get("pathPart")) == (given["ParentId"], given["PathPart"]):
                return str(item["id"])
        return ""


class Part(ResourceType):
    """A type of what an API has under an id that it is given.

    Attributes:
        noun: The vendor's name of it in operations.
        parameter: Of the operations that take its id.
        created: The member of their answer with the id.
        paths: Properties, and the paths by which they are changed.
    """

    service = SERVICE
    name_chars_max = 0
    noun: ClassVar[str]
    parameter: ClassVar[str]
    created: ClassVar[str] = "id"
    paths: ClassVar[Mapping[str, str]]

    def params(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that it is made by, besides the API's id."""
        return lowered_keys({name: value for name, value in properties.items() if name != "RestApiId"})

    def made(self, physical_id: str) -> Made:
        """The resource as it was made."""
        name = f"{self.noun}Id"
        return Made(physical_id, {name: physical_id} if name in self.schema.read_only else {})

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        if wanted.again and (found := await self.find(ask, wanted)):
            return self.made(found)
        properties = wanted.properties
        if not properties.get("Name") and "Name" in self.schema.properties:
            properties = {**properties, "Name": _alphanumeric(wanted.name)}
        params = self.params(properties)
        made = await ask(SERVICE, f"Create{self.noun}", restApiId=wanted.properties["RestApiId"], **params)
        return self.made(made[self.created])

    @override
    async def update(self, ask: Ask, wanted: Wanted, before: Mapping[str, Any]) -> Made:
        operations = patches(before, wanted.properties, self.paths)
        named = {"restApiId": wanted.properties["RestApiId"], self.parameter: wanted.physical_id}
        await ask(SERVICE, f"Update{self.noun}", patchOperations=operations, **named)
        return self.made(wanted.physical_id)

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        named = {"restApiId": wanted.properties["RestApiId"], self.parameter: wanted.physical_id}
        await without_absence(ask(SERVICE, f"Delete{self.noun}", **named))

    @override
    async def find(self, ask: Ask, wanted: Wanted) -> str:
        api = wanted.properties["RestApiId"]
        found = await without_absence(ask(SERVICE, f"Get{self.noun}s", restApiId=api, limit=_PAGE_MAX))
        name = wanted.properties.get("Name") or _alphanumeric(wanted.name)
        for item in (found or {}).get("items") or ():
            if item.get("name") == name:
                return str(item[self.created])
        return ""


def _alphanumeric(name: str) -> str:
    return "".join(char for char in name if char.isalnum())


class Model(Part):
    """`AWS::ApiGateway::Model`; its id is its name."""

    noun, parameter, created = "Model", "modelName", "name"
    paths: ClassVar[Mapping[str, str]] = {"Description": "/description", "Schema": "/schema"}

    @override
    def params(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        text = as_text(properties["Schema"]) if "Schema" in properties else "{}"
        kind = properties.get("ContentType", "application/json")
        return {**super().params(properties), "schema": text, "contentType": kind}


class RequestValidator(Part):
    """`AWS::ApiGateway::RequestValidator`."""

    noun, parameter = "RequestValidator", "requestValidatorId"
    paths: ClassVar[Mapping[str, str]] = {
        "ValidateRequestBody": "/validateRequestBody",
        "ValidateRequestParameters": "/validateRequestParameters",
    }


class GatewayResponse(PutResourceType):
    """`AWS::ApiGateway::GatewayResponse`, known by a generated id."""

    service = SERVICE

    @override
    async def create(self, ask: Ask, wanted: Wanted) -> Made:
        given = wanted.properties
        await ask(
            SERVICE,
            "PutGatewayResponse",
            restApiId=given["RestApiId"],
            responseType=given["ResponseType"],
            **lowered_keys(pick(given, "StatusCode", "ResponseParameters", "ResponseTemplates")),
        )
        made = wanted.physical_id or wanted.name
        return Made(made, {"Id": made})

    @override
    async def delete(self, ask: Ask, wanted: Wanted) -> None:
        given = wanted.properties
        named = {"restApiId": given["RestApiId"], "responseType": given["ResponseType"]}
        await without_absence(ask(SERVICE, "DeleteGatewayResponse", **named))


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::ApiGateway::GatewayResponse": GatewayResponse,
    "AWS::ApiGateway::Model": Model,
    "AWS::ApiGateway::RequestValidator": RequestValidator,
    "AWS::ApiGateway::Resource": Resource,
    "AWS::ApiGateway::RestApi": RestApi,
}
