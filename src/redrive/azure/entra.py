"""Signing in: the cloud's description and the token endpoint, as far as a service principal needs them.

`az cloud register` reads `/metadata/endpoints`; `az login --service-principal` and azure-identity then ask the
authority, which is this server, for tokens.

Webhooks get tokens too, by which they can tell this server: JWTs signed with the installation's key (RS256), for an
application of a tenant. The issuer's description and its public key are published here. Source: "Deliver events to
Microsoft Entra protected endpoints" and "Access token claims reference" of Microsoft's documentation.
"""

import hashlib
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import jwt
import orjson
from jwt.algorithms import RSAAlgorithm
from jwt.utils import base64url_encode

from redrive.access.signing_pair import SigningPair
from redrive.azure.eventgrid.settings import TokenAudience
from redrive.azure.recognise import CLOUD, KEYS, is_for_authority
from redrive.azure.wire import bearer
from redrive.azure.wire.answers import json_answer, not_found
from redrive.azure.wire.bearer import LIFETIME_SECONDS, BearerAuthentication
from redrive.azure.wire.routes import RouteTable
from redrive.engine.ports import Clock
from redrive.model.http import Request, Response

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
        """Sign with the installation's key, as the authority at this server's URL."""
        # The system's, which webhooks look at, also where deliveries live on a simulated one
        self._clock = clock
        self._issuer = _Issuer(pair, base_url)
        self._issue = lru_cache(_REMEMBERED_MAX)(_issue_token)

    def authorization(self, audience: TokenAudience | None) -> Mapping[str, str]:
        """The authorization headers of requests to a webhook; empty if it has no audience."""
        if audience is None:
            return {}
        seconds = self._clock.now() // 1000
        token = self._issue(self._issuer, audience, seconds - seconds % _RENEWED_SECONDS)
        return {"Authorization": f"Bearer {token}"}

    async def key_set(self) -> Mapping[str, Any]:
        """The public key as a JSON Web Key Set (RFC 7517)."""
        key = _public(self._issuer.pair)
        return {"keys": [{**key, "kid": _thumbprint(key), "use": "sig", "alg": "RS256"}]}


def _issue_token(issuer: _Issuer, audience: TokenAudience, seconds: int) -> str:
    """A token for the audience, issued at `seconds`, which a webhook checks by the public key."""
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


_FIELDS_MAX: Final = 50  # fields of a form
_FORM_BYTES_MAX: Final = 4 * 1024  # an id, a secret and a scope have a few hundred

_Verb = Callable[[Request, Mapping[str, str]], Awaitable[Response]]


class Entra:
    """Issues tokens, and describes the authority that does (`redrive.azure.gateway.Service`)."""

    def __init__(
        self,
        clock: Clock,
        authentication: BearerAuthentication,
        public_url: str | None,
        tokens: WebhookTokens,
    ) -> None:
        self._clock = clock  # The system's, which clients compare the tokens with
        self._authentication = authentication
        # The beginning of URLs in answers; None for the host that the client used
        self._public_url = public_url
        self._tokens = tokens  # Signs the tokens for webhooks; its public key is served
        self.routes: RouteTable[_Verb] = RouteTable(
            {
                f"GET {CLOUD}": self._cloud,
                "GET /{tenant}/.well-known/openid-configuration": self._configuration,
                "GET /{tenant}/v2.0/.well-known/openid-configuration": self._configuration,
                f"GET /{{tenant}}{KEYS}": self._keys,
                "POST /{tenant}/oauth2/token": self._token,
                "POST /{tenant}/oauth2/v2.0/token": self._token,
            }
        )

    def handles(self, path: str, host: str) -> bool:  # noqa: ARG002 - as Service
        """See `Service.handles`."""
        return is_for_authority(path)

    async def answer(self, request: Request) -> Response:
        """See `Service.answer`."""
        route_match = self.routes.find(request.method, request.path)
        if route_match is None or route_match.verb is None:
            raise not_found(f"There is nothing at {request.method} {request.path}.", "NotFound")
        return await route_match.verb(request, route_match.params)

    def _base_url(self, request: Request) -> str:
        return self._public_url or f"{request.scheme}://{request.host}"

    async def _cloud(self, request: Request, _: Mapping[str, str]) -> Response:
        return json_answer(_cloud_description(self._base_url(request)))

    async def _configuration(self, request: Request, params: Mapping[str, str]) -> Response:
        """The OpenID configuration of a tenant, with this server's addresses."""
        authority = f"{self._base_url(request)}/{params['tenant']}"
        return json_answer(
            {
                "issuer": f"{authority}/v2.0",
                "authorization_endpoint": f"{authority}/oauth2/v2.0/authorize",
                "token_endpoint": f"{authority}/oauth2/v2.0/token",
                "jwks_uri": f"{authority}{KEYS}",
                "id_token_signing_alg_values_supported": ["RS256"],
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
                "grant_types_supported": ["client_credentials"],
                "response_types_supported": ["token"],
                "subject_types_supported": ["pairwise"],
            }
        )

    async def _keys(self, request: Request, _: Mapping[str, str]) -> Response:  # noqa: ARG002 - as _Verb
        return json_answer(await self._tokens.key_set())

    async def _token(self, request: Request, params: Mapping[str, str]) -> Response:
        """A token for a service principal, which is an access key with its secret."""
        form = _form(request)
        if form.get("grant_type") != "client_credentials":
            return _refusal(
                HTTPStatus.BAD_REQUEST, "unsupported_grant_type", "AADSTS70003: use client_credentials."
            )
        client, secret = form.get("client_id", ""), form.get("client_secret", "")
        if not await self._authentication.accepts(request, client, secret):
            message = f"AADSTS7000215: Invalid client secret provided for app '{client}'."
            return _refusal(HTTPStatus.UNAUTHORIZED, "invalid_client", message)
        audience = (form.get("scope") or form.get("resource") or "").removesuffix("/.default")
        seconds = self._clock.now() // 1000
        claims = {
            "aud": audience,
            "iss": f"{self._base_url(request)}/{params['tenant']}/",
            "iat": seconds,
            "nbf": seconds,
            "exp": seconds + bearer.LIFETIME_SECONDS,
            "appid": client,
            "oid": client,
            "sub": client,
            "tid": params["tenant"],
            "ver": "1.0",
        }
        return json_answer(_token_answer(bearer.issue(claims, secret), audience, seconds))


def _token_answer(token: str, audience: str, seconds: int) -> Mapping[str, Any]:
    """The answer of the token endpoint; its first version writes numbers as text."""
    lifetime = bearer.LIFETIME_SECONDS
    return {
        "token_type": "Bearer",
        "expires_in": lifetime,
        "ext_expires_in": lifetime,
        "expires_on": str(seconds + lifetime),
        "not_before": str(seconds),
        "resource": audience,
        "access_token": token,
    }


def _refusal(status: int, error: str, description: str) -> Response:
    return json_answer({"error": error, "error_description": description}, status)


def _form(request: Request) -> Mapping[str, str]:
    """The fields of a form; none of one that is too long or cannot be read."""
    if len(request.body) > _FORM_BYTES_MAX:
        return {}
    try:
        return dict(parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX))
    except ValueError:
        return {}


def _storage_suffix(base_url: str) -> str:
    """The hosts of storage accounts end in it: `letters.blob.redrive.example.com`; an address has no names beneath it."""
    url = urlsplit(base_url)
    try:
        ipaddress.ip_address(url.hostname or "")
    except ValueError:
        return url.netloc
    return "not-offered.invalid"


def _cloud_description(base_url: str) -> Mapping[str, Any]:
    """The cloud, as `az cloud register --endpoint-resource-manager` reads it: everything is this server.

    Services that Redrive does not offer are named too, because clients refuse a description without them; a host under
    `.invalid` never resolves.
    """
    not_offered = "https://not-offered.invalid"
    return {
        "name": "Redrive",
        "portal": base_url,
        "resourceManager": f"{base_url}/",
        "authentication": {
            "loginEndpoint": base_url,
            "audiences": [base_url, f"{base_url}/"],
            "tenant": "common",
            "identityProvider": "AAD",
        },
        "graph": not_offered,
        "graphAudience": f"{base_url}/",
        "microsoftGraphResourceId": not_offered,
        "gallery": not_offered,
        "batch": not_offered,
        "media": not_offered,
        "sqlManagement": not_offered,
        "vmImageAliasDoc": not_offered,
        "activeDirectoryDataLake": not_offered,
        "appInsightsResourceId": not_offered,
        "logAnalyticsResourceId": not_offered,
        "suffixes": {
            "storage": _storage_suffix(base_url),
            "keyVaultDns": "not-offered.invalid",
            "sqlServerHostname": "not-offered.invalid",
            "acrLoginServer": "not-offered.invalid",
            "azureDataLakeStoreFileSystem": "not-offered.invalid",
            "azureDataLakeAnalyticsCatalogAndJob": "not-offered.invalid",
        },
    }
