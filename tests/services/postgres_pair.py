"""A primary and a synchronous standby of PostgreSQL, whose roles change when the primary is killed."""

import os
import select
import shutil
import signal
from pathlib import Path
from typing import Final

import asyncpg

from tests.services.postgres import PostgresServer, binary, control, own_server, run_command
from tests.services.programs import free_port

_REPLICATED: Final = (
    "wal_level = replica",
    "max_wal_senders = 5",
    "hot_standby = on",
    "wal_keep_size = 256MB",
    "wal_receiver_timeout = 5s",
    "max_connections = 100",
)
_WAITS: Final = "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'"
_WAITS_NO_MORE: Final = "ALTER SYSTEM SET synchronous_standby_names = ''"
_RELOAD: Final = "SELECT pg_reload_conf()"
_IN_STEP: Final = (
    "SELECT EXISTS (SELECT FROM pg_stat_replication"
    " WHERE sync_state = 'quorum' AND flush_lsn >= $1::text::pg_lsn)"
)


class PostgresPair:
    """Two clusters on 127.0.0.1; an operator's work is done by the methods, as Patroni would.

    Attributes:
        primary: The one that takes writes.
        standby: The other.
    """

    def __init__(self, run_directory: Path) -> None:
        """Make the primary; `start` makes the standby."""
        self._run_directory = run_directory
        self.primary = own_server(run_directory)
        with (self.primary.directory / "data" / "postgresql.conf").open("a") as configuration:
            configuration.writelines(f"{line}\n" for line in _REPLICATED)
        self.primary.crash()
        self.primary.start()
        self.standby = PostgresServer(run_directory / "postgres-pair", free_port())

    async def start(self) -> None:
        """Make the standby; from now on what is acknowledged is on both."""
        await self.attach_standby()

    async def attach_standby(self) -> None:
        """Make the standby anew from the primary, and let commits wait for it once it is in step."""
        shutil.rmtree(self.standby.directory, ignore_errors=True)
        self.standby.directory.mkdir()
        owner = (self.primary.directory / "data").stat()
        os.chown(self.standby.directory, owner.st_uid, owner.st_gid)
        data = self.standby.directory / "data"
        made = run_command(
            *(str(binary("pg_basebackup")), "--no-sync", "--write-recovery-conf", "--checkpoint=fast"),
            *(f"--pgdata={data}", f"--dbname={self.primary.url()}", "--wal-method=stream"),
        )
        assert made.returncode == 0, made.stderr
        self.standby.start()
        await self.wait_for_standby()

    async def wait_for_standby(self) -> None:
        """Let commits wait for the standby, and return when it has all that was committed before."""
        connection = await asyncpg.connect(self.primary.url())
        await connection.execute(_WAITS)
        await connection.execute(_RELOAD)
        written = await connection.fetchval("SELECT pg_current_wal_lsn()::text")
        while not await connection.fetchval(_IN_STEP, written):
            await connection.execute("SELECT pg_sleep(0.02)")
        await connection.close()

    async def fail_over(self) -> None:
        """kill -9 of the primary, and the standby becomes one, alone."""
        kill(self.primary)
        promoted = control(self.standby.directory, "promote", "--wait")
        assert promoted.returncode == 0, promoted.stderr
        self.primary, self.standby = self.standby, self.primary
        connection = await asyncpg.connect(self.primary.url())
        await connection.execute(_WAITS_NO_MORE)
        await connection.execute(_RELOAD)
        await connection.close()

    def end(self) -> None:
        """End both."""
        for server in (self.primary, self.standby):
            server.crash()


def kill(postgres: PostgresServer) -> None:
    """kill -9 of the postmaster, and wait until its children have noticed: the next start must find nobody."""
    lock = postgres.directory / "data" / "postmaster.pid"
    postmaster = int(lock.read_text().partition("\n")[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    family = [os.pidfd_open(pid) for pid in (postmaster, *map(int, children))]
    os.kill(postmaster, signal.SIGKILL)
    for process in family:
        select.select([process], [], [], 30)
        os.close(process)
    lock.unlink()  # whoever reaps orphans may be slow, and the dead postmaster's number is taken until then
