"""Checkpoints: what the log holds moves into the database file, beside the commits and not between them.

SQLite by itself does it within the commit that finds the log long enough: 40 MB to copy and to sync, for which all who
send wait (80 ms at the 99th percentile of a publication, where it is 30 otherwise). Here a thread copies most of it
while commits go on. They make the log longer meanwhile, so the thread goes over it again; only the last piece, which
nobody may add to, is copied by the thread that commits. Then the log begins anew at its start.
"""

import logging
import threading
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from queue import SimpleQueue
from typing import Final

import apsw

logger = logging.getLogger(__name__)

#: 40 MB of log: rare enough to cost little, small enough to restart at once.
LOG_PAGES_MAX = 10_000
# What is left for the thread that commits: 1 MB, a few milliseconds. Each pass leaves what came during it, a tenth of
# what it copied or less, unless the disk is slower than the senders; then the rest has to be copied by whoever sends.
_REST_PAGES = 250
_PASSES_MAX = 4

_MORE, _END = True, False


class _Round(Enum):
    """The progress of a round of copying."""

    NONE = auto()
    COPYING = auto()
    COPIED = auto()
    FAILED = auto()


class Checkpointer:
    """Keeps the log of one writing connection short."""

    def __init__(self, path: Path, writer: apsw.Connection, on_growth: Callable[[int], None] | None) -> None:
        """Take over the checkpoints of `writer`, which makes none by itself from now on.

        `on_growth` is called after each commit with the number of pages that the log has.
        """
        self._path = path
        self._on_growth = on_growth
        self._jobs: SimpleQueue[bool] = SimpleQueue()
        self._round = _Round.NONE
        self._begin_at = LOG_PAGES_MAX
        writer.set_wal_hook(self._committed)
        self._thread = threading.Thread(target=self._copy_forever, name="redrive-checkpoint", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what is being copied. The last connection that closes copies the rest."""
        self._jobs.put(_END)
        self._thread.join()

    def _committed(self, writer: apsw.Connection, _name: str, pages: int) -> int:
        """SQLite has committed, on the thread that asked for it, and the log has so many pages."""
        if self._on_growth is not None:
            self._on_growth(pages)
        if self._round is _Round.COPIED:
            self._copy_rest(writer, pages)
        elif self._round is _Round.FAILED:
            self._end_round(pages + LOG_PAGES_MAX)
        elif pages < LOG_PAGES_MAX:
            self._begin_at = LOG_PAGES_MAX
        elif pages >= self._begin_at and self._round is _Round.NONE:
            self._round = _Round.COPYING
            self._jobs.put(_MORE)
        return apsw.SQLITE_OK

    def _copy_rest(self, writer: apsw.Connection, pages: int) -> None:
        """Copy what came while the thread copied: once all is in the file, the log begins anew."""
        try:
            _copy(writer)
        except apsw.Error as error:
            logger.warning(_FAILED, error)
        # A reader that looks into the log at this moment keeps it from beginning anew: try again soon.
        self._end_round(pages + LOG_PAGES_MAX // 10)

    def _end_round(self, begin_at: int) -> None:
        self._round = _Round.NONE
        self._begin_at = begin_at

    def _copy_forever(self) -> None:
        """The thread's work: copy the log into the file, in passes that leave less and less, whenever it is asked to."""
        connection = apsw.Connection(str(self._path))
        connection.execute("PRAGMA synchronous = FULL")  # nothing leaves the log before the file is on disk
        while self._jobs.get():
            try:
                for _ in range(_PASSES_MAX):
                    if _copy(connection) <= _REST_PAGES:
                        break
            except apsw.Error as error:
                logger.warning(_FAILED, error)
                self._round = _Round.FAILED
            else:
                self._round = _Round.COPIED
        connection.close()


_FAILED: Final = "store.checkpoint_failed error=%s: the log grows until one succeeds"


def _copy(connection: apsw.Connection) -> int:
    """Copy what can be copied without keeping anybody waiting; how many pages are left."""
    pages, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    return pages - copied
