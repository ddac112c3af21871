"""The care of the store that the settings name, by commands and by the page that checks a server."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from redrive.composition.store import IN_MEMORY, SQLITE, file_of, open_store
from redrive.runtime.machine import SystemClock, monotonic, real_runtime
from redrive.settings import Settings
from redrive.stores.contents import StoreContents, TableDigest
from redrive.stores.examined import Examined
from redrive.stores.sqlite import examining
from redrive.stores.sqlite.backup import alone, back_up, last_number, look_through, rows_of


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
    return asdict(back_up(file_of(settings.store), target))


async def examine_store(settings: Settings) -> list[Examined]:
    """The store that the settings name, and the way to it, examined; nothing is changed."""
    if settings.store == IN_MEMORY:
        return []
    if settings.store.startswith(SQLITE):
        return list(examining.examine(file_of(settings.store), monotonic))
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
    if settings.store.startswith(SQLITE):
        return asdict(look_through(file_of(settings.store)))
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
    path = file_of(settings.store)
    return asdict(await transfer(path, url, lambda table: filled(table.name, table.rows, table.digest)))


async def transfer(path: Path, url: str, filled: Callable[[TableDigest], None]) -> StoreContents:
    """The same of a file, whatever the settings are; `filled` is told of each table, equal by its digest."""
    from redrive.stores.postgres.contents import fill  # noqa: PLC0415 - as above

    with alone(path) as source:
        return await fill(url, lambda table: rows_of(source, table), last_number(source), filled)
