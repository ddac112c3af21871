"""Sessions: temporary credentials for roles, users and accounts."""

from dataclasses import dataclass, replace
from typing import Final

from redrive.access.session_tokens import Credentials, Session, SessionTokens, temporary_key_id
from redrive.aws.gateway.identities import Identities
from redrive.aws.wire.signatures.sigv4 import credential_scope
from redrive.aws.wire.signatures.sigv4_request import token_of
from redrive.engine.ports import Runtime
from redrive.http import Request

#: Of credentials that a service hands to a process which it starts for a role. No process lives as long, and none is
#: given others; they end with the role, and what they may do is asked on each call.
SERVICE_SECONDS: Final = 365 * 24 * 60 * 60
_NOBODYS: Final = "AROA" + "A" * 17  # the id of a role that is not there


@dataclass(frozen=True, slots=True)
class Sessions:
    """Begins sessions.

    Attributes:
        tokens: Seals what there is to know of them.
        identities: Finds roles.
        runtime: Time, by which sessions end, and chance.
    """

    tokens: SessionTokens
    identities: Identities
    runtime: Runtime

    def begin(self, session: Session, seconds: int) -> Credentials:
        """The credentials of a session that begins now.

        Args:
            session: Its key and its times are set here.
            seconds: For how long.
        """
        now = self.runtime.clock.now()
        begun = replace(
            session,
            access_key_id=temporary_key_id(session.account, self.runtime.chance),
            issued_at=now,
            expires_at=now + seconds * 1000,
        )
        return self.tokens.issue(begun)

    def of(self, request: Request) -> Session | None:
        """The session that a request belongs to; None: to none."""
        scope = credential_scope(request)
        if scope is None:
            return None
        return self.tokens.read(scope.access_key_id, token_of(request))

    async def for_role(
        self, role_arn: str, session_name: str, account: str, seconds: int = SERVICE_SECONDS
    ) -> Credentials:
        """The temporary credentials of a role, for a process that a service of this server runs.

        Who may pass the role to the service is asked where it is passed. A role that is not there may do nothing, once
        the account has any user or role at all; in an account that has none, such a session is the account's own.

        Args:
            role_arn: The role's.
            session_name: Shown as the end of the caller's ARN.
            account: Whose the process is; another account's role may do nothing here.
            seconds: For how long, on the engine's clock.
        """
        role = await self.identities.role(role_arn)
        if role is None and self.identities.restricts and not await self.identities.has_any(account):
            return self.begin(Session(account=account), seconds)
        unique_id = role.id if role is not None and role.account == account else _NOBODYS
        session = Session(account=account, role=role_arn or "-", unique_id=unique_id, name=session_name)
        return self.begin(session, seconds)
