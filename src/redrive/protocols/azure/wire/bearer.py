"""Bearer tokens: issued to a service principal, and believed when they come back.

A service principal is an access key of this server: its id is the client's, its secret the client's secret. A token is
signed with that secret (a JWT, HS256), so every node can check it, and it ends with its key.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson

from redrive.access.keyring import Keyring
from redrive.access.keys import AccessKey
from redrive.engine.ports import Clock
from redrive.protocols.azure.wire.errors import AzureError, unauthorized
from redrive.protocols.http import Request

LIFETIME_SECONDS: Final = 3600  # of a token; a key that is taken away ends it earlier
_HEADER: Final = {"typ": "JWT", "alg": "HS256"}
_PARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls.

    Attributes:
        account: Whose access key it is; None: nobody is verified, and everybody may do everything.
    """

    account: str | None

    def manages(self, subscription: str) -> bool:
        """True if an Azure subscription is the caller's: its GUID ends in the account."""
        return self.account is None or subscription.endswith(self.account)


class Authentication(Protocol):
    """A way to tell who calls."""

    async def caller(self, request: Request) -> Caller:
        """Who sent this request with `Authorization: Bearer …`.

        Raises:
            AzureError: Nobody who is believed.
        """
        ...

    async def accepts(self, client: str, secret: str) -> bool:
        """True if a service principal may have a token."""
        ...


class Believing:
    """Everybody is believed, with a token or without: for loopback alone."""

    async def caller(self, request: Request) -> Caller:  # noqa: ARG002 - as Authentication
        """See `Authentication.caller`; refuses nobody."""
        return Caller(None)

    async def accepts(self, client: str, secret: str) -> bool:  # noqa: ARG002 - as Authentication
        """See `Authentication.accepts`."""
        return True


class Verifying:
    """A token that was issued to a key of the keyring is believed, and nothing else."""

    def __init__(self, keyring: Keyring, clock: Clock) -> None:
        """Look keys up here.

        Args:
            keyring: Whose keys are believed.
            clock: The one that clients look at: the system's, also where deliveries live on a simulated one.
        """
        self._keyring = keyring
        self._clock = clock

    async def caller(self, request: Request) -> Caller:
        """See `Authentication.caller`."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise unauthorized("Authentication failed. The 'Authorization' header is missing.")
        claims = _claims(token)
        key = await self._key(str(claims.get("appid", "")))
        if key is None or not _is_signed(token, key.secret):
            raise _invalid()
        if not _is_current(claims, self._clock.now()):
            raise unauthorized("Authentication failed. The access token has expired.")
        return Caller(key.account)

    async def accepts(self, client: str, secret: str) -> bool:
        """See `Authentication.accepts`."""
        key = await self._key(client)
        return key is not None and hmac.compare_digest(key.secret.encode(), secret.encode())

    async def _key(self, client: str) -> AccessKey | None:
        """The key of that id; not every store can look for one with a NUL in it."""
        return await self._keyring.get(client) if client.isprintable() else None


def issue(claims: Mapping[str, Any], secret: str) -> str:
    """Sign a token.

    Args:
        claims: `appid` is the access key's id, `exp` in seconds since the epoch.
        secret: The access key's.
    """
    signed = f"{encoded(orjson.dumps(_HEADER))}.{encoded(orjson.dumps(claims))}"
    return f"{signed}.{_signature(signed, secret)}"


def _claims(token: str) -> Mapping[str, Any]:
    """What a token says, not proven yet."""
    parts = token.strip().split(".")
    try:
        header, claims = (orjson.loads(_decoded(part)) for part in parts[:2])
    except ValueError:
        raise _invalid() from None
    if len(parts) != _PARTS or header != _HEADER or not isinstance(claims, dict):
        raise _invalid()
    return claims


def _is_signed(token: str, secret: str) -> bool:
    signed, _, signature = token.strip().rpartition(".")
    return hmac.compare_digest(_signature(signed, secret).encode(), signature.encode())


def _is_current(claims: Mapping[str, Any], now: int) -> bool:
    ends_at = claims.get("exp")
    return isinstance(ends_at, int) and now < ends_at * 1000


def _signature(signed: str, secret: str) -> str:
    return encoded(hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest())


def encoded(content: bytes) -> str:
    """Bytes as JWTs have them: base 64 for URLs, without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _invalid() -> AzureError:
    return unauthorized("Authentication failed. The access token is invalid.")
