"""The demo's server: a real one, in memory, on a clock that is moved by hand."""

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import botocore.session
from typing_extensions import override

ACCOUNT = "123456789012"
SECONDS_MAX = 30
READY = "Redrive ready on "


@dataclass(slots=True)
class DemoServer:
    """A server process and its clients."""

    process: subprocess.Popen[str]
    url: str

    @classmethod
    def start(cls, *flags: str, port: int = 0) -> Self:
        """Start a server with these flags; port 0 is one that is free.

        Raises:
            RuntimeError: It did not say that it is ready.
        """
        serve = [
            sys.executable,
            "-m",
            "redrive",
            "serve",
            "--port",
            str(port),
            "--store",
            "sqlite://:memory:",
        ]
        process = subprocess.Popen(  # noqa: S603 - ourselves
            [*serve, *flags, "--log-level", "error"],
            # Without the settings of another server: those of a container image turn on the check of signatures, for
            # which the demo has no keys.
            env={name: value for name, value in os.environ.items() if not name.startswith("REDRIVE_")},
            stdout=subprocess.PIPE,
            text=True,
        )
        line = process.stdout.readline() if process.stdout else ""
        if not line.startswith(READY):
            process.kill()
            raise RuntimeError(f"the server did not start: {line!r}")
        return cls(process, line.removeprefix(READY).strip())

    def stop(self) -> None:
        """Stop it."""
        self.process.terminate()
        self.process.wait(SECONDS_MAX)
        if self.process.stdout:
            self.process.stdout.close()

    def client(self, service: str) -> Any:
        """A client of one of its services."""
        session = botocore.session.get_session()
        return session.create_client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=ACCOUNT,
            aws_secret_access_key="demo",  # noqa: S106 - nothing is verified on loopback
        )

    def now(self) -> float:
        """The simulated time (s since the epoch)."""
        return float(self.ask("/_redrive/clock")["now"])

    def pass_time(self, seconds: float) -> int:
        """Let time pass; returns how many deliveries were attempted."""
        return int(self.ask("/_redrive/clock", {"advance_seconds": seconds})["attempts"])

    def ask(self, path: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask one of Redrive's own routes."""
        body = None if document is None else json.dumps(document).encode()
        credential = f"AWS4-HMAC-SHA256 Credential={ACCOUNT}/20260101/us-east-1/redrive/aws4_request"
        request = urllib.request.Request(  # noqa: S310 - loopback
            self.url + path, data=body, headers={"Authorization": credential}
        )
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:  # noqa: S310 - loopback
            answer_document: dict[str, Any] = json.load(answer)
        return answer_document


# The demo's billing system: a real HTTP service that can be told to fail.
#
# A function posts orders to it, or a topic notifications that have them.

_CONFIRMATION_SECONDS_MAX = 5


@dataclass(frozen=True, slots=True)
class PostedOrder:
    """One order that came."""

    at: float  # The server's simulated time (s since the epoch)
    order: str  # Its name, or the message of the notification
    status: int  # Status of the answer


class Billing:
    """Listens on a free port of loopback; confirms its subscription as SNS asks."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Begin to listen; `now` tells the server's time."""
        self.visits: list[PostedOrder] = []
        self.answers: Callable[[int], int] = lambda _: 200
        self._now = now
        self._visit_counts: Counter[str] = Counter()
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

    def visits_of(self, order: str) -> list[PostedOrder]:
        """The visits of an order: their number and their answers."""
        return [visit for visit in self.visits if visit.order == order]

    def receive(self, document: dict[str, Any]) -> int:
        """Answer one request: confirm a subscription, or take an order; returns the status of the answer."""
        if document.get("Type") == "SubscriptionConfirmation":
            with urllib.request.urlopen(document["SubscribeURL"], timeout=_CONFIRMATION_SECONDS_MAX):  # noqa: S310 - loopback
                return 200
        order = document["Message"] if "Message" in document else document["order"]
        # Counted here: to search the visits for each of 40,000 orders that come back would take too long.
        self._visit_counts[order] += 1
        status = self.answers(self._visit_counts[order])
        self.visits.append(PostedOrder(self._now(), order, status))
        return status

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        """The HTTP server's handler, which gives bodies to `receive`."""
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
