"""Authorisation by callers' own policies, and the roles that services act as.

A facade asks the policy of a resource that it finds, and the caller's own with it (`Call.may`). All else is asked here,
before the facade is called: it says what an operation is about (`Facade.scopes`).

Every service that keeps a role in a document asks `ServiceRoles.check` before it writes it, whichever request brings it,
and acts by `ServiceRoles.acting` alone.
"""

from collections.abc import Callable, Mapping
from typing import Final

from redrive.access.patterns import Values
from redrive.access.principals import Principal
from redrive.aws.gateway.identities import Identities, account_of
from redrive.aws.kit.call import Call, Facade, ResourceScope
from redrive.aws.kit.refusals import not_authorized
from redrive.aws.wire.errors import AwsError
from redrive.aws.wire.profiles import profile_of
from redrive.aws.wire.service import Service
from redrive.aws.wire.shapes import Structure

_NO_KEYS: Final[Mapping[str, Values]] = {}


async def check_own_policies(
    call: Call, facade: Facade, service: str, operation: str, params: Structure
) -> None:
    """Refuse what the caller's own policies do not allow, unless the facade asks about it; raises AwsError."""
    if not call.principal.is_restricted:
        return
    action = facade.action(call, operation)
    for scope in await facade.scopes(call, operation, params):
        check_action(call, service, action, scope)


def check_action(
    call: Call, service: str, action: str, scope: ResourceScope, keys: Mapping[str, Values] = _NO_KEYS
) -> None:
    """Refuse a caller whose own policies do not allow an action.

    Args:
        call: The caller's.
        service: Whose error it is.
        action: `iam:PassRole`.
        scope: What the action is about, which is the caller's account's.
        keys: The condition keys that the action has of its own.

    Raises:
        AwsError: The service's own for a caller without permission.
    """
    decision = call.decide_own(action, scope, keys)
    if not decision.allowed:
        raise denied(service, not_authorized(call.principal.name, action, scope.arn, decision.reason(action)))


def denied(service: str, text: str) -> AwsError:
    """A service's own error for a caller without permission."""
    return Service.load(service).error(profile_of(service).denied, text)


_OTHER_ACCOUNT: Final = "Cross-account pass role is not allowed."


class ServiceRoles:
    """The roles that one service acts as."""

    def __init__(
        self, identities: Identities, service: str, session: str, unassumable: Callable[[str], AwsError]
    ) -> None:
        """Find roles among these identities.

        Args:
            identities: Users and roles.
            service: Its name in host names, which trust policies have: `lambda`.
            session: The name of the sessions in which it acts.
            unassumable: The service's error for the ARN of a role that it cannot act as.
        """
        self._identities = identities
        self._service = service
        self._session = session
        self._unassumable = unassumable

    async def check(self, call: Call, role: str) -> None:
        """Refuse a role that the caller may not have the service act as.

        The role belongs to the caller's account and trusts the service, and the caller has `iam:PassRole` for it. Where
        policies do not count, any role will do.

        Raises:
            AwsError: `AccessDenied` in the service's spelling, or its own for a role that it cannot assume.
        """
        if not self._identities.restricts:
            return
        if account_of(role) != call.account:
            raise denied(self._service, _OTHER_ACCOUNT)
        host = f"{self._service}.amazonaws.com"
        check_action(call, self._service, "iam:PassRole", ResourceScope(role), {"iam:passedtoservice": host})
        if not await self.may_act(call.account, role, call.region):
            raise self._unassumable(role)

    async def may_act(self, account: str, role: str, region: str) -> bool:
        """True if the service may act as a role for an account."""
        if not self._identities.restricts:
            return True
        return await self._identities.service_session(self._service, account, role, region) is not None

    async def role_principal(self, account: str, role: str, region: str, session: str = "") -> Principal:
        """The principal by which the service acts as a role for an account; see `Identities.acting`.

        Args:
            account: For which it acts.
            role: The role's ARN.
            region: Where it acts.
            session: The name of the session; empty: the service's usual one.
        """
        return await self._identities.role_principal(
            self._service, account, role, region, session or self._session
        )
