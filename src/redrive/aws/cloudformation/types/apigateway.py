"""Types of Amazon API Gateway's REST APIs: the APIs, their resources, models and authorizers."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from redrive.aws.cloudformation.template.parameters import text_of
from redrive.aws.cloudformation.types.calls import (
    Ask,
    ResourceSpec,
    ResourceState,
    TagCalls,
    as_text,
    is_own,
    lower_first,
    lower_first_keys,
    own_tags,
    pick,
    read_object,
    without_absence,
)
from redrive.aws.cloudformation.types.resource_type import (
    ID,
    Description,
    Factory,
    Parameters,
    ResourceType,
    Row,
    lower_first_names,
)

SERVICE: Final = "apigateway"
_PAGE_MAX: Final = 500


def arn_of(spec: ResourceSpec, path: str) -> str:
    """The ARN of a resource that has tags: without an account."""
    return f"arn:aws:apigateway:{spec.stack.region}::{path}"


_BINARY: Final = "/binaryMediaTypes"  # each of which has a path of its own
#: Paths of members that `replace` without a value clears; others need `remove`.
_CLEARED_BY_REPLACE: Final = frozenset(
    {
        *("/description", "/customerId", "/enabled", "/schema", "/minimumCompressionSize"),
        *("/validateRequestBody", "/validateRequestParameters"),
    }
)


def patches(
    before: Mapping[str, Any], after: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, str]]:
    """The patch operations that change properties; `names`: their paths. Each key of a map has a path of its own."""
    operations: list[dict[str, str]] = []
    for name, path in names.items():
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            operations += _map_patches(old or {}, new or {}, path)
        elif path == _BINARY:  # each media type has a path, too
            operations += _map_patches(dict.fromkeys(old or (), ""), dict.fromkeys(new or (), ""), path)
        elif new is None:
            operations.append({"op": "replace" if path in _CLEARED_BY_REPLACE else "remove", "path": path})
        else:
            value = ",".join(map(text_of, new)) if isinstance(new, list) else as_text(new)
            operations.append({"op": "replace", "path": path, "value": value})
    return operations


def _map_patches(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[dict[str, str]]:
    """Patch operations that bring a map at a path from old to new entries."""
    for key in sorted(old.keys() | new.keys()):
        key_path = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in new:
            yield {"op": "remove", "path": key_path}
        elif old.get(key) != new[key]:
            yield {"op": "add" if key not in old else "replace", "path": key_path, "value": as_text(new[key])}


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
TAGS: Final = TagCalls(
    SERVICE, "GetTags", "TagResource", "UntagResource", tags="tags", keys="tagKeys", pair=()
)


class TaggedType(ResourceType):
    """A type of resources whose ids API Gateway chooses, and that their stack finds again by its tags."""

    service = SERVICE
    name_property = "Name"
    collection: ClassVar[str]  # The path of the collection of all such resources
    attribute: ClassVar[str]  # The attribute that is its id

    def params(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that it is created with, besides its name and tags."""
        raise NotImplementedError

    def operations(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
        """The patch operations that change it."""
        raise NotImplementedError

    def state(self, answer: Mapping[str, Any]) -> ResourceState:
        """The resource that an answer describes."""
        return ResourceState(answer["id"], {self.attribute: answer["id"]})

    async def existing_description(self, ask: Ask, own_id: str) -> Mapping[str, Any]:  # noqa: ARG002 - of those that have to ask
        """The part of an existing resource's description that `state` needs."""
        return {"id": own_id}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        if spec.may_exist and (own_id := await self.find(ask, spec)):
            return self.state(await self.existing_description(ask, own_id))
        name = text_of(spec.properties.get(self.name_property) or spec.name)
        params = {**self.params(spec.properties), "name": name, "tags": own_tags(spec)}
        return self.state(await ask(SERVICE, f"Create{self.noun}", **params))

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        operations = self.operations(before, spec.properties)
        answer = await ask(
            SERVICE, f"Update{self.noun}", **self.identifiers(spec), patchOperations=operations
        )
        await TAGS.set(ask, own_tags(spec), resourceArn=arn_of(spec, f"{self.collection}/{spec.physical_id}"))
        return self.state(answer)

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        """The id of the one that an interrupted step created, by the tags of the stack; empty: it created none."""
        position: dict[str, str] = {}
        while True:
            page = await ask(SERVICE, f"Get{self.noun}s", limit=_PAGE_MAX, **position)
            for item in page.get("items") or ():
                if is_own(spec, item.get("tags")):
                    return str(item["id"])
            if "position" not in page:
                return ""
            position = {"position": page["position"]}


class RestApiType(TaggedType):
    """`AWS::ApiGateway::RestApi`; API Gateway chooses its id."""

    noun, attribute, collection = "RestApi", "RestApiId", "/restapis"
    keys: ClassVar[Parameters] = {"restApiId": ID}
    description = Description("GetRestApi", ("Name", "Description"), is_lowered=True)

    @override
    def params(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        params = lower_first_keys(pick(properties, *_SETTINGS))
        if "Policy" in properties:
            params["policy"] = as_text(properties["Policy"])
        if "ApiKeySourceType" in properties:
            params["apiKeySource"] = properties["ApiKeySourceType"]
        if "EndpointConfiguration" in properties:
            endpoints = pick(properties["EndpointConfiguration"], "Types", "IpAddressType")
            params["endpointConfiguration"] = lower_first_keys(endpoints)
        return params

    @override
    def operations(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
        return patches(before, after, _API)

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        state = await super().create(ask, spec)
        await _put_body(ask, state.physical_id, spec.properties)
        return state

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        if any(before.get(name) != spec.properties.get(name) for name in _BODY):
            await _put_body(ask, spec.physical_id, spec.properties)
        return await super().update(ask, spec, before)

    @override
    async def existing_description(self, ask: Ask, own_id: str) -> Mapping[str, Any]:
        return await ask(SERVICE, "GetRestApi", restApiId=own_id)

    @override
    def state(self, answer: Mapping[str, Any]) -> ResourceState:
        own_id = answer["id"]
        return ResourceState(own_id, {"RestApiId": own_id, "RootResourceId": answer["rootResourceId"]})


_SETTINGS: Final = (
    "Description",
    "BinaryMediaTypes",
    "MinimumCompressionSize",
    "DisableExecuteApiEndpoint",
    "CloneFrom",
)
_BODY: Final = ("Body", "BodyS3Location", "Mode", "Parameters")


async def _put_body(ask: Ask, api_id: str, properties: Mapping[str, Any]) -> None:
    """Replace an API by its definition, where it has one."""
    if "Body" in properties:
        body = json.dumps(properties["Body"]).encode()
    elif "BodyS3Location" in properties:
        body = await read_object(ask, properties["BodyS3Location"])
    else:
        return
    texts = {name: text_of(value) for name, value in (properties.get("Parameters") or {}).items()}
    params = {"mode": properties.get("Mode", "overwrite"), "body": body, "parameters": texts}
    await ask(SERVICE, "PutRestApi", restApiId=api_id, **params)
    if "Name" in properties:  # it overrides the title of the definition
        operation = {"op": "replace", "path": "/name", "value": text_of(properties["Name"])}
        await ask(SERVICE, "UpdateRestApi", restApiId=api_id, patchOperations=[operation])


# ---- parts of APIs -----------------------------------------------------------------------------------------------------


class ApiPartType(ResourceType):
    """A type of parts of REST or HTTP APIs, whose ids API Gateway chooses."""

    name_chars_max = 0
    api_property: ClassVar[str]  # The property with the id of the API
    id_member: str  # The member of an answer that has the id of a part
    # The properties that distinguish a part from others; empty: none do.
    key_properties: ClassVar[tuple[str, ...]]
    list_params: ClassVar[Mapping[str, Any]] = {}  # Further parameters of the operation that lists parts

    @property
    def id_property(self) -> str:
        """The name of its id among parameters and attributes."""
        return f"{self.noun}Id"

    def spelling(self, name: str) -> str:
        """The service's spelling of a property."""
        return name

    def params(self, spec: ResourceSpec) -> dict[str, Any]:
        """The parameters that it is created with."""
        return {self.spelling(name): value for name, value in spec.properties.items()}

    def state(self, physical_id: str) -> ResourceState:
        """The resource of an id."""
        has_attribute = self.id_property in self.schema.read_only
        return ResourceState(physical_id, {self.id_property: physical_id} if has_attribute else {})

    @override
    def identifiers(self, spec: ResourceSpec) -> dict[str, Any]:
        return {**self._api(spec), self.spelling(self.id_property): spec.physical_id}

    def _api(self, spec: ResourceSpec) -> dict[str, Any]:
        return {self.spelling(self.api_property): spec.properties[self.api_property]}

    @override
    async def create(self, ask: Ask, spec: ResourceSpec) -> ResourceState:
        if spec.may_exist and (part_id := await self.find(ask, spec)):
            return self.state(part_id)
        answer = await ask(self.service, f"Create{self.noun}", **self.params(spec))
        return self.state(answer[self.id_member])

    @override
    async def find(self, ask: Ask, spec: ResourceSpec) -> str:
        """The id of the part with the properties that identify it, which an interrupted step created; empty: none."""
        if not self.key_properties:
            return ""
        request = ask(self.service, f"Get{self.noun}s", **self._api(spec), **self.list_params)
        params, names = self.params(spec), [self.spelling(name) for name in self.key_properties]
        for item in (await without_absence(request) or {}).get(self.spelling("Items")) or ():
            if all(item.get(name) == params.get(name) for name in names):
                return str(item[self.id_member])
        return ""


class RestApiPartType(ApiPartType):
    """A type of parts of REST APIs."""

    service = SERVICE
    api_property, id_member = "RestApiId", "id"
    key_properties: ClassVar[tuple[str, ...]] = ("Name",)
    list_params: ClassVar[Mapping[str, Any]] = {"limit": _PAGE_MAX}
    paths: ClassVar[Mapping[str, str]]  # Properties, and the paths by which they are changed

    @override
    def spelling(self, name: str) -> str:
        return lower_first(name)

    @override
    def params(self, spec: ResourceSpec) -> dict[str, Any]:
        has_name = spec.properties.get("Name") or "Name" not in self.schema.properties
        return super().params(spec) | ({} if has_name else {"name": "".join(filter(str.isalnum, spec.name))})

    @override
    async def update(self, ask: Ask, spec: ResourceSpec, before: Mapping[str, Any]) -> ResourceState:
        if operations := patches(before, spec.properties, self.paths):
            params = {**self.identifiers(spec), "patchOperations": operations}
            await ask(SERVICE, f"Update{self.noun}", **params)
        return self.state(spec.physical_id)


class ApiResourceType(RestApiPartType):
    """`AWS::ApiGateway::Resource`."""

    noun = "Resource"
    key_properties: ClassVar[tuple[str, ...]] = ("ParentId", "PathPart")
    paths: ClassVar[Mapping[str, str]] = {}


class ModelType(RestApiPartType):
    """`AWS::ApiGateway::Model`; its id is its name."""

    noun, id_member, id_property = "Model", "name", "ModelName"
    paths: ClassVar[Mapping[str, str]] = {"Description": "/description", "Schema": "/schema"}

    @override
    def params(self, spec: ResourceSpec) -> dict[str, Any]:
        params = {"contentType": "application/json", **super().params(spec)}
        return {**params, "schema": as_text(params.get("schema", "{}"))}


class RequestValidatorType(RestApiPartType):
    """`AWS::ApiGateway::RequestValidator`."""

    noun = "RequestValidator"
    paths: ClassVar[Mapping[str, str]] = {
        "ValidateRequestBody": "/validateRequestBody",
        "ValidateRequestParameters": "/validateRequestParameters",
    }


class RestAuthorizerType(RestApiPartType):
    """`AWS::ApiGateway::Authorizer`."""

    noun = "Authorizer"
    paths: ClassVar[Mapping[str, str]] = {
        name: f"/{lower_first(name)}"
        for name in (
            *("Name", "Type", "AuthType", "AuthorizerUri", "AuthorizerCredentials", "IdentitySource"),
            *("IdentityValidationExpression", "AuthorizerResultTtlInSeconds"),
        )
    }


TYPES: Final[Mapping[str, Factory]] = {
    "AWS::ApiGateway::Authorizer": RestAuthorizerType,
    "AWS::ApiGateway::GatewayResponse": Row(
        service="apigateway",
        create="PutGatewayResponse",
        delete="DeleteGatewayResponse",
        keys=lower_first_names("RestApiId", "ResponseType"),
        params=lower_first_names("StatusCode", "ResponseParameters", "ResponseTemplates"),
        puts=True,
        attributes=("Id",),
    ),
    "AWS::ApiGateway::Model": ModelType,
    "AWS::ApiGateway::RequestValidator": RequestValidatorType,
    "AWS::ApiGateway::Resource": ApiResourceType,
    "AWS::ApiGateway::RestApi": RestApiType,
}
