"""Integrations of REST APIs, by type: functions, HTTP endpoints, mocks, and operations of this server's services."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from redrive.access.principals import Principal
from redrive.aws.apigateway.control.exchange import Exchange, Refusal, with_variables
from redrive.aws.apigateway.mapping.sources import decode_body, encode_body, is_binary
from redrive.aws.apigateway.requests import function_proxy as functions
from redrive.aws.apigateway.requests.admission import Callers
from redrive.aws.apigateway.requests.answers import JSON, ApiAnswer, OutgoingCalls, http_headers, url_with
from redrive.aws.apigateway.rest.mapping import MappedRequest, map_answer, map_request
from redrive.aws.gateway.gateway import WireCalls
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.json_cursor import read_object
from redrive.aws.wire.profiles import profiles
from redrive.engine.ports import Clock
from redrive.model.http import Request

_URI: Final = re.compile(
    r"arn:aws[a-z-]*:apigateway:([a-z0-9-]+):(?:([a-z0-9-]+)\.)?([a-z0-9.-]+):(path|action)/(.*)", re.DOTALL
)
#: The names of this server's services in URIs.
_SERVICES: Final = frozenset(
    name
    for profile in profiles().values()
    for name in (profile.name, profile.endpoint_prefix, *profile.hosts)
)
_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")
_FORM: Final = "application/x-www-form-urlencoded"
_TARGET: Final = "x-amz-target"
_FUNCTION_ERROR: Final = "X-Amz-Function-Error"


class ServiceUri(NamedTuple):
    """The URI of a service's integration."""

    region: str  # The region of the service
    service: str  # Its name in host names: `sns`
    subdomain: str  # The part of the host's name before it; empty: none
    kind: str  # `path` or `action`
    rest: str  # The path, or the name of the operation


def read_uri(uri: str) -> ServiceUri:
    """Read the URI of a service's integration; raises Refusal if the text is no URI of a service."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise Refusal("API_CONFIGURATION_ERROR", reason=f"{uri} is not the URI of a service")
    return ServiceUri(match[1], match[3], match[2] or "", match[4], match[5])


class ServiceIntegration:
    """Calls services as integrations of the type `AWS` do."""

    def __init__(self, calls: WireCalls) -> None:
        self._calls = calls

    async def call(
        self, exchange: Exchange, integration: Mapping[str, Any], mapped: MappedRequest, caller: Principal
    ) -> ApiAnswer:
        """The service's answer.

        Raises:
            Refusal: The integration does not lead to a request to a service of this server.
        """
        uri = read_uri(with_variables(exchange, integration["uri"]))
        if uri.service not in _SERVICES:
            raise Refusal("API_CONFIGURATION_ERROR", reason=f"This server does not offer {uri.service}")
        request = _request(exchange, integration, uri, mapped)
        is_query = uri.kind == "action" and _TARGET not in request.headers
        operation = mapped.query.get("Action", uri.rest) if is_query else ""
        response = await self._calls.answer(request, caller, uri.region, exchange.id, operation=operation)
        headers = {name.lower(): value for name, value in response.headers.items()}
        headers["content-type"] = response.content_type
        failure = _failure(response.headers, response.body) if uri.service == "lambda" else None
        return ApiAnswer(response.status, response.body, headers, failure=failure)


def _request(
    exchange: Exchange, integration: Mapping[str, Any], uri: ServiceUri, mapped: MappedRequest
) -> Request:
    """The request to a service: for an action, which the query names, or for a path with variables in braces."""
    host = f"{uri.service}.{uri.region}.amazonaws.com"
    headers = {name.lower(): value for name, value in mapped.headers.items()}
    headers = {"accept": JSON, **headers, "host": f"{uri.subdomain}.{host}" if uri.subdomain else host}
    headers.pop("authorization", None)
    method, query, body = integration["httpMethod"], dict(mapped.query), mapped.body
    if uri.kind == "action":
        query = {"Action": uri.rest, **query}
        # A body that is no form is dropped: parameters are in the query.
        if not headers.get("content-type", "").startswith(_FORM):
            body = b""
            headers["content-type"] = _FORM
        elif body:
            # It may be the caller's: what the integration says stands over it, as the last of its fields.
            body = b"&".join((body, urlencode(query).encode()))
        path = "/"
    else:
        path = "/" + _VARIABLE.sub(
            lambda match: quote(mapped.path.get(match[1], match[0]), safe=""), uri.rest
        ).lstrip("/")
    if "?" in path:
        path, _, query_text = path.partition("?")
        text = "&".join(part for part in (query_text, urlencode(query)) if part)
    else:
        text = urlencode(query)
    return Request(method, path, text, headers, body, "https", exchange.request.client_host)


def _failure(headers: Mapping[str, str], body: bytes) -> str | None:
    """The message of a function that failed; None: it did not fail."""
    if not any(name.lower() == _FUNCTION_ERROR.lower() for name in headers):
        return None
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")
    message = document.get("errorMessage") if isinstance(document, dict) else None
    return str(message) if message is not None else ""


_TRACE: Final = "X-Amzn-Trace-Id"
#: The types whose answers name the request's trace (recorded).
_TYPES_WITH_TRACE: Final = frozenset({"AWS", "AWS_PROXY", "HTTP"})


class Integrations:
    """Calls the integrations of methods."""

    def __init__(
        self,
        services: ServiceIntegration,
        calls: InnerCalls,
        outgoing: OutgoingCalls,
        callers: Callers,
        clock: Clock,
    ) -> None:
        self._services = services
        self._calls = calls
        self._outgoing = outgoing
        self._callers = callers
        self._clock = clock

    async def answer(self, exchange: Exchange, method: Mapping[str, Any], binary: Sequence[str]) -> ApiAnswer:
        """The answer of a deployed method; `binary` are the API's binary media types.

        Raises:
            Refusal: The method has no answer.
        """
        integration = method["methodIntegration"]
        answer = await self._answer(exchange, method, integration, binary)
        if integration["type"] in _TYPES_WITH_TRACE and answer.header(_TRACE) is None:
            answer.headers[_TRACE] = exchange.trace_id
        return answer

    async def _answer(
        self,
        exchange: Exchange,
        method: Mapping[str, Any],
        integration: Mapping[str, Any],
        binary: Sequence[str],
    ) -> ApiAnswer:
        """The answer of a method: a proxy integration's own, or that of its mappings before and after the call."""
        if integration["type"] == "AWS_PROXY":
            return await self._function(exchange, integration, binary)
        if integration["type"] == "HTTP_PROXY":
            answer: ApiAnswer = await self._measure(
                exchange, self._pass_through(exchange, integration, binary)
            )
            return answer
        body = _request_body(exchange, integration, binary)
        mapped = await map_request(exchange, integration, body)
        _note_request(exchange, mapped.headers, mapped.body)
        answer = await self._measure(exchange, self._backend_answer(exchange, integration, mapped))
        _note_answer(exchange, answer.headers, answer.body)
        method_answer = await map_answer(exchange, method, answer, binary)
        if integration["type"] == "MOCK":
            method_answer.headers.setdefault("Content-Type", JSON)
        return method_answer

    async def _backend_answer(
        self, exchange: Exchange, integration: Mapping[str, Any], mapped: MappedRequest
    ) -> ApiAnswer:
        """The answer of what is behind an integration that maps requests: nothing, a server or a service."""
        if integration["type"] == "MOCK":
            return _mock_answer(mapped)
        if integration["type"] == "HTTP":
            url = url_with(exchange, integration["uri"], mapped.path, urlencode(mapped.query))
            timeout = integration["timeoutInMillis"]
            return await self._outgoing.ask(
                integration["httpMethod"], url, mapped.headers, mapped.body, timeout
            )
        caller = await self._caller(exchange, integration)
        return await self._services.call(exchange, integration, mapped, caller)

    async def _function(
        self, exchange: Exchange, integration: Mapping[str, Any], binary: Sequence[str]
    ) -> ApiAnswer:
        """The answer of the function behind an `AWS_PROXY` integration."""
        uri = with_variables(exchange, integration["uri"])
        read_uri(uri)
        # Another method is accepted at the creation, but fails at each call (recorded).
        if integration["httpMethod"] != "POST":
            raise Refusal("API_CONFIGURATION_ERROR", reason="A function is invoked by POST alone")
        event = functions.event_of(exchange, is_base64=is_binary(binary, exchange.content_type))
        _note_request(exchange, {}, event)
        caller = await self._caller(exchange, integration)
        invocation = functions.invoke(self._calls, functions.function_arn(uri), event, caller, exchange)
        payload = await self._measure(exchange, invocation)
        _note_answer(exchange, {}, payload)
        return functions.answer_of(payload, allows_base64=bool(binary))

    async def _caller(self, exchange: Exchange, integration: Mapping[str, Any]) -> Any:
        credentials = integration.get("credentials")
        arn = exchange.stage_place.arn(exchange.method, exchange.route)
        return await self._callers.of(exchange, credentials, arn)

    async def _measure(self, exchange: Exchange, request: Any) -> Any:
        """The answer of a request to an integration; notes its latency and status in the exchange."""
        started_at = self._clock.now()
        try:
            answer = await request
        finally:
            exchange.integration["latency"] = self._clock.now() - started_at
        exchange.integration["status"] = answer.status if isinstance(answer, ApiAnswer) else 200
        return answer

    async def _pass_through(
        self, exchange: Exchange, integration: Mapping[str, Any], binary: Sequence[str]
    ) -> ApiAnswer:
        """The answer of another server to the request, with the parameters that the integration maps."""
        request = exchange.request
        body = _request_body(exchange, integration, binary)
        mapped = await map_request(exchange, {**integration, "requestTemplates": {}}, body)
        query = "&".join(part for part in (request.query, urlencode(mapped.query)) if part)
        url = url_with(exchange, integration["uri"], mapped.path, query)
        headers = {**http_headers(exchange), **mapped.headers}
        method = request.method if integration["httpMethod"] == "ANY" else integration["httpMethod"]
        _note_request(exchange, headers, mapped.body)
        answer = await self._outgoing.ask(method, url, headers, mapped.body, integration["timeoutInMillis"])
        _note_answer(exchange, answer.headers, answer.body)
        return answer


def _note_request(exchange: Exchange, headers: Mapping[str, str], body: bytes) -> None:
    """Note the request to the integration, in the words of API Gateway's log, if the method is tested."""
    if exchange.trail is not None:
        exchange.trail += [
            ("Endpoint request headers", dict(headers)),
            ("Endpoint request body after transformations", body.decode("utf-8", "replace")),
        ]


def _note_answer(exchange: Exchange, headers: Mapping[str, str], body: bytes) -> None:
    if exchange.trail is not None:
        exchange.trail += [
            ("Endpoint response headers", dict(headers)),
            ("Endpoint response body before transformations", body.decode("utf-8", "replace")),
        ]


def _request_body(exchange: Exchange, integration: Mapping[str, Any], binary: Sequence[str]) -> bytes:
    """The body of a request as `contentHandling` asks for it; raises Refusal if it cannot be converted."""
    handling, binary_body = integration.get("contentHandling"), is_binary(binary, exchange.content_type)
    body = encode_body(exchange.request.body, handling, is_binary=binary_body)
    return decode_body(body, handling, is_binary=binary_body)


def _mock_answer(mapped: MappedRequest) -> ApiAnswer:
    """The answer of a mock integration: the status that its template has; raises Refusal if there is none."""
    status = (read_object(mapped.body) or {}).get("statusCode")
    if isinstance(status, str) and status.isdecimal():
        status = int(status[:4])
    if not isinstance(status, int) or isinstance(status, bool):
        raise Refusal("API_CONFIGURATION_ERROR", reason="The mock's template names no statusCode")
    return ApiAnswer(status, b"", {"content-type": JSON})
