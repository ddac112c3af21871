"""The demo's billing system: a real HTTP service that can be told to fail.

A function posts orders to it, or a topic notifications that have them.
"""

import json
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import override

SECONDS_MAX = 5


@dataclass(frozen=True, slots=True)
class Visit:
    """One order that came.

    Attributes:
        at: The server's simulated time (s since the epoch).
        order: Its name, or the message of the notification.
        status: What was answered.
    """

    at: float
    order: str
    status: int


class Billing:
    """Listens on a free port of loopback; confirms its subscription as SNS asks."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Begin to listen; `now` tells the server's time."""
        self.visits: list[Visit] = []
        self.answers: Callable[[int], int] = lambda _: 200
        self._now = now
        self._came: Counter[str] = Counter()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, name="demo-billing", daemon=True).start()

    @property
    def url(self) -> str:
        """The URL that it listens on."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/orders"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def visits_of(self, order: str) -> list[Visit]:
        """The visits of an order: their number and their answers."""
        return [visit for visit in self.visits if visit.order == order]

    def receive(self, document: dict[str, Any]) -> int:
        """Answer one request: confirm, or take an order as well as the service can at the moment."""
        if document.get("Type") == "SubscriptionConfirmation":
            with urllib.request.urlopen(document["SubscribeURL"], timeout=SECONDS_MAX):  # noqa: S310 - loopback
                return 200
        order = document["Message"] if "Message" in document else document["order"]
        # Counted, not looked for: of 40,000 orders that come back, each would be sought among all before it.
        self._came[order] += 1
        status = self.answers(self._came[order])
        self.visits.append(Visit(self._now(), order, status))
        return status

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        billing = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(billing.receive(json.loads(body)))
                self.send_header("Content-Length", "0")
                self.end_headers()

            @override
            def log_message(self, *_: object) -> None:
                """Stay silent: the story tells what matters."""

        return Handler
