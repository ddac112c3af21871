"""Issuers of tokens: their keys, fetched where OpenID Connect says, and the claims that they signed.

Claims and keys as "Control access to HTTP APIs with JWT authorizers" has them: RSA alone, keys remembered for two hours.
"""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

from redrive.access.web_tokens import UNCHECKED
from redrive.aws.apigateway.requests.outgoing import Web
from redrive.engine.ports import Clock

_ALGORITHMS: Final = ("RS256", "RS384", "RS512")
_TOKEN_CHARS_MAX: Final = 8 * 1024
_DOCUMENT_BYTES_MAX: Final = 128 * 1024
_KEYS_MAX: Final = 100
# In base64, looked at before anything is decoded: 8,192 and 32 bits, by which verifying takes 1.3 ms.
_MODULUS_CHARS_MAX: Final = 1_366
_EXPONENT_CHARS_MAX: Final = 6
_FETCH_MS: Final = 1_500  # as Amazon gives an issuer
_REMEMBERED_MS: Final = 2 * 60 * 60 * 1000
_AGAIN_MS: Final = 60_000  # an unknown key id asks for the keys again, no more often than this
_ISSUERS_MAX: Final = 256
_WELL_KNOWN: Final = "/.well-known/openid-configuration"


class TokenRefusal(Exception):  # noqa: N818 - an answer
    """A token that is not accepted; its text says why, without quotes."""


class UnverifiedToken(NamedTuple):
    """A token as it was sent."""

    text: str  # All of it
    key: str  # The id of the key that is said to have signed it


@dataclass(slots=True)
class _Keys:
    """The keys of an issuer."""

    by_id: Mapping[str, RSAPublicKey] = field(default_factory=dict)
    at: int = 0  # When they came (ms)
    asked_at: int = 0  # When they were asked for, last (ms)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # Held by who asks


def read_token(text: str) -> UnverifiedToken:
    """Read the header of a token.

    Raises:
        TokenRefusal: It is malformed, or names no key by which RSA could verify it.
    """
    if len(text) > _TOKEN_CHARS_MAX:
        raise TokenRefusal("the token is too long")
    try:
        header = jwt.get_unverified_header(text)
    except jwt.InvalidTokenError:
        raise TokenRefusal("the token is malformed") from None
    if header.get("alg") not in _ALGORITHMS or not isinstance(header.get("kid"), str):
        raise TokenRefusal("signing method is invalid")
    return UnverifiedToken(text, header["kid"])


class Issuers:
    """Verifies tokens by the keys of those who issued them."""

    def __init__(self, web: Web, clock: Clock) -> None:
        """Fetch keys by this, within what the operator allows; the clock is the one that issuers look at."""
        self._web = web
        self._clock = clock
        self._issuers: OrderedDict[str, _Keys] = OrderedDict()

    async def claims(self, token: UnverifiedToken, issuer: str) -> Mapping[str, Any]:
        """The claims of a token that an issuer signed, and that holds now.

        Args:
            token: As it was sent.
            issuer: The URL of the issuer.

        Raises:
            TokenRefusal: It did not, or it does not.
        """
        key = await self._key(issuer, token.key)
        if key is None:
            raise TokenRefusal("unable to find the key that signed the token")
        try:
            claims = jwt.decode(token.text, key, list(_ALGORITHMS), UNCHECKED)
        except jwt.InvalidTokenError:
            raise TokenRefusal("signature is invalid") from None
        if claims.get("iss") != issuer:
            raise TokenRefusal("the token has an invalid issuer")
        _check_times(claims, self._clock.now() // 1000)
        return claims

    async def _key(self, issuer: str, key_id: str) -> RSAPublicKey | None:
        keys = self._issuers.setdefault(issuer, _Keys())
        self._issuers.move_to_end(issuer)
        if len(self._issuers) > _ISSUERS_MAX:
            self._issuers.popitem(last=False)
        async with keys.lock:
            now = self._clock.now()
            fresh = now < keys.at + _REMEMBERED_MS
            if not (fresh and key_id in keys.by_id) and now >= keys.asked_at + _AGAIN_MS:
                keys.asked_at = now
                fetched = await self._fetched(issuer)
                if fetched or not fresh:
                    keys.by_id, keys.at = fetched, now
        return keys.by_id.get(key_id)

    async def _fetched(self, issuer: str) -> Mapping[str, RSAPublicKey]:
        configuration = await self._document(f"{issuer.rstrip('/')}{_WELL_KNOWN}")
        address = configuration.get("jwks_uri")
        document = await self._document(address) if isinstance(address, str) else {}
        listed = document.get("keys")
        keys = (_read_key(each) for each in (listed if isinstance(listed, list) else [])[:_KEYS_MAX])
        return dict(filter(None, keys))

    async def _document(self, url: str) -> Mapping[str, Any]:
        """The JSON object at an address; an empty one where there is none."""
        headers = {"accept": "application/json"}
        try:
            answer = await self._web.fetch("GET", url, headers, b"", _FETCH_MS, _DOCUMENT_BYTES_MAX)
            document = orjson.loads(b"" if isinstance(answer, str) else answer.body)
        except (TimeoutError, orjson.JSONDecodeError):
            return {}
        return document if isinstance(document, dict) else {}


def _read_key(document: Any) -> tuple[str, RSAPublicKey] | None:
    """A key with its id; None: it is none that signs tokens by RSA, or is not public."""
    if not isinstance(document, dict) or document.get("kty") != "RSA" or document.get("use", "sig") != "sig":
        return None
    key_id = document.get("kid")
    if not isinstance(key_id, str) or "d" in document:
        return None
    try:
        modulus = _read_number(document.get("n"), _MODULUS_CHARS_MAX)
        exponent = _read_number(document.get("e"), _EXPONENT_CHARS_MAX)
        return key_id, RSAPublicNumbers(exponent, modulus).public_key()
    except ValueError:
        return None


def _read_number(text: Any, chars_max: int) -> int:
    if not isinstance(text, str) or len(text) > chars_max:
        raise ValueError("not a number of a key")
    return int.from_bytes(base64.urlsafe_b64decode(f"{text}=="))


def _check_times(claims: Mapping[str, Any], second: int) -> None:
    for name in ("exp", "nbf", "iat"):
        moment = claims.get(name)
        if moment is not None and (isinstance(moment, bool) or not isinstance(moment, int | float)):
            raise TokenRefusal(f"the claim {name} is not a time")
    if "exp" not in claims or claims["exp"] <= second:
        raise TokenRefusal("the token has expired")
    if claims.get("nbf", 0) > second:
        raise TokenRefusal("the token is not valid yet")
    if claims.get("iat", 0) > second:
        raise TokenRefusal("the token was issued in the future")
