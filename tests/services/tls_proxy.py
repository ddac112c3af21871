"""A proxy with TLS that takes a prefix off the path, as nginx does for a `proxy_pass` that ends in a slash."""

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import urlsplit

from typing_extensions import override

from tests.services.answering import answering

#: Headers of one connection, which are not passed on.
_OF_CONNECTION: Final = frozenset({"connection", "keep-alive", "transfer-encoding"})


@dataclass(frozen=True)
class Passed:
    """One request that came through.

    Attributes:
        method: GET or POST.
        path: As the browser asked for it.
        headers: The browser's, names in lower case.
        status: Of the server's answer.
    """

    method: str
    path: str
    headers: dict[str, str]
    status: int


@dataclass
class TlsProxy:
    """Passes on what is below a prefix, and remembers it.

    Attributes:
        prefix: Of paths; without a slash at its end.
        upstream: The URL of the server behind it.
        passed: What came through, in order.
        strays: Paths outside of the prefix, which were answered 404.
        port: Where it listens, on loopback.
    """

    prefix: str
    upstream: str = ""
    passed: list[Passed] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    port: int = 0

    @contextlib.contextmanager
    def serving(self, context: ssl.SSLContext) -> Iterator["TlsProxy"]:
        """Listen with this certificate as long as the block."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        # A browser opens connections that it may never use: the handshake is not the accepting thread's.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = server.server_port
        with answering(server):
            yield self

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            @override
            def handle(self) -> None:
                with contextlib.suppress(OSError):  # a browser that hangs up, before its handshake or later
                    super().handle()

            def do_GET(self) -> None:
                proxy._pass(self)

            def do_POST(self) -> None:
                proxy._pass(self)

            @override
            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _pass(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        if not handler.path.startswith(f"{self.prefix}/"):
            self.strays.append(handler.path)
            _answer(handler, 404, [], b"")
            return
        headers = {name: value for name, value in handler.headers.items() if _is_passed_on(name)}
        with contextlib.closing(HTTPConnection(urlsplit(self.upstream).netloc, timeout=30)) as connection:
            connection.request(handler.command, handler.path.removeprefix(self.prefix), body, headers)
            answer = connection.getresponse()
            content = answer.read()
        lower = {name.lower(): value for name, value in headers.items()}
        self.passed.append(Passed(handler.command, handler.path, lower, answer.status))
        _answer(handler, answer.status, answer.getheaders(), content)


def _is_passed_on(name: str) -> bool:
    return name.lower() not in _OF_CONNECTION


def _answer(
    handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], content: bytes
) -> None:
    handler.send_response_only(status)
    for name, value in headers:
        if _is_passed_on(name) and name.lower() != "content-length":
            handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
