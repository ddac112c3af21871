"""PgBouncer before the run's PostgreSQL, from Debian's package: one pooler a test run and mode, started in 30 ms."""

import functools
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tests.services import companions
from tests.services.postgres import PostgresServer, server_account
from tests.services.server import free_port

Mode = Literal["session", "transaction"]

POOLED_VARIABLE: Final = "REDRIVE_TEST_PGBOUNCER"  # the tests' databases are behind a pooler in session mode

_ADVICE: Final = "`make postgresql` installs Debian's package"
# Beyond what is said here the defaults hold, as they do for whoever installs it. Of connections it logs only those that
# break, which is each one to a database that is dropped.
_CONFIGURATION: Final = """\
[databases]
* = host=127.0.0.1 port={database} user=redrive
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 60
max_client_conn = 1000
log_connections = 0
log_disconnections = 0
log_stats = 0
{account}
"""


@dataclass(frozen=True, slots=True)
class PgBouncer:
    """A running pooler.

    Attributes:
        port: Its TCP port.
    """

    port: int

    def url(self, database: str = "postgres") -> str:
        """The URL of a database, by way of the pooler."""
        return f"postgresql://redrive@127.0.0.1:{self.port}/{database}"


def shared_pgbouncer(postgres: PostgresServer, mode: Mode) -> PgBouncer:
    """The run's pooler of this mode before the run's server, started by whichever process asks first.

    Raises:
        CompanionMissingError: It is not installed.
    """
    start = functools.partial(_start, postgres.port, mode)
    return PgBouncer(int(companions.shared(postgres.directory.parent, f"pgbouncer-{mode}", start)["port"]))


def _start(database: int, mode: Mode, directory: Path) -> Mapping[str, str]:
    port, account = free_port(), server_account()
    configuration = directory / "pgbouncer.ini"
    user = "" if account is None else f"user = {account.pw_name}"  # it refuses to serve root
    configuration.write_text(_CONFIGURATION.format(database=database, port=port, mode=mode, account=user))
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        raise companions.CompanionMissingError(f"PgBouncer is not installed: {_ADVICE}")
    companions.run(directory, "/bin/sh", "-c", f"exec {program} {configuration} 2>&1", ready="process up")
    return {"port": str(port)}
