"""The store that the settings name."""

import os
from pathlib import Path
from typing import Final

from redrive.engine.ports import UNMEASURED, CommitMeter, NodeStore, Runtime
from redrive.model.errors import StoreUnavailable
from redrive.runtime.machine import SystemClock
from redrive.settings import Settings, SettingsInvalid
from redrive.stores.seal import UNSEALED, Seal, read_keys
from redrive.stores.sqlite.store import SqliteStore

_ENVIRONMENT: Final = "env:"
SQLITE: Final = "sqlite://"
IN_MEMORY: Final = "sqlite://:memory:"


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
    url, seal = settings.store, _seal(settings.store_key_file, runtime)
    if url == IN_MEMORY:
        return SqliteStore(None)
    if url.startswith(SQLITE):
        return SqliteStore(file_of(url), alone=alone, seal=seal, meter=meter)
    from redrive.stores.postgres.store import PostgresStore  # noqa: PLC0415 - asyncpg is needed by this store alone

    # The database and the way to it live in real time: on a clock that stands still, nobody would listen again.
    return PostgresStore(url, SystemClock(), runtime.node, seal=seal, meter=meter)


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
    return Seal((*keys, installation_key), runtime.rng.randbytes, "what kms_root_key names")


def sealed_by(key: bytes, runtime: Runtime) -> Seal:
    """A seal of one key, of 32 bytes."""
    return Seal((key,), runtime.rng.randbytes)


def file_bytes(url: str) -> int | None:
    """The size of a SQLite store's file with its log; None: it is in memory, or in a database."""
    if url == IN_MEMORY or not url.startswith(SQLITE):
        return None
    file = file_of(url)
    sizes = [path.stat().st_size for path in (file, file.with_name(f"{file.name}-wal")) if path.exists()]
    return sum(sizes)


def file_of(url: str) -> Path:
    """The file of a SQLite store."""
    return Path(url.removeprefix("sqlite:///").removeprefix(SQLITE))


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
        return Seal(read_keys(Path(file).read_text()), runtime.rng.randbytes)
    except (OSError, ValueError) as error:
        raise StoreUnavailable(f"store_key_file {file} cannot be used: {_reason(error)}") from None


def _reason(error: Exception) -> object:
    """The reason of a failure without the file's name, which stands beside it."""
    return (isinstance(error, OSError) and error.strerror) or error
