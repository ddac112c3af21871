"""Roles in attributes of SNS: of subscriptions of delivery streams, and those that delivery logs are written by.

The published model knows attributes as texts by name, so every operation that takes some is asked here.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Final

from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.kit.attributes import ROLE_ARN
from redrive.aws.kit.call import Call, Verb
from redrive.aws.sns.documents.errors import invalid
from redrive.aws.sns.documents.subscription_attributes import ROLE
from redrive.aws.wire.shapes import Structure

SESSION: Final = "redrive-sns"
_ENDINGS: Final = ("RoleArn", "IAMRole")


def with_roles_checked(operations: Mapping[str, Verb], identities: Identities) -> dict[str, Verb]:
    """Operations that refuse roles which their caller may not have SNS act as.

    Args:
        operations: Of SNS, by name.
        identities: Users and roles.
    """
    logging = ServiceRoles(
        identities,
        "sns",
        SESSION,
        lambda role: invalid(f"{role} is not a valid role to allow SNS to write to Cloudwatch Logs"),
    )
    filling = ServiceRoles(
        identities,
        "sns",
        SESSION,
        lambda role: invalid(f"{ROLE} Reason: SNS is unable to assume role {role}"),
    )

    def checked(verb: Verb) -> Verb:
        @functools.wraps(verb)
        async def check_and_carry_out(call: Call, params: Structure) -> Structure:
            for name, role in _roles(params):
                await (filling if name == ROLE else logging).check(call, role)
            return await verb(call, params)

        return check_and_carry_out

    return {name: checked(verb) if _takes_attributes(name) else verb for name, verb in operations.items()}


def _takes_attributes(operation: str) -> bool:
    return operation.startswith(("Create", "Set")) or operation == "Subscribe"


def _roles(params: Structure) -> Iterator[tuple[str, str]]:
    """The attributes that name roles; what is no role's ARN is left to the operation, which says so."""
    attributes = dict(params.get("Attributes") or params.get("attributes") or {})
    if "AttributeName" in params:
        attributes[params["AttributeName"]] = params.get("AttributeValue") or ""
    for name, value in attributes.items():
        if name.endswith(_ENDINGS) and ROLE_ARN.parse(value) is not None:
            yield name, value
