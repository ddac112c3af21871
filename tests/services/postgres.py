"""A throwaway PostgreSQL server, made from the binaries that Debian's packages install.

One server serves a whole test run: its processes meet in a *run directory*, and the first that needs the
server starts it (`shared_server`). On it each test has a database of its own from a `DatabaseMaker`, 9 ms to
make and 4 ms to drop, or its process's one that is emptied for each test. A cluster takes 0.5 s to make, so
only a test that crashes its server makes one (`own_server`). The process that owns the run ends all its servers
(`end_run`); what a killed run left behind, the next run that needs a server ends.
"""

import asyncio
import fcntl
import functools
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg

from redrive.stores.postgres.migrate import migrate
from tests.services.programs import free_port

BINARIES_VARIABLE: Final = "REDRIVE_TEST_POSTGRES_BIN"  # the directory of another version's programs

_SUPERUSER: Final = "redrive"
_RUN_PREFIX: Final = "redrive-tests-"
# A free port may be taken before the server listens on it; three in a row is another fault.
_STARTS_MAX: Final = 3

# A database is 290 files, and creating a file takes 1 ms on some disks: 260 ms instead of 9 for a database.
_MEMORY_DISK: Final = Path("/dev/shm")
_MEMORY_DISK_BYTES_MIN: Final = 1 << 29  # a cluster is 40 MB, its log at most 128 MB, a database 7 MB

_SETTINGS: Final = (
    "listen_addresses = '127.0.0.1'",
    "unix_socket_directories = ''",
    "max_connections = 200",
    "max_wal_size = 128MB",
)
# What earlier tests left open may hold locks.
_END_OTHERS: Final = """
    SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
# A truncated table is as new, statistics of the planner included; the step that says which schema it is stays.
_USED_TABLES: Final = """
    SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'schema_steps'
        AND pg_relation_size(oid) > 0
"""
_RESTART: Final = "SELECT setval(seqrelid, seqstart, false) FROM pg_sequence"
# Commits wait for no disk: enough for a process that is killed, not for a machine that loses power.
_SETTINGS_FAST: Final = ("fsync = off", "full_page_writes = off")


class PostgresMissingError(RuntimeError):
    """This machine has no PostgreSQL binaries."""


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """One cluster, listening on 127.0.0.1.

    Attributes:
        directory: Holds the cluster (`data`) and the server's log.
        port: The TCP port, the same after every start.
    """

    directory: Path
    port: int

    def url(self, database: str = "postgres") -> str:
        """The URL of one database; every client on this machine is trusted."""
        return f"postgresql://{_SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Starts the server and returns once it accepts connections, recovery after a crash included.

        Raises:
            RuntimeError: It did not start; the message holds the server's log.
        """
        log = self.directory / "log"
        started = control(self.directory, "start", "--wait", f"--log={log}", f"--options=-p {self.port}")
        if started.returncode != 0:
            raise RuntimeError(
                f"PostgreSQL did not start:\n{log.read_text() if log.exists() else started.stderr}"
            )

    def crash(self) -> None:
        """Ends every server process at once, without a checkpoint, so that the next start has to recover."""
        control(self.directory, "stop", "--mode=immediate")


class DatabaseMaker:
    """Makes, empties and drops databases on one server, over connections that stay open.

    Its calls block, so that tests of both kinds can make them; its event loop runs in a thread of its own,
    because a test's loop may be running when it calls.
    """

    def __init__(self, server: PostgresServer, prefix: str, url: Callable[[str], str] | None = None) -> None:
        """Make databases of this server, whose URLs lead there straight, or by another way."""
        self._server, self._url = server, url or server.url
        self._names = (f"{prefix}_{number}" for number in itertools.count())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="database maker")
        self._thread.start()
        self._connection = self._wait_for(asyncpg.connect(server.url()))

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """The URL of an empty database, dropped afterwards even while connections to it are open."""
        name = self._new_database(template)
        try:
            yield self._url(name)
        finally:
            self._wait_for(self._connection.execute(f"DROP DATABASE {name} WITH (FORCE)"))

    @functools.cached_property
    def schema(self) -> str:
        """The name of a database with the tables and nothing in them, to copy."""
        name = self._new_database("template0")
        self._wait_for(_make_schema(self._server.url(name)))
        return name

    def emptied(self) -> str:
        """The URL of a database with the tables and nothing in them, the same each time: 2 ms and not 18.

        For tests that leave the schema as it is.
        """
        name, connection = self._kept
        self._wait_for(_empty(connection))
        return self._url(name)

    @functools.cached_property
    def _kept(self) -> tuple[str, asyncpg.Connection]:
        name = self._new_database(self.schema)
        return name, self._wait_for(asyncpg.connect(self._server.url(name)))

    def _new_database(self, template: str) -> str:
        name = next(self._names)
        self._wait_for(self._connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}"))
        return name

    def close(self) -> None:
        """Closes the connections and ends the thread."""
        if "_kept" in vars(self):
            self._wait_for(self._kept[1].close())
        self._wait_for(self._connection.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait_for(self, call: Coroutine[Any, Any, Any]) -> Any:  # asyncpg ships no types
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


async def _empty(connection: asyncpg.Connection) -> None:
    await connection.execute(_END_OTHERS)
    if tables := await connection.fetchval(_USED_TABLES):
        await connection.execute(f"TRUNCATE {tables}")
    await connection.execute(_RESTART)


async def _make_schema(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await migrate(connection)
    finally:
        await connection.close()


def new_run_directory() -> Path:
    """Make the directory where the processes of one test run meet; its name says which process owns the run."""
    root = _run_roots()[-1]
    directory = Path(tempfile.mkdtemp(prefix=f"{_RUN_PREFIX}{os.getpid()}-", dir=root))
    directory.chmod(0o755)  # the server may run as another user and has to pass through
    return directory


def shared_server(run_directory: Path) -> PostgresServer:
    """The run's server, started by whichever process asks first.

    Raises:
        PostgresMissingError: There are no binaries to start.
    """
    directory = run_directory / "postgres"
    port_file = run_directory / "postgres-port"
    with (run_directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if port_file.exists():
            return PostgresServer(directory, int(port_file.read_text()))
        end_orphaned_runs()
        directory.mkdir()
        server = _new_server(directory, durable=False)
        port_file.write_text(str(server.port))
        return server


def own_server(run_directory: Path) -> PostgresServer:
    """A server for one test, whose commits wait for the disk as they do in production."""
    return _new_server(Path(tempfile.mkdtemp(prefix="postgres-", dir=run_directory)), durable=True)


def end_run(run_directory: Path) -> None:
    """Ends every server of the run and deletes the run directory."""
    for data in run_directory.glob("*/data"):
        control(data.parent, "stop", "--mode=immediate")
    shutil.rmtree(run_directory, ignore_errors=True)


def end_orphaned_runs() -> None:
    """Ends the runs whose owner no longer lives, and so could not end them itself."""
    for directory in itertools.chain.from_iterable(root.glob(f"{_RUN_PREFIX}*") for root in _run_roots()):
        owner_pid = int(directory.name.removeprefix(_RUN_PREFIX).partition("-")[0])
        if not Path(f"/proc/{owner_pid}").exists():
            end_run(directory)


def binary(name: str) -> Path:
    """A PostgreSQL program: of the installation that the environment names, or of the newest there is.

    Raises:
        PostgresMissingError: There is none.
    """
    if BINARIES_VARIABLE in os.environ:
        return Path(os.environ[BINARIES_VARIABLE]) / name
    versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest = max(versions, key=lambda path: int(path.parts[4]), default=None)
    found = newest or shutil.which(name)
    if found is None:
        raise PostgresMissingError(
            f"PostgreSQL's {name} is neither under /usr/lib/postgresql nor on the PATH, and these tests "
            "need a real server. `make postgresql` installs Debian's package."
        )
    return Path(found)


def _run_roots() -> list[Path]:
    """Return the folders that run directories may be in, the best last."""
    roots = [Path(tempfile.gettempdir())]
    if _MEMORY_DISK.is_dir() and shutil.disk_usage(_MEMORY_DISK).free >= _MEMORY_DISK_BYTES_MIN:
        roots.append(_MEMORY_DISK)
    return roots


def _new_server(directory: Path, *, durable: bool) -> PostgresServer:
    account = server_account()
    if account is not None:
        os.chown(directory, account.pw_uid, account.pw_gid)
    data = directory / "data"
    options = ("--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync", f"--username={_SUPERUSER}")
    made = run_command(str(binary("initdb")), f"--pgdata={data}", *options)
    if made.returncode != 0:
        raise RuntimeError(f"PostgreSQL could not make a cluster in {data}:\n{made.stderr}")
    with (data / "postgresql.conf").open("a") as configuration:
        configuration.writelines(f"{line}\n" for line in _SETTINGS + (() if durable else _SETTINGS_FAST))
    return _started_on_a_free_port(directory)


def _started_on_a_free_port(directory: Path) -> PostgresServer:
    for starts in itertools.count(1):
        server = PostgresServer(directory, free_port())
        try:
            server.start()
        except RuntimeError:
            if starts == _STARTS_MAX:
                raise
        else:
            break
    return server


def control(directory: Path, command: str, *options: str) -> subprocess.CompletedProcess[str]:
    return run_command(str(binary("pg_ctl")), command, f"--pgdata={directory / 'data'}", *options)


def run_command(*command: str) -> subprocess.CompletedProcess[str]:
    account = server_account()
    return subprocess.run(
        command,
        user=account and account.pw_uid,
        group=account and account.pw_gid,
        extra_groups=account and [],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def server_account() -> pwd.struct_passwd | None:
    """The account to run as where we are root, whom PostgreSQL refuses to serve."""
    if os.geteuid() != 0:
        return None
    names = {account.pw_name for account in pwd.getpwall()}
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")
