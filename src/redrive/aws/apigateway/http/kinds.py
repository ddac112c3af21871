"""The table of what an HTTP API consists of, and the checks of each kind."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from redrive.aws.apigateway.authorizers.http import AUTHORIZERS, check_authorizer, check_route_authorizer
from redrive.aws.apigateway.control.errors import bad_request, conflict, unoffered
from redrive.aws.apigateway.control.records import STAGES, Tree

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
    for known in (tree.get(ROUTES) or {}).values():
        if known["RouteKey"] == key and known["RouteId"] != route["RouteId"]:
            raise conflict(f"Route with key {key} already exists for this API")
    target = route.get("Target")
    if target and target.removeprefix(TARGET) not in (tree.get(INTEGRATIONS) or {}):
        raise bad_request(f"Invalid Integration identifier specified: {target}")
    check_route_authorizer(route, tree)
    if route.get("ApiKeyRequired"):
        raise bad_request("ApiKeyRequired is not supported for HTTP APIs")


def check_integration(integration: Mapping[str, Any], _: Tree) -> None:
    """Refuse an integration that is not acceptable; raises AwsError."""
    kind, subtype = integration["IntegrationType"], integration.get("IntegrationSubtype")
    if kind not in {"AWS_PROXY", "HTTP_PROXY"}:
        raise bad_request(f"Integration type {kind} is not supported for HTTP APIs")
    if integration.get("ConnectionType") == "VPC_LINK":
        raise unoffered("VPC links")
    if integration.get("ResponseParameters"):
        raise unoffered("response parameters of HTTP APIs")
    if subtype is not None:
        _check_subtype(integration, subtype)
        return
    if not integration.get("IntegrationUri"):
        raise bad_request("IntegrationUri is required")
    if integration.get("RequestParameters"):
        raise unoffered("request parameters of proxies of HTTP APIs")
    if kind == "HTTP_PROXY" and not integration.get("IntegrationMethod"):
        raise bad_request("IntegrationMethod is required for HTTP_PROXY integrations")
    if integration.get("PayloadFormatVersion") not in {"1.0", "2.0"}:
        raise bad_request(
            "PayloadFormatVersion is a required parameter for this integration. Allowed values: 1.0, 2.0"
        )


def _check_subtype(integration: Mapping[str, Any], subtype: str) -> None:
    if subtype not in SUBTYPES:
        raise unoffered(f"the integration subtype {subtype}; it offers {', '.join(sorted(SUBTYPES))}")
    mappings = integration.get("RequestParameters") or {}
    missing = [name for name in SUBTYPES[subtype][2] if name not in mappings]
    if missing:
        raise bad_request(f"Parameter: {missing[0]} is required for the integration subtype {subtype}")
    if not integration.get("CredentialsArn"):
        raise bad_request("A role ARN is required for the integration subtype")


def check_stage(stage: Mapping[str, Any], _: Tree) -> None:
    """Refuse a stage that is not acceptable; raises AwsError."""
    if not _STAGE.fullmatch(stage["StageName"]):
        raise bad_request("Stage name only allows a-zA-Z0-9-_ and $default")
    if stage.get("ClientCertificateId"):
        raise unoffered("client certificates")


@dataclass(frozen=True, slots=True)
class HttpKind:
    """A kind of what an HTTP API consists of."""

    noun: str  # The vendor's name of it in operations
    place: str  # Where it stands in the tree
    id: str  # The member that names it
    check: Callable[[Mapping[str, Any], Tree], None]  # Refuses a part that is not acceptable
    defaults: Mapping[str, Any]  # Of its members
    chosen: bool = False  # Callers choose its name


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
        chosen=True,
    ),
)
