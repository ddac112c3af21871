"""A SQLite store as a file: copied while a server uses it, and looked through from end to end."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import apsw
import orjson

from redrive.model.errors import StoreUnavailable
from redrive.stores import steps
from redrive.stores.contents import (
    CLAIM_ATTEMPTS,
    LOG_EVENTS,
    RESOURCES,
    TABLES,
    ContentsTally,
    Row,
    StoreContents,
    StoreTable,
)
from redrive.stores.sqlite.file_hold import FileHold, make_private

_SEQS: Final = CLAIM_ATTEMPTS.columns.index("seqs")
_DOCUMENT: Final = RESOURCES.columns.index("document")
_MESSAGE: Final = LOG_EVENTS.columns.index("message")


def back_up(path: Path, target: Path) -> StoreContents:
    """Copy a store to a new file while servers go on using it, and look the copy through.

    The copy is one moment of the store: SQLite reads all of it in one transaction, beside which others write. In several
    it would begin anew whenever somebody writes between two.

    Args:
        path: The store's file.
        target: Made; readable by its owner alone. It is there whole or not at all.

    Raises:
        StoreUnavailable: There is no store, the target is there already, or the copy is damaged.
    """
    if target.exists():
        raise StoreUnavailable(f"{target} is there already: a backup goes into a new file")
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        with closing(_open(path)) as source:
            unfinished.unlink(missing_ok=True)
            make_private(unfinished)
            with closing(apsw.Connection(str(unfinished))) as copy:
                with copy.backup("main", source, "main") as backup:
                    backup.step()
                copy.pragma("journal_mode", "delete")  # one file, until a server opens it
        contents = look_through(unfinished)
        _sync(unfinished)
        unfinished.rename(target)
        _sync(target.parent)
    except (apsw.Error, OSError) as error:
        raise StoreUnavailable(f"{path} could not be backed up to {target}: {error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return contents


def look_through(path: Path) -> StoreContents:
    """Read a store from end to end, at one moment; servers may go on using it.

    Raises:
        StoreUnavailable: There is no store, or its file is damaged.
    """
    try:
        with closing(_open(path)) as connection:
            connection.execute("BEGIN")
            _refuse_other_steps(connection, path)
            _refuse_damaged(connection, path)
            tally = ContentsTally()
            for table in TABLES:
                for _ in tally.through(table, rows_of(connection, table)):
                    pass
            return tally.contents
    except apsw.Error as error:
        raise StoreUnavailable(f"{path} cannot be read: {error}") from error


def rows_of(connection: apsw.Connection, table: StoreTable) -> Iterator[Row]:
    """All rows of a table, their values as PostgreSQL has them."""
    rows: Iterator[Row] = connection.execute(table.select)
    if table is RESOURCES:
        return (_with(row, _DOCUMENT, row[_DOCUMENT].decode()) for row in rows)
    if table is CLAIM_ATTEMPTS:
        return (_with(row, _SEQS, orjson.loads(row[_SEQS])) for row in rows)
    if table is LOG_EVENTS:  # PostgreSQL keeps no text with a NUL
        return (
            _with(row, _MESSAGE, row[_MESSAGE].replace("\0", "\N{REPLACEMENT CHARACTER}")) for row in rows
        )
    return rows


def last_number(connection: apsw.Connection) -> int:
    """The greatest number that the store may have given to anything."""
    reserved = connection.execute("SELECT value FROM counters WHERE name = 'seq'").fetchone()
    return reserved[0] if reserved else 0


@contextmanager
def alone(path: Path) -> Iterator[apsw.Connection]:
    """A store's file, that no server and no other process uses meanwhile; of this version's schema.

    Raises:
        StoreUnavailable: There is no store, it is served, of another version, or cannot be read.
    """
    _refuse_absent(path)
    hold = FileHold(path)
    try:
        with closing(_open(path)) as connection:
            _refuse_other_steps(connection, path)
            connection.execute("BEGIN IMMEDIATE")
            yield connection
    except apsw.Error as error:
        raise StoreUnavailable(f"{path} cannot be read: {error}") from error
    finally:
        hold.release()


def _refuse_absent(path: Path) -> None:
    if not path.exists():
        raise StoreUnavailable(f"there is no store at {path}")


def _open(path: Path) -> apsw.Connection:
    """Open the file of a store, which has to exist."""
    _refuse_absent(path)
    # Not for reading alone: after a crash the log has to be taken up, which writes the shared memory beside the file.
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(5000)
    return connection


def _refuse_other_steps(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that is no store, or one of another version's schema."""
    applied, known = connection.pragma("user_version"), len(steps.read("redrive.stores.sqlite"))
    steps.refuse_newer(applied, known)
    if not applied:
        raise StoreUnavailable(f"{path} is not a store of Redrive")
    if applied < known:
        raise StoreUnavailable(
            f"the schema of {path} is at step {applied}, and this version's at {known}: start and stop a server of this"
            " version on it first"
        )


def _refuse_damaged(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file in which SQLite finds damage; reads all of it."""
    faults: Sequence[tuple[Any, ...]] = connection.execute("PRAGMA integrity_check(3)").fetchall()
    if faults != [("ok",)]:
        text = "; ".join(str(line) for (line,) in faults)
        raise StoreUnavailable(
            f"{path} is damaged ({text}); restore a backup, or save what can be read: sqlite3 {path} .recover"
        )


def _with(row: Row, position: int, value: object) -> Row:
    return (*row[:position], value, *row[position + 1 :])


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
