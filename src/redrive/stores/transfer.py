"""The contents of a SQLite store, taken over by an empty PostgreSQL database."""

from collections.abc import Callable
from pathlib import Path

from redrive.stores.contents import StoreContents, TableDigest
from redrive.stores.postgres.contents import fill
from redrive.stores.sqlite.backup import alone, last_number, rows_of


async def transfer(path: Path, url: str, filled: Callable[[TableDigest], None]) -> StoreContents:
    """Fill a PostgreSQL database with all that a SQLite store has: in one transaction, all of it or nothing.

    The file is left as it is. Nobody can serve it or write to it meanwhile.

    Args:
        path: The file.
        url: The database's.
        filled: Told of each table when all of its rows are there, equal by their digest.

    Raises:
        StoreUnavailable: Either is in use or not there, the file is of another version, the database is not empty, or
            what arrived is not what was sent.
    """
    with alone(path) as source:
        return await fill(url, lambda table: rows_of(source, table), last_number(source), filled)
