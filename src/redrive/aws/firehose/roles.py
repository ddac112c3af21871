"""Roles: Firehose writes to buckets, and invokes functions, as the role that a stream names."""

from typing import Final

from redrive.access.principals import Principal, account_root
from redrive.aws.firehose.errors import invalid
from redrive.aws.gateway.identities import Identities
from redrive.aws.kit.call import Call

_SERVICE: Final = "firehose"
_SESSION: Final = "redrive-firehose"
_ACCOUNT: Final = 4  # the element of an ARN


class Roles:
    """Finds roles of streams, and tells which of them Firehose may act as."""

    def __init__(self, identities: Identities) -> None:
        """Find them among these."""
        self._identities = identities

    async def check(self, call: Call, arn: str) -> None:
        """Refuse a role that is not the caller's account's, or does not trust Firehose.

        A role that is not there is taken from an account that has no identities at all, as Lambda takes it.

        Raises:
            AwsError: `InvalidArgumentException`.
        """
        account = arn.split(":")[_ACCOUNT]
        role = await self._identities.role(arn)
        if role is None:
            trusted = call.principal.permissions is None and not await self._identities.has_any(account)
        else:
            trusted = self._identities.trusts(role, _SERVICE, call.region)
        if account != call.account or not trusted:
            raise invalid(f"Firehose is unable to assume role {arn}. Please check the role provided.")

    async def trusts(self, account: str, arn: str, service: str, region: str) -> bool:
        """True if a service may act as a role of an account, or nobody asks."""
        if not self._identities.restricts:
            return True
        role = await self._identities.role(arn)
        return role is not None and role.account == account and self._identities.trusts(role, service, region)

    async def acting(self, account: str, role: str) -> Principal:
        """The principal that writes for a stream: the role, where policies count, and else the account."""
        return await self._identities.acting(account, account_root(account).name, role, _SESSION)
