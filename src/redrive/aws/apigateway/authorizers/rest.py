"""Authorizers of REST APIs: their identity sources, the events of their functions, and the context of their answers.

https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-use-lambda-authorizer.html
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import re2

from redrive.aws.apigateway.authorizers.functions import (
    AuthorizerFunctions,
    AuthorizerVerdict,
    FunctionAuthorizer,
    check_ttl,
    decide,
    misconfigured,
    policy_verdict,
    scalars,
)
from redrive.aws.apigateway.control.errors import bad_request, conflict, not_offered
from redrive.aws.apigateway.control.exchange import Exchange, Refusal
from redrive.aws.apigateway.control.records import Tree
from redrive.aws.apigateway.mapping.sources import request_value
from redrive.aws.apigateway.requests import function_proxy as functions
from redrive.engine.ports import Clock

CUSTOM: Final = "CUSTOM"
AUTHORIZERS: Final = "authorizers"
_BY_TOKEN: Final = "TOKEN"  # noqa: S105 - a type of authorizers
_EXPRESSION_CHARS_MAX: Final = 1024  # a longer one takes long to compile
_BY_REQUEST: Final = "REQUEST"
_TTL_SECONDS: Final = 300
_HEADER_OF_TOKENS: Final = "method.request.header.Authorization"
_HEADER: Final = re.compile(r"method\.request\.header\.[A-Za-z0-9._-]+")
_SOURCE: Final = re.compile(
    r"(?:method\.request\.(?:header|querystring|multivalueheader|multivaluequerystring)|stageVariables|context)"
    r"\.[A-Za-z0-9._$-]+"
)
_URI: Final = re.compile(
    r"arn:aws[a-z-]*:apigateway:[a-z]+-[a-z-]+-[0-9]:lambda:path/2015-03-31/functions/.+/invocations"
)
_MEMBERS: Final = (
    *("name", "type", "authType", "authorizerUri", "authorizerCredentials", "identitySource"),
    *("identityValidationExpression", "authorizerResultTtlInSeconds"),
)


def authorizer_of(params: Mapping[str, Any], authorizer_id: str, tree: Tree) -> dict[str, Any]:
    """An authorizer as its API stores it.

    Raises:
        AwsError: `BadRequestException` or `ConflictException`: it cannot be, or is not offered.
    """
    members = {name: params[name] for name in _MEMBERS if params.get(name) is not None}
    defaults = {"authType": "custom", "authorizerResultTtlInSeconds": _TTL_SECONDS}
    if members.get("type") == _BY_TOKEN:
        defaults["identitySource"] = _HEADER_OF_TOKENS
    authorizer = {"id": authorizer_id, **defaults, **members}
    check_authorizer(authorizer, tree)
    return authorizer


def check_authorizer(authorizer: Mapping[str, Any], tree: Tree) -> None:
    """Refuse an authorizer that cannot be in an API; see `authorizer_of`."""
    kind, uri = authorizer.get("type"), authorizer.get("authorizerUri") or ""
    if kind not in (_BY_TOKEN, _BY_REQUEST):
        raise not_offered(f"authorizers of the type {kind} for REST APIs")
    if not _URI.fullmatch(uri):
        raise bad_request(
            f"Invalid Authorizer URI: {uri}. Authorizer URI should be a valid API Gateway ARN that represents a Lambda"
            " function invocation."
        )
    check_ttl(authorizer.get("authorizerResultTtlInSeconds", 0))
    _check_sources(authorizer, kind)
    name, others = authorizer.get("name"), (tree.get(AUTHORIZERS) or {}).values()
    if any(other["name"] == name and other["id"] != authorizer["id"] for other in others):
        raise conflict(f"Authorizer name must be unique. Authorizer {name} already exists in this RestApi.")


def _check_sources(authorizer: Mapping[str, Any], kind: str) -> None:
    """Refuse sources that do not fit: a token comes in one header, and cached results need a source."""
    sources = _sources(authorizer)
    form = _HEADER if kind == _BY_TOKEN else _SOURCE
    if not sources and (kind == _BY_TOKEN or authorizer.get("authorizerResultTtlInSeconds")):
        raise bad_request(
            f"An identity source is required for authorizers of the type {kind} that cache results"
        )
    if not all(form.fullmatch(source) for source in sources) or (kind == _BY_TOKEN and len(sources) > 1):
        raise bad_request(f"Invalid identity source specified: {authorizer['identitySource']}")
    expression = authorizer.get("identityValidationExpression") or ""
    try:
        is_valid = len(expression) <= _EXPRESSION_CHARS_MAX and re2.compile(expression)
    except re2.error:
        is_valid = False
    if not is_valid:
        raise bad_request("Invalid identity validation expression specified")


def _sources(authorizer: Mapping[str, Any]) -> Sequence[str]:
    text = authorizer.get("identitySource") or ""
    return [source.strip() for source in text.split(",") if source.strip()]


class RestAuthorizers:
    """Asks the authorizers of methods whether a request may pass."""

    def __init__(self, functions: AuthorizerFunctions, clock: Clock) -> None:
        """Ask functions, and measure by the clock how long they take."""
        self._functions = functions
        self._clock = clock

    async def admit(self, exchange: Exchange, method: Mapping[str, Any], tree: Tree) -> None:
        """Refuse a request that the authorizer of its method does not admit; else note its context in the exchange.

        Raises:
            Refusal: `UNAUTHORIZED`, `ACCESS_DENIED`, or `AUTHORIZER_CONFIGURATION_ERROR`.
        """
        authorizer = (tree.get(AUTHORIZERS) or {}).get(method.get("authorizerId"))
        if authorizer is None:
            raise misconfigured("The method's authorizer is not there")
        started_at = self._clock.now()
        verdict = await self.verdict(exchange, authorizer)
        context = {"principalId": verdict.principal, **verdict.context}
        exchange.authorizer = {**context, "integrationLatency": self._clock.now() - started_at}
        exchange.usage_key = verdict.usage_key
        decision = decide(exchange, verdict)
        if not decision.allowed:
            # The reason of an explicit deny does not name the action.
            reason = f" {decision.reason('')}" if decision.explicit else ""
            raise Refusal("ACCESS_DENIED", message=f"User is not authorized to access this resource{reason}")

    async def verdict(self, exchange: Exchange, authorizer: Mapping[str, Any]) -> AuthorizerVerdict:
        """The verdict of an authorizer about a request; see `admit`."""
        identity = [request_value(exchange, source) or "" for source in _sources(authorizer)]
        expression = authorizer.get("identityValidationExpression")
        if not all(identity):
            raise Refusal("UNAUTHORIZED")
        if authorizer["type"] == _BY_TOKEN and expression and not re2.fullmatch(expression, identity[0]):
            raise Refusal("UNAUTHORIZED")
        return await self._functions.verdict(
            exchange,
            FunctionAuthorizer(
                authorizer["id"],
                authorizer["authorizerUri"],
                authorizer.get("authorizerCredentials") or "",
                authorizer.get("authorizerResultTtlInSeconds", 0),
            ),
            identity,
            _event(exchange, authorizer["type"], identity),
            _verdict,
        )


def _verdict(answer: Mapping[str, Any]) -> AuthorizerVerdict:
    verdict = policy_verdict(answer)
    return replace(verdict, context=scalars(verdict.context))


def _event(exchange: Exchange, kind: str, identity: Sequence[str]) -> Mapping[str, Any]:
    """The event of a function that authorizes, by a token or by the request."""
    arn = exchange.stage_place.arn(exchange.request.method, exchange.policy_path)
    if kind == _BY_TOKEN:
        return {"type": kind, "methodArn": arn, "authorizationToken": identity[0]}
    event = functions.event_members(exchange, is_rest=True)
    return {
        "type": kind,
        "methodArn": arn,
        **{name: {} if part is None else part for name, part in event.items()},
    }
