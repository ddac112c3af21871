"""A call: one requested operation with its context.

A service says in `scopes` (see `Facade`) which resources a caller's own policies are asked about. What no parameter names
is about `*`: so an operation, or a spelling, that a service's function does not know is refused rather than let through.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from redrive.access.patterns import Values
from redrive.access.policy import (
    AccessRequest,
    Decision,
    RequestKeys,
    connection_keys,
    denial,
    evaluate,
    request_keys,
    resource_keys,
)
from redrive.access.policy_document import Form, stored_policy
from redrive.access.principals import Principal
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.shapes import Structure
from redrive.engine.ports import DeathRecord
from redrive.model.delivery import Delivery
from redrive.model.errors import RedriveError
from redrive.model.http import Request

_ARN_PARTS: Final = 6
_NO_KEYS: Final[Mapping[str, Values]] = {}
# What came here from another service shows itself as that service words it: the body, and attributes in SQS's form.
# By the name of the envelope that the other service put into the delivery's headers.
Presenters = Mapping[str, Callable[[Delivery], tuple[str, Mapping[str, Any]]]]


@dataclass(frozen=True, slots=True)
class ResourceScope:
    """Resources that an operation is about."""

    # What a caller's own policies have to allow. One that ends in `*` stands for whatever begins so, and `*`
    # for whatever the service has: a Deny of any of it holds.
    arn: str
    related: tuple[str, ...] = ()  # Further ARNs, of the same form: a Deny of any of them holds


#: The scope of what names no resource.
WHOLE_SERVICE: Final = ResourceScope("*")


def values_of(params: Structure, *members: str) -> Iterator[str]:
    """The values of parameters that are texts, and the items of those that are lists."""
    for member in members:
        value = params.get(member)
        if isinstance(value, str):
            yield value
        elif value:
            yield from value


def resource_part(text: str) -> str:
    """The last part of an ARN; a text that is none, as it is."""
    parts = text.split(":", _ARN_PARTS - 1)
    return parts[-1] if text.startswith("arn:") and len(parts) == _ARN_PARTS else text


@dataclass(slots=True)
class Call:
    """One call: its caller, place and time."""

    request: Request  # As it came in
    principal: Principal  # The signer; without authentication, the caller that the request names
    region: str  # The scope of the signature
    now: int  # When it came in (ms)
    id: str  # The request id of its answer
    base_url: str  # Prefix of URLs in the answer
    # Condition keys that a service adds to calls on behalf of a user; None: there are none.
    further_keys: Mapping[str, Values] | None = None
    # The dead letter that a message is which a service sends; None: it is not a dead letter.
    died: DeathRecord | None = None
    of_stack: bool = False  # A stack makes it, which gives its resources tags that nobody else may give

    @property
    def account(self) -> str:
        """Twelve digits; what the caller names belongs to this account unless it says otherwise."""
        return self.principal.account

    def is_open(self, owner: str, policy: str | None) -> bool:
        """True if a resource is open to the caller without looking at any statement, as it is for nearly every call.

        Neither the resource has a policy nor the caller, who is the owner or a service that acts for it and says so.
        """
        principal = self.principal
        if policy is not None or principal.permissions is not None:
            return False
        return owner in (principal.account, principal.keys.get("aws:sourceowner"))

    def may(
        self, action: str, arn: str, owner: str, policy: str | None, keys: Mapping[str, Values] = _NO_KEYS
    ) -> bool:
        """Returns whether the caller may do something to a resource.

        Args:
            action: `sqs:SendMessage`.
            arn: The resource's.
            owner: Its account.
            policy: The text of its policy, if it has one.
            keys: The condition keys that the operation has of its own.
        """
        return self.is_open(owner, policy) or self.decide(action, arn, owner, policy, keys).allowed

    def decide(
        self,
        action: str,
        arn: str,
        owner: str,
        policy: str | None = None,
        keys: Mapping[str, Values] = _NO_KEYS,
        *,
        form: Form = Form.RESOURCE,
        policy_decides: bool = False,
    ) -> Decision:
        """The answer to whether the caller may do something to a resource, and why; see `may` and `policy.evaluate`."""
        resource_policy = None if policy is None else stored_policy(policy, form)
        permissions = self.principal.permissions
        access_request = AccessRequest(self.principal, action, arn)
        # Condition keys are put together only for policies that ask for some: it takes longer than all the rest.
        if (resource_policy and resource_policy.keys) or (permissions and permissions.keys):
            access_request = AccessRequest(self.principal, action, arn, self._condition_keys(owner, keys))
        return evaluate(resource_policy, access_request, owner, policy_decides=policy_decides)

    def decide_own(
        self, action: str, scope: ResourceScope, keys: Mapping[str, Values] = _NO_KEYS
    ) -> Decision:
        """The answer of the caller's own policies to whether it may do something to a scope's resources; see `may`."""
        decision = self.decide(action, scope.arn, self.account, keys=keys)
        related_arns = (scope.arn, *scope.related) if scope.arn.endswith("*") else scope.related
        return (self.first_denial(action, related_arns, keys) if decision.allowed else None) or decision

    def first_denial(
        self, action: str, arns: Iterable[str], keys: Mapping[str, Values] = _NO_KEYS
    ) -> Decision | None:
        """The first Deny of the caller's own policies that holds for one of several resources; None: there is none.

        An ARN that ends in `*` stands for whatever begins so.
        """
        permissions = self.principal.permissions
        if permissions is None:
            return None
        asks_for_keys = bool(permissions.keys)  # else putting them together takes time for nothing
        condition_keys = self._condition_keys(self.account, keys) if asks_for_keys else request_keys()
        refusals = (denial(AccessRequest(self.principal, action, arn, condition_keys)) for arn in arns)
        return next(filter(None, refusals), None)

    def _condition_keys(self, owner: str, keys: Mapping[str, Values]) -> RequestKeys:
        """The condition keys of the call, of a resource of `owner`, and those that the operation has of its own."""
        request = self.request
        connection = connection_keys(
            client_host=request.client_host,
            secure=request.scheme == "https",
            now=self.now,
            headers=request.headers,
        )
        return request_keys(connection, resource_keys(region=self.region, account=owner), keys)


Verb = Callable[[Call, Structure], Awaitable[Structure]]


class Facade(Protocol):
    """One AWS service: its operations under the vendor's own names."""

    @property
    def operations(self) -> Mapping[str, Verb]:
        """The operations that it offers."""
        ...

    async def scopes(self, call: Call, operation: str, params: Structure) -> Iterable[ResourceScope]:
        """The resources that an operation is about, which the caller's own policies have to allow first.

        None: the operation asks by itself, about the resource that it finds, of that resource's policy as well.

        Args:
            call: The call, of a user or a role.
            operation: Its name.
            params: Its parameters, checked.
        """
        ...

    def action(self, call: Call, operation: str) -> str:
        """The action that a caller needs for an operation: `iam:PassRole`."""
        ...

    def translated(self, refusal: RedriveError) -> AwsError:
        """Translates a refusal of the engine into this service's error."""
        ...
