"""A webhook that answers at once: `python -m benchmarks.receiver`. It prints its URL, and counts what it is posted.

It is a process of its own, with next to nothing in it, so that what is measured is the server that posts. A message's
text begins with the moment it was published, a reading of the machine's monotonic clock, which all processes share.

    GET /report     what came: how much, when the last of it, and how old each raw delivery was
    GET /tokens     by path, what confirms the subscription that asked there
    GET /hold       answer no more posts …
    GET /release    … until this
"""

import asyncio
import time
from typing import Final

import httptools
import orjson
import uvloop

from benchmarks.connection import Connection

_OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b"
_ASKS: Final = b"SubscriptionConfirmation"
_ASKS_IN_EVENT_GRID: Final = b"SubscriptionValidation"
_EVENT: Final = b'"eventType":"'  # once in each event of a batch


class Inbox:
    """Posted bodies, and the waiters for an answer."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}
        self._ages_ms: list[float] = []
        self._received = 0
        self._last_at = 0.0
        self._holds = False
        self._held: list[Client] = []

    def post(self, client: "Client", path: str, kind: bytes, body: bytes, *, raw: bool) -> None:
        """Take what was posted."""
        if kind == _ASKS:
            self._tokens[path] = orjson.loads(body)["Token"]
            client.answer()
            return
        if kind == _ASKS_IN_EVENT_GRID:
            code = orjson.loads(body)[0]["data"]["validationCode"]
            client.answer(orjson.dumps({"validationResponse": code}))
            return
        self._received += body.count(_EVENT) or 1
        self._last_at = time.perf_counter()
        if raw:
            self._ages_ms.append((self._last_at - float(body.partition(b" ")[0])) * 1000)
        if self._holds:
            self._held.append(client)
        else:
            client.answer()

    def get(self, client: "Client", path: str) -> None:
        """Do what the benchmark asks for."""
        if path in ("/hold", "/release"):
            self._holds = path == "/hold"
            held, self._held = self._held, []
            for one in held:
                one.answer()
        if path == "/tokens":
            client.answer(orjson.dumps(self._tokens))
        else:
            report = {"received": self._received, "last_at": self._last_at, "ages_ms": self._ages_ms}
            client.answer(orjson.dumps(report))


class Client(Connection):
    """One connection."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._parser = httptools.HttpRequestParser(self)

    def on_message_begin(self) -> None:
        self._path = ""
        self._kind = self._body = b""
        self._raw = False

    def on_url(self, url: bytes) -> None:
        self._path += url.decode()

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in (b"x-amz-sns-message-type", b"aeg-event-type"):
            self._kind = value
        elif name == b"x-amz-sns-rawdelivery":
            self._raw = value == b"true"

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._parser.get_method() == b"GET":
            self._inbox.get(self, self._path)
        else:
            self._inbox.post(self, self._path, self._kind, self._body, raw=self._raw)

    def answer(self, body: bytes = b"") -> None:
        """Answer, if anybody is left to read it."""
        if not self._transport.is_closing():
            self._transport.write(_OK % (len(body), body))


async def serve() -> None:
    """Serve for ever on a free port, which is printed."""
    inbox = Inbox()
    server = await asyncio.get_running_loop().create_server(lambda: Client(inbox), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
