"""Functions that authorize requests: invokes them as API Gateway or as a role, and reads and caches their answers."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from redrive.access.patterns import PolicyInvalid
from redrive.access.policy import Decision
from redrive.access.policy_document import Form, parse_policy
from redrive.access.principals import Principal, permissions_of
from redrive.aws.apigateway.control.errors import bad_request
from redrive.aws.apigateway.control.exchange import Exchange, Refusal, with_variables
from redrive.aws.apigateway.requests import function_proxy as functions
from redrive.aws.apigateway.requests.admission import ACTION, Callers
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Call
from redrive.aws.kit.json_cursor import read_object
from redrive.engine.ports import Clock

#: Of an answer, which may be remembered for an hour; Amazon bounds the policy in it to about 8 KB.
ANSWER_BYTES_MAX: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class AuthorizerVerdict:
    """The answer of a function that authorizes."""

    context: Mapping[str, Any] = field(default_factory=dict)  # For the integration
    principal: str = ""  # Principal id from the function; empty if no policy is needed
    policy: str = ""  # Policy for the caller; empty: `allows` decides
    allows: bool = False  # Without a policy: the request may pass
    usage_key: str = ""  # The API key that it chose; empty: none


def policy_verdict(answer: Mapping[str, Any]) -> AuthorizerVerdict:
    """The verdict of an answer with a policy; raises Refusal (`AUTHORIZER_CONFIGURATION_ERROR`) if it has none."""
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
    """The refusal if an authorizer has no usable answer."""
    return Refusal("AUTHORIZER_CONFIGURATION_ERROR", reason=reason)


def decide(exchange: Exchange, verdict: AuthorizerVerdict) -> Decision:
    """The decision of a verdict's policy about a request."""
    api_place, request = exchange.stage_place, exchange.request
    permissions = permissions_of([parse_policy(verdict.policy, Form.IDENTITY)])
    keys = {"aws:principaltype": "Authorizer", "aws:userid": verdict.principal}
    caller = Principal(verdict.principal, api_place.account, frozenset(), keys, permissions)
    base_url = f"{request.scheme}://{request.host}"
    call = Call(request, caller, api_place.region, exchange.now, exchange.id, base_url)
    return call.decide(ACTION, api_place.arn(request.method, exchange.policy_path), api_place.account)


def scalars(context: Mapping[str, Any]) -> dict[str, str]:
    """A context with texts as values, as REST APIs pass it on; raises Refusal if a value is an object or an array."""
    if any(isinstance(value, Mapping | list) for value in context.values()):
        raise misconfigured("Invalid JSON in response: the context has an object or an array")
    return {
        name: value if isinstance(value, str) else orjson.dumps(value).decode()
        for name, value in context.items()
        if value is not None
    }


_REMEMBERED_MAX: Final = 4_096  # answers of at most 16 KiB, as they came: 64 MB
_TTL_SECONDS_MAX: Final = 3600
_SECONDS_MAX: Final = 29  # that an authorizer may take, as an integration
_UNAUTHORIZED: Final = "Unauthorized"


@dataclass(frozen=True, slots=True)
class FunctionAuthorizer:
    """An authorizer that is a function."""

    id: str  # Within its API
    uri: str  # URI of the function
    credentials: str  # The ARN of the role that invokes it; empty: API Gateway itself
    ttl_seconds: int  # How long an answer is remembered; 0: not at all


def check_ttl(seconds: int) -> None:
    """Refuse a time for which answers cannot be remembered; raises AwsError."""
    if not 0 <= seconds <= _TTL_SECONDS_MAX:
        raise bad_request(f"Authorizer result TTL must be between 0 and {_TTL_SECONDS_MAX} seconds")


class AnswerCache:
    """Answers of functions, as they came: parsed, 16 KB of brackets are 346 KB.

    If there are too many, the account with the most loses its oldest one, so that no account displaces others'.
    """

    def __init__(self) -> None:
        self._count = 0
        self._by_account: dict[str, OrderedDict[bytes, tuple[int, bytes]]] = {}

    def get(self, account: str, key: bytes, now: int) -> bytes | None:
        """An answer that is still remembered at a moment (ms)."""
        answers = self._by_account.get(account, OrderedDict())
        until, answer = answers.get(key, (0, b""))
        if now >= until:
            return None
        answers.move_to_end(key)
        return answer

    def put(self, account: str, key: bytes, until: int, answer: bytes) -> None:
        """Remember an answer until a moment (ms); if there are too many, the account with the most loses its oldest."""
        answers = self._by_account.setdefault(account, OrderedDict())
        self._count += key not in answers
        answers[key] = until, answer
        answers.move_to_end(key)
        if self._count > _REMEMBERED_MAX:
            largest = max(self._by_account, key=lambda each: len(self._by_account[each]))
            self._by_account[largest].popitem(last=False)
            self._count -= 1
            if not self._by_account[largest]:
                del self._by_account[largest]


class AuthorizerFunctions:
    """Asks functions whether a request may pass."""

    def __init__(self, calls: InnerCalls, callers: Callers, clock: Clock) -> None:
        self._calls = calls
        self._callers = callers
        self._clock = clock
        self._cache = AnswerCache()

    async def verdict(
        self,
        exchange: Exchange,
        authorizer: FunctionAuthorizer,
        identity: Sequence[str],
        event: Mapping[str, Any],
        read: Callable[[Any], AuthorizerVerdict],
    ) -> AuthorizerVerdict:
        """The verdict about a request.

        - `identity`: the values by which it is cached; empty: it is not cached.
        - `read`: reads the verdict in the function's answer.

        Raises:
            Refusal: The function has no verdict.
        """
        api_place = exchange.stage_place
        parts = (api_place.api, api_place.stage, api_place.deployment, repr(authorizer), *identity)
        key = hashlib.sha256(orjson.dumps(parts)).digest()
        cached = self._cache.get(api_place.account, key, self._clock.now())
        if cached is not None:
            return read(_document(cached))
        answer = await self._answer(exchange, authorizer, event)
        verdict = read(_document(answer))
        if authorizer.ttl_seconds and identity:
            until = self._clock.now() + authorizer.ttl_seconds * 1000
            self._cache.put(api_place.account, key, until, answer)
        return verdict

    async def _answer(
        self, exchange: Exchange, authorizer: FunctionAuthorizer, event: Mapping[str, Any]
    ) -> bytes:
        """The answer of a function.

        Raises:
            Refusal: `UNAUTHORIZED`, if it failed with that word; else `AUTHORIZER_CONFIGURATION_ERROR`.
        """
        try:
            arn = functions.function_arn(with_variables(exchange, authorizer.uri))
            source = exchange.stage_place.authorizer_arn(authorizer.id)
            caller = await self._callers.of(exchange, authorizer.credentials, source)
            async with asyncio.timeout(_SECONDS_MAX):
                payload, has_failed = await functions.invoke_function(
                    self._calls, arn, orjson.dumps(event), caller, exchange
                )
        except TimeoutError:
            raise misconfigured("The authorizer timed out") from None
        except Refusal as refusal:
            raise misconfigured(refusal.reason) from None
        if has_failed:
            if _document(payload).get("errorMessage") == _UNAUTHORIZED:
                raise Refusal("UNAUTHORIZED")
            raise misconfigured("The authorizer failed")
        return payload


def _document(payload: bytes) -> Mapping[str, Any]:
    """The object that an authorizer answered; raises Refusal if the answer is too long, or no object."""
    if len(payload) > ANSWER_BYTES_MAX:
        raise misconfigured(f"The authorizer's answer has more than {ANSWER_BYTES_MAX} bytes")
    document = read_object(payload)
    if document is None:
        raise misconfigured("Could not parse policy")
    return document
