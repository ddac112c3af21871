"""Roles in APIs: those that API Gateway acts as for integrations, and the one that it writes logs by."""

from collections.abc import Iterator
from typing import Any, Final

from redrive.aws.apigateway.control.errors import bad_request
from redrive.aws.apigateway.control.records import Tree
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError

#: Credentials that stand for the caller's own.
CALLERS_OWN: Final = "arn:aws:iam::*:user/*"
SERVICE: Final = "apigateway"
_SESSION: Final = "BackplaneAssumeRoleSession"  # as Amazon's calls it
_NOT_FOR_LOGS: Final = (
    "The role ARN does not have required permissions configured. Please grant trust permission for API Gateway and add"
    " the required role policy."
)


def integration_roles(identities: Identities) -> ServiceRoles:
    """The roles that API Gateway acts as for integrations."""
    return ServiceRoles(identities, SERVICE, _SESSION, _unassumable)


def log_roles(identities: Identities) -> ServiceRoles:
    """The roles that API Gateway writes logs by."""
    return ServiceRoles(identities, SERVICE, _SESSION, lambda _: bad_request(_NOT_FOR_LOGS))


async def check_roles(roles: ServiceRoles, call: Call, tree: Tree, before: Tree) -> None:
    """Refuse roles that a change brings into an API, or to another place in it, if its caller may not pass them.

    Raises:
        AwsError: See `ServiceRoles.check`.
    """
    known = dict(_roles(before))
    for field, role in _roles(tree):
        if role != CALLERS_OWN and known.get(field) != role:
            if not isinstance(role, str):
                raise bad_request("Invalid ARN specified in the request")
            await roles.check(call, role)


def _roles(tree: Tree) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The roles of integrations, by what they are the role of."""
    for id_, resource in (tree.get("resources") or {}).items():
        for verb, method in (resource.get("resourceMethods") or {}).items():
            if credentials := (method.get("methodIntegration") or {}).get("credentials"):
                yield (id_, verb), credentials
    for id_, authorizer in (tree.get("authorizers") or {}).items():
        credentials = authorizer.get("authorizerCredentials") or authorizer.get("AuthorizerCredentialsArn")
        if credentials:
            yield ("authorizers", id_), credentials
    for id_, integration in (tree.get("integrations") or {}).items():
        if credentials := integration.get("CredentialsArn"):
            yield (id_,), credentials


def _unassumable(role: str) -> AwsError:
    return bad_request(f"API Gateway does not have permission to assume the provided role {role}")
