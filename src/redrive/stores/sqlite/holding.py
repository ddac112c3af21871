"""One server to a file: sequence numbers are handed out from memory, and two servers would hand out the same."""

import fcntl
import os
from pathlib import Path

from redrive.model.errors import StoreUnavailable

_SUFFIX = "-serving"  # beside SQLite's own -wal and -shm


def hold(path: Path) -> int:
    """Keep every other server from a store's file until the descriptor is closed, or the process ends in any way.

    The lock is on a file beside it: closing a descriptor of the database itself would drop SQLite's own locks.

    Raises:
        StoreUnavailable: Another server has it.
    """
    try:
        descriptor = os.open(f"{path}{_SUFFIX}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnavailable(f"cannot open {path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise StoreUnavailable(
            f"another server has {path} open; several servers share a PostgreSQL database, not a file"
        ) from None
    return descriptor
