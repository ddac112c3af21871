"""Authorizers of HTTP APIs: functions, in both formats and with simple answers, and issuers of JSON web tokens.

The keys of an issuer are fetched where OpenID Connect says, and cached for two hours; signatures are by RSA alone.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-access-control.html
"""

import asyncio
import base64
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

from redrive.access.web_tokens import UNCHECKED
from redrive.aws.apigateway.authorizers.functions import (
    AuthorizerFunctions,
    AuthorizerVerdict,
    FunctionAuthorizer,
    check_ttl,
    decide,
    misconfigured,
    policy_verdict,
)
from redrive.aws.apigateway.control.errors import bad_request, not_offered
from redrive.aws.apigateway.control.exchange import Exchange, Refusal
from redrive.aws.apigateway.control.records import Tree
from redrive.aws.apigateway.mapping.sources import as_text, route_value
from redrive.aws.apigateway.requests import function_proxy as functions
from redrive.aws.apigateway.requests.admission import SIGNED
from redrive.aws.apigateway.requests.answers import Web
from redrive.aws.kit.json_cursor import as_list
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
_RETRY_MS: Final = 60_000  # an unknown key id leads to another request for the keys, no sooner than this
_ISSUERS_MAX: Final = 256
_WELL_KNOWN: Final = "/.well-known/openid-configuration"


class TokenRefusal(Exception):  # noqa: N818 - an answer
    """A token is not accepted; the text says why, without quotes."""


class UnverifiedToken(NamedTuple):
    """A token as it was sent."""

    text: str  # The whole token
    key: str  # The id of its alleged key


@dataclass(slots=True)
class _Keys:
    """The keys of an issuer."""

    by_id: Mapping[str, RSAPublicKey] = field(default_factory=dict)
    fetched_at: int = 0  # The moment at which they were replaced last (ms)
    asked_at: int = 0  # The moment of the last request (ms)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # Held during a request


def read_token(text: str) -> UnverifiedToken:
    """Read the header of a token; raises TokenRefusal if it is malformed, or names no RSA key."""
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
        """Fetch keys through `web`, which goes only where the operator allows; by the clock tokens expire."""
        self._web = web
        self._clock = clock
        self._issuers: OrderedDict[str, _Keys] = OrderedDict()

    async def claims(self, token: UnverifiedToken, issuer: str) -> Mapping[str, Any]:
        """The claims of a token that is valid now; `issuer` is a URL.

        Raises:
            TokenRefusal: The issuer did not sign it, or it is not valid.
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
        """The key of an issuer by its id; fetched if it is not remembered and the last request is long enough ago."""
        keys = self._issuers.setdefault(issuer, _Keys())
        self._issuers.move_to_end(issuer)
        if len(self._issuers) > _ISSUERS_MAX:
            self._issuers.popitem(last=False)
        async with keys.lock:
            now = self._clock.now()
            is_fresh = now < keys.fetched_at + _REMEMBERED_MS
            is_remembered = is_fresh and key_id in keys.by_id
            if not is_remembered and now >= keys.asked_at + _RETRY_MS:
                keys.asked_at = now
                new_keys = await self._fetch(issuer)
                if new_keys or not is_fresh:
                    keys.by_id, keys.fetched_at = new_keys, now
        return keys.by_id.get(key_id)

    async def _fetch(self, issuer: str) -> Mapping[str, RSAPublicKey]:
        """The keys of an issuer by their ids, from the document that its well-known configuration names."""
        configuration = await self._document(f"{issuer.rstrip('/')}{_WELL_KNOWN}")
        address = configuration.get("jwks_uri")
        document = await self._document(address) if isinstance(address, str) else {}
        entries = document.get("keys")
        keys = (_read_key(each) for each in (entries if isinstance(entries, list) else [])[:_KEYS_MAX])
        return dict(filter(None, keys))

    async def _document(self, url: str) -> Mapping[str, Any]:
        """The JSON object at an address; empty if there is none."""
        headers = {"accept": "application/json"}
        try:
            answer = await self._web.fetch("GET", url, headers, b"", _FETCH_MS, _DOCUMENT_BYTES_MAX)
            document = orjson.loads(b"" if isinstance(answer, str) else answer.body)
        except (TimeoutError, orjson.JSONDecodeError):
            return {}
        return document if isinstance(document, dict) else {}


def _read_key(document: Any) -> tuple[str, RSAPublicKey] | None:
    """A key with its id; None: it does not sign tokens by RSA, or is not public."""
    if not isinstance(document, dict) or document.get("kty") != "RSA" or document.get("use", "sig") != "sig":
        return None
    key_id = document.get("kid")
    if not isinstance(key_id, str) or "d" in document:  # the private exponent
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
    """Refuse a token that is not valid now by its claims, of which `exp` must be there (seconds since the epoch)."""
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


JWT: Final = "JWT"
CUSTOM: Final = "CUSTOM"
AUTHORIZERS: Final = "authorizers"
_REQUEST: Final = "REQUEST"
_SOURCE: Final = re.compile(r"\$(?:request\.(?:header|querystring)|context|stageVariables)\.[A-Za-z0-9._$-]+")
_ISSUER: Final = re.compile(r"https?://[^\s?#]+")
_BEARER: Final = "bearer "


def check_authorizer(authorizer: Mapping[str, Any], _: Tree) -> None:
    """Refuse an authorizer that is not acceptable; raises AwsError."""
    kind, sources = authorizer.get("AuthorizerType"), authorizer.get("IdentitySource") or []
    if not all(_SOURCE.fullmatch(source) for source in sources):
        raise bad_request(f"Invalid identity source specified: {','.join(sources)}")
    if authorizer.get("IdentityValidationExpression"):
        raise bad_request("IdentityValidationExpression is not supported for HTTP APIs")
    if kind == JWT:
        configuration = authorizer.get("JwtConfiguration") or {}
        if len(sources) != 1:
            raise bad_request("Authorizers of the type JWT need one identity source")
        if not _ISSUER.fullmatch(configuration.get("Issuer") or "") or not configuration.get("Audience"):
            raise bad_request("Authorizers of the type JWT need an issuer and an audience")
    elif kind == _REQUEST:
        _check_function(authorizer, sources)
    else:
        raise not_offered(f"authorizers of the type {kind} for HTTP APIs")


def _check_function(authorizer: Mapping[str, Any], sources: Sequence[str]) -> None:
    version = authorizer.get("AuthorizerPayloadFormatVersion")
    if not authorizer.get("AuthorizerUri"):
        raise bad_request("AuthorizerUri is required for authorizers of the type REQUEST")
    if version not in ("1.0", "2.0"):
        raise bad_request(
            "AuthorizerPayloadFormatVersion is a required parameter for authorizers of the type REQUEST. Allowed values:"
            " 1.0, 2.0"
        )
    if authorizer.get("EnableSimpleResponses") and version == "1.0":
        raise bad_request("EnableSimpleResponses is only supported for the payload format version 2.0")
    check_ttl(authorizer.get("AuthorizerResultTtlInSeconds") or 0)
    if authorizer.get("AuthorizerResultTtlInSeconds") and not sources:
        raise bad_request("IdentitySource is required where results are cached")


def check_route_authorizer(route: Mapping[str, Any], tree: Tree) -> None:
    """Refuse a route whose authorizer is not there, or of another type; raises AwsError."""
    kind = route.get("AuthorizationType", "NONE")
    if kind in ("NONE", SIGNED):
        return
    if kind not in (JWT, CUSTOM):
        raise bad_request("Invalid authorization type specified")
    authorizer = (tree.get(AUTHORIZERS) or {}).get(route.get("AuthorizerId")) or {}
    if authorizer.get("AuthorizerType") != (JWT if kind == JWT else _REQUEST):
        word = "JWT " if kind == JWT else ""
        raise bad_request(
            f"Invalid authorizer ID specified. Setting the authorization type to {kind} requires a valid"
            f" {word}authorizer."
        )


class HttpAuthorizers:
    """Asks the authorizers of routes whether a request may pass."""

    def __init__(self, functions: AuthorizerFunctions, issuers: Issuers) -> None:
        self._functions = functions
        self._issuers = issuers

    async def admit(self, exchange: Exchange, route: Mapping[str, Any], tree: Tree) -> None:
        """Refuse a request that the authorizer of its route does not admit; else note its context in the exchange.

        Raises:
            Refusal: `UNAUTHORIZED`, `ACCESS_DENIED`, or `AUTHORIZER_CONFIGURATION_ERROR`.
        """
        authorizer = (tree.get(AUTHORIZERS) or {}).get(route.get("AuthorizerId"))
        if authorizer is None:
            raise misconfigured("The route's authorizer is not there")
        sources = authorizer.get("IdentitySource") or []
        identity = [route_value(exchange, source) or "" for source in sources]
        if not all(identity):
            raise Refusal("UNAUTHORIZED", challenge="Bearer" if authorizer["AuthorizerType"] == JWT else "")
        if authorizer["AuthorizerType"] == JWT:
            await self._admit_token(exchange, authorizer, identity[0], route.get("AuthorizationScopes") or ())
        else:
            await self._admit_by_function(exchange, authorizer, identity)

    async def _admit_token(
        self, exchange: Exchange, authorizer: Mapping[str, Any], text: str, route_scopes: Sequence[str]
    ) -> None:
        """Let a caller in by a JWT, with or without `Bearer` before it, and note its claims; raises Refusal."""
        configuration = authorizer["JwtConfiguration"]
        try:
            token = read_token(text[len(_BEARER) :] if text.lower().startswith(_BEARER) else text)
            claims = await self._issuers.claims(token, configuration["Issuer"])
            _check_audience(claims, configuration["Audience"])
        except TokenRefusal as refusal:
            challenge = f'Bearer scope="" error="invalid_token" error_description="{refusal}"'
            raise Refusal("UNAUTHORIZED", reason=str(refusal), challenge=challenge) from None
        scopes = _scopes(claims)
        if route_scopes and not set(route_scopes) & set(scopes):
            challenge = f'Bearer scope="{" ".join(route_scopes)}" error="insufficient_scope"'
            raise Refusal("ACCESS_DENIED", reason="insufficient scope", challenge=challenge)
        texts = {name: as_text(value) for name, value in claims.items()}
        exchange.authorizer = {"claims": texts, "scopes": list(scopes) if route_scopes else None}
        exchange.authorizer_kind = "jwt"

    async def _admit_by_function(
        self, exchange: Exchange, authorizer: Mapping[str, Any], identity: Sequence[str]
    ) -> None:
        """Let a caller in by the verdict of a function, and note its context; raises Refusal."""
        function = FunctionAuthorizer(
            authorizer["AuthorizerId"],
            authorizer["AuthorizerUri"],
            authorizer.get("AuthorizerCredentialsArn") or "",
            authorizer.get("AuthorizerResultTtlInSeconds") or 0,
        )
        event = _event(exchange, authorizer["AuthorizerPayloadFormatVersion"], identity)
        read = _simple_verdict if authorizer.get("EnableSimpleResponses") else policy_verdict
        # A simple answer is valid for the requested route alone; a policy names its resources itself.
        cache_identity = [exchange.route, *identity] if identity and read is _simple_verdict else identity
        verdict = await self._functions.verdict(exchange, function, cache_identity, event, read)
        principal = {"principalId": verdict.principal} if verdict.policy else {}
        exchange.authorizer = {**verdict.context, **principal}
        exchange.authorizer_kind = "lambda"
        is_allowed = decide(exchange, verdict).allowed if verdict.policy else verdict.allows
        if not is_allowed:
            raise Refusal("ACCESS_DENIED")


def _event(exchange: Exchange, version: str, identity: Sequence[str]) -> Mapping[str, Any]:
    """The event of a function that authorizes, in the payload format of `version`."""
    arn = exchange.stage_place.arn(exchange.request.method, exchange.policy_path)
    identity_text = ",".join(identity)
    if version == "1.0":
        members = functions.event_members(exchange, is_rest=False)
        sources = {"identitySource": identity_text, "authorizationToken": identity_text}
        return {"version": version, "type": _REQUEST, "methodArn": arn, **sources, **members}
    members = functions.event_v2_members(exchange)
    return {**members, "type": _REQUEST, "routeArn": arn, "identitySource": list(identity) or None}


def _simple_verdict(answer: Mapping[str, Any]) -> AuthorizerVerdict:
    allows, context = answer.get("isAuthorized"), answer.get("context") or {}
    if not isinstance(allows, bool) or not isinstance(context, Mapping):
        raise misconfigured("Invalid JSON in response")
    return AuthorizerVerdict(context, allows=allows)


def _check_audience(claims: Mapping[str, Any], audience: Sequence[str]) -> None:
    if not set(_texts(claims.get("aud", claims.get("client_id")))) & set(audience):
        raise TokenRefusal("the token does not have a valid audience")


def _scopes(claims: Mapping[str, Any]) -> Sequence[str]:
    scopes = claims.get("scope", claims.get("scp"))
    return scopes.split() if isinstance(scopes, str) else _texts(scopes)


def _texts(claim: Any) -> Sequence[str]:
    return [each for each in as_list(claim) if isinstance(each, str)]
