"""Tokens that a webhook can tell this server by, as Entra issues them to Event Grid.

They are JWTs signed with the installation's key (RS256), for an application of a tenant; the authority is this server,
which publishes the key (`redrive.azure.entra`). Source: "Deliver events to Microsoft Entra protected
endpoints" and "Access token claims reference" of Microsoft's documentation.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import jwt
import orjson
from jwt.algorithms import RSAAlgorithm
from jwt.utils import base64url_encode

from redrive.access.signing_pair import SigningPair
from redrive.azure.eventgrid.settings import TokenAudience
from redrive.azure.wire.bearer import LIFETIME_SECONDS
from redrive.engine.ports import Clock

EVENT_GRID: Final = (
    "4962773b-9cdb-44cf-a8bf-237846a00ab7"  # the application that Event Grid is, in every tenant
)

# A token is of the beginning of its 55 minutes, so that all nodes send the same one, and it has five minutes left at
# least: a push is over after three.
_RENEWED_SECONDS: Final = LIFETIME_SECONDS - 300
_REMEMBERED_MAX: Final = 1024  # of 1 KiB each; one more is a signature, which takes 0.2 to 0.7 ms


@dataclass(frozen=True, slots=True)
class _Issuer:
    pair: SigningPair
    base_url: str


class WebhookTokens:
    """Issues tokens for webhooks, and shows the key that they are checked with."""

    def __init__(self, clock: Clock, pair: SigningPair, base_url: str) -> None:
        """Sign with this key, as the authority at this URL.

        Args:
            clock: The one that webhooks look at: the system's, also where deliveries live on a simulated one.
            pair: The installation's key.
            base_url: This server's.
        """
        self._clock = clock
        self._issuer = _Issuer(pair, base_url)
        self._issued = lru_cache(_REMEMBERED_MAX)(_issued)

    async def authorization(self, audience: TokenAudience | None) -> Mapping[str, str]:
        """The authorization headers of requests to a webhook; empty if it has no audience."""
        if audience is None:
            return {}
        seconds = self._clock.now() // 1000
        token = self._issued(self._issuer, audience, seconds - seconds % _RENEWED_SECONDS)
        return {"Authorization": f"Bearer {token}"}

    async def key_set(self) -> Mapping[str, Any]:
        """The public key as a JSON Web Key Set (RFC 7517)."""
        key = _public(self._issuer.pair)
        return {"keys": [{**key, "kid": _thumbprint(key), "use": "sig", "alg": "RS256"}]}


def _issued(issuer: _Issuer, audience: TokenAudience, seconds: int) -> str:
    claims = {
        "aud": audience.application,
        "iss": f"{issuer.base_url}/{audience.tenant}/v2.0",
        "iat": seconds,
        "nbf": seconds,
        "exp": seconds + LIFETIME_SECONDS,
        "appid": EVENT_GRID,
        "azp": EVENT_GRID,
        "oid": audience.subscription,
        "sub": audience.subscription,
        "tid": audience.tenant,
        "ver": "2.0",
    }
    return jwt.encode(claims, issuer.pair.key, "RS256", {"kid": _thumbprint(_public(issuer.pair))})


def _public(pair: SigningPair) -> dict[str, str]:
    """The members of a public key that RFC 7638 takes, in its order."""
    key = RSAAlgorithm.to_jwk(pair.key.public_key(), as_dict=True)
    return {"e": key["e"], "kty": "RSA", "n": key["n"]}


def _thumbprint(key: Mapping[str, str]) -> str:
    """A key's name, as RFC 7638 makes it."""
    return base64url_encode(hashlib.sha256(orjson.dumps(key)).digest()).decode()
