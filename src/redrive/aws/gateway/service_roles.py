"""Roles that a service acts as: who may give it one, and what it may do as it.

Every service that keeps a role in a document asks `ServiceRoles.check` before it writes it, whichever request brings it,
and acts by `ServiceRoles.acting` alone.
"""

from collections.abc import Callable
from typing import Final

from redrive.access.principals import Principal
from redrive.aws.gateway.authorization import check_action, denied
from redrive.aws.gateway.identities import Identities, account_of
from redrive.aws.kit.call import Call, ResourceScope
from redrive.aws.wire.errors import AwsError

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
        return await self._identities.assumed(self._service, account, role, region) is not None

    async def acting(self, account: str, role: str, region: str, session: str = "") -> Principal:
        """The principal by which the service acts as a role for an account; see `Identities.acting`.

        Args:
            account: For which it acts.
            role: The role's ARN.
            region: Where it acts.
            session: The name of the session; empty: the service's usual one.
        """
        return await self._identities.acting(self._service, account, role, region, session or self._session)
