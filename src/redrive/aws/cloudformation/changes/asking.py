"""Questions that a stack asks of services, on behalf of whoever made it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from redrive.access.principals import Principal
from redrive.aws.cloudformation.records import Stack
from redrive.aws.cloudformation.serverless.transform import Translator
from redrive.aws.cloudformation.types.resource_type import Ask
from redrive.aws.cloudformation.types.table import offered_types
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure

Principals = Callable[[str, str, str], Awaitable[Principal]]
"""The principal of an account that has an ARN, or of a role that it gave (empty: none)."""


@dataclass(frozen=True)
class Services:
    """The services of this server, for stacks.

    Attributes:
        calls: Call them.
        offered: The operations of each, by botocore's name of the service.
        base_url: What URLs of this server begin with.
        principals: Who made a stack.
        translator: Of templates of serverless applications.
    """

    calls: InnerCalls
    offered: Mapping[str, Any]
    base_url: str
    principals: Principals
    translator: Translator = field(default_factory=Translator)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The resource types that can be made."""
        return offered_types(self.offered)

    def ask_for(self, stack: Stack) -> Ask:
        """Returns what calls operations on behalf of a stack's owner."""

        async def ask(service: str, operation: str, **params: Any) -> Structure:
            facade = self.offered.get(service)
            if facade is None or operation not in facade.operations:
                raise AwsError("UnknownOperation", f"This server does not offer {service} {operation}.")
            role = stack.aim.role
            principal = await self.principals(stack.name.account, stack.caller, role)
            return await self.calls.call(service, operation, params, principal, stack.name.region)

        return ask
