"""Answers to callers: those of API Gateway itself, those of HTTP endpoints, and the headers that all have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import quote

import orjson

from redrive.aws.apigateway.control.exchange import DEFAULTS, Exchange, Refusal, with_variables
from redrive.aws.apigateway.control.records import GATEWAY_RESPONSES, Tree
from redrive.aws.apigateway.mapping.sources import request_value, variables_of
from redrive.aws.apigateway.mapping.velocity.template import render
from redrive.aws.apigateway.mapping.velocity.values import TemplateFailed
from redrive.aws.wire.errors import AwsError
from redrive.model.http import TOKEN, Response

JSON: Final = "application/json"
_HEADER: Final = "gatewayresponse.header."
#: Headers that the server writes by itself.
_SERVER_HEADERS: Final = frozenset(
    {"connection", "content-length", "date", "server", "transfer-encoding", "keep-alive"}
)


@dataclass(slots=True)
class ApiAnswer:
    """An answer: of an integration, or for a caller."""

    status: int
    body: bytes = b""
    # Names as they are sent to callers; those of an integration in lower case.
    headers: dict[str, str] = field(default_factory=dict)
    cookies: tuple[str, ...] = ()  # Each its own header
    failure: str | None = None  # Error text of a function that failed

    def header(self, name: str) -> str | None:
        """A header's value, whatever the case of its name."""
        lower_name = name.lower()
        return next((value for key, value in self.headers.items() if key.lower() == lower_name), None)

    @property
    def media_type(self) -> str:
        """The body's type without parameters."""
        return (self.header("content-type") or JSON).partition(";")[0].strip().lower()


def response_of(answer: ApiAnswer, exchange: Exchange) -> Response:
    """An answer as the server writes it; what is not a header is left out."""
    headers: dict[str, str] = {}
    content_type = JSON
    for name, value in answer.headers.items():
        if not is_header(name, value) or name.lower() in _SERVER_HEADERS:
            continue
        if name.lower() == "content-type":
            content_type = value
        else:
            headers[name] = value
    headers.setdefault("x-amzn-RequestId", exchange.id)
    headers.setdefault("x-amz-apigw-id", exchange.extended_id)
    return Response(answer.status, answer.body, content_type, headers, cookies=answer.cookies)


def is_header(name: str, value: str) -> bool:
    """True if this can be written as one header."""
    return bool(TOKEN.fullmatch(name)) and value.isascii() and not any(mark in value for mark in "\r\n\0")


async def answer_refusal(exchange: Exchange, refusal: Refusal, tree: Tree | None = None) -> ApiAnswer:
    """The answer to a refused request, by the responses in a deployment's tree (None: there is no deployment)."""
    exchange.error = {**exchange.error, "message": refusal.message, "responseType": refusal.kind}
    member = "Message" if refusal.kind == "ACCESS_DENIED" else "message"  # as Amazon's spells it (recorded)
    body = orjson.dumps({member: refusal.message or None})
    headers = {"x-amzn-ErrorType": refusal.error, "Content-Type": JSON}
    custom = _custom_response(tree, refusal)
    if custom is None:
        return ApiAnswer(refusal.status, body, headers)
    status = int(custom["statusCode"]) if str(custom.get("statusCode", "")).isdecimal() else refusal.status
    for target, source in (custom.get("responseParameters") or {}).items():
        value = request_value(exchange, source)
        if target.startswith(_HEADER) and value is not None:
            headers[target.removeprefix(_HEADER)] = value
    templates = custom.get("responseTemplates")
    if not templates:
        return ApiAnswer(status, body, headers)
    kind, template = next(iter(templates.items()))
    try:
        text, _ = await render(exchange.stage_place.account, template, lambda: variables_of(exchange, ""))
    except (TemplateFailed, AwsError):
        return ApiAnswer(status, body, headers)
    return ApiAnswer(status, text.encode(), {**headers, "Content-Type": kind})


def _custom_response(tree: Tree | None, refusal: Refusal) -> Mapping[str, Any] | None:
    """The response that the API defines for a kind of refusals, or for the whole class; None: neither."""
    responses: Mapping[str, Any] = (tree or {}).get(GATEWAY_RESPONSES) or {}
    response: Mapping[str, Any] | None = responses.get(refusal.kind)
    return responses.get(DEFAULTS.get(refusal.status // 100, "")) if response is None else response


class HttpAnswer(Protocol):
    """The answer of an endpoint, whole."""

    @property
    def status(self) -> int:
        """The status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    @property
    def body(self) -> bytes:
        """The content, decoded of its transfer coding alone."""
        ...


class Web(Protocol):
    """Makes requests within what the operator allows."""

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, timeout_ms: int, bytes_max: int
    ) -> HttpAnswer | str:
        """The answer of an endpoint, or as a text why there is none."""
        ...


_ANSWER_BYTES_MAX: Final = 10 * 1024 * 1024
_CONNECTION_HEADERS: Final = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "expect", "accept-encoding"}
)


class OutgoingCalls:
    """Sends requests to HTTP endpoints, but none to an address that the settings forbid."""

    def __init__(self, web: Web) -> None:
        self._web = web

    async def ask(
        self, method: str, url: str, headers: dict[str, str], body: bytes, timeout_ms: int
    ) -> ApiAnswer:
        """The endpoint's answer; raises Refusal (`INTEGRATION_FAILURE`) if the endpoint does not answer."""
        fetched_answer = await self._web.fetch(method, url, headers, body, timeout_ms, _ANSWER_BYTES_MAX)
        if isinstance(fetched_answer, str):
            raise Refusal("INTEGRATION_FAILURE", reason=fetched_answer)
        status = fetched_answer.status if fetched_answer.status >= HTTPStatus.OK else HTTPStatus.BAD_GATEWAY
        return ApiAnswer(status, fetched_answer.body, dict(fetched_answer.headers))


def url_with(exchange: Exchange, uri: str, path: Mapping[str, str], query: str) -> str:
    """The URL of an HTTP endpoint with its variables and a query."""
    url = with_variables(exchange, uri)
    for name, value in path.items():
        url = url.replace(f"{{{name}}}", quote(value, safe="")).replace(f"{{{name}+}}", quote(value))
    if not query:
        return url
    return f"{url}{'&' if '?' in url else '?'}{query}"


def http_headers(exchange: Exchange) -> dict[str, str]:
    """The headers that a proxy passes on: all but those of the connection."""
    return {
        name: value for name, value in exchange.headers.items() if name.lower() not in _CONNECTION_HEADERS
    }
