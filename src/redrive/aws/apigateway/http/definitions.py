"""Definitions of HTTP APIs by OpenAPI 3, as deployment tools write them."""

import random
from collections.abc import Mapping
from typing import Any, Final

from redrive.aws.apigateway.control.errors import bad_request, unoffered
from redrive.aws.apigateway.control.ids import new_id
from redrive.aws.apigateway.control.records import Tree
from redrive.aws.apigateway.http.kinds import (
    INTEGRATIONS,
    ROUTES,
    TARGET,
    TIMEOUT_MS,
    check_integration,
    check_route,
)
from redrive.aws.apigateway.rest.definitions import INVALID, MALFORMED

_X: Final = "x-amazon-apigateway-"
_METHODS: Final = ("get", "put", "post", "delete", "patch", "options", "head")
_ID_CHARS: Final = 7


def defined_tree(document: Mapping[str, Any], chance: random.Random) -> Tree:
    """The routes and integrations that a definition has.

    Raises:
        AwsError: `BadRequestException`: a part of it is not acceptable.
    """
    try:
        return _defined(document, chance)
    except MALFORMED:
        raise bad_request(INVALID) from None


def _defined(document: Mapping[str, Any], chance: random.Random) -> Tree:
    routes: dict[str, Any] = {}
    integrations: dict[str, Any] = {}
    for path, item in document["paths"].items():
        for name, operation in item.items():
            key = _route_key(str(path), str(name))
            if not key:
                continue
            integration = operation.get(f"{_X}integration")
            if operation.get("security", document.get("security")):
                raise unoffered("authorizers of HTTP APIs")
            route_id = new_id(chance, _ID_CHARS)
            route = {
                "RouteId": route_id,
                "RouteKey": key,
                "AuthorizationType": "NONE",
                "ApiKeyRequired": False,
            }
            if integration is not None:
                part_id = new_id(chance, _ID_CHARS)
                integrations[part_id] = _integration(part_id, integration)
                route["Target"] = f"{TARGET}{part_id}"
            check_route(route, {ROUTES: routes, INTEGRATIONS: integrations})
            routes[route_id] = route
    return {ROUTES: routes, INTEGRATIONS: integrations}


def _route_key(path: str, name: str) -> str:
    """The key of a route; empty: a member of the path that is no method."""
    if path.strip("/") == "$default":
        return "$default" if name.endswith("any-method") else ""
    if name in _METHODS:
        return f"{name.upper()} {path}"
    return f"ANY {path}" if name == f"{_X}any-method" else ""


def _integration(integration_id: str, definition: Mapping[str, Any]) -> dict[str, Any]:
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
