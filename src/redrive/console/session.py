"""Sessions: who visits the console, by a cookie that every node recognises and that ends with its access key.

The cookie is a JSON web token signed with the key's own secret, as bearer tokens are (decision 0010); its audience tells
them apart, so that neither passes for the other. The store has nothing of a session but that somebody signed out of it.
"""

import hmac
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from redrive.access.keys import AccessKey, Keyring
from redrive.access.web_tokens import ALGORITHM, signed_claims
from redrive.engine.ports import Clock, DocumentKind
from redrive.engine.resources import Documents, Draft

SESSION: Final = "redrive-console"
LINK: Final = "redrive-console-link"
SESSION_SECONDS: Final = 12 * 3600
LINK_SECONDS: Final = 60
#: By access key: the ids of sessions that were signed out of, and when each would have ended (s since the epoch).
ENDED: Final[DocumentKind[Mapping[str, int]]] = DocumentKind(
    "console_ended_sessions", lambda ended: {"until": dict(ended)}, lambda document: dict(document["until"])
)
_ENDED_MAX: Final = (
    256  # of a key within twelve hours; then the one that ends first is good again until it does
)
_TOKEN_CHARS_MAX: Final = 4096
_ID_BYTES: Final = 16
_TRIES_MAX: Final = 10
_TRIES_MS: Final = 60_000
_ADDRESSES_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A visitor's session."""

    key_id: str  # Access key of the sign-in; empty without authentication
    account: str | None  # Account that they see; None: all accounts
    writes: bool  # Whether they may change anything
    id: str = ""  # Id among the sessions of the key; empty without authentication
    until: int = 0  # Time of expiry (s since the epoch)

    def sees(self, account: str) -> bool:
        """True if the things of an account, or of an Azure subscription, are theirs."""
        return self.account is None or account == self.account or account.endswith(f"-{self.account}")


class ConsoleSessions:
    """Makes sessions of access keys, and recognises those it made."""

    def __init__(
        self, keyring: Keyring, documents: Documents, clock: Clock, rng: random.Random, *, writes: bool
    ) -> None:
        """Trust these keys; the clock is the system's, as a session does not end by simulated time."""
        self._documents = documents
        self._rng = rng
        self._keyring = keyring
        self._clock = clock
        self._writes = writes
        self._tries: dict[str, list[int]] = {}

    async def of(self, cookie: str) -> ConsoleSession | None:
        """The session of a cookie; None: sign in."""
        key, claims = await self._verify(cookie, SESSION)
        if key is None:
            return None
        until: int = claims["exp"]
        session_id = str(claims.get("jti", until))
        if session_id in (await self._documents.get(ENDED, key.access_key_id) or ()):
            return None
        self._keyring.uses.note(key.access_key_id, "console")
        return ConsoleSession(key.access_key_id, key.account, self._writes, session_id, until)

    async def end(self, session: ConsoleSession) -> None:
        """End a session, on all nodes: its cookie is good for nothing any more."""
        if not session.id:
            return

        async def decide(draft: Draft) -> None:
            before = await draft.get(ENDED, session.key_id)
            ended = {**(before or {}), session.id: session.until}
            latest = sorted(ended, key=lambda session_id: -ended[session_id])[:_ENDED_MAX]
            now = self._clock.now() // 1000
            draft.put(ENDED, session.key_id, {each: ended[each] for each in latest if ended[each] > now})

        await self._documents.transact(decide)

    async def by_secret(self, key_id: str, secret: str) -> str | None:
        """A new cookie for who knows a key's secret; None: there is no such key, or it has another secret."""
        key = await self._keyring.get(key_id)
        stored_secret = "" if key is None else key.secret  # compared without a key too, in the same time
        if not hmac.compare_digest(stored_secret.encode(), secret.encode()) or key is None:
            return None
        return self._cookie(key)

    async def by_link(self, token: str) -> str | None:
        """A new cookie for who has a link of the last minute."""
        key, _ = await self._verify(token, LINK)
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
        until = self._clock.now() // 1000 + SESSION_SECONDS
        session_id = self._rng.randbytes(_ID_BYTES).hex()
        return token_of(key.access_key_id, key.secret, SESSION, until, session_id)

    async def _verify(self, token: str, audience: str) -> tuple[AccessKey | None, Mapping[str, Any]]:
        """The key that a token was signed with, if it was made for this and has not ended, and its claims."""
        if not token or len(token) > _TOKEN_CHARS_MAX:
            return None, {}
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
        except jwt.InvalidTokenError:
            return None, {}
        key = await self._keyring.get(key_id) if isinstance(key_id, str) else None
        claims = None if key is None else signed_claims(token, _signing_key(key.secret))
        if claims is None:
            return None, {}
        until = claims.get("exp")
        if claims.get("aud") != audience or not isinstance(until, int) or until <= self._clock.now() // 1000:
            return None, {}
        return key, claims


def token_of(key_id: str, secret: str, audience: str, until: int, token_id: str = "") -> str:
    """A token of a key, good until then (s since the epoch), with an id among the key's."""
    claims = {"aud": audience, "exp": until} | ({"jti": token_id} if token_id else {})
    return jwt.encode(claims, _signing_key(secret), algorithm=ALGORITHM, headers={"kid": key_id})


def _signing_key(secret: str) -> bytes:
    """The key that tokens are signed with: of 32 bytes whatever the secret, and of no use for anything else."""
    return hmac.digest(secret.encode(), SESSION.encode(), "sha256")
