"""A connection that only reads, in a thread of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import apsw

T = TypeVar("T")


class ReadingThread:
    """Reads one after the other; SQLite's log lets it see what was committed when it begins."""

    def __init__(self, path: Path, name: str) -> None:
        """Open a connection to a file; the thread begins with the first look."""
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.set_busy_timeout(5000)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, look: Callable[[apsw.Cursor], T]) -> T:
        """Look, after those who asked before."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: look(self._connection.cursor()))

    def close(self) -> None:
        """Finish what was asked for, and close the connection."""
        self._thread.shutdown()
        self._connection.close()
