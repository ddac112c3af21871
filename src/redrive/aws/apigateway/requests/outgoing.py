"""Integrations of HTTP endpoints beyond this server."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, Protocol

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
