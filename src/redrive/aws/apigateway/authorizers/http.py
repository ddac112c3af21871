"""Authorizers of HTTP APIs: functions, in both formats and with simple answers, and issuers of tokens.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-access-control.html
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.aws.apigateway.authorizers.functions import AuthorizerFunctions, FunctionAuthorizer, check_ttl
from redrive.aws.apigateway.authorizers.issuers import Issuers, TokenRefusal, read_token
from redrive.aws.apigateway.authorizers.verdicts import (
    AuthorizerVerdict,
    decide,
    misconfigured,
    policy_verdict,
)
from redrive.aws.apigateway.control.errors import bad_request, unoffered
from redrive.aws.apigateway.control.exchange import Exchange
from redrive.aws.apigateway.control.gateway_responses import Refusal
from redrive.aws.apigateway.control.records import Tree
from redrive.aws.apigateway.mapping.parameters import as_text, route_value
from redrive.aws.apigateway.requests import function_proxy as functions
from redrive.aws.apigateway.requests import http_events
from redrive.aws.apigateway.requests.admission import SIGNED

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
        raise unoffered(f"authorizers of the type {kind} for HTTP APIs")


def _check_function(authorizer: Mapping[str, Any], sources: Sequence[str]) -> None:
    version, simple = (
        authorizer.get("AuthorizerPayloadFormatVersion"),
        authorizer.get("EnableSimpleResponses"),
    )
    if not authorizer.get("AuthorizerUri"):
        raise bad_request("AuthorizerUri is required for authorizers of the type REQUEST")
    if version not in ("1.0", "2.0"):
        raise bad_request(
            "AuthorizerPayloadFormatVersion is a required parameter for authorizers of the type REQUEST. Allowed values:"
            " 1.0, 2.0"
        )
    if simple and version == "1.0":
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
        """Refuse a request that the authorizer of its route does not let pass; else hand on what it says.

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
        configuration = authorizer["JwtConfiguration"]
        try:
            token = read_token(text[len(_BEARER) :] if text.lower().startswith(_BEARER) else text)
            claims = await self._issuers.claims(token, configuration["Issuer"])
            _check_audience(claims, configuration["Audience"])
        except TokenRefusal as refused:
            challenge = f'Bearer scope="" error="invalid_token" error_description="{refused}"'
            raise Refusal("UNAUTHORIZED", reason=str(refused), challenge=challenge) from None
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
        function = FunctionAuthorizer(
            authorizer["AuthorizerId"],
            authorizer["AuthorizerUri"],
            authorizer.get("AuthorizerCredentialsArn") or "",
            authorizer.get("AuthorizerResultTtlInSeconds") or 0,
        )
        event = _event(exchange, authorizer["AuthorizerPayloadFormatVersion"], identity)
        read = _simple_verdict if authorizer.get("EnableSimpleResponses") else policy_verdict
        # A simple answer is about the route that was asked for; a policy says itself what it is about.
        told_apart = [exchange.route, *identity] if identity and read is _simple_verdict else identity
        verdict = await self._functions.verdict(exchange, function, told_apart, event, read)
        by_policy = {"principalId": verdict.principal} if verdict.policy else {}
        exchange.authorizer = {**verdict.context, **by_policy}
        exchange.authorizer_kind = "lambda"
        allowed = decide(exchange, verdict).allowed if verdict.policy else verdict.allows
        if not allowed:
            raise Refusal("ACCESS_DENIED")


def _event(exchange: Exchange, version: str, identity: Sequence[str]) -> Mapping[str, Any]:
    arn = exchange.place.arn(exchange.request.method, exchange.path)
    joined = ",".join(identity)
    if version == "1.0":
        members = functions.event_members(exchange, is_rest=False)
        sources = {"identitySource": joined, "authorizationToken": joined}
        return {"version": version, "type": _REQUEST, "methodArn": arn, **sources, **members}
    members = http_events.event_members(exchange)
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
    return [each for each in (claim if isinstance(claim, list) else [claim]) if isinstance(each, str)]
