"""Questions that a stack asks of services, on behalf of whoever made it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from redrive.access.principals import Principal, account_root, account_user
from redrive.protocols.aws.cloudformation.records import Stack
from redrive.protocols.aws.cloudformation.types.resource_type import Ask
from redrive.protocols.aws.inner_calls import InnerCalls
from redrive.protocols.aws.wire.errors import AwsError
from redrive.protocols.aws.wire.shapes import Structure

_USER: Final = re.compile(r"arn:aws:iam::([0-9]{12}):user/(.+)")


def principal_of(stack: Stack) -> Principal:
    """The principal that made a stack: a user, or its account."""
    user = _USER.fullmatch(stack.caller)
    return account_user(user[1], user[2]) if user else account_root(stack.name.account)


@dataclass(frozen=True, slots=True)
class Services:
    """The services of this server, for stacks.

    Attributes:
        calls: Call them.
        offered: The operations of each, by botocore's name of the service.
        base_url: What URLs of this server begin with.
    """

    calls: InnerCalls
    offered: Mapping[str, Any]
    base_url: str

    def ask_for(self, stack: Stack) -> Ask:
        """Returns what calls operations on behalf of a stack's owner."""
        principal, region = principal_of(stack), stack.name.region

        async def ask(service: str, operation: str, **params: Any) -> Structure:
            facade = self.offered.get(service)
            if facade is None or operation not in facade.operations:
                raise AwsError("UnknownOperation", f"This server does not offer {service} {operation}.")
            return await self.calls.call(service, operation, params, principal, region)

        return ask
