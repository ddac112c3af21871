"""Bearer tokens: issued to a service principal, and accepted when they come back.

A service principal is an access key of this server: its id is the client's, its secret the client's secret. A token is
a JWT signed with that secret (HS256), so every node can check it, and it ends with its key. PyJWT reads and checks it,
but for its end: time is the Clock's (decision 0021).
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import jwt

from redrive.access.keys import AccessKey, Keyring
from redrive.access.refusals import Refusals
from redrive.access.web_tokens import ALGORITHM, signed_claims
from redrive.azure.wire.answers import unauthorized
from redrive.engine.ports import Clock
from redrive.model.http import Request

LIFETIME_SECONDS: Final = 3600  # of a token; a key that is taken away ends it earlier
_HEADER: Final = {"typ": "JWT", "alg": ALGORITHM}
_TOKEN_CHARS_MAX: Final = 4096  # issued are 600 at most; to read 64 KiB of anybody's takes 4 ms
_KEY_BYTES_MIN: Final = 32  # which PyJWT asks for


@dataclass(frozen=True, slots=True)
class BearerCaller:
    """A caller."""

    account: str | None  # Account of the access key; None: authentication is off, and everything is allowed

    def manages(self, subscription: str) -> bool:
        """True if an Azure subscription is the caller's: its GUID ends in the account."""
        return self.account is None or subscription.endswith(self.account)


class BearerAuthentication(Protocol):
    """A way to tell who calls."""

    async def caller(self, request: Request) -> BearerCaller:
        """The caller of this request with `Authorization: Bearer …`.

        Raises:
            AzureError: The request has no token that is trusted.
        """
        ...

    async def accepts(self, request: Request, client: str, secret: str) -> bool:
        """True if a service principal may have a token, which it asks for by this request."""
        ...


class TrustAllBearers:
    """Accepts every request, with or without a token: for loopback only."""

    async def caller(self, request: Request) -> BearerCaller:  # noqa: ARG002 - as Authentication
        """See `BearerAuthentication.caller`; refuses no one."""
        return BearerCaller(None)

    async def accepts(self, request: Request, client: str, secret: str) -> bool:  # noqa: ARG002 - as Authentication
        """See `BearerAuthentication.accepts`."""
        return True


class BearerVerifier:
    """Trusts tokens that were issued to a key of the keyring, and nothing else."""

    def __init__(self, keyring: Keyring, clock: Clock, refusals: Refusals | None = None) -> None:
        self._keyring = keyring
        # The one that clients look at: the system's, also where deliveries live on a simulated one
        self._clock = clock
        self._refusals = Refusals(clock) if refusals is None else refusals

    async def caller(self, request: Request) -> BearerCaller:
        """The caller whose access key signed the token (`BearerAuthentication.caller`); raises AzureError."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            self._refuse("BearerTokenMissing", request)
            raise unauthorized("Authentication failed. The 'Authorization' header is missing.")
        client = _client_of(token.strip())
        key = None if client is None else await self._key(client)
        claims = None if key is None else signed_claims(token.strip(), _hmac_key(key.secret))
        if key is None or claims is None:
            self._refuse("BearerTokenInvalid", request, client)
            raise unauthorized("Authentication failed. The access token is invalid.")
        if not _is_current(claims, self._clock.now()):
            self._refuse("BearerTokenExpired", request, client)
            raise unauthorized("Authentication failed. The access token has expired.")
        if request.record is not None:
            request.record.account = key.account
        self._keyring.uses.note(key.access_key_id, "azure")
        return BearerCaller(key.account)

    async def accepts(self, request: Request, client: str, secret: str) -> bool:
        """True if the secret is that access key's (`BearerAuthentication.accepts`)."""
        key = await self._key(client)
        is_accepted = key is not None and hmac.compare_digest(key.secret.encode(), secret.encode())
        if not is_accepted:
            self._refuse("ClientSecretInvalid", request, client)
        return is_accepted

    def _refuse(self, reason: str, request: Request, client: str | None = None) -> None:
        self._refusals.add(reason, address=request.client_host, identity=client or "")

    async def _key(self, client: str) -> AccessKey | None:
        """The key of that id; not every store can look for one with a NUL in it."""
        return await self._keyring.get(client) if client.isprintable() else None


def issue(claims: Mapping[str, Any], secret: str) -> str:
    """Sign a token with an access key's secret: `appid` is the key's id, `exp` in seconds since the epoch."""
    return jwt.encode(dict(claims), _hmac_key(secret), ALGORITHM, sort_headers=False)


def _client_of(token: str) -> str | None:
    """The access key's id that a token names, which nothing has proven yet; None of a text that is no such token."""
    if len(token) > _TOKEN_CHARS_MAX:
        return None
    try:
        parts = jwt.decode_complete(token, options={"verify_signature": False})
    except jwt.InvalidTokenError:
        return None
    if parts["header"] != _HEADER:  # no other algorithm, and no key of the token's own choice
        return None
    return str(parts["payload"].get("appid", ""))


def _is_current(claims: Mapping[str, Any], now: int) -> bool:
    ends_at = claims.get("exp")
    return isinstance(ends_at, int) and now < ends_at * 1000


def _hmac_key(secret: str) -> bytes:
    """A secret as the key of an HMAC: zeros at its end, which HMAC adds itself, make it as long as PyJWT wants it."""
    return secret.encode().ljust(_KEY_BYTES_MIN, b"\0")
