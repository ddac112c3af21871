"""Brokers as programs: each in a directory of its own, on loopback, with the durable settings that it recommends.

A new one is a function in BROKERS, which says what its program is and how it is started. Who has no program says so.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.services.postgres import PostgresMissingError, PostgresServer, binary, own_server
from tests.services.programs import free_port
from tests.services.server import REDRIVE

from benchmarks.processes import Process, descendants

_READY_SECONDS: Final = 60
_LOOK_SECONDS: Final = 0.1
_RABBIT_LIBRARY: Final = Path("/usr/lib/rabbitmq/lib")


class BrokerMissingError(RuntimeError):
    """The broker is not installed here."""


@dataclass(slots=True)
class Broker:
    """A broker that runs, or can be started again.

    Attributes:
        name: In the table.
        kind: The protocol, as the load program names it.
        version: As the program says it.
        durability: The settings by which an answer means that the message is on disk.
        address: Where it listens.
        start: Starts it on what it keeps; the process whose descendants it is.
        helpers: Processes that it needs and that are not measured.
    """

    name: str
    kind: str
    version: str
    durability: str
    address: str
    start: Callable[[], int] | None = None
    helpers: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    pid: int = 0

    def begin(self) -> None:
        """Start it and return when it accepts connections."""
        if self.start is not None:
            self.pid = self.start()
            _wait_for(self.address)

    def processes(self) -> Sequence[Process]:
        """All that belongs to it; empty for one that was running before."""
        return [Process(self.pid), *descendants(self.pid)] if self.pid else []

    def kill(self) -> None:
        """End all its processes at once (SIGKILL)."""
        processes = self.processes()
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        while any(_runs(process.pid) for process in processes):
            time.sleep(_LOOK_SECONDS)
        self.pid = 0

    def end(self) -> None:
        """End it and its helpers."""
        self.kill()
        for helper in self.helpers:
            helper.kill()
            helper.wait()


def _runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def _wait_for(address: str) -> None:
    """Wait until something listens at an address of any form that ends with a port and, perhaps, a path."""
    port = int(address.rpartition("127.0.0.1:")[2].partition("/")[0])
    until = time.monotonic() + _READY_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(_LOOK_SECONDS)
    raise RuntimeError(f"nothing listens at {address}")


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise BrokerMissingError(f"{name} is not installed")
    return path


def _said(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return (ended.stdout or ended.stderr).strip().splitlines()[0]


def _spawn(directory: Path, *command: str, environment: Mapping[str, str] | None = None) -> int:
    with (directory / "log").open("ab") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=log, cwd=directory, env=os.environ | dict(environment or {})
        ).pid


# ---- each ------------------------------------------------------------------------------------------------------


def _redrive(directory: Path) -> Broker:
    port = free_port()
    command = (str(REDRIVE), "serve", "--port", str(port), "--store", f"sqlite:///{directory}/redrive.db")
    return Broker(
        "Redrive",
        "sqs",
        _said(str(REDRIVE), "--version"),
        "`redrive serve` on a SQLite file: WAL, `synchronous=FULL`",
        f"http://127.0.0.1:{port}",
        lambda: _spawn(directory, *command),
    )


def _rabbit(directory: Path) -> Broker:
    server = max(_RABBIT_LIBRARY.glob("*/sbin/rabbitmq-server"), default=None)
    if server is None:
        raise BrokerMissingError("RabbitMQ is not installed")
    port, mapper_port = free_port(), free_port()
    (directory / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
    (directory / "enabled_plugins").write_text("[].\n")
    mapper = subprocess.Popen(
        [_program("epmd"), "-address", "127.0.0.1", "-port", str(mapper_port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    environment = {
        "HOME": str(directory),
        "ERL_EPMD_PORT": str(mapper_port),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_NODENAME": f"load-{port}@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(directory),
        "RABBITMQ_LOG_BASE": str(directory),
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
    }
    version = server.parent.parent.name.removeprefix("rabbitmq_server-")
    return Broker(
        "RabbitMQ",
        "rabbit",
        version,
        "quorum queue, persistent messages, publisher confirms; acks have no answer",
        f"amqp://guest:guest@127.0.0.1:{port}/",
        lambda: _spawn(directory, str(server), environment=environment),
        [mapper],
    )


def _nats(directory: Path) -> Broker:
    program, port = _program("nats-server"), free_port()
    settings = (
        f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{directory}", sync_interval: always }}\n'
    )
    (directory / "nats.conf").write_text(settings)
    return Broker(
        "NATS JetStream",
        "nats",
        _said(program, "--version").removeprefix("nats-server: "),
        "work queue on files, `sync_interval: always`",
        f"nats://127.0.0.1:{port}",
        lambda: _spawn(directory, program, "-c", str(directory / "nats.conf")),
    )


def _beanstalkd(directory: Path) -> Broker:
    program, port = _program("beanstalkd"), free_port()
    kept = directory / "binlog"
    kept.mkdir()
    command = (program, "-l", "127.0.0.1", "-p", str(port), "-b", str(kept), "-f", "0")
    return Broker(
        "beanstalkd",
        "beanstalk",
        _said(program, "-v").removeprefix("beanstalkd "),
        "`-b DIRECTORY -f 0`",
        f"127.0.0.1:{port}",
        lambda: _spawn(directory, *command),
    )


def _postgres(directory: Path) -> Broker:
    try:
        version = _said(str(binary("postgres")), "--version")
    except PostgresMissingError as error:
        raise BrokerMissingError("PostgreSQL is not installed") from error
    directory.chmod(0o755)  # the server may run as another user and has to pass through
    server = own_server(directory)
    first = _postmaster(server)

    def start() -> int:
        if not _runs(first):
            (server.directory / "data" / "postmaster.pid").unlink()  # a killed one leaves it
            server.start()
        return _postmaster(server)

    return Broker(
        "PostgreSQL, a table",
        "pg",
        version.removeprefix("postgres (PostgreSQL) "),
        "as initdb leaves it (`fsync`, `synchronous_commit` on); insert, skip locked, delete, as pgmq has it",
        server.url(),
        start,
    )


def _postmaster(server: PostgresServer) -> int:
    return int((server.directory / "data" / "postmaster.pid").read_text().split()[0])


BROKERS: Final[Mapping[str, Callable[[Path], Broker]]] = {
    "Redrive": _redrive,
    "RabbitMQ": _rabbit,
    "NATS JetStream": _nats,
    "beanstalkd": _beanstalkd,
    "PostgreSQL, a table": _postgres,
}
