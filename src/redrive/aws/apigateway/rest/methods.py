"""Operations on the resources of REST APIs, their methods, integrations and responses."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from redrive.aws.apigateway.authorizers.rest import AUTHORIZERS, CUSTOM
from redrive.aws.apigateway.control.apis import Apis
from redrive.aws.apigateway.control.errors import PAGES, absent_as, bad_request, conflict, error, not_offered
from redrive.aws.apigateway.control.records import METHODS, RestApi, Tree, new_id, value_at, with_value
from redrive.aws.apigateway.mapping.sources import HANDLINGS
from redrive.aws.apigateway.rest.kinds import (
    INTEGRATION_RESPONSE,
    METHOD,
    METHOD_INTEGRATION,
    METHOD_RESPONSE,
    RESOURCE,
    RESOURCES,
    PartKind,
    apply_patches,
)
from redrive.aws.kit.call import Call
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

RESOURCES_MAX: Final = 300
_PART: Final = re.compile(r"[a-zA-Z0-9._~:$@*!'&(),;=+-]+|\{[a-zA-Z0-9._$:-]+\+?\}")
_GREEDY: Final = "+}"


class ResourceOperations:
    """Makes resources, and shows, moves and removes them."""

    def __init__(self, engine: Engine, apis: Apis[RestApi]) -> None:
        self._rng = engine.runtime.rng
        self._apis = apis

    async def create_resource(self, call: Call, params: Structure) -> Structure:
        resource_id = new_id(self._rng)

        def change(tree: Tree) -> Tree:
            return with_resource(tree, resource_id, params["parentId"], params["pathPart"])

        tree = await self._apis.edit_tree(call, params["restApiId"], change)
        return as_structure(tree[RESOURCES][resource_id])

    async def get_resources(self, call: Call, params: Structure) -> Structure:
        api = await self._apis.api(call, params["restApiId"])
        with_methods = "methods" in (params.get("embed") or ())
        resources = sorted(api.tree[RESOURCES].values(), key=lambda resource: str(resource["path"]))
        return PAGES.of(
            "GetResources",
            params,
            resources,
            lambda resource: as_structure(resource, with_methods=with_methods),
        )

    async def get_resource(self, call: Call, params: Structure) -> Structure:
        api = await self._apis.api(call, params["restApiId"])
        with_methods = "methods" in (params.get("embed") or ())
        return as_structure(RESOURCE.part_in(api.tree, params), with_methods=with_methods)

    async def update_resource(self, call: Call, params: Structure) -> Structure:
        resource_id = params["resourceId"]

        def change(tree: Tree) -> Tree:
            before = RESOURCE.part_in(tree, params)
            operations = params.get("patchOperations") or ()
            after = apply_patches(before, RESOURCE.shape, RESOURCE.rules, operations)
            if "parentId" not in before:
                member = "parentId" if "parentId" in after else "pathPart"
                raise bad_request(f"Root resource cannot update its {member}.")
            RESOURCE.part_in(tree, {"resourceId": after["parentId"]})  # refuses an absent parent
            if _is_below(tree, after["parentId"], resource_id):
                raise bad_request("Resources cannot be cyclical.")
            others = {key: resource for key, resource in tree[RESOURCES].items() if key != resource_id}
            path = _path_below(others[after["parentId"]], after["pathPart"], others.values())
            resources = {**tree[RESOURCES], resource_id: {**after, "path": path}}
            return {**tree, RESOURCES: _with_paths(resources)}

        tree = await self._apis.edit_tree(call, params["restApiId"], change)
        return as_structure(tree[RESOURCES][resource_id])

    async def delete_resource(self, call: Call, params: Structure) -> Structure:
        """https://docs.aws.amazon.com/apigateway/latest/api/API_DeleteResource.html; those below it go with it."""
        resource_id = params["resourceId"]

        def change(tree: Tree) -> Tree:
            if "parentId" not in RESOURCE.part_in(tree, params):
                raise bad_request("Root resource cannot be deleted")
            remaining = {
                key: resource
                for key, resource in tree[RESOURCES].items()
                if key != resource_id and not _is_below(tree, key, resource_id)
            }
            return {**tree, RESOURCES: remaining}

        await self._apis.edit_tree(call, params["restApiId"], change)
        return {}


def with_resource(tree: Tree, resource_id: str, parent_id: str, part: str) -> Tree:
    """The tree with a new resource; raises AwsError if its parent is absent, or its part of the path is not valid."""
    resources: Mapping[str, Mapping[str, Any]] = tree[RESOURCES]
    parent = RESOURCE.part_in(tree, {"resourceId": parent_id})
    if len(resources) >= RESOURCES_MAX:
        raise error("LimitExceededException", f"An API has at most {RESOURCES_MAX} resources")
    path = _path_below(parent, part, resources.values())
    resource = {"id": resource_id, "parentId": parent_id, "pathPart": part, "path": path}
    return {**tree, RESOURCES: {**resources, resource_id: resource}}


def _path_below(parent: Mapping[str, Any], part: str, resources: Iterable[Mapping[str, Any]]) -> str:
    """The path of a new part below a resource; raises AwsError if the part is not valid, or a sibling has it."""
    if not _PART.fullmatch(part):
        raise bad_request(
            "Resource's path part only allow a-zA-Z0-9._-: or a valid greedy path variable and curly braces at the"
            " beginning and the end."
        )
    if str(parent.get("pathPart", "")).endswith(_GREEDY):
        raise bad_request(
            f"Cannot create a child of a resource with a greedy path variable: {parent['pathPart']}"
        )
    for sibling in resources:
        if sibling.get("parentId") != parent["id"]:
            continue
        if sibling["pathPart"] == part:
            raise conflict(f"Another resource with the same parent already has this name: {part}")
        if part.startswith("{") and sibling["pathPart"].startswith("{"):
            raise bad_request(
                f"A sibling ({sibling['pathPart']}) of this resource already has a variable path part -- only one is"
                " allowed"
            )
    return f"{parent['path'].rstrip('/')}/{part}"


def _is_below(tree: Tree, resource_id: str, ancestor_id: str) -> bool:
    """True if a resource is another one, or below it."""
    current_id: str | None = resource_id
    for _ in range(RESOURCES_MAX + 1):
        if current_id == ancestor_id:
            return True
        current_id = tree[RESOURCES].get(current_id, {}).get("parentId")
        if current_id is None:
            return False
    return False


def _with_paths(resources: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The resources with paths that follow from their parents."""

    def path(resource: Mapping[str, Any]) -> str:
        parent_id = resource.get("parentId")
        return "" if parent_id is None else f"{path(resources[parent_id])}/{resource['pathPart']}"

    return {key: {**resource, "path": path(resource) or "/"} for key, resource in resources.items()}


def as_structure(resource: Mapping[str, Any], *, with_methods: bool = False) -> Structure:
    """A resource as callers see it, with its methods, or their names alone."""
    methods = resource.get(METHODS)
    if not methods:
        return {name: value for name, value in resource.items() if name != METHODS}
    return {**resource, METHODS: dict(methods) if with_methods else {name: {} for name in methods}}


HTTP_METHODS: Final = ("GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "HEAD", "ANY")
TIMEOUT_MS: Final = 29_000
_TIMEOUT_MS_MIN: Final = 50
_METHOD: Final = (
    *("authorizationType", "operationName", "requestParameters", "requestModels"),
    *("requestValidatorId", "authorizationScopes", "authorizerId"),
)
_INTEGRATION: Final = (
    *("type", "uri", "connectionType", "connectionId", "credentials", "requestParameters"),
    *("requestTemplates", "contentHandling", "tlsConfig"),
)
_PASSTHROUGH: Final = frozenset({"WHEN_NO_MATCH", "WHEN_NO_TEMPLATES", "NEVER"})
_AUTHORIZATIONS: Final = frozenset({"NONE", "AWS_IAM", CUSTOM})
_RESPONSE: Final = ("statusCode", "selectionPattern", "responseParameters", "contentHandling")


class MethodOperations:
    """Creates methods, integrations and responses."""

    def __init__(self, apis: Apis[RestApi]) -> None:
        self._apis = apis

    async def put_method(self, call: Call, params: Structure) -> Structure:

        def change(tree: Tree) -> Tree:
            RESOURCE.part_in(tree, params)
            if value_at(tree, METHOD.path(params)) is not None:
                raise conflict("Method already exists for this resource")
            return with_value(tree, METHOD.path(params), method_of(tree, params))

        return await self._put(METHOD, call, params, change)

    async def put_method_response(self, call: Call, params: Structure) -> Structure:

        def change(tree: Tree) -> Tree:
            METHOD.part_in(tree, params)  # refuses an absent method
            if value_at(tree, METHOD_RESPONSE.path(params)) is not None:
                raise conflict("Response already exists for this resource")
            members = {
                name: params[name] for name in ("responseParameters", "responseModels") if name in params
            }
            path = METHOD_RESPONSE.path(params)
            return with_value(tree, path, {"statusCode": params["statusCode"], **members})

        return await self._put(METHOD_RESPONSE, call, params, change)

    async def put_integration(self, call: Call, params: Structure) -> Structure:

        def change(tree: Tree) -> Tree:
            method = METHOD.part_in(tree, params)
            before = (method.get("methodIntegration") or {}).get("integrationResponses")
            integration = integration_of(params, params["resourceId"])
            responses = {"integrationResponses": before} if before else {}
            return with_value(tree, METHOD_INTEGRATION.path(params), {**integration, **responses})

        return await self._put(METHOD_INTEGRATION, call, params, change)

    async def put_integration_response(self, call: Call, params: Structure) -> Structure:

        def change(tree: Tree) -> Tree:
            METHOD_INTEGRATION.part_in(tree, params)
            return with_value(tree, INTEGRATION_RESPONSE.path(params), integration_response_of(params))

        return await self._put(INTEGRATION_RESPONSE, call, params, change)

    async def _put(self, kind: PartKind, call: Call, params: Structure, change: Any) -> Structure:
        with absent_as(kind.absent(params)):
            tree = await self._apis.edit_tree(call, params["restApiId"], change)
        return kind.as_structure(kind.part_in(tree, params))


def method_of(tree: Tree, params: Mapping[str, Any]) -> dict[str, Any]:
    """A method as its API stores it; raises AwsError if it refers to an absent part, or is not offered."""
    name = params["httpMethod"]
    if name not in HTTP_METHODS:
        raise bad_request(f"Invalid HttpMethod specified. Valid options are {','.join(HTTP_METHODS)}")
    # Any case is accepted (recorded).
    params = {**params, "authorizationType": params["authorizationType"].upper()}
    check_authorization(params, tree)
    for model in (params.get("requestModels") or {}).values():
        if model not in tree.get("models", {}):
            raise bad_request(f"Invalid model identifier specified: {model}")
    check_validator(params, tree)
    parameter_names = [each.rpartition(".")[2] for each in params.get("requestParameters") or ()]
    if len(set(parameter_names)) < len(parameter_names):
        raise bad_request("Parameter names must be unique across querystring, header and path")
    settings = {key: params[key] for key in _METHOD if params.get(key) is not None}
    return {"httpMethod": name, "apiKeyRequired": bool(params.get("apiKeyRequired")), **settings}


def check_validator(method: Mapping[str, Any], tree: Tree) -> None:
    """Refuse a request validator that an API does not have; raises AwsError (`BadRequestException`)."""
    validator = method.get("requestValidatorId")
    if validator and validator not in (tree.get("validators") or {}):
        raise bad_request("Invalid Request Validator identifier specified")


def check_authorization(method: Mapping[str, Any], tree: Tree) -> None:
    """Refuse an unsupported type of authorization, without which the method would be open.

    Raises:
        AwsError: `BadRequestException`; also if its authorizer is absent.
    """
    kind = method.get("authorizationType", "")
    if kind == "COGNITO_USER_POOLS":
        raise not_offered(f"the authorization type {kind}: user pools")
    if kind not in _AUTHORIZATIONS:
        raise bad_request("Invalid authorization type specified")
    if kind == CUSTOM and method.get("authorizerId") not in (tree.get(AUTHORIZERS) or {}):
        raise bad_request(
            "Invalid authorizer ID specified. Setting the authorization type to CUSTOM or COGNITO_USER_POOLS requires a"
            " valid authorizer."
        )


def check_integration(integration: Mapping[str, Any]) -> None:
    """Refuse an integration that cannot be, or is not offered; raises AwsError (`BadRequestException`)."""
    kind, uri = integration.get("type"), str(integration.get("uri") or "")
    if not kind:
        raise bad_request("Enumeration value for type must be non-empty")
    if kind != "MOCK" and not integration.get("httpMethod"):
        raise bad_request("Enumeration value for HttpMethod must be non-empty")
    if kind != "MOCK" and not uri:
        raise bad_request("Invalid HTTP endpoint specified for URI")
    if integration.get("connectionType") == "VPC_LINK":
        raise not_offered("VPC links")
    if kind in {"AWS", "AWS_PROXY"}:
        _check_target(kind, uri)
    elif kind != "MOCK" and not uri.startswith(("http://", "https://", "${")):
        raise bad_request("Invalid HTTP endpoint specified for URI")
    if integration["passthroughBehavior"] not in _PASSTHROUGH:
        raise bad_request("Invalid passthrough behavior specified")
    if not _TIMEOUT_MS_MIN <= integration["timeoutInMillis"] <= TIMEOUT_MS:
        raise bad_request(f"Timeout should be between {_TIMEOUT_MS_MIN} ms and {TIMEOUT_MS} ms")
    check_content_handling(integration)


def _check_target(kind: str, uri: str) -> None:
    """Refuse an ARN without an operation of a service; that of a proxy is one of Lambda or Firehose."""
    _, _, rest = uri.partition(":apigateway:")  # `eu-west-1:lambda:path/…`
    if not uri.startswith("arn:"):
        raise bad_request("Invalid ARN specified in the request")
    if rest and not any(f":{word}/" in rest for word in ("path", "action")):
        raise bad_request("AWS ARN for integration must contain path or action")
    if kind == "AWS_PROXY" and rest and rest.split(":")[1] not in ("lambda", "firehose"):
        raise bad_request(
            "Integrations of type 'AWS_PROXY' currently only supports Lambda function and Firehose stream invocations."
        )


def check_content_handling(part: Mapping[str, Any]) -> None:
    """Refuse an integration, or its response, that converts bodies in an unknown way.

    Raises:
        AwsError: `BadRequestException`.
    """
    handling = part.get("contentHandling")
    if handling is not None and handling not in HANDLINGS:
        raise bad_request(f"Enumeration value for contentHandling must be one of {', '.join(HANDLINGS)}")


def integration_of(params: Mapping[str, Any], resource_id: str) -> dict[str, Any]:
    """An integration as its method stores it; raises AwsError if it cannot be, or is not offered."""
    if params.get("responseTransferMode") == "STREAM":
        raise not_offered("streamed responses of REST APIs")
    method, timeout = params.get("integrationHttpMethod"), params.get("timeoutInMillis")
    integration = {
        **{name: params[name] for name in _INTEGRATION if params.get(name) is not None},
        **({"httpMethod": method} if method else {}),
        "passthroughBehavior": params.get("passthroughBehavior") or "WHEN_NO_MATCH",
        "timeoutInMillis": TIMEOUT_MS if timeout is None else timeout,
        "cacheNamespace": params.get("cacheNamespace") or resource_id,
        "cacheKeyParameters": list(params.get("cacheKeyParameters") or ()),
    }
    check_integration(integration)
    return integration


def integration_response_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """An integration's response as it is stored; raises AwsError if it converts bodies in an unknown way."""
    settings = {name: params[name] for name in _RESPONSE if params.get(name) is not None}
    check_content_handling(settings)
    templates = params.get("responseTemplates")
    for kind in templates or ():
        if "/" not in kind and not kind.startswith("$"):
            raise bad_request(
                f"Validation Result: warnings : [], errors : [Invalid content type specified: {kind}]"
            )
    return settings if templates is None else {**settings, "responseTemplates": templates}
