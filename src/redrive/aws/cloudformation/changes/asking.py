"""Questions that a stack asks of services, on behalf of whoever changes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from redrive.aws.cloudformation.documents.errors import invalid
from redrive.aws.cloudformation.documents.records import Stack
from redrive.aws.cloudformation.serverless.transform import Translator
from redrive.aws.cloudformation.types.resource_type import Ask
from redrive.aws.cloudformation.types.table import offered_types
from redrive.aws.gateway.identities import Identities
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.gateway.service_roles import ServiceRoles
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure


@dataclass(frozen=True)
class Services:
    """The services of this server, for stacks.

    Attributes:
        calls: Call them.
        offered: The operations of each, by botocore's name of the service.
        base_url: What URLs of this server begin with.
        identities: Those who change stacks.
        translator: Of templates of serverless applications.
    """

    calls: InnerCalls
    offered: Mapping[str, Any]
    base_url: str
    identities: Identities
    translator: Translator = field(default_factory=Translator)

    @cached_property
    def roles(self) -> ServiceRoles:
        """The roles that stacks act as."""
        return ServiceRoles(self.identities, "cloudformation", "AWSCloudFormation", _unassumable)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The resource types that can be made."""
        return offered_types(self.offered)

    def ask_for(self, stack: Stack) -> Ask:
        """Returns what calls operations as the stack's role, or else with the rights of whoever changed it last."""

        async def ask(service: str, operation: str, **params: Any) -> Structure:
            if not await self.calls.has(service, operation):
                raise AwsError("UnknownOperation", f"This server does not offer {service} {operation}.")
            account, role = stack.name.account, stack.aim.role
            if role:
                principal = await self.roles.acting(account, role, stack.name.region)
            else:
                principal = await self.identities.again(account, stack.caller, stack.session)
            return await self.calls.call(service, operation, params, principal, stack.name.region)

        return ask


def _unassumable(role: str) -> AwsError:
    return invalid(f"Role {role} is invalid or cannot be assumed")
