"""A server for tests: the real one in its own process, in memory, on a clock that a test moves.

Only the standard library is needed to talk to it; its services are for the clients that people have.
"""

import json
import subprocess
import sys
import urllib.request
from typing import Any, Final, Self

_READY: Final = "Redrive ready on "
# For an answer of the server, and for its end; past it the test has found one that hangs.
_SECONDS_MAX: Final = 30
_SERVE: Final = (
    *("-m", "redrive", "serve", "--port", "0", "--store", "sqlite://:memory:"),
    *("--clock", "simulated", "--allow-reset", "--log-level", "warning"),
)


class RedriveServer:
    """A running server.

    Attributes:
        url: Where it serves, as `http://127.0.0.1:PORT`.
        connection: What a client of the AWS SDK for Python needs to reach it:
            `boto3.client("sqs", **server.connection)`.
        clock: Its time, which stands still between the calls of `advance`.
    """

    def __init__(self, process: "subprocess.Popen[str]", url: str) -> None:
        """Use a process that serves; `start` makes one."""
        self._process = process
        self.url = url
        self.connection = {
            "endpoint_url": url,
            "region_name": "us-east-1",
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
        }
        self.clock = RedriveClock(self)

    @classmethod
    def start(cls) -> Self:
        """Start a server on a free port, and wait until it accepts requests.

        Raises:
            RuntimeError: It ended instead; why is on the standard error.
        """
        process = subprocess.Popen([sys.executable, *_SERVE], stdout=subprocess.PIPE, text=True)  # noqa: S603 - this package
        ready = process.stdout.readline() if process.stdout else ""
        if not ready.startswith(_READY):
            process.kill()
            process.communicate()
            raise RuntimeError(f"the server did not start, and said {ready!r}")
        return cls(process, ready.removeprefix(_READY).strip())

    def stop(self) -> None:
        """Stop it; what it kept is gone."""
        self._process.terminate()
        self._process.communicate(timeout=_SECONDS_MAX)

    def reset(self) -> None:
        """Remove every resource and let every endpoint answer for itself; the time stays as it is."""
        self.ask("/_redrive/reset", {})

    def fail(self, endpoint: str, status: int | None) -> None:
        """Let every attempt to push to this endpoint end with an HTTP status from 400 to 599; None: no longer."""
        self.ask("/_redrive/faults", {"endpoint": endpoint, "status": status})

    def ask(self, path: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        """Get one of Redrive's own routes, or post a document to it; the answer.

        Raises:
            urllib.error.HTTPError: It was refused.
        """
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.url + path, data=body)  # noqa: S310 - our own server on loopback
        with urllib.request.urlopen(request, timeout=_SECONDS_MAX) as answer:  # noqa: S310 - likewise
            answer_document: dict[str, Any] = json.load(answer)
        return answer_document


class RedriveClock:
    """The time of a server, moved by hand."""

    def __init__(self, server: RedriveServer) -> None:
        self._server = server

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        return float(self._server.ask("/_redrive/clock")["now"])

    def advance(self, seconds: float) -> int:
        """Let time pass, with everything that falls due in it, in order; how many deliveries were attempted."""
        return int(self._server.ask("/_redrive/clock", {"advance_seconds": seconds})["attempts"])
