"""Sessions: temporary credentials for roles, users and accounts."""

from dataclasses import dataclass, replace
from typing import Final

from redrive.access.secret import Credentials, Session, SessionTokens, temporary_key_id
from redrive.aws.gateway.identities import Identities
from redrive.engine.ports import Runtime

#: Of credentials that a service hands to a process which it starts for a role. No process lives as long, and none is
#: given others; they end with the role, and what they may do is asked on each call.
SERVICE_SECONDS: Final = 365 * 24 * 60 * 60
_NOBODYS: Final = "AROA" + "A" * 17  # the id of a role that is not there


@dataclass(frozen=True, slots=True)
class Sessions:
    """Begins sessions."""

    tokens: SessionTokens  # Seals what there is to know of them
    identities: Identities  # Finds roles
    runtime: Runtime  # Clock, by which sessions expire, and random numbers

    def begin(self, session: Session, seconds: int) -> Credentials:
        """The credentials of a session that begins now.

        Args:
            session: Its key and its times are set here.
            seconds: For how long.
        """
        now = self.runtime.clock.now()
        begun = replace(
            session,
            access_key_id=temporary_key_id(session.account, self.runtime.rng),
            issued_at=now,
            expires_at=now + seconds * 1000,
        )
        return self.tokens.issue(begun)

    async def for_function(
        self, role: str, function: str, account: str, region: str, seconds: int = SERVICE_SECONDS
    ) -> Credentials:
        """The temporary credentials of a function's role, for a process that runs the function.

        Where policies count, a role that Lambda may not act as for the account may do nothing; see `Identities.assumed`.

        Args:
            role: The role's ARN.
            function: The function's name, which the session has as well.
            account: Whose the function is.
            region: Where it is.
            seconds: For how long, on the engine's clock.
        """
        session = None
        if self.identities.restricts:
            session = await self.identities.assumed("lambda", account, role, region)
        elif (known := await self.identities.role(role)) is not None:
            session = Session(account, role=role, unique_id=known.id)
        session = session or Session(account, role=role, unique_id=_NOBODYS)
        return self.begin(replace(session, name=function), seconds)
