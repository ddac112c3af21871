"""The store that the settings name: one value for each kind says how it is opened, examined, verified and cared for."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from redrive.engine.ports import UNMEASURED, CommitMeter, NodeStore, Runtime
from redrive.model.errors import StoreUnavailable
from redrive.runtime.machine import SystemClock, monotonic, real_runtime
from redrive.settings import Settings, SettingsInvalid
from redrive.stores.seal import UNSEALED, Seal, read_keys
from redrive.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:  # of the commands that care for a store, and of a page of the console
    from redrive.stores.contents import StoreContents, TableDigest
    from redrive.stores.examined import Examined

_ENVIRONMENT: Final = "env:"


class StoreKind(Protocol):
    """A kind of store. What a server does not need to open it is imported when it is asked for."""

    def make(self, seal: Seal, runtime: Runtime, meter: CommitMeter, *, alone: bool) -> NodeStore:
        """The store, not opened yet."""
        ...

    @property
    def bytes(self) -> int | None:
        """The size of its file with the log; None where it has no file of its own."""
        ...

    async def examine(self) -> "list[Examined]":
        """Examine the store and the way to it; nothing is changed."""
        ...

    async def verify(self) -> "StoreContents":
        """Read the contents from end to end.

        Raises:
            StoreUnavailable: There is no such store, or it is damaged.
        """
        ...


class _InMemory:
    def make(self, seal: Seal, runtime: Runtime, meter: CommitMeter, *, alone: bool) -> NodeStore:  # noqa: ARG002 - of a file or a database
        return SqliteStore(None)

    @property
    def bytes(self) -> None:
        return None

    async def examine(self) -> "list[Examined]":
        return []

    async def verify(self) -> "StoreContents":
        raise StoreUnavailable("a store in memory is its server's alone")


@dataclass(frozen=True, slots=True)
class _SqliteFile:
    path: Path

    def make(self, seal: Seal, runtime: Runtime, meter: CommitMeter, *, alone: bool) -> NodeStore:  # noqa: ARG002 - SQLite needs no clock
        return SqliteStore(self.path, alone=alone, seal=seal, meter=meter)

    @property
    def bytes(self) -> int:
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    async def examine(self) -> "list[Examined]":
        from redrive.stores.sqlite.examining import examine  # noqa: PLC0415 - as `StoreKind` says

        return list(examine(self.path, monotonic))

    async def verify(self) -> "StoreContents":
        from redrive.stores.sqlite.backup import look_through  # noqa: PLC0415 - as `StoreKind` says

        return look_through(self.path)


@dataclass(frozen=True, slots=True)
class _Postgres:
    url: str

    def make(self, seal: Seal, runtime: Runtime, meter: CommitMeter, *, alone: bool) -> NodeStore:  # noqa: ARG002 - nodes share it
        from redrive.stores.postgres.store import PostgresStore  # noqa: PLC0415 - asyncpg is needed by this store alone

        # The database and the way to it live in real time: on a clock that stands still, nobody would listen again.
        return PostgresStore(self.url, SystemClock(), runtime.node, seal=seal, meter=meter)

    @property
    def bytes(self) -> None:
        return None

    async def examine(self) -> "list[Examined]":
        from redrive.stores.postgres.examining import examine  # noqa: PLC0415 - as above

        return [each async for each in examine(self.url, SystemClock().now, monotonic)]

    async def verify(self) -> "StoreContents":
        from redrive.stores.postgres.contents import look_through  # noqa: PLC0415 - as above

        return await look_through(self.url)


def kind_of(settings: Settings) -> StoreKind:
    """The kind of the store that the settings name."""
    if settings.store_is_shared:
        return _Postgres(settings.store)
    file = settings.store_file
    return _InMemory() if file is None else _SqliteFile(file)


def open_store(
    settings: Settings, runtime: Runtime, *, alone: bool = False, meter: CommitMeter = UNMEASURED
) -> NodeStore:
    """The store that the settings name, not opened yet.

    Args:
        settings: The server's.
        runtime: Clock and random numbers.
        alone: For a server, which shares a file with no other.
        meter: Measures commits.

    Raises:
        StoreUnavailable: The file with its keys cannot be used.
    """
    seal = _seal(settings.store_key_file, runtime)
    return kind_of(settings).make(seal, runtime, meter, alone=alone)


def root_key(settings: Settings, runtime: Runtime, installation_key: bytes) -> Seal:
    """The root key, which wraps the material of KMS's keys.

    Args:
        settings: The server's: `kms_root_key` names a file, or a variable of the environment as `env:NAME`.
        runtime: Chance, for nonces.
        installation_key: 32 bytes that follow from the installation's secret, which lies in the store. They wrap where
            the operator gives no root key, and open afterwards what they have wrapped until then.

    Raises:
        SettingsInvalid: What the setting names holds no keys.
    """
    source = settings.kms_root_key
    keys: tuple[bytes, ...] = ()
    if source:
        try:
            keys = read_keys(_read_source(source))
        except (OSError, ValueError) as error:
            raise SettingsInvalid(f"kms_root_key {source} cannot be used: {_reason(error)}") from None
    return Seal((*keys, installation_key), runtime.rng.randbytes, "what kms_root_key names")


def seal_of(key: bytes, runtime: Runtime) -> Seal:
    """A seal of one key, of 32 bytes."""
    return Seal((key,), runtime.rng.randbytes)


def _read_source(source: str) -> str:
    """The text of a file, or of a variable of the environment."""
    if not source.startswith(_ENVIRONMENT):
        return Path(source).read_text()
    name = source.removeprefix(_ENVIRONMENT)
    if name not in os.environ:
        raise ValueError(f"the environment has no {name}")
    return os.environ[name]


def _seal(file: str, runtime: Runtime) -> Seal:
    """The seal by the keys in a file; without a file, documents are stored as they are."""
    if not file:
        return UNSEALED
    try:
        return Seal(read_keys(Path(file).read_text()), runtime.rng.randbytes)
    except (OSError, ValueError) as error:
        raise StoreUnavailable(f"store_key_file {file} cannot be used: {_reason(error)}") from None


def _reason(error: Exception) -> object:
    """The reason of a failure without the file's name, which stands beside it."""
    return (isinstance(error, OSError) and error.strerror) or error


# The care of a store by commands.


async def distribute_store(settings: Settings) -> dict[str, Any]:
    """Spread the PostgreSQL store that the settings name over the nodes of its Citus cluster.

    Returns:
        The `Distribution` as a document: the extension's version, the number of workers, and each table's layout.

    Raises:
        StoreUnavailable: There is no such cluster, or its tables cannot be changed.
    """
    from redrive.stores.postgres.distributing import distribute  # noqa: PLC0415 - as above

    return asdict(await distribute(settings.store))


def back_up_store(settings: Settings, target: Path) -> dict[str, Any]:
    """Copy the SQLite store that the settings name to a new file, while servers go on using it.

    Returns:
        The `StoreContents` of the copy as a document.

    Raises:
        StoreUnavailable: There is no such store, or the copy cannot be made.
    """
    from redrive.stores.sqlite.backup import back_up  # noqa: PLC0415 - as above

    return asdict(back_up(_file_of(settings), target))


async def examine_store(settings: Settings) -> "list[Examined]":
    """Examine the store in a thread, since that waits for the disk."""
    return await asyncio.to_thread(lambda: asyncio.run(kind_of(settings).examine()))


async def upgrade_store(settings: Settings) -> None:
    """Make the schema of the store that the settings name, or bring it up to date.

    Raises:
        StoreUnavailable: There is no way to it, a newer version was there, or the role may not.
    """
    store = open_store(settings, real_runtime(SystemClock()))
    await store.open()
    await store.close()


async def migrate_store(
    settings: Settings, url: str, on_table: Callable[[str, int, str], None]
) -> dict[str, Any]:
    """Fill an empty PostgreSQL database with the contents of a SQLite store: in one transaction, all of it or nothing.

    The file is left as it is; no server can use it meanwhile.

    Args:
        settings: The store's.
        url: The database's.
        on_table: Called with the name, the number of rows and the digest of each table that is filled.

    Returns:
        The `StoreContents` that the database has now, as a document.

    Raises:
        StoreUnavailable: Either is in use, the database is not empty, or what arrived is not what was sent.
    """
    path = _file_of(settings)
    return asdict(await transfer(path, url, lambda table: on_table(table.name, table.rows, table.digest)))


async def transfer(path: Path, url: str, on_table: "Callable[[TableDigest], None]") -> "StoreContents":
    """Fill an empty database with the contents of a SQLite file; `on_table` is called for each table."""
    from redrive.stores.postgres.contents import fill  # noqa: PLC0415 - as above
    from redrive.stores.sqlite.backup import alone, last_number, rows_of  # noqa: PLC0415 - as above

    with alone(path) as source:
        return await fill(url, lambda table: rows_of(source, table), last_number(source), on_table)


def _file_of(settings: Settings) -> Path:
    if settings.store_file is None:
        raise StoreUnavailable("only a SQLite store in a file can be copied")
    return settings.store_file
