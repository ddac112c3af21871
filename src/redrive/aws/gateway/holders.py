"""Holders of access keys: accounts, users, and sessions."""

from dataclasses import dataclass

from redrive.access.keys import Keyring
from redrive.access.principals import Principal, account_root
from redrive.access.secret import Session, SessionTokens, is_temporary
from redrive.aws.gateway.identities import Identities
from redrive.aws.wire.signatures.sigv4_request import SignatureRefused
from redrive.engine.ports import Clock


class ExpiredToken(SignatureRefused):
    """The session is over (recorded)."""

    code = "ExpiredToken"
    json_code = "ExpiredTokenException"

    def __init__(self) -> None:
        super().__init__("The security token included in the request is expired")


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a key."""

    secret: str  # The holder signs with it
    account: str  # Twelve digits
    user: str = ""  # The name of the user whose key it is; empty: it is the account's own, or a session's
    session: Session | None = None  # The session that the key is for; None: it is a lasting one


class Holders:
    """Tells whose a key is."""

    def __init__(
        self,
        keyring: Keyring,
        identities: Identities | None = None,
        tokens: SessionTokens | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Look here.

        Args:
            keyring: The lasting keys.
            identities: Users and roles; None: there are none.
            tokens: Reads those of sessions; None: there are none.
            clock: Says when sessions are over: the engine's.
        """
        self._keyring = keyring
        self._identities = identities
        self._tokens = tokens
        self._clock = clock

    async def of(self, access_key_id: str, token: str) -> Holder | None:
        """The holder of a key; None: nobody's here.

        Args:
            access_key_id: The key's.
            token: What came along with it; only temporary keys need any.
        """
        if not is_temporary(access_key_id):
            key = await self._keyring.find(access_key_id)
            return None if key is None else Holder(key.secret, key.account, key.user)
        session = None if self._tokens is None else self._tokens.read(access_key_id, token)
        if session is None or self._tokens is None:
            return None
        return Holder(self._tokens.secret(access_key_id), session.account, session=session)

    async def principal(self, holder: Holder) -> Principal | None:
        """The caller that a holder is; None: the user or the role is there no more."""
        if holder.session is None and not holder.user:
            return account_root(holder.account)
        if self._identities is None:
            return None
        if holder.session is None:
            return await self._identities.user(holder.account, holder.user)
        return await self._identities.session(holder.session)

    def check_current(self, holder: Holder) -> None:
        """Refuse an expired session.

        Raises:
            ExpiredToken: It is.
        """
        session = holder.session
        if session is not None and self._clock is not None and session.expires_at <= self._clock.now():
            raise ExpiredToken
