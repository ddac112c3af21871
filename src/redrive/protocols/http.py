"""The request and the response as values: what the HTTP front hands to a protocol, and gets back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

_NO_HEADERS: Final[Mapping[str, str]] = {}


@dataclass(slots=True)
class Request:
    """One HTTP request, whole.

    Attributes:
        method: Upper case.
        path: As sent, still percent-encoded, without the query.
        query: As sent, without the question mark.
        headers: Names in lower case; values of a repeated header joined by a comma.
        body: Decoded of its transfer coding, at most the front's body limit.
        scheme: `http` or `https`, as the client reached the front.
        client_host: The peer's address, for `aws:SourceIp`.
        on_gone: Set by whoever waits on the caller's behalf; called by the front when the connection is lost.
    """

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    scheme: str = "http"
    client_host: str = "127.0.0.1"
    on_gone: Callable[[], None] | None = None

    @property
    def host(self) -> str:
        """The Host header, or the empty string where an HTTP/1.0 client sent none."""
        return self.headers.get("host", "")


@dataclass(slots=True)
class Response:
    """One HTTP response, whole. The front adds Content-Length, Date and Connection."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)
