"""Integrations of HTTP endpoints beyond this server."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import quote

from redrive.aws.apigateway.control.exchange import Exchange, with_variables
from redrive.aws.apigateway.control.gateway_responses import Refusal
from redrive.aws.apigateway.requests.answers import ApiAnswer


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
        """The answer of an endpoint; a text: why there is none."""
        ...


_ANSWER_BYTES_MAX: Final = 10 * 1024 * 1024
_OF_CONNECTION: Final = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "expect", "accept-encoding"}
)


class OutgoingCalls:
    """Asks HTTP endpoints by the guard of webhooks: no address that the settings forbid is connected to."""

    def __init__(self, web: Web) -> None:
        self._web = web

    async def ask(
        self, method: str, url: str, headers: dict[str, str], body: bytes, timeout_ms: int
    ) -> ApiAnswer:
        """The endpoint's answer.

        Raises:
            Refusal: `INTEGRATION_FAILURE`: the endpoint does not answer.
        """
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
    """The headers that a proxy hands on; those of the connection are its own."""
    return {name: value for name, value in exchange.headers.items() if name.lower() not in _OF_CONNECTION}
