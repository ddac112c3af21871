"""From bytes to requests: HTTP/1.1 as a client may send it, held to its bounds. No socket, no clock, no await."""

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import Final

import httptools

from redrive.model.http import Request
from redrive.server.limits import SLICE_BYTES, HttpLimits


class RefusedRequestError(Exception):
    """A request that is answered here, by its status, after which the connection closes."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class ReadingPhase(IntEnum):
    """The part of a request in which the bytes read so far end. `BETWEEN` is false: nothing has begun."""

    BETWEEN = 0
    HEAD = 1
    BODY = 2


# As plain names: looking up a member of an enumeration costs 30 ns, four times a request.
_BETWEEN: Final = ReadingPhase.BETWEEN
_HEAD: Final = ReadingPhase.HEAD
_BODY: Final = ReadingPhase.BODY

#: How large the body of a request may be whose head is all there is of it: the `body` is empty.
BodyBound = Callable[[Request], int]

#: The names that clients send, as they spell them: a look-up takes a third of reading a name anew.
_NAMES: Final = {
    spelling.encode(): name
    for name in (
        *("host", "user-agent", "accept", "accept-encoding", "connection", "content-type", "content-length"),
        *("expect", "authorization", "x-amz-target", "x-amz-date", "x-amz-content-sha256"),
        *("x-amz-security-token", "x-amzn-query-mode", "amz-sdk-request", "amz-sdk-invocation-id"),
        *("aeg-sas-key", "aeg-sas-token", "x-ms-client-request-id", "x-ms-date", "x-ms-version"),
    )
    for spelling in (name, name.title())
}

_LENGTH_DIGITS_MAX: Final = 19  # of a Content-Length; Python refuses to read 5,000 zeros


class RequestReader:
    """Reads one connection's bytes. The parser calls the `on_…` methods, in the order they stand here.

    llhttp, unlenient, refuses what request smuggling is made of: Content-Length twice or beside
    Transfer-Encoding, a chunked coding that is not the last one, bare line feeds, folded headers, space before
    a colon. What it lets pass (another transfer coding, a second Host, HTTP/2.0) is refused here.

    Attributes:
        ready: Whole requests, in order; whoever answers takes them from the left.
        phase: How far the request after those has come.
        phase_is_new: Set when `phase` was entered; cleared by whoever times it.
        begun_bytes: How much of an unfinished request is here, its head included.
        wants_continue: The client waits for `100 Continue` before it sends the body.
        is_finished: Nothing more is read: the last of `ready` ends the connection, or `refusal` does.
        refusal: Why reading stopped, to be answered after all of `ready`.
    """

    __slots__ = (
        "_body",
        "_body_bound",
        "_body_bytes_max",
        "_chunk_bytes",
        "_client_host",
        "_headers",
        "_is_upgrade",
        "_limits",
        "_lines",
        "_parser",
        "_scheme",
        "_target",
        "_unasked_bytes_max",
        "_unended_bytes",
        "begun_bytes",
        "is_finished",
        "phase",
        "phase_is_new",
        "ready",
        "refusal",
        "wants_continue",
    )

    def __init__(
        self, limits: HttpLimits, scheme: str, client_host: str, body_bound: BodyBound | None = None
    ) -> None:
        self.ready: deque[Request] = deque()
        self.phase: ReadingPhase = _BETWEEN
        self.phase_is_new = False
        self.wants_continue = False
        self.is_finished = False
        self.refusal: RefusedRequestError | None = None
        self.begun_bytes = 0
        self._limits = limits
        self._body_bound = body_bound
        self._unasked_bytes_max = min(limits.body_bytes_unasked, limits.body_bytes_max)
        self._body_bytes_max = 0
        self._chunk_bytes = 0
        self._scheme = scheme
        self._client_host = client_host
        self._is_upgrade = False
        self._target = b""
        self._headers: dict[str, str] = {}
        self._lines: list[tuple[bytes, bytes]] = []
        self._unended_bytes = 0
        self._body: bytes | bytearray = b""
        self._parser = httptools.HttpRequestParser(self)

    @property
    def body_bytes(self) -> int:
        """The bytes of the current body that have come."""
        return len(self._body)

    @property
    def takes_chunks(self) -> bool:
        """True if the latest client understands chunked bodies."""
        return bool(self._parser.get_http_version() == "1.1")

    def feed(self, chunk: bytes) -> None:
        """Parse `chunk`, at most `SLICE_BYTES`: grows `ready`, may finish the reader. Never raises for it."""
        if self.is_finished:
            return
        self._chunk_bytes = len(chunk)
        try:
            self._parser.feed_data(chunk)
        except httptools.HttpParserUpgrade as upgrade:
            self._ignore_upgrade(chunk[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._stop(error)
        if self.phase:
            self.begun_bytes += len(chunk)
            self._bound_unended(len(chunk))

    def refuse(self, refusal: RefusedRequestError) -> None:
        """Read nothing more; `refusal` is the last answer.

        Its traceback leads by the frames to this reader and to all that was read, up to 256 KiB, which would stay until
        cycles are collected: a minute of refused bodies was hundreds of MiB.
        """
        self.refusal = refusal.with_traceback(None)
        self.is_finished = True
        self.begun_bytes = 0
        self._body = b""

    def close(self) -> None:
        """Forget everything, the parser first: it and this reader point at each other."""
        self.is_finished = True
        self.ready.clear()
        self._body = b""
        del self._parser

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self.phase = _HEAD
        self.phase_is_new = True
        self._target = self._body = b""
        self._lines = []
        self.begun_bytes = 0
        self._body_bytes_max = self._unasked_bytes_max
        self._unended_bytes = -SLICE_BYTES  # see `_bound_unended`

    def on_url(self, part: bytes) -> None:
        """A piece of the request target."""
        self._target += part
        if len(self._target) > self._limits.request_line_bytes_max:
            raise RefusedRequestError(414, "The request target is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A whole header; or a trailer, which comes too late to be honoured."""
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        """The empty line: what the head says is judged before any of the body is taken."""
        self.phase = _BODY
        self.phase_is_new = True
        headers = self._headers = self._read_headers()
        self._check_version()
        if (length := headers.get("content-length")) is not None:
            if len(length) > _LENGTH_DIGITS_MAX:
                raise RefusedRequestError(400, "The Content-Length has too many digits")
            if (size := int(length)) > self._body_bytes_max:
                self._allow_body(size)
        self.wants_continue = "expect" in headers and self._expects_continue()
        if self._parser.should_upgrade():
            self._check_upgrade()

    def on_body(self, part: bytes) -> None:
        """A piece of the body, already freed of its chunks."""
        self._unended_bytes = -SLICE_BYTES  # see `_bound_unended`
        body = self._body
        if not body:
            self._body = part  # nearly always the whole of it, and then never copied
        elif isinstance(body, bytearray):
            body += part
        else:
            self._body = bytearray(body) + part
        if len(self._body) > self._body_bytes_max:
            self._allow_body(len(self._body))

    def on_message_complete(self) -> None:
        """The end of the request."""
        if self._is_upgrade:
            return  # the parser says so before the body: see _ignore_upgrade
        self.ready.append(self._request(bytes(self._body)))
        self.phase = _BETWEEN
        self.begun_bytes = 0
        self.is_finished = not self._parser.should_keep_alive()

    def _request(self, body: bytes) -> Request:
        """The request whose head has been read."""
        target = self._target.decode("latin-1")
        if target[0] != "/":
            target = self._origin_form(target)
        path, _, query = target.partition("?")
        method = self._parser.get_method().decode("latin-1")
        return Request(method, path, query, self._headers, body, self._scheme, self._client_host)

    def _allow_body(self, size: int) -> None:
        """Refuse a body of more bytes than are allowed; the first time it passes anybody's bound, the head decides."""
        if size > self._body_bytes_max and self._body_bytes_max <= self._limits.body_bytes_unasked:
            bound = self._limits.body_bytes_max
            if self._body_bound is not None:
                bound = min(bound, self._body_bound(self._request(b"")))
            self._body_bytes_max = max(bound, self._body_bytes_max)
        if size > self._body_bytes_max:
            # Only services that take archives of code, or objects, have the greatest bound.
            is_greatest_bound = self._body_bytes_max >= self._limits.body_bytes_max
            advice = "; put a larger archive of code into a bucket, in parts" if is_greatest_bound else ""
            raise RefusedRequestError(413, f"The body is larger than {self._body_bytes_max} bytes{advice}")

    def _read_headers(self) -> dict[str, str]:
        """The headers by name, of all lines at once: half the time of doing it line by line as the parser calls.

        They are measured only where the bytes that hold them, with what else these hold, are more than headers may be.
        """
        limits, lines = self._limits, self._lines
        if len(lines) > limits.header_count_max or (
            self.begun_bytes + self._chunk_bytes > limits.header_bytes_max
            and sum(len(name) + len(value) for name, value in lines) > limits.header_bytes_max
        ):
            raise _head_too_large()
        headers = {
            _NAMES.get(name) or name.decode("latin-1").lower(): value.decode("latin-1").rstrip(" \t")
            for name, value in lines
        }
        return headers if len(headers) == len(lines) else _with_repeated(lines)

    def _stop(self, error: httptools.HttpParserError) -> None:
        """Refuse what cannot be parsed: as the parser complains, or with the refusal that a call of it raised."""
        if self.is_finished:
            return  # bytes after a request that said `Connection: close`
        cause = error.__context__
        if cause is None:
            cause = RefusedRequestError(400, f"Malformed HTTP: {error}")
        if not isinstance(cause, RefusedRequestError):
            raise cause
        self.refuse(cause)

    def _bound_unended(self, chunk_bytes: int) -> None:
        """Refuse a head or a trailer that has become too long before it ended."""
        # The parser keeps an unended header or trailer to itself, growing with every chunk, so what was fed
        # since the last thing that ended is counted too. It starts one slice below nothing, because that much
        # of the slice it began in may belong to what came before.
        self._unended_bytes += chunk_bytes
        if self._unended_bytes > self._limits.header_bytes_max and not self.is_finished:
            self.refuse(_head_too_large())

    def _check_version(self) -> None:
        """Refuse all but HTTP/1.0 and 1.1, a second Host, and transfer codings other than chunked."""
        version = self._parser.get_http_version()
        headers = self._headers
        if version == "1.1":
            if "host" not in headers or "," in headers["host"]:
                raise RefusedRequestError(400, "An HTTP/1.1 request has one Host header")
        elif version != "1.0":
            raise RefusedRequestError(505, "HTTP/1.1 is spoken here")
        coding = headers.get("transfer-encoding")
        if coding is None:
            return
        if version == "1.0":
            raise RefusedRequestError(400, "HTTP/1.0 has no Transfer-Encoding")
        if coding.lower() != "chunked":
            raise RefusedRequestError(501, "The only transfer coding understood is chunked")

    def _expects_continue(self) -> bool:
        if self._headers["expect"].lower() != "100-continue":
            raise RefusedRequestError(417, "The only expectation understood is 100-continue")
        return bool(self._parser.get_http_version() == "1.1")

    def _check_upgrade(self) -> None:
        if self._parser.get_method() == b"CONNECT":
            raise RefusedRequestError(501, "This server is not a proxy")
        self._is_upgrade = True

    def _origin_form(self, target: str) -> str:
        """The path and query of a target that is a whole URL."""
        if "://" not in target:
            return target  # the asterisk of OPTIONS
        # RFC 9112, 3.2.2: the authority of an absolute target outranks the Host header.
        rest = target.partition("://")[2]
        authority = rest.partition("?")[0].partition("/")[0]
        self._headers["host"] = authority.rpartition("@")[2]
        tail = rest[len(authority) :]
        return tail if tail.startswith("/") else "/" + tail

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Go on as if no Upgrade had been asked for, as RFC 9110, 7.8 allows.

        Java's HttpClient asks for `h2c` with the first POST of every plain connection, so refusing would lock
        it out. The parser takes what follows for another protocol: a new one reads the body, after a head
        that says how long it is and that the connection ends with it.
        """
        self._is_upgrade = False
        if "transfer-encoding" in self._headers:
            framing = "Transfer-Encoding: chunked"
        else:
            framing = f"Content-Length: {self._headers.get('content-length', '0')}"
        method = self._parser.get_method().decode("latin-1")
        self._parser = httptools.HttpRequestParser(_BodyOf(self))
        self.feed(f"{method} / HTTP/1.1\r\nConnection: close\r\n{framing}\r\n\r\n".encode() + rest)


def _with_repeated(lines: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by name where one came more than once: its values, joined by a comma."""
    headers: dict[str, str] = {}
    for name, value in lines:
        key = name.decode("latin-1").lower()
        text = value.decode("latin-1").rstrip(" \t")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _head_too_large() -> RefusedRequestError:
    return RefusedRequestError(431, "The request's headers are too many or too long")


class _BodyOf:
    """The half of a `RequestReader` that a parser needs for a body alone."""

    __slots__ = ("on_body", "on_message_complete")

    def __init__(self, reader: RequestReader) -> None:
        self.on_body = reader.on_body
        self.on_message_complete = reader.on_message_complete
