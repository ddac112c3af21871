"""Functions that authorize: asked as API Gateway or as a role, and remembered as long as their authorizer says."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from redrive.aws.apigateway.authorizers.verdicts import ANSWER_BYTES_MAX, Verdict, misconfigured
from redrive.aws.apigateway.control import function_proxy as functions
from redrive.aws.apigateway.control.callers import Callers
from redrive.aws.apigateway.control.exchange import Exchange, with_variables
from redrive.aws.apigateway.control.gateway_responses import Refusal
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.engine.ports import Clock

_REMEMBERED_MAX: Final = 4_096  # answers of at most 16 KiB: 64 MB
_SECONDS_MAX: Final = 29  # that an authorizer may take, as an integration
_UNAUTHORIZED: Final = "Unauthorized"


@dataclass(frozen=True, slots=True)
class FunctionAuthorizer:
    """An authorizer that is a function.

    Attributes:
        id: Within its API.
        uri: Of the function.
        credentials: The ARN of the role that it is invoked as; empty: it is API Gateway that invokes it.
        ttl_seconds: How long an answer is remembered; 0: not at all.
    """

    id: str
    uri: str
    credentials: str
    ttl_seconds: int


class AuthorizerFunctions:
    """Asks functions whether a request may pass."""

    def __init__(self, calls: InnerCalls, callers: Callers, clock: Clock) -> None:
        """Ask them.

        Args:
            calls: Calls of this server's services.
            callers: Makes callers of credentials.
            clock: By which answers are forgotten.
        """
        self._calls = calls
        self._callers = callers
        self._clock = clock
        self._remembered: OrderedDict[bytes, tuple[int, Verdict]] = OrderedDict()

    async def verdict(
        self,
        exchange: Exchange,
        authorizer: FunctionAuthorizer,
        identity: Sequence[str],
        event: Mapping[str, Any],
        read: Callable[[Any], Verdict],
    ) -> Verdict:
        """The verdict about a request.

        Args:
            exchange: The request.
            authorizer: Whom to ask.
            identity: What answers are told apart by; none: they are not remembered.
            event: For the function.
            read: Makes a verdict of its answer.

        Raises:
            Refusal: It has none.
        """
        api_place = exchange.place
        parts = (api_place.api, api_place.stage, api_place.deployment, repr(authorizer), *identity)
        key = hashlib.sha256(orjson.dumps(parts)).digest()
        until, known = self._remembered.get(key, (0, None))
        if known is not None and self._clock.now() < until:
            self._remembered.move_to_end(key)
            return known
        verdict = read(await self.answer(exchange, authorizer, event))
        if authorizer.ttl_seconds and identity:
            self._remembered[key] = self._clock.now() + authorizer.ttl_seconds * 1000, verdict
            self._remembered.move_to_end(key)
            if len(self._remembered) > _REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        return verdict

    async def answer(
        self, exchange: Exchange, authorizer: FunctionAuthorizer, event: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The answer of a function.

        Raises:
            Refusal: `UNAUTHORIZED`, where it failed with that word; else `AUTHORIZER_CONFIGURATION_ERROR`.
        """
        try:
            arn = functions.function_arn(with_variables(exchange, authorizer.uri))
            source = exchange.place.authorizer_arn(authorizer.id)
            caller = await self._callers.of(exchange, authorizer.credentials, source)
            async with asyncio.timeout(_SECONDS_MAX):
                payload, failed = await functions.asked(
                    self._calls, arn, orjson.dumps(event), caller, exchange
                )
        except TimeoutError:
            raise misconfigured("The authorizer timed out") from None
        except Refusal as refusal:
            raise misconfigured(refusal.reason) from None
        document = _document(payload)
        if failed:
            if document.get("errorMessage") == _UNAUTHORIZED:
                raise Refusal("UNAUTHORIZED")
            raise misconfigured("The authorizer failed")
        return document


def _document(payload: bytes) -> Mapping[str, Any]:
    if len(payload) > ANSWER_BYTES_MAX:
        raise misconfigured(f"The authorizer's answer has more than {ANSWER_BYTES_MAX} bytes")
    try:
        document = orjson.loads(payload)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, Mapping):
        raise misconfigured("Could not parse policy")
    return document
