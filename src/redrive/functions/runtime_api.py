"""The Runtime API of one environment: a process asks for the next invocation and posts what came of it.

Published by AWS (`/2018-06-01/runtime/…`), so its own clients work unmodified. Each environment has a listener of its
own on loopback, since a client is told a host and a port and nothing else. Head and body of an answer are one write: two
writes cost every call 40 ms of delayed acknowledgement.
"""

import asyncio
import base64
import json
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

import httptools
from typing_extensions import override

from redrive.functions.peers import Address
from redrive.model.function import AnswerParts, Invocation

ANSWER_BYTES_MAX: Final = 6 * 1024 * 1024 + 100  # AWS: 6 MB and a hundred bytes
STREAM_BYTES_MAX: Final = 200 * 1024 * 1024
_URL_BYTES_MAX: Final = 8 * 1024
_HEAD_BYTES_MAX: Final = 64 * 1024
_REQUESTS_MAX: Final = 16  # in what is read at once; clients wait for each answer
_UNREAD_BYTES_MAX: Final = 64 * 1024  # of earlier answers, when another request comes
_CONNECTIONS_MAX: Final = 64  # of an environment; runtime clients have one, extensions one each
_INVOCATION: Final = re.compile(r"/2018-06-01/runtime/invocation/([^/]+)/(response|error)")
_LINE_BREAKS: Final = re.compile(r"[\r\n]+")  # what a caller sends along must not begin another header
_NEXT: Final = "/2018-06-01/runtime/invocation/next"
_INIT_ERROR: Final = "/2018-06-01/runtime/init/error"
_ERROR_TYPE: Final = b"lambda-runtime-function-error-type"
_ERROR_BODY: Final = b"lambda-runtime-function-error-body"
_MODE: Final = b"lambda-runtime-function-response-mode"
_CONTENT_TYPE: Final = b"content-type"
_HEADERS: Final = frozenset({_ERROR_TYPE, _ERROR_BODY, _MODE, _CONTENT_TYPE})  # those that are looked at


@dataclass(slots=True)  # not frozen, as PushRequest: each invocation makes one
class Posted:
    """An answer as the process posted it."""

    body: bytes  # Body of the answer; empty if it was streamed
    error_type: str | None = None  # Error type that the process reported; None: it succeeded
    too_large: bool = False  # The body was over the limit, and was discarded
    streamed: bool = False  # The parts went to `Invocation.parts`


TakePosted: TypeAlias = Callable[[Posted | None], None]


class RuntimeApi:
    """The listener of one environment.

    Attributes:
        ready: Done when the process asked for its first invocation, or with what it posted of a failed start.
    """

    def __init__(self) -> None:
        self.ready: asyncio.Future[Posted | None] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None
        self._waiting_connection: _Connection | None = None
        self._invocation: Invocation | None = None
        self._deadline = 0
        self._take: TakePosted | None = None
        self._abandoned = False  # the process is gone
        self._connections: set[_Connection] = set()
        self._is_own: Callable[[Address, Address], bool] = lambda _peer, _own: True

    async def open(self, is_own: Callable[[Address, Address], bool]) -> str:
        """Listen on a free port of loopback, which the whole machine reaches; `host:port`.

        `is_own` tells by the addresses that a connection comes from, and leads to, whether the process made it.
        """
        self._is_own = is_own
        listener = socket.create_server(("127.0.0.1", 0))
        host, port = listener.getsockname()
        await self.listen(listener)
        return f"{host}:{port}"

    async def listen(self, listener: socket.socket) -> None:
        """Listen by a socket that stands in a namespace of the process's own."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self), sock=listener
        )

    def close(self) -> None:
        """Stop listening and hang up."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.hang_up()

    def hand_over(self, invocation: Invocation, deadline: int, take: TakePosted) -> None:
        """Give the process its next invocation, which has to end by `deadline` (ms).

        Later `take` is called with what it has posted, or with None when it is gone.
        """
        self._invocation, self._deadline, self._take = invocation, deadline, take
        self._give()
        if self._abandoned:
            self._settle(None)

    def abandon(self) -> None:
        """The process is gone: it posts nothing any more."""
        self._abandoned = True
        self._settle(None)

    def _give(self) -> None:
        if self._waiting_connection is None or self._invocation is None:
            return
        asking, self._waiting_connection = self._waiting_connection, None
        asking.give(self._invocation, self._deadline)

    # ---- what connections tell --------------------------------------------------------------------------

    def admit(self, connection: "_Connection", transport: asyncio.Transport) -> bool:
        """Take a connection that was made; False: it is not the process's, or there are too many."""
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        if not peer or len(self._connections) >= _CONNECTIONS_MAX or not self._is_own(peer, own):
            return False
        self._connections.add(connection)
        return True

    def lost(self, connection: "_Connection") -> None:
        """A connection ended; whether the process did is for its environment to see."""
        self._connections.discard(connection)
        if self._waiting_connection is connection:
            self._waiting_connection = None

    def parts_of(self, path: str, headers: Mapping[bytes, str]) -> AnswerParts | None:
        """The receiver of the answer that is streamed to that path; None: its caller takes no parts."""
        invocation = self._invocation
        if invocation is None or invocation.parts is None or headers.get(_MODE) != "streaming":
            return None
        path_match = _INVOCATION.fullmatch(path)
        if path_match is None or path_match.groups() != (invocation.request_id, "response"):
            return None
        invocation.parts.begin(headers.get(_CONTENT_TYPE, ""))
        return invocation.parts

    def request(self, connection: "_Connection", method: str, path: str, posted: Posted, mode: str) -> None:
        """Carry out one request."""
        if (method, path) == ("GET", _NEXT):
            self._wait_for_invocation(connection)
        elif method == "GET" and path in ("/2018-06-01/ping", "/ping"):
            connection.respond(200, b"pong", "text/plain")
        elif (method, path) == ("POST", _INIT_ERROR):
            self._take_init_error(connection, posted)
        elif method == "POST" and (path_match := _INVOCATION.fullmatch(path)):
            self._take_answer(connection, path_match[1], path_match[2], posted, mode)
        elif path.startswith(("/2020-08-15/logs", "/2022-07-01/telemetry")):
            kind = "Logs" if "logs" in path else "Telemetry"
            connection.refuse(202, f"{kind}.NotSupported", f"{kind} API is not supported")
        else:
            connection.refuse(404, "NotFound", f"no such call: {method} {path}")

    def _wait_for_invocation(self, connection: "_Connection") -> None:
        self._waiting_connection = connection
        if not self.ready.done():
            self.ready.set_result(None)
        self._give()

    def _take_init_error(self, connection: "_Connection", posted: Posted) -> None:
        connection.accept()
        if not self.ready.done():
            self.ready.set_result(posted)

    def _take_answer(
        self, connection: "_Connection", request_id: str, verb: str, posted: Posted, mode: str
    ) -> None:
        """Take the answer or (`verb` is `error`) the failure of the invocation that is under way."""
        invocation = self._invocation
        if invocation is None:
            connection.refuse(403, "InvalidStateTransition", "no invocation is under way")
        elif invocation.request_id != request_id:
            connection.refuse(400, "InvalidRequestID", "Invalid request ID")
        elif mode not in ("", "streaming", "buffered"):
            connection.refuse(400, "InvalidFunctionResponseMode", f"unknown response mode {mode}")
        else:
            if posted.too_large:
                connection.refuse(413, "RequestEntityTooLarge", too_large_text())
            else:
                connection.accept()
            if verb == "error" and posted.error_type is None:
                posted = Posted(posted.body, "Unhandled", posted.too_large)
            self._settle(posted)

    def _settle(self, posted: Posted | None) -> None:
        take, self._take, self._invocation = self._take, None, None
        if take is not None:  # not from within the parser, which would take its exceptions for the process's
            asyncio.get_running_loop().call_soon(take, posted)


def _decoded(trailer: str) -> bytes:
    try:
        return base64.b64decode(trailer, validate=True)
    except ValueError:  # binascii.Error, or text that is not ASCII
        return json.dumps({"errorType": "Runtime.Unknown", "errorMessage": "Unknown error"}).encode()


def too_large_text(beginning: str = "Exceeded") -> str:
    """AWS's text for an answer that is too large; it begins in its own way for the process and for the caller."""
    return f"{beginning} maximum allowed payload size ({ANSWER_BYTES_MAX} bytes)."


def _head_of(invocation: Invocation, deadline: int) -> bytes:
    """The head of the answer with an invocation, each header one line whatever a caller sent along."""
    lines = [
        "HTTP/1.1 200 OK",
        "Content-Type: application/json",
        f"Lambda-Runtime-Aws-Request-Id: {invocation.request_id}",
        f"Lambda-Runtime-Deadline-Ms: {deadline}",
        f"Lambda-Runtime-Invoked-Function-Arn: {invocation.invoked_as}",
    ]
    if invocation.trace is not None:
        lines.append(f"Lambda-Runtime-Trace-Id: {invocation.trace}")
    if invocation.client_context is not None:
        lines.append(f"Lambda-Runtime-Client-Context: {invocation.client_context}")
    lines.append(f"Content-Length: {len(invocation.payload)}")
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) - 1 or head.count("\r") != len(lines) - 1:
        head = "\r\n".join(_LINE_BREAKS.sub(" ", line) for line in lines)
    return f"{head}\r\n\r\n".encode("utf-8", "replace")


class _RefusedError(Exception):
    """A request, or a row of them, that no client of the Runtime API sends: the connection is cut off."""


class _Connection(asyncio.Protocol):
    """One connection of the process; it has one request under way at a time."""

    def __init__(self, api: RuntimeApi) -> None:
        self._api = api
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._requests = 0  # in what is being read
        self._head_so_far = 0  # bytes since a request, or a part of its body, came to its end
        self._reset()

    def _reset(self) -> None:
        """Begin to read the next request."""
        self._path = ""
        self._headers: dict[bytes, str] = {}
        self._head_bytes = 0
        self._parts: list[bytes] = []
        self._body_bytes = 0
        self._streams_to: AnswerParts | None = None

    # ---- the transport ----------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not self._api.admit(self, self._transport):
            self._transport.abort()

    @override
    def data_received(self, data: bytes) -> None:
        self._requests = 0
        self._head_so_far += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._cut_off()
        # The parser tells of a header only when it is whole: one that does not end is noticed here.
        if self._head_so_far > 2 * _HEAD_BYTES_MAX:
            self._cut_off()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._api.lost(self)

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _cut_off(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ---- the parser -------------------------------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        self._path += url.decode("latin-1")
        if len(self._path) > _URL_BYTES_MAX:
            raise _RefusedError

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer behind the last chunk."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > _HEAD_BYTES_MAX:
            raise _RefusedError
        low = name.lower()
        if low in _HEADERS:
            self._headers[low] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._streams_to = self._api.parts_of(self._path, self._headers)

    def on_body(self, data: bytes) -> None:
        """A piece of the body: passed on where the answer is streamed, kept where it is not."""
        self._body_bytes += len(data)
        self._head_so_far = 0
        if self._streams_to is not None:
            if self._body_bytes <= STREAM_BYTES_MAX and not self._streams_to.add(data, self._resume):
                self._pause()
        elif self._body_bytes <= ANSWER_BYTES_MAX:
            self._parts.append(data)

    def _pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def on_message_complete(self) -> None:
        """The end of a request, which is carried out."""
        self._requests += 1
        self._head_so_far = 0
        unread = 0 if self._transport is None else self._transport.get_write_buffer_size()
        if self._requests > _REQUESTS_MAX or unread > _UNREAD_BYTES_MAX:
            raise _RefusedError
        streamed = self._streams_to is not None
        too_large = self._body_bytes > (STREAM_BYTES_MAX if streamed else ANSWER_BYTES_MAX)
        body = b"" if too_large else b"".join(self._parts)
        if _ERROR_BODY in self._headers:  # a trailer: the answer failed in its middle
            body = _decoded(self._headers[_ERROR_BODY])
        posted = Posted(body, self._headers.get(_ERROR_TYPE), too_large, streamed)
        method, path, mode = self._parser.get_method().decode(), self._path, self._headers.get(_MODE, "")
        self._reset()
        self._api.request(self, method, path, posted, mode)

    # ---- answers ----------------------------------------------------------------------------------------

    def accept(self) -> None:
        self._write(_ACCEPTED)

    def give(self, invocation: Invocation, deadline: int) -> None:
        """Answer with an invocation."""
        self._write(_head_of(invocation, deadline) + invocation.payload)

    def refuse(self, status: int, error_type: str, text: str) -> None:
        body = json.dumps({"errorMessage": text, "errorType": error_type}).encode()
        self.respond(status, body, "application/json")

    def respond(self, status: int, body: bytes, content_type: str) -> None:
        """Answer a request."""
        head = (
            f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._write(head.encode("latin-1") + body)

    def _write(self, answer: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(answer)


_ACCEPTED: Final = (
    b'HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{"status":"OK"}\n'
)


_PHRASES: Final = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    413: "Payload Too Large",
}
