"""Definitions of HTTP APIs by OpenAPI 3, as deployment tools write them."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.aws.apigateway.authorizers.http import AUTHORIZERS, CUSTOM, JWT, check_authorizer
from redrive.aws.apigateway.control.errors import bad_request, not_offered
from redrive.aws.apigateway.control.records import Tree, new_id
from redrive.aws.apigateway.http.kinds import (
    INTEGRATIONS,
    PART_ID_CHARS,
    ROUTES,
    TARGET,
    TIMEOUT_MS,
    check_integration,
    check_route,
)
from redrive.aws.apigateway.requests.admission import SIGNED
from redrive.aws.apigateway.rest.definitions import INVALID, MALFORMED

_X: Final = "x-amazon-apigateway-"
_METHODS: Final = ("get", "put", "post", "delete", "patch", "options", "head")


def read_tree(document: Mapping[str, Any], rng: random.Random) -> Tree:
    """The routes, integrations and authorizers of a definition; raises AwsError if one is not acceptable."""
    try:
        return _read_tree(document, rng)
    except MALFORMED:
        raise bad_request(INVALID) from None


def _read_tree(document: Mapping[str, Any], rng: random.Random) -> Tree:
    """The parts of an API that a definition describes, by new ids; raises AwsError if one is not acceptable."""
    routes: dict[str, Any] = {}
    integrations: dict[str, Any] = {}
    schemes = (document.get("components") or {}).get("securitySchemes") or {}
    authorizers = {
        str(name): _authorizer(str(name), scheme[f"{_X}authorizer"], rng)
        for name, scheme in schemes.items()
        if f"{_X}authorizer" in scheme
    }
    authorizers_by_id = {authorizer["AuthorizerId"]: authorizer for authorizer in authorizers.values()}
    for path, item in document["paths"].items():
        for name, operation in item.items():
            key = _route_key(str(path), str(name))
            if not key:
                continue
            integration = operation.get(f"{_X}integration")
            security = operation.get("security", document.get("security"))
            route_id = new_id(rng, PART_ID_CHARS)
            route = {
                "RouteId": route_id,
                "RouteKey": key,
                "ApiKeyRequired": False,
                **_authorization(security or (), schemes, authorizers),
            }
            if integration is not None:
                integration_id = new_id(rng, PART_ID_CHARS)
                integrations[integration_id] = _integration(integration_id, integration)
                route["Target"] = f"{TARGET}{integration_id}"
            check_route(route, {ROUTES: routes, INTEGRATIONS: integrations, AUTHORIZERS: authorizers_by_id})
            routes[route_id] = route
    return {ROUTES: routes, INTEGRATIONS: integrations, AUTHORIZERS: authorizers_by_id}


def _authorization(
    security: Sequence[Any], schemes: Mapping[str, Any], authorizers: Mapping[str, Any]
) -> dict[str, Any]:
    """The members of a route for its authorization; of several schemes the first counts.

    Raises:
        AwsError: `BadRequestException`: this server does not have a scheme.
    """
    scopes_by_scheme = [item for requirement in security for item in requirement.items()]
    if not scopes_by_scheme:
        return {"AuthorizationType": "NONE"}
    name, scopes = scopes_by_scheme[0]
    authorizer = authorizers.get(name)
    if authorizer is None and schemes[name].get(f"{_X}authtype") != "awsSigv4":
        raise not_offered(f"the security scheme {name}: it is not an authorizer")
    if authorizer is None:
        return {"AuthorizationType": SIGNED}
    if authorizer["AuthorizerType"] != JWT:
        return {"AuthorizationType": CUSTOM, "AuthorizerId": authorizer["AuthorizerId"]}
    members = {"AuthorizationScopes": [str(scope) for scope in scopes]} if scopes else {}
    return {"AuthorizationType": JWT, "AuthorizerId": authorizer["AuthorizerId"], **members}


def _authorizer(name: str, definition: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """The authorizer that a security scheme defines; raises AwsError if it is not acceptable."""
    sources = definition.get("identitySource") or []
    configuration = definition.get("jwtConfiguration")
    ttl = definition.get("authorizerResultTtlInSeconds")
    members = {
        "AuthorizerType": str(definition.get("type", "")).upper(),
        "IdentitySource": sources.split(",") if isinstance(sources, str) else list(sources),
        "AuthorizerUri": definition.get("authorizerUri"),
        "AuthorizerCredentialsArn": definition.get("authorizerCredentials"),
        "AuthorizerPayloadFormatVersion": definition.get("authorizerPayloadFormatVersion"),
        "AuthorizerResultTtlInSeconds": None if ttl is None else int(ttl),
        "EnableSimpleResponses": definition.get("enableSimpleResponses"),
        "JwtConfiguration": None
        if configuration is None
        else {"Issuer": configuration.get("issuer"), "Audience": configuration.get("audience")},
    }
    authorizer = {
        "AuthorizerId": new_id(rng, PART_ID_CHARS),
        "Name": name,
        **{member: value for member, value in members.items() if value is not None},
    }
    check_authorizer(authorizer, {})
    return authorizer


def _route_key(path: str, name: str) -> str:
    """The key of a route; empty: the member of the path is not a method."""
    if path.strip("/") == "$default":
        return "$default" if name.endswith("any-method") else ""
    if name in _METHODS:
        return f"{name.upper()} {path}"
    return f"ANY {path}" if name == f"{_X}any-method" else ""


def _integration(integration_id: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    """The integration that an operation defines; raises AwsError if it is not acceptable."""
    members = {
        "IntegrationType": str(definition.get("type", "")).upper(),
        "IntegrationMethod": definition.get("httpMethod"),
        "IntegrationUri": definition.get("uri"),
        "IntegrationSubtype": definition.get("integrationSubtype"),
        "CredentialsArn": definition.get("credentials"),
        "RequestParameters": definition.get("requestParameters"),
        "ConnectionType": definition.get("connectionType", "INTERNET"),
        "PayloadFormatVersion": str(definition.get("payloadFormatVersion", "1.0")),
        "TimeoutInMillis": int(definition.get("timeoutInMillis", TIMEOUT_MS)),
    }
    integration = {
        "IntegrationId": integration_id,
        **{name: value for name, value in members.items() if value is not None},
    }
    check_integration(integration, {})
    return integration
