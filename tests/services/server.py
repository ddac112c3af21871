"""The real server as a process of its own: `redrive serve`, started, asked, stopped and killed; and other commands.

A server is ready when it has said so on its standard output; nothing here polls. Its log goes to a file, so that
a test can read what an operator would.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from tests.services.programs import Process, Program, free_port

REDRIVE: Final = Path(sys.executable).with_name("redrive")
#: `redrive` and its commands, imported once.
PROGRAM: Final = Program(
    "redrive",
    modules=(
        *("redrive.app", "redrive.cli.keys", "redrive.cli.serve", "redrive.console.rendering", "jinja2"),
        *("redrive.endpoints.aws.calls", "redrive.endpoints.email", "redrive.endpoints.push.apns"),
        "redrive.stores.postgres.store",
        *(
            f"redrive.composition.{name}"
            for name in ("apigateway", "cloudformation", "cloudwatch", "firehose")
        ),
        *(f"redrive.composition.{name}" for name in ("lambda_", "logs", "s3")),
    ),
    command=(str(REDRIVE),),
    environment={name: value for name, value in os.environ.items() if not name.startswith("REDRIVE_")},
)
_READY: Final = "Redrive ready on "
# Longer than a server drains (10 s); past it the test has found a server that hangs.
_STOP_SECONDS: Final = 30
# Three hours of a simulated clock on PostgreSQL took over half a minute on a machine with three times the work it can do.
_ANSWER_SECONDS: Final = 120


class ServerFailedError(RuntimeError):
    """The process ended instead of serving; the message is its log."""


@dataclass(slots=True)
class Server:
    """One `redrive serve` process.

    Attributes:
        flags: What it was started with, the port included, so that a second start serves the same address.
        log: The file its standard error goes to, over all its starts; it runs in that directory, and what it keeps
            in the current one (certificates, blobs) is there.
        environment: What its environment has besides this process's.
        cold: True if each start is a new interpreter's, which imports everything itself.
    """

    flags: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    cold: bool = False
    _process: Process | None = None

    def start(self) -> None:
        """Start the process and return when it accepts requests.

        Raises:
            ServerFailedError: It ended without saying that it is ready.
        """
        own = {name: value for name, value in os.environ.items() if not name.startswith("REDRIVE_")}
        with self.log.open("a") as log:
            self._process = PROGRAM.start(
                ("serve", *self.flags),
                own | dict(self.environment),
                self.log.parent,
                stderr=log.fileno(),
                cold=self.cold,
            )
        said = self._stdout.readline()
        if not said.startswith(_READY):
            status = self.ended()
            raise ServerFailedError(f"exit status {status}, said {said!r}:\n{self.log.read_text()}")
        self.url = said.removeprefix(_READY).strip()

    @property
    def store(self) -> str:
        """The `--store` URL."""
        return self.flags[self.flags.index("--store") + 1]

    @property
    def process(self) -> Process:
        """The process, running or ended."""
        assert self._process is not None, "not started"
        return self._process

    @property
    def _stdout(self) -> Any:
        return self.process.stdout

    def stop(self) -> int:
        """Ask the process to end (SIGTERM); its exit status."""
        return self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process at once (SIGKILL): nothing in it runs any more."""
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> int:
        """Send a signal and wait for the end; the exit status."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end; the exit status."""
        status = self.process.wait(_STOP_SECONDS)
        self._stdout.close()
        return status

    # ---- control routes --------------------------------------------------------------------------------------

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Send one request of no protocol; status and body."""
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def connect(self) -> HTTPConnection:
        """A connection to the server."""
        address = urlsplit(self.url)
        assert address.hostname is not None
        return HTTPConnection(address.hostname, address.port, timeout=_ANSWER_SECONDS)

    def advance(self, seconds: float) -> None:
        """Let the simulated clock go on; whatever falls due on the way has been done on return."""
        status, body = self.ask("POST", "/_redrive/clock", orjson.dumps({"advance_seconds": seconds}))
        assert status == 200, body

    def now(self) -> float:
        """The simulated moment (seconds since the epoch)."""
        _, body = self.ask("GET", "/_redrive/clock")
        moment: float = orjson.loads(body)["now"]
        return moment

    def reset(self) -> None:
        """Remove every resource."""
        status, body = self.ask("POST", "/_redrive/reset")
        assert status == 200, body


def wait_for_line(log: Path, words: str, times: int = 1) -> str:
    """The line of a log that says this, for the so-manyth time; a test that waits in vain is ended."""
    with subprocess.Popen(
        ["tail", "--follow", "--lines=+1", log], stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        for line in following.stdout:
            times -= words in line
            if not times:
                following.kill()
                return line
    raise AssertionError(f"{log} ended before it said {words}")


def new_server(
    store: str,
    *flags: str,
    directory: Path | None = None,
    port: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Server:
    """A server on a free port, not started yet.

    Args:
        store: The `--store` URL.
        flags: More flags.
        directory: Where its log goes; a new temporary directory if None.
        port: Its port; a free one if None. It stays the same after every start.
        environment: Variables that it has besides.
    """
    directory = directory or Path(tempfile.mkdtemp(prefix="redrive-server-"))
    port = free_port() if port is None else port
    return Server(
        ("--store", store, "--port", str(port), *flags), directory / "server.log", environment or {}
    )


@contextlib.contextmanager
def serving(store: str, *flags: str, directory: Path | None = None, cold: bool = False) -> Iterator[Server]:
    """A server that runs as long as the block, and is killed at its end if it still does."""
    server = new_server(store, *flags, directory=directory)
    server.cold = cold
    try:
        server.start()
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


def redrive(*words: str, timeout: float | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a `redrive` command to its end, so many seconds at most."""
    return PROGRAM.run(words, dict(os.environ), timeout=timeout)


def new_key(store: str, account: str, *words: str) -> tuple[str, str]:
    """An access key of an account, made beside the server on a store: its id and its secret."""
    done = redrive("keys", "create", "--account", account, *words, "--store", store)
    found = re.fullmatch(r"AWS_ACCESS_KEY_ID=(\S+)\nAWS_SECRET_ACCESS_KEY=(\S+)\n", done.stdout)
    assert done.returncode == 0, done
    assert found is not None, done
    return found[1], found[2]
