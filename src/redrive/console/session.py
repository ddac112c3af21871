"""Sessions: who visits the console, by a cookie that every node recognises and that ends with its access key.

The cookie is a JSON web token signed with the key's own secret, as bearer tokens are (decision 0010); its audience tells
them apart, so that neither passes for the other. The server keeps nothing of a session.
"""

import hmac
from dataclasses import dataclass
from typing import Final

import jwt

from redrive.access.keyring import Keyring
from redrive.access.keys import AccessKey
from redrive.access.web_tokens import ALGORITHM, signed_claims
from redrive.engine.ports import Clock

SESSION: Final = "redrive-console"
LINK: Final = "redrive-console-link"
SESSION_SECONDS: Final = 12 * 3600
LINK_SECONDS: Final = 60
_TOKEN_CHARS_MAX: Final = 4096
_TRIES_MAX: Final = 10
_TRIES_MS: Final = 60_000
_ADDRESSES_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who visits.

    Attributes:
        key_id: The access key that they signed in with; empty where nobody has to.
        account: Whose things they see; None: everybody's.
        writes: Whether they may change anything.
    """

    key_id: str
    account: str | None
    writes: bool

    def sees(self, account: str) -> bool:
        """True if the things of an account, or of an Azure subscription, are theirs."""
        return self.account is None or account == self.account or account.endswith(f"-{self.account}")


class Sessions:
    """Makes sessions of access keys, and recognises those it made."""

    def __init__(self, keyring: Keyring, clock: Clock, *, writes: bool) -> None:
        """Trust these keys.

        Args:
            keyring: The access keys.
            clock: The system's: a session does not end by simulated time.
            writes: Whether anybody may change anything.
        """
        self._keyring = keyring
        self._clock = clock
        self._writes = writes
        self._tries: dict[str, list[int]] = {}

    async def of(self, cookie: str) -> Session | None:
        """The session of a cookie; None: sign in."""
        key = await self._key_of(cookie, SESSION)
        return None if key is None else Session(key.access_key_id, key.account, self._writes)

    async def by_secret(self, key_id: str, secret: str) -> str | None:
        """A new cookie for who knows a key's secret."""
        key = await self._keyring.get(key_id)
        known = "" if key is None else key.secret
        if not hmac.compare_digest(known.encode(), secret.encode()) or key is None:
            return None
        return self._cookie(key)

    async def by_link(self, token: str) -> str | None:
        """A new cookie for who has a link of the last minute."""
        key = await self._key_of(token, LINK)
        return None if key is None else self._cookie(key)

    def now(self) -> int:
        """The system's time (ms)."""
        return self._clock.now()

    def may_try(self, address: str) -> bool:
        """True if an address has failed to sign in less than ten times in the last minute."""
        now = self._clock.now()
        recent = [at for at in self._tries.get(address, ()) if at > now - _TRIES_MS]
        self._tries[address] = recent
        return len(recent) < _TRIES_MAX

    def failed(self, address: str) -> None:
        """Count a failure."""
        if len(self._tries) > _ADDRESSES_MAX:
            self._tries.clear()
        self._tries.setdefault(address, []).append(self._clock.now())

    def _cookie(self, key: AccessKey) -> str:
        return token_of(key.access_key_id, key.secret, SESSION, self._clock.now() // 1000 + SESSION_SECONDS)

    async def _key_of(self, token: str, audience: str) -> AccessKey | None:
        """The key that a token was signed with, if it was made for this and has not ended."""
        if not token or len(token) > _TOKEN_CHARS_MAX:
            return None
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
        except jwt.InvalidTokenError:
            return None
        key = await self._keyring.get(key_id) if isinstance(key_id, str) else None
        claims = None if key is None else signed_claims(token, _signing_key(key.secret))
        if claims is None:
            return None
        until = claims.get("exp")
        if claims.get("aud") != audience or not isinstance(until, int):
            return None
        return key if until > self._clock.now() // 1000 else None


def token_of(key_id: str, secret: str, audience: str, until: int) -> str:
    """A token of a key, good until then (s since the epoch)."""
    claims = {"aud": audience, "exp": until}
    return jwt.encode(claims, _signing_key(secret), algorithm=ALGORITHM, headers={"kid": key_id})


def _signing_key(secret: str) -> bytes:
    """The key that tokens are signed with: of 32 bytes whatever the secret, and of no use for anything else."""
    return hmac.digest(secret.encode(), SESSION.encode(), "sha256")
