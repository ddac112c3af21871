"""The store that the settings name."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from redrive.engine.ports import UNMEASURED, CommitMeter, NodeStore, Runtime
from redrive.model.errors import StoreUnavailable
from redrive.runtime.chance import real_runtime
from redrive.runtime.clock import SystemClock, monotonic
from redrive.settings import Settings, SettingsInvalid
from redrive.stores.contents import StoreContents, TableDigest
from redrive.stores.examined import Examined
from redrive.stores.seal import UNSEALED, Seal, read_keys
from redrive.stores.sqlite import examining
from redrive.stores.sqlite.backup import alone, back_up, last_number, look_through, rows_of
from redrive.stores.sqlite.store import SqliteStore

_ENVIRONMENT: Final = "env:"
_SQLITE: Final = "sqlite://"
_IN_MEMORY: Final = "sqlite://:memory:"


def open_store(
    settings: Settings, runtime: Runtime, *, alone: bool = False, meter: CommitMeter = UNMEASURED
) -> NodeStore:
    """The store that the settings name, not opened yet.

    Args:
        settings: The server's.
        runtime: Time and chance.
        alone: For a server, which shares a file with no other.
        meter: Measures commits.

    Raises:
        StoreUnavailable: The file with its keys cannot be used.
    """
    url, seal = settings.store, _seal(settings.store_key_file, runtime)
    if url == _IN_MEMORY:
        return SqliteStore(None)
    if url.startswith(_SQLITE):
        return SqliteStore(_file_of(url), alone=alone, seal=seal, meter=meter)
    from redrive.stores.postgres.store import PostgresStore  # noqa: PLC0415 - asyncpg is needed by this store alone

    # The database and the way to it live in real time: on a clock that stands still, nobody would listen again.
    return PostgresStore(url, SystemClock(), runtime.node, seal=seal, meter=meter)


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
    return asdict(back_up(_file_of(settings.store), target))


async def examine_store(settings: Settings) -> list[Examined]:
    """The store that the settings name, and the way to it, examined; nothing is changed."""
    if settings.store == _IN_MEMORY:
        return []
    if settings.store.startswith(_SQLITE):
        return list(examining.examine(_file_of(settings.store), monotonic))
    from redrive.stores.postgres.examining import examine  # noqa: PLC0415 - asyncpg is needed by that store alone

    return [each async for each in examine(settings.store, SystemClock().now, monotonic)]


async def examined(settings: Settings) -> list[Examined]:
    """As `examine_store`, beside the event loop of a server: it waits for the disk."""
    return await asyncio.to_thread(lambda: asyncio.run(examine_store(settings)))


async def upgrade_store(settings: Settings) -> None:
    """Make the schema of the store that the settings name, or bring it up to date.

    Raises:
        StoreUnavailable: There is no way to it, a newer version was there, or the role may not.
    """
    store = open_store(settings, real_runtime(SystemClock()))
    await store.open()
    await store.close()


async def verify_store(settings: Settings) -> dict[str, Any]:
    """Read the store that the settings name from end to end.

    Returns:
        Its `StoreContents` as a document.

    Raises:
        StoreUnavailable: There is no such store, or it is damaged.
    """
    if settings.store.startswith(_SQLITE):
        return asdict(look_through(_file_of(settings.store)))
    from redrive.stores.postgres import contents  # noqa: PLC0415 - asyncpg is needed by that store alone

    return asdict(await contents.look_through(settings.store))


async def migrate_store(
    settings: Settings, url: str, filled: Callable[[str, int, str], None]
) -> dict[str, Any]:
    """Fill an empty PostgreSQL database with the contents of a SQLite store: in one transaction, all of it or nothing.

    The file is left as it is; no server can use it meanwhile.

    Args:
        settings: The store's.
        url: The database's.
        filled: Told the name, the number of rows and the digest of each table that is filled.

    Returns:
        The `StoreContents` that the database has now, as a document.

    Raises:
        StoreUnavailable: Either is in use, the database is not empty, or what arrived is not what was sent.
    """
    path = _file_of(settings.store)
    return asdict(await transfer(path, url, lambda table: filled(table.name, table.rows, table.digest)))


async def transfer(path: Path, url: str, filled: Callable[[TableDigest], None]) -> StoreContents:
    """The same of a file, whatever the settings are; `filled` is told of each table, equal by its digest."""
    from redrive.stores.postgres.contents import fill  # noqa: PLC0415 - as above

    with alone(path) as source:
        return await fill(url, lambda table: rows_of(source, table), last_number(source), filled)


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
            keys = read_keys(_content(source))
        except (OSError, ValueError) as error:
            raise SettingsInvalid(f"kms_root_key {source} cannot be used: {_reason(error)}") from None
    return Seal((*keys, installation_key), runtime.chance.randbytes, "what kms_root_key names")


def sealed_by(key: bytes, runtime: Runtime) -> Seal:
    """A seal of one key, of 32 bytes."""
    return Seal((key,), runtime.chance.randbytes)


def file_bytes(url: str) -> int | None:
    """The size of a SQLite store's file with its log; None: it is in memory, or in a database."""
    if url == _IN_MEMORY or not url.startswith(_SQLITE):
        return None
    file = _file_of(url)
    sizes = [path.stat().st_size for path in (file, file.with_name(f"{file.name}-wal")) if path.exists()]
    return sum(sizes)


def _file_of(url: str) -> Path:
    """The file of a SQLite store."""
    return Path(url.removeprefix("sqlite:///").removeprefix(_SQLITE))


def _content(source: str) -> str:
    if not source.startswith(_ENVIRONMENT):
        return Path(source).read_text()
    name = source.removeprefix(_ENVIRONMENT)
    if name not in os.environ:
        raise ValueError(f"the environment has no {name}")
    return os.environ[name]


def _seal(file: str, runtime: Runtime) -> Seal:
    if not file:
        return UNSEALED
    try:
        return Seal(read_keys(Path(file).read_text()), runtime.chance.randbytes)
    except (OSError, ValueError) as error:
        raise StoreUnavailable(f"store_key_file {file} cannot be used: {_reason(error)}") from None


def _reason(error: Exception) -> object:
    """The reason of a failure without the file's name, which stands beside it."""
    return (isinstance(error, OSError) and error.strerror) or error
