"""Execution roles: a function's own calls are made as its role, and so is what this server does with its results."""

from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.kit.call import Call
from redrive.aws.lambda_.errors import invalid


class ExecutionRoles:
    """The roles of functions."""

    def __init__(self, identities: Identities) -> None:
        """Find them among these."""
        self._roles = ServiceRoles(
            identities,
            "lambda",
            "redrive-lambda",
            lambda _: invalid("The role defined for the function cannot be assumed by Lambda."),
        )

    async def check(self, call: Call, role: str) -> None:
        """Refuse a role that the caller may not give a function.

        Raises:
            AwsError: `AccessDeniedException`, or `InvalidParameterValueException` for a role that Lambda cannot assume.
        """
        await self._roles.check(call, role)
