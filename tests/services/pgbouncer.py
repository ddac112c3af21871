"""PgBouncer before the run's PostgreSQL, from Debian's package: one pooler a test run and mode, started in 30 ms."""

import os
import select
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.services import companions
from tests.services.postgres import PostgresServer, server_account
from tests.services.programs import free_port

Mode = Literal["session", "transaction", "statement"]

POOLED_VARIABLE: Final = "REDRIVE_TEST_PGBOUNCER"  # the tests' databases are behind a pooler in session mode

_ADVICE: Final = "`make postgresql` installs Debian's package"
# Beyond what is said here the defaults hold, as they do for whoever installs it. Of connections it logs only those that
# break, which is each one to a database that is dropped.
_SETTINGS: Final = {
    "listen_addr": "127.0.0.1",
    "unix_socket_dir": "",
    "auth_type": "any",
    "default_pool_size": 60,
    "max_client_conn": 1000,
    "log_connections": 0,
    "log_disconnections": 0,
    "log_stats": 0,
}
# The program takes the shell's place, and so its number.
_RUN: Final = "echo $$ >pid; exec {program} pgbouncer.ini 2>&1"


@dataclass(frozen=True, slots=True)
class PgBouncer:
    """A pooler.

    Attributes:
        port: Its TCP port, the same after every start.
        directory: Where its configuration, its log and the number of its process are.
    """

    port: int
    directory: Path

    def url(self, database: str = "postgres") -> str:
        """The URL of a database, by way of the pooler."""
        return f"postgresql://redrive@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start it, and return once it accepts connections.

        Raises:
            CompanionMissingError: It is not installed.
        """
        program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            raise companions.CompanionMissingError(f"PgBouncer is not installed: {_ADVICE}")
        command = f"cd {self.directory}; {_RUN.format(program=program)}"
        companions.run(self.directory, "/bin/sh", "-c", command, ready="process up")

    def kill(self) -> None:
        """kill -9; its port is free when this returns."""
        pid = int((self.directory / "pid").read_text())
        process = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([process], [], [], 30)
        os.close(process)


def shared_pgbouncer(postgres: PostgresServer, mode: Mode) -> PgBouncer:
    """The run's pooler of this mode before the run's server, started by whichever process asks first.

    Raises:
        CompanionMissingError: It is not installed.
    """
    name, run = f"pgbouncer-{mode}", postgres.directory.parent

    def start(directory: Path) -> Mapping[str, str]:
        return {"port": str(own_pgbouncer(postgres, mode, directory).port)}

    return PgBouncer(int(companions.shared(run, name, start)["port"]), run / name)


def own_pgbouncer(postgres: PostgresServer, mode: Mode, directory: Path, **settings: object) -> PgBouncer:
    """A pooler of the caller's own before a server, which is started.

    Args:
        postgres: The server.
        mode: The pooler's.
        directory: An empty one, in the directory of a run.
        settings: Further ones, or others than the tests' as a rule.
    """
    pooler, account = PgBouncer(free_port(), directory), server_account()
    chosen = {**_SETTINGS, "listen_port": pooler.port, "pool_mode": mode, **settings}
    if account is not None:
        chosen["user"] = account.pw_name  # it refuses to serve root
    lines = [
        "[databases]",
        f"* = host=127.0.0.1 port={postgres.port} user=redrive",
        "[pgbouncer]",
        *(f"{name} = {value}" for name, value in chosen.items()),
    ]
    (directory / "pgbouncer.ini").write_text("\n".join(lines))
    pooler.start()
    return pooler
