"""The servers measured: Redrive as its users start it, and the ceiling beside it."""

import contextlib
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import orjson
from tests.services.server import Server, serving
from typing_extensions import override

from benchmarks.bench import Bench
from benchmarks.processes import Process

_CREATE_QUEUE: Final = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "AmazonSQS.CreateQueue",
}

_numbers: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class Target:
    """A server under load.

    Attributes:
        name: What it is called in the table.
        url: Where it listens.
        process: The server's; a database's is not counted.
    """

    name: str
    url: str
    process: Process

    def new_queue(self) -> str:
        """The URL of an empty queue; the ceiling has one queue under every URL."""
        return f"{self.url}/000000000000/queue"


@dataclass(frozen=True, slots=True)
class Redrive(Target):
    """A Redrive server.

    Attributes:
        server: To be killed and started again.
        store: The URL of what it keeps everything in.
    """

    server: Server
    store: str

    @override
    def new_queue(self) -> str:
        """The URL of a queue made now."""
        return self._create({"QueueName": f"bench-{next(_numbers)}"})

    def new_ordered_queue(self) -> str:
        """The URL of a FIFO queue made now."""
        name = f"bench-{next(_numbers)}.fifo"
        return self._create({"QueueName": name, "Attributes": {"FifoQueue": "true"}})

    def _create(self, wish: Mapping[str, Any]) -> str:
        status, body = self.server.ask("POST", "/", orjson.dumps(wish), _CREATE_QUEUE)
        assert status == HTTPStatus.OK, body
        url: str = orjson.loads(body)["QueueUrl"]
        return url


@contextlib.contextmanager
def redrive(
    bench: Bench, prepare: Callable[[str], None] = lambda _: None, flags: Sequence[str] = ()
) -> Iterator[Redrive]:
    """`redrive serve` with these flags on an empty store, or on what `prepare` puts into the one of that URL."""
    with bench.new_store() as store, contextlib.ExitStack() as stack:
        prepare(store)
        server = stack.enter_context(
            serving(store, "--log-level", "warning", *flags, directory=bench.directory)
        )
        yield Redrive("redrive", server.url, Process(server.process.pid), server, store)


@contextlib.contextmanager
def ceiling(bench: Bench) -> Iterator[Target]:
    """The ceiling on an empty file."""
    path = bench.directory / f"ceiling-{next(_numbers)}.db"
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.ceiling", str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield Target("ceiling", process.stdout.readline().strip(), Process(process.pid))
    finally:
        process.terminate()
        process.wait()
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
