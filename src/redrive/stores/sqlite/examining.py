"""A SQLite store examined: whether its file, its log and its disk are fit to serve. Nothing in it is changed."""

import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import apsw

from redrive.stores import steps
from redrive.stores.examined import Examined

_MB: Final = 1 << 20
_FREE_MB_MIN: Final = 1024
_LOG_MB_MAX: Final = 400  # ten times the length at which the log is copied into the file and begins anew
_SYNCS: Final = 9
_SYNC_MS_MAX: Final = 20.0
_PAGE: Final = bytes(4096)


def examine(path: Path, monotonic: Callable[[], float]) -> Iterator[Examined]:
    """All checks of a store's file; servers may go on using it. `monotonic` is in seconds."""
    folder = path.resolve().parent
    yield _schema(path)
    log = Path(f"{path.resolve()}-wal")
    log_mb = log.stat().st_size // _MB if log.exists() else 0
    stuck = "a reader that does not end keeps it from beginning anew; end it, or the server"
    yield Examined("write-ahead log", f"{log_mb} MB", stuck if log_mb > _LOG_MB_MAX else "")
    yield _disk(path, folder)
    yield _sync_time(folder, monotonic)


def _schema(path: Path) -> Examined:
    """The state of a file's schema."""
    if not path.exists():
        return Examined("store", f"{path} is created at the first start")
    known = len(steps.read("redrive.stores.sqlite"))
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(5000)
        applied = connection.pragma("user_version")
        connection.close()
    except apsw.Error as error:
        return Examined("store", str(path), f"it cannot be opened: {error}")
    newer = "a newer version was here; install that one, or restore a backup" if applied > known else ""
    return Examined("store", f"{path}, schema at step {applied} of {known}", newer)


def _disk(path: Path, folder: Path) -> Examined:
    """The free space beside a store, which should be as much again as the store takes."""
    free = shutil.disk_usage(folder).free // _MB
    size = path.stat().st_size // _MB if path.exists() else 0
    needed = max(_FREE_MB_MIN, size)
    little = f"less than {needed} MB, as much as the store has; a full disk refuses every send"
    return Examined("disk", f"{free:,} MB free, the store takes {size:,} MB", little if free < needed else "")


def _sync_time(folder: Path, monotonic: Callable[[], float]) -> Examined:
    """Write pages beside the store and wait for the disk, as each commit does."""
    took = []
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            for _ in range(_SYNCS):
                began = monotonic()
                file.write(_PAGE)
                file.flush()
                os.fsync(file.fileno())
                took.append((monotonic() - began) * 1000)
    except OSError as error:
        return Examined("fsync", "", f"{folder} cannot be written to: {error.strerror}")
    median = statistics.median(took)
    slow = f"each commit waits for one; over {_SYNC_MS_MAX:.0f} ms a disk is busy or far away"
    return Examined("fsync", f"{median:.1f} ms", slow if median > _SYNC_MS_MAX else "")
