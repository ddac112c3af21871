"""The file itself: one server to a file, which is whole, a store of Redrive, and readable by its owner alone.

Sequence numbers are handed out from memory, and two servers would hand out the same. The file has every secret in it
(access keys, webhooks' passwords, the key that signs notifications) and every message.
"""

import fcntl
import itertools
import logging
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw

from redrive.model.errors import StoreUnavailable
from redrive.stores import steps

logger = logging.getLogger(__name__)

_LOCK_SUFFIX: Final = "-serving"  # beside SQLite's own -wal and -shm
_OTHERS: Final = 0o077
_PRIVATE: Final = 0o600
#: Tables of the schema's first step.
_OURS: Final = frozenset({"counters", "resources", "deliveries"})
#: The check at the start is given up after so many steps of SQLite's: a second, in which it reads 1 GB.
_CHECK_STEPS: Final = 10_000
_CHECK_ROUNDS: Final = 1_000


class FileHold:
    """The right to serve a store's file, until it is released or the process ends in any way.

    Two locks. One is on a file beside it, by its real name, so that a symbolic link leads to the same. The other is on
    the file itself, and holds for hard links and where somebody has removed the first; only Linux keeps such a lock
    (`flock`) apart from those that SQLite has on the file (`fcntl`).
    """

    def __init__(self, path: Path) -> None:
        """Take the locks; the file is made where it is not there.

        Raises:
            StoreUnavailable: Another server has the file, or it cannot be opened.
        """
        self._descriptors: list[int] = []
        file = path.resolve()
        self._lock(Path(f"{file}{_LOCK_SUFFIX}"), path)
        if sys.platform == "linux":
            self._lock(file, path)

    def release(self) -> None:
        """Let another server have the file; SQLite has closed it."""
        for descriptor in self._descriptors:
            os.close(descriptor)

    def _lock(self, file: Path, path: Path) -> None:
        """Lock a file for as long as its descriptor is open; `path` is the store's file, for messages."""
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        except OSError as error:
            raise StoreUnavailable(f"cannot open {path}: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # The descriptor is not closed: that would drop SQLite's own locks, should this process have the file open.
            self.release()
            raise StoreUnavailable(
                f"another server has {path} open; several servers can share a PostgreSQL database, but not a file"
            ) from None
        self._descriptors.append(descriptor)


def make_private(path: Path) -> None:
    """Make the file of a store, where it is not there, before SQLite makes it readable as the umask has it.

    SQLite makes the log and the shared memory with the mode of the file.

    Raises:
        StoreUnavailable: The file cannot be made.
    """
    file = path.resolve()
    try:
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE))
    except OSError as error:
        raise StoreUnavailable(f"cannot open {path}: {error.strerror}") from error


def refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    """Refuse the database of another program, before anything of it is changed.

    Raises:
        StoreUnavailable: It has tables, and they are not Redrive's.
    """
    table_rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    tables = {str(name) for (name,) in table_rows}
    applied_count = connection.pragma("user_version")
    is_new_or_ours = tables >= _OURS if applied_count else not tables
    if is_new_or_ours:
        return
    difference = f"it has the table {min(tables)}" if tables else f"its user_version is {applied_count}"
    raise StoreUnavailable(
        f"{path} is a SQLite database of another program ({difference}), and was left as it is: name another file"
    )


def refuse_damaged(connection: apsw.Connection, path: Path) -> None:
    """Look through the pages of a store for a second: a damaged page among them is noticed before it is needed.

    `redrive store verify` looks through all of a larger one.

    Raises:
        StoreUnavailable: A page is not what SQLite wrote there.
    """
    rounds = itertools.count()
    connection.set_progress_handler(lambda: next(rounds) >= _CHECK_ROUNDS, _CHECK_STEPS)
    try:
        report = connection.execute("PRAGMA quick_check(1)").fetchall()
    except apsw.InterruptError:
        logger.info("store.checked_partly file=%s: it is large; `redrive store verify` reads all of it", path)
        return
    finally:
        connection.set_progress_handler(None)
    if report != [("ok",)]:
        text = str(report[0][0]).replace("\n", " ")
        raise StoreUnavailable(
            f"{path} is damaged ({text}); restore a backup, or save what can be read: sqlite3 {path} .recover"
        )


def tighten(path: Path) -> None:
    """Let only the owner read a store's file that others could read, its log and its shared memory; warn of it."""
    file = path.resolve()
    for part in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        with suppress(FileNotFoundError):
            _tighten(part)


def _tighten(file: Path) -> None:
    """Take the rights of others to a file away; if that is not possible, warn."""
    mode = stat.S_IMODE(file.stat().st_mode)
    if not mode & _OTHERS:
        return
    try:
        file.chmod(mode & ~_OTHERS)
    except PermissionError:
        logger.warning(
            "store.readable file=%s mode=%o: others can read every secret and message in it", file, mode
        )
    else:
        logger.warning(
            "store.tightened file=%s mode=%o: others could read it; only its owner can now", file, mode
        )


# The schema, step by step: `PRAGMA user_version` says how many of the numbered files were applied.


def migrate(connection: apsw.Connection) -> None:
    """Apply the steps that this file has not seen, each in one transaction with its record.

    Raises:
        StoreUnavailable: A newer version of Redrive was here.
    """
    applied_count = connection.pragma("user_version")
    all_steps = steps.read("redrive.stores.sqlite")
    steps.refuse_newer(applied_count, len(all_steps))
    for number, statements in enumerate(all_steps, start=1):
        if number > applied_count:
            connection.execute(f"BEGIN IMMEDIATE; {statements}; PRAGMA user_version = {number}; COMMIT")
