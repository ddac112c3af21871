"""Verdicts of functions that authorize: what they answered, and what that means for a request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from redrive.access.patterns import PolicyInvalid
from redrive.access.policy import Decision
from redrive.access.policy_document import Form, parse_policy
from redrive.access.principals import Principal, permissions_of
from redrive.aws.apigateway.control.exchange import Exchange
from redrive.aws.apigateway.control.gateway_responses import Refusal
from redrive.aws.apigateway.requests.admission import ACTION
from redrive.aws.kit.call import Call

#: Of an answer, which may be remembered for an hour; Amazon bounds the policy in it to about 8 KB.
ANSWER_BYTES_MAX: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class AuthorizerVerdict:
    """The answer of a function that authorizes."""

    context: Mapping[str, Any] = field(default_factory=dict)  # For what is behind the method
    principal: str = ""  # Who asks, in the function's words; empty where a policy is not needed
    policy: str = ""  # What the caller may ask for; empty: `allows` says it
    allows: bool = False  # Whether it lets the request pass, where it has no policy
    usage_key: str = ""  # The API key that it chose; empty: none


def policy_verdict(answer: Mapping[str, Any]) -> AuthorizerVerdict:
    """The verdict of an answer with a policy.

    Raises:
        Refusal: `AUTHORIZER_CONFIGURATION_ERROR`: it is none.
    """
    principal, document = answer.get("principalId"), answer.get("policyDocument")
    context, usage_key = answer.get("context") or {}, answer.get("usageIdentifierKey") or ""
    if not isinstance(principal, str) or not isinstance(document, Mapping):
        raise misconfigured("Could not parse policy")
    if not isinstance(context, Mapping) or not isinstance(usage_key, str):
        raise misconfigured("Invalid JSON in response")
    policy = orjson.dumps(document).decode()
    try:
        parse_policy(policy, Form.IDENTITY)
    except PolicyInvalid as invalid:
        raise misconfigured(f"Could not parse policy: {invalid.reason}") from None
    return AuthorizerVerdict(context, principal, policy, usage_key=usage_key)


def misconfigured(reason: str) -> Refusal:
    """The refusal where an authorizer does not do its part."""
    return Refusal("AUTHORIZER_CONFIGURATION_ERROR", reason=reason)


def decide(exchange: Exchange, verdict: AuthorizerVerdict) -> Decision:
    """The decision of a verdict's policy about a request."""
    api_place, request = exchange.place, exchange.request
    permissions = permissions_of([parse_policy(verdict.policy, Form.IDENTITY)])
    keys = {"aws:principaltype": "Authorizer", "aws:userid": verdict.principal}
    caller = Principal(verdict.principal, api_place.account, frozenset(), keys, permissions)
    base_url = f"{request.scheme}://{request.host}"
    call = Call(request, caller, api_place.region, exchange.now, exchange.id, base_url)
    return call.decide(ACTION, api_place.arn(request.method, exchange.path), api_place.account)


def scalars(context: Mapping[str, Any]) -> dict[str, str]:
    """A context whose values are texts, as REST APIs hand it on.

    Raises:
        Refusal: A value is an object or an array.
    """
    if any(isinstance(value, Mapping | list) for value in context.values()):
        raise misconfigured("Invalid JSON in response: the context has an object or an array")
    return {
        name: value if isinstance(value, str) else orjson.dumps(value).decode()
        for name, value in context.items()
        if value is not None
    }
