"""The demo's server: a real one, in memory, on a clock that is moved by hand."""

import json
import os
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from typing import Any, Self

import botocore.session

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
            # Without the settings of another server: an image's ask for signatures, and the demo has no keys.
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
        """Let time pass; how many deliveries were attempted in it."""
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
