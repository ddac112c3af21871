"""Types of Amazon API Gateway's REST APIs."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.resource_type import (
    Ask,
    Factory,
    ResourceSpec,
    ResourceState,
    ResourceType,
    as_text,
    lowered,
    lowered_keys,
    pick,
    without_absence,
)
from redrive.aws.cloudformation.types.stored_text import stored_text
from redrive.aws.cloudformation.types.tagging import TagCalls, is_own, own_tags

SERVICE: Final = "apigateway"
_PAGE_MAX: Final = 500


def arn_of(spec: ResourceSpec, path: str) -> str:
    """The ARN by which API Gateway knows a resource for its tags: no account stands in it."""
    return f"arn:aws:apigateway:{spec.stack.region}::{path}"


_BINARY: Final = "/binaryMediaTypes"  # each of which has a path of its own
#: What is taken away by a replacement without a value.
_ONLY_REPLACED: Final = frozenset(
    {
        *("/description", "/customerId", "/enabled", "/schema", "/minimumCompressionSize"),
        *("/validateRequestBody", "/validateRequestParameters"),
    }
)


def patches(
    before: Mapping[str, Any], after: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, str]]:
    """The patch operations that lead from properties to others.

    Args:
        before: As they were.
        after: As they shall be.
        names: Properties, and the paths that they have; those of maps have a path for each key.
    """
    operations: list[dict[str, str]] = []
    for name, path in names.items():
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            operations += _of_map(old or {}, new or {}, path)
        elif path == _BINARY:
            operations += _of_map(dict.fromkeys(old or (), ""), dict.fromkeys(new or (), ""), path)
        elif new is None:
            operations.append({"op": "replace" if path in _ONLY_REPLACED else "remove", "path": path})
        else:
            value = ",".join(map(text_of, new)) if isinstance(new, list) else as_text(new)
            operations.append({"op": "replace", "path": path, "value": value})
    return operations


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
    "BinaryMediaTypes": _BINARY,
}
#: Of whatever it keeps tags for, named by ARNs.
TAGS: Final = TagCalls(
    SERVICE, "GetTags", "TagResource", "UntagResource", tags="tags", keys="tagKeys", pair=()
)


class RestApiType(ResourceType):
    """`AWS::ApiGateway::RestApi`; its id is what API Gateway gives it."""

    service = SERVICE
    name_property = "Name"

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        api_id = await self.find(ask, spec) if spec.again else ""
        if api_id:
            answer = await ask(SERVICE, "GetRestApi", restApiId=api_id)
        else:
            settings = lowered_keys(pick(properties, *_SETTINGS))
            if "Policy" in properties:
                settings["policy"] = as_text(properties["Policy"])
            if "ApiKeySourceType" in properties:
                settings["apiKeySource"] = properties["ApiKeySourceType"]
            if "EndpointConfiguration" in properties:
                settings["endpointConfiguration"] = _endpoints(properties["EndpointConfiguration"])
            name = text_of(properties.get("Name") or spec.name)
            answer = await ask(SERVICE, "CreateRestApi", tags=own_tags(spec), **{**settings, "name": name})
        await _put_body(ask, answer["id"], properties)
        return _made_api(answer)

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        api_id, properties = spec.physical_id, spec.properties
        if any(before.get(name) != properties.get(name) for name in _BODY):
            await _put_body(ask, api_id, properties)
        operations = patches(before, properties, _API)
        answer = await ask(SERVICE, "UpdateRestApi", restApiId=api_id, patchOperations=operations)
        await TAGS.set(ask, own_tags(spec), resourceArn=arn_of(spec, f"/restapis/{api_id}"))
        return _made_api(answer)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        await without_absence(ask(SERVICE, "DeleteRestApi", restApiId=spec.physical_id))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        return await found_by_tags(ask, spec, "GetRestApis")

    @override
    async def read(self, ask: Ask, spec: ResourceSpec) -> Mapping[str, Any] | None:
        answer = await without_absence(ask(SERVICE, "GetRestApi", restApiId=spec.physical_id))
        if answer is None:
            return None
        return {name: answer[lowered(name)] for name in ("Name", "Description") if lowered(name) in answer}


_SETTINGS: Final = (
    "Description",
    "BinaryMediaTypes",
    "MinimumCompressionSize",
    "DisableExecuteApiEndpoint",
    "CloneFrom",
)
_BODY: Final = ("Body", "BodyS3Location", "Mode", "Parameters")


async def found_by_tags(ask: Ask, spec: ResourceSpec, operation: str) -> str:
    """The id of what the stack made, among all that an operation lists; empty: it is not there."""
    position: dict[str, str] = {}
    while True:
        page = await ask(SERVICE, operation, limit=_PAGE_MAX, **position)
        for item in page.get("items") or ():
            if is_own(spec, item.get("tags")):
                return str(item["id"])
        if "position" not in page:
            return ""
        position = {"position": page["position"]}


def _endpoints(properties: Mapping[str, Any]) -> dict[str, Any]:
    return lowered_keys(pick(properties, "Types", "IpAddressType"))


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


def _made_api(answer: Mapping[str, Any]) -> ResourceState:
    return ResourceState(
        answer["id"], {"RestApiId": answer["id"], "RootResourceId": answer["rootResourceId"]}
    )


# ---- what APIs consist of --------------------------------------------------------------------------------------------


class ApiResourceType(ResourceType):
    """`AWS::ApiGateway::Resource`."""

    service = SERVICE
    name_chars_max = 0

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        properties = spec.properties
        if spec.again and (resource_id := await self.find(ask, spec)):
            return ResourceState(resource_id, {"ResourceId": resource_id})
        params = lowered_keys(pick(properties, "ParentId", "PathPart"))
        answer = await ask(SERVICE, "CreateResource", restApiId=properties["RestApiId"], **params)
        return ResourceState(answer["id"], {"ResourceId": answer["id"]})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        return ResourceState(spec.physical_id, {"ResourceId": spec.physical_id})

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {"restApiId": spec.properties["RestApiId"], "resourceId": spec.physical_id}
        await without_absence(ask(SERVICE, "DeleteResource", **identifiers))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        properties = spec.properties
        request = ask(SERVICE, "GetResources", restApiId=properties["RestApiId"], limit=_PAGE_MAX)
        answer = await without_absence(request)
        for item in (answer or {}).get("items") or ():
            if (item.get("parentId"), item.get("pathPart")) == (
                properties["ParentId"],
                properties["PathPart"],
            ):
                return str(item["id"])
        return ""


class RestApiPartType(ResourceType):
    """A type of what an API has under an id that it is given."""

    service = SERVICE
    name_chars_max = 0
    noun: ClassVar[str]  # The vendor's name of it in operations
    parameter: ClassVar[str]  # Of the operations that take its id
    created: ClassVar[str] = "id"  # The member of their answer with the id
    paths: ClassVar[Mapping[str, str]]  # Properties, and the paths by which they are changed

    def params(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that it is made by, besides the API's id."""
        return lowered_keys({name: value for name, value in properties.items() if name != "RestApiId"})

    def made(self, physical_id: str) -> ResourceState:
        """The resource as it was made."""
        name = f"{self.noun}Id"
        return ResourceState(physical_id, {name: physical_id} if name in self.schema.read_only else {})

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        if spec.again and (part_id := await self.find(ask, spec)):
            return self.made(part_id)
        properties = spec.properties
        if not properties.get("Name") and "Name" in self.schema.properties:
            properties = {**properties, "Name": _alphanumeric(spec.name)}
        params = self.params(properties)
        answer = await ask(SERVICE, f"Create{self.noun}", restApiId=spec.properties["RestApiId"], **params)
        return self.made(answer[self.created])

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        operations = patches(before, spec.properties, self.paths)
        identifiers = {"restApiId": spec.properties["RestApiId"], self.parameter: spec.physical_id}
        await ask(SERVICE, f"Update{self.noun}", patchOperations=operations, **identifiers)
        return self.made(spec.physical_id)

    @override
    async def delete(self, ask: Ask, spec: ResourceSpec) -> None:
        identifiers = {"restApiId": spec.properties["RestApiId"], self.parameter: spec.physical_id}
        await without_absence(ask(SERVICE, f"Delete{self.noun}", **identifiers))

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        api = spec.properties["RestApiId"]
        answer = await without_absence(ask(SERVICE, f"Get{self.noun}s", restApiId=api, limit=_PAGE_MAX))
        name = spec.properties.get("Name") or _alphanumeric(spec.name)
        for item in (answer or {}).get("items") or ():
            if item.get("name") == name:
                return str(item[self.created])
        return ""


def _alphanumeric(name: str) -> str:
    return "".join(char for char in name if char.isalnum())


class ModelType(RestApiPartType):
    """`AWS::ApiGateway::Model`; its id is its name."""

    noun, parameter, created = "Model", "modelName", "name"
    paths: ClassVar[Mapping[str, str]] = {"Description": "/description", "Schema": "/schema"}

    @override
    def params(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        text = as_text(properties["Schema"]) if "Schema" in properties else "{}"
        kind = properties.get("ContentType", "application/json")
        return {**super().params(properties), "schema": text, "contentType": kind}


class RequestValidatorType(RestApiPartType):
    """`AWS::ApiGateway::RequestValidator`."""

    noun, parameter = "RequestValidator", "requestValidatorId"
    paths: ClassVar[Mapping[str, str]] = {
        "ValidateRequestBody": "/validateRequestBody",
        "ValidateRequestParameters": "/validateRequestParameters",
    }


class RestAuthorizerType(RestApiPartType):
    """`AWS::ApiGateway::Authorizer`."""

    noun, parameter = "Authorizer", "authorizerId"
    paths: ClassVar[Mapping[str, str]] = {
        name: f"/{lowered(name)}"
        for name in (
            *("Name", "Type", "AuthType", "AuthorizerUri", "AuthorizerCredentials", "IdentitySource"),
            *("IdentityValidationExpression", "AuthorizerResultTtlInSeconds"),
        )
    }


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::ApiGateway::Authorizer": RestAuthorizerType,
    "AWS::ApiGateway::Model": ModelType,
    "AWS::ApiGateway::RequestValidator": RequestValidatorType,
    "AWS::ApiGateway::Resource": ApiResourceType,
    "AWS::ApiGateway::RestApi": RestApiType,
}
