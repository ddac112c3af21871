"""Room on the disk: a file beside the store that is given up when the disk is full, so that consumers can make room.

Who receives or deletes writes too: pages into the log, and later into the file. Where neither can grow nobody could take
a message away. So another file holds as much room as the log takes, and a little more: once it is given up, the log can
be copied into the store, and begins anew in the room that it has. From then on what would make the store grow is
refused, until the disk has room, or the store itself by what was deleted.
"""

import contextlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import apsw

from redrive.engine.ports import Change, NewDelivery, Put, Remove
from redrive.model.errors import StoreUnavailable
from redrive.model.log import LogEvent

logger = logging.getLogger(__name__)

STEP_BYTES: Final = 4 * 1024 * 1024
#: What SQLite answers where a disk is full, or a quota or a limit of the process is reached.
NO_ROOM: Final = (apsw.FullError, apsw.IOError)
_PRIVATE: Final = 0o600
_FULL: Final = "the disk is full: messages can be received and deleted, and nothing is taken in until there is room again"


class DiskReserve:
    """The room of one store's file.

    Attributes:
        is_short: Whatever makes the store grow is refused.
    """

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        """Hold room beside this file, which the connection writes to.

        Raises:
            StoreUnavailable: The file cannot be made.
        """
        self._path = path
        self._connection = connection
        self._file = Path(f"{path.resolve()}-reserve")
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._descriptor = os.open(self._file, flags, _PRIVATE)
        except OSError as error:
            raise StoreUnavailable(f"cannot open {self._file}: {error.strerror}") from error
        self._page_bytes: int = connection.pragma("page_size")
        self._held_bytes = 0
        self.is_short = False
        self.keep_up(0)

    def close(self) -> None:
        """Hold none any more."""
        os.close(self._descriptor)
        with contextlib.suppress(OSError):
            self._file.unlink()

    def keep_up(self, log_pages: int) -> None:
        """Hold more than the log takes now, or take nothing in; on the thread that commits."""
        log_bytes = log_pages * self._page_bytes
        if not self.is_short and log_bytes + STEP_BYTES > self._held_bytes and not self._hold(log_bytes):
            self._say_short()

    def refusal(self) -> StoreUnavailable | None:
        """The answer to what would make the store grow; None: it may."""
        if not self.is_short or self._has_free_pages():
            return None
        if self._hold(self._log_bytes()):
            self.is_short = False
            logger.warning(
                "store.room file=%s: there is disk space again, and messages are accepted", self._path
            )
            return None
        return StoreUnavailable(_FULL)

    def give_up(self) -> bool:
        """Give the room up for a write that found none, outside of transactions; True: it may be tried again."""
        held_bytes = self._held_bytes
        if held_bytes:
            os.ftruncate(self._descriptor, 0)
            self._held_bytes = 0
        if not self.is_short:
            self._say_short()
        return self._copy_log() or held_bytes > 0

    def _say_short(self) -> None:
        self.is_short = True
        logger.error("store.full file=%s: %s", self._path, _FULL)

    def _hold(self, log_bytes: int) -> bool:
        """Hold as much room as the log takes and two steps more; False if the disk has not that much."""
        needed = log_bytes + 2 * STEP_BYTES
        disk = os.fstatvfs(self._descriptor)
        if disk.f_bavail * disk.f_frsize < needed - self._held_bytes:
            return False
        try:
            os.posix_fallocate(self._descriptor, 0, needed)
        except OSError:
            return False
        self._held_bytes = needed
        return True

    def _has_free_pages(self) -> bool:
        free: int = self._connection.pragma("freelist_count")
        return free * self._page_bytes >= STEP_BYTES

    def _log_bytes(self) -> int:
        with contextlib.suppress(OSError):
            return Path(f"{self._path.resolve()}-wal").stat().st_size
        return 0

    def _copy_log(self) -> bool:
        """Copy the log into the store, so that it begins anew; True: all of it was copied."""
        try:
            pages, copied = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            return False
        return pages == copied


def grows(
    changes: Sequence[Change], new_deliveries: Sequence[NewDelivery], log_events: Sequence[LogEvent]
) -> bool:
    """True if a write makes the store grow: who deletes a queue writes what is left of it, and is let."""
    if new_deliveries or log_events:
        return True
    creates = any(isinstance(change, Put) and not change.version for change in changes)
    return creates and not any(isinstance(change, Remove) for change in changes)
