"""The least a server can do, for measuring the front; decision 0002 has the figures.

    python -m tests.server.hello 9000 bare|now|future|coroutine &
    wrk -t1 -c32 -d3s http://127.0.0.1:9000/

`bare` is the parser and nothing else; the others answer through the front, at once or one turn of the loop later.
"""

import asyncio
import sys
import time
from typing import cast

import httptools
import uvloop

from redrive.model.http import Request, Response
from redrive.server.connection import Handler
from redrive.server.http import HttpFront
from redrive.server.limits import HttpLimits

_BODY = b"x" * 110  # about what SendMessage answers
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)


class _Bare(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self._transport.write(_ANSWER)


def _now(_: Request) -> Response:
    return Response(200, _BODY, "text/plain")


def _future(_: Request) -> asyncio.Future[Response]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Response] = loop.create_future()
    loop.call_soon(_settle, future)
    return future


def _settle(future: asyncio.Future[Response]) -> None:
    if not future.cancelled():
        future.set_result(Response(200, _BODY, "text/plain"))


async def _coroutine(request: Request) -> Response:
    return await _future(request)


_HANDLERS: dict[str, Handler] = {"now": _now, "future": _future, "coroutine": _coroutine}


async def _serve(port: int, kind: str) -> None:
    if kind == "bare":
        await asyncio.get_running_loop().create_server(_Bare, "127.0.0.1", port)
    else:
        front = HttpFront(
            _HANDLERS[kind], HttpLimits(), now=lambda: time.time_ns() // 1_000_000, new_request_id=lambda: ""
        )
        await front.start("127.0.0.1", port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), sys.argv[2]))
