"""The request and the response as values: what the HTTP front hands to a protocol, and gets back."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

#: As `http.client.responses`, whose module brings ten others along.
PHRASES: Final[Mapping[int, str]] = {status.value: status.phrase for status in HTTPStatus}
_NO_HEADERS: Final[Mapping[str, str]] = {}
#: The name of a header, or a method (RFC 9110, 5.6.2).
TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(slots=True)
class RequestRecord:
    """The part of a request's line in the log that only its protocol can tell; empty as far as it has not."""

    service: str = ""  # `sqs`, `eventgrid` …
    operation: str = ""  # In the service's own words, or method and path; as the caller gave it
    account: str = ""  # The caller's, once it is authenticated
    error: str = ""  # The code of the refusal
    request_id: str = ""  # The request's, as the answer has it


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """A body that is read piece by piece, so that no more of it is in memory than the client reads at a time."""

    length: int  # Length of all pieces together (bytes)
    parts: AsyncGenerator[bytes]  # The pieces; a consumer reads all of them or closes the generator

    async def whole(self) -> bytes:
        """All of it, for those who need it at once."""
        return b"".join([part async for part in self.parts])


@dataclass(slots=True)
class Request:
    """One HTTP request, whole."""

    method: str  # Upper case
    path: str  # As sent, still percent-encoded, without the query
    query: str  # As sent, without the question mark
    headers: dict[str, str]  # Names in lower case; values of a repeated header joined by a comma
    body: bytes  # Decoded of its transfer coding, at most the front's body limit
    scheme: str = "http"  # `http` or `https`, as the client reached the front
    client_host: str = "127.0.0.1"  # The peer's address, for `aws:SourceIp`
    # Set by whoever waits on the caller's behalf; called by the front when the connection is lost.
    on_gone: Callable[[], None] | None = None
    # Filled in by the request's protocol for the log of requests; None if there is no such log.
    record: RequestRecord | None = None

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
    # The Content-Length, where the answer to a HEAD has not the body that a GET gets, or of parts that are
    # known to come to so much; None: the body's.
    length: int | None = None
    cookies: Sequence[str] = ()  # Values of Set-Cookie headers, one header each
    # The body, where it is written as it comes, no faster than the client reads. What is raised cuts it off.
    parts: AsyncIterator[bytes] | None = None
