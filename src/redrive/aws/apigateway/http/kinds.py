"""The kinds of parts of an HTTP API (routes, integrations, authorizers, stages): checks and operations."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from redrive.aws.apigateway.authorizers.http import AUTHORIZERS, check_authorizer, check_route_authorizer
from redrive.aws.apigateway.control.apis import Apis
from redrive.aws.apigateway.control.errors import HTTP_PAGES, bad_request, conflict, not_found, not_offered
from redrive.aws.apigateway.control.records import STAGES, HttpApi, Tree, new_id
from redrive.aws.apigateway.requests.metrics import check_destination
from redrive.aws.kit.call import Call, Verb
from redrive.aws.wire.shapes import Structure
from redrive.engine.engine import Engine

TIMEOUT_MS: Final = 30_000
ROUTES, INTEGRATIONS = "routes", "integrations"
_ROUTE: Final = re.compile(r"\$default|(?:GET|PUT|POST|DELETE|PATCH|OPTIONS|HEAD|ANY) /\S*")
_STAGE: Final = re.compile(r"\$default|[A-Za-z0-9_-]{1,128}")
TARGET: Final = "integrations/"

#: The subtypes of integrations of services: the service, its operation, and the parameters that it needs.
#: Amazon's have no `SNS-Publish`; this server's do.
SUBTYPES: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "SQS-SendMessage": ("sqs", "SendMessage", ("QueueUrl", "MessageBody")),
    "SQS-ReceiveMessage": ("sqs", "ReceiveMessage", ("QueueUrl",)),
    "SQS-DeleteMessage": ("sqs", "DeleteMessage", ("QueueUrl", "ReceiptHandle")),
    "SQS-PurgeQueue": ("sqs", "PurgeQueue", ("QueueUrl",)),
    "SNS-Publish": ("sns", "Publish", ("TopicArn", "Message")),
}


def check_route(route: Mapping[str, Any], tree: Tree) -> None:
    """Refuse a route that is not acceptable; raises AwsError."""
    key = route.get("RouteKey", "")
    if not _ROUTE.fullmatch(key):
        raise bad_request(
            "The provided route key is not formatted properly for HTTP protocol. Format should be"
            ' "<HTTP METHOD> /<RESOURCE PATH>" or "$default"'
        )
    for other in (tree.get(ROUTES) or {}).values():
        if _shape(other["RouteKey"]) == _shape(key) and other["RouteId"] != route["RouteId"]:
            raise conflict(f"Route with key {other['RouteKey']} already exists for this API")
    target = route.get("Target")
    if target and target.removeprefix(TARGET) not in (tree.get(INTEGRATIONS) or {}):
        raise bad_request(f"Invalid Integration identifier specified: {target}")
    check_route_authorizer(route, tree)
    if route.get("ApiKeyRequired"):
        raise bad_request("ApiKeyRequired is not supported for HTTP APIs")


def _shape(route_key: str) -> str:
    """A route's key without the names of its variables: routes of one shape would match the same requests."""
    return re.sub(r"\{[^{}+]*", "{", route_key)


def check_integration(integration: Mapping[str, Any], _: Tree) -> None:
    """Refuse an integration that is not acceptable; raises AwsError."""
    kind, subtype = integration["IntegrationType"], integration.get("IntegrationSubtype")
    if kind not in {"AWS_PROXY", "HTTP_PROXY"}:
        raise bad_request(f"Integration type {kind} is not supported for HTTP APIs")
    if integration.get("ConnectionType") == "VPC_LINK":
        raise not_offered("VPC links")
    if integration.get("ResponseParameters"):
        raise not_offered("response parameters of HTTP APIs")
    if subtype is not None:
        _check_subtype(integration, subtype)
        return
    if not integration.get("IntegrationUri"):
        raise bad_request("IntegrationUri is required")
    if integration.get("RequestParameters"):
        raise not_offered("request parameters of proxies of HTTP APIs")
    if kind == "HTTP_PROXY" and not integration.get("IntegrationMethod"):
        raise bad_request("IntegrationMethod is required for HTTP_PROXY integrations")
    if integration.get("PayloadFormatVersion") not in {"1.0", "2.0"}:
        raise bad_request(
            "PayloadFormatVersion is a required parameter for this integration. Allowed values: 1.0, 2.0"
        )


def _check_subtype(integration: Mapping[str, Any], subtype: str) -> None:
    if subtype not in SUBTYPES:
        raise not_offered(f"the integration subtype {subtype}; it offers {', '.join(sorted(SUBTYPES))}")
    mappings = integration.get("RequestParameters") or {}
    _, _, required_names = SUBTYPES[subtype]
    missing = [name for name in required_names if name not in mappings]
    if missing:
        raise bad_request(f"Parameter: {missing[0]} is required for the integration subtype {subtype}")
    if not integration.get("CredentialsArn"):
        raise bad_request("A role ARN is required for the integration subtype")


def check_stage(stage: Mapping[str, Any], _: Tree) -> None:
    """Refuse a stage that is not acceptable; raises AwsError."""
    if not _STAGE.fullmatch(stage["StageName"]):
        raise bad_request("Stage name only allows a-zA-Z0-9-_ and $default")
    if stage.get("ClientCertificateId"):
        raise not_offered("client certificates")


@dataclass(frozen=True, slots=True)
class HttpKind:
    """A kind of parts of HTTP APIs."""

    noun: str  # Its name in operations
    tree_key: str  # Key in the tree
    id: str  # The member with its id or name
    check: Callable[[Mapping[str, Any], Tree], None]  # Refuses a part that is not acceptable
    defaults: Mapping[str, Any]  # Default values of its members
    is_named: bool = False  # Callers choose its name


KINDS: Final = (
    HttpKind("Route", ROUTES, "RouteId", check_route, {"ApiKeyRequired": False, "AuthorizationType": "NONE"}),
    HttpKind(
        "Integration",
        INTEGRATIONS,
        "IntegrationId",
        check_integration,
        {"ConnectionType": "INTERNET", "TimeoutInMillis": TIMEOUT_MS, "PayloadFormatVersion": "1.0"},
    ),
    HttpKind("Authorizer", AUTHORIZERS, "AuthorizerId", check_authorizer, {}),
    HttpKind(
        "Stage",
        STAGES,
        "StageName",
        check_stage,
        {"AutoDeploy": False, "StageVariables": {}, "DefaultRouteSettings": {}, "RouteSettings": {}},
        is_named=True,
    ),
)


PART_ID_CHARS: Final = 7  # as at Amazon
#: The kinds of parts that routes use: the member of a route that names one, and the prefix of the id in it.
_USES: Final = {INTEGRATIONS: ("Target", TARGET), AUTHORIZERS: ("AuthorizerId", "")}


def part_operations(apis: Apis[HttpApi], engine: Engine) -> dict[str, Verb]:
    """The operations that create, get, list, update and delete parts, which are alike for all kinds."""
    verbs: dict[str, Verb] = {}
    for kind in KINDS:
        part = HttpPartOperations(kind, apis, engine)
        verbs |= {
            f"Create{kind.noun}": part.create,
            f"Get{kind.noun}": part.get,
            f"Get{kind.noun}s": part.get_all,
            f"Update{kind.noun}": part.update,
            f"Delete{kind.noun}": part.delete,
        }
    return verbs


class HttpPartOperations:
    """Creates, gets, updates and deletes parts of one kind."""

    def __init__(self, kind: HttpKind, apis: Apis[HttpApi], engine: Engine) -> None:
        self._kind = kind
        self._apis = apis
        self._rng = engine.runtime.rng

    async def create(self, call: Call, params: Structure) -> Structure:
        """Create a part of an API by a request; returns it as callers see it."""
        kind = self._kind
        if not kind.is_named:
            params = {**params, kind.id: new_id(self._rng, PART_ID_CHARS)}

        def change(tree: Tree) -> Structure:
            if params[kind.id] in (tree.get(kind.tree_key) or {}):
                raise conflict(f"{kind.noun} already exists")
            dates = {"CreatedDate": call.now} if kind.tree_key == STAGES else {}
            return {**kind.defaults, **dates, **_settings(params)}

        return await self._write(call, params, change)

    async def update(self, call: Call, params: Structure) -> Structure:
        """Change the members that a request has."""
        return await self._write(call, params, lambda tree: {**self._part(tree, params), **_settings(params)})

    async def get(self, call: Call, params: Structure) -> Structure:
        """Get a part."""
        return self._part((await self._apis.api(call, params["ApiId"])).tree, params)

    async def get_all(self, call: Call, params: Structure) -> Structure:
        """Get all parts of an API."""
        api = await self._apis.api(call, params["ApiId"])
        items = list((api.tree.get(self._kind.tree_key) or {}).values())
        return HTTP_PAGES.of(f"Get{self._kind.noun}s", params, items, dict)

    async def delete(self, call: Call, params: Structure) -> Structure:
        """Delete a part, unless a route uses it."""
        kind = self._kind

        def change(api: HttpApi) -> HttpApi:
            self._part(api.tree, params)  # refuses an absent one
            remaining = {
                name: value for name, value in api.tree[kind.tree_key].items() if name != params[kind.id]
            }
            member, prefix = _USES.get(kind.tree_key, ("", ""))  # empty: no route names such a part
            routes: Mapping[str, Any] = api.tree.get(ROUTES) or {}
            if member and any(route.get(member) == f"{prefix}{params[kind.id]}" for route in routes.values()):
                raise conflict(f"Cannot delete {kind.noun}. It is used by a route of this API")
            return replace(api, tree={**api.tree, kind.tree_key: remaining})

        await self._apis.edit(call, params["ApiId"], change)
        return {}

    def _part(self, tree: Tree, params: Structure) -> Structure:
        kind = self._kind
        value = (tree.get(kind.tree_key) or {}).get(params[kind.id])
        if value is None:
            raise not_found(f"Invalid {kind.noun} identifier specified")
        part: Structure = value
        return part

    async def _write(self, call: Call, params: Structure, change: Callable[[Tree], Structure]) -> Structure:
        """Write the part that `change` makes of the API's parts, if it is acceptable; returns it."""
        kind = self._kind

        def change_api(api: HttpApi) -> HttpApi:
            value = change(api.tree)
            if kind.tree_key == STAGES:
                value = {**value, "LastUpdatedDate": call.now}
                check_destination((value.get("AccessLogSettings") or {}).get("DestinationArn"), call.account)
            kind.check(value, api.tree)
            parts = {**(api.tree.get(kind.tree_key) or {}), value[kind.id]: value}
            return replace(api, tree={**api.tree, kind.tree_key: parts})

        api = await self._apis.edit(call, params["ApiId"], change_api)
        return self._part(api.tree, params)


def _settings(params: Structure) -> Structure:
    return {name: value for name, value in params.items() if name != "ApiId" and value is not None}
