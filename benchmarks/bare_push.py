"""The bare loop: the least that pushing a backlog can be in CPython. `python -m benchmarks.bare_push FILE URL NUMBER`.

It takes bodies from a table of SQLite and posts each over one of 32 kept connections, by the same event loop (uvloop) and
parser (httptools) as Redrive, and deletes what was answered, 16 to a commit that is on disk before their places are used
again. No claims, retries, time-outs, rendering, facts or metrics. It prints a line when the bodies are in the table,
begins when it is given one, and prints its own processor time for one push in microseconds.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import apsw
import httptools
import uvloop

from benchmarks.connection import Connection

CONNECTIONS: Final = 32

_TOGETHER: Final = 16
_PRAGMAS: Final = ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 10000")
_HEAD: Final = (
    "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain; charset=UTF-8\r\n"
    "x-amz-sns-message-type: Notification\r\nx-amz-sns-rawdelivery: true\r\nContent-Length: {length}\r\n\r\n"
)
_NEXT: Final = "SELECT seq, body FROM messages WHERE seq > ? ORDER BY seq LIMIT ?"
_DELETE: Final = "DELETE FROM messages WHERE seq = ?"


class Backlog:
    """The bodies that are to be posted."""

    def __init__(self, path: str, number: int, body: str) -> None:
        self._connection = apsw.Connection(path)
        for pragma in _PRAGMAS:
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("CREATE TABLE messages (seq INTEGER PRIMARY KEY, body TEXT)")
        rows = ((seq, f"{time.perf_counter():.6f} {body}") for seq in range(1, number + 1))
        with self._connection:
            self._connection.executemany("INSERT INTO messages VALUES (?, ?)", rows)
        self._after = 0
        self._answered: list[tuple[int]] = []
        self.left = number

    def take(self, number: int) -> list[tuple[int, str]]:
        """The next bodies."""
        rows: list[Any] = self._connection.execute(_NEXT, (self._after, number)).fetchall()
        self._after = rows[-1][0] if rows else self._after
        return rows

    def answered(self, seq: int) -> int:
        """Count one as posted; how many places are free by that."""
        self._answered.append((seq,))
        self.left -= 1
        if len(self._answered) < _TOGETHER and self.left:
            return 0
        together, self._answered = self._answered, []
        with self._connection:
            self._connection.executemany(_DELETE, together)
        return len(together)


class Poster(Connection):
    """One kept connection, with one post under way."""

    def __init__(self, loop: "Loop") -> None:
        self._loop = loop
        self._parser = httptools.HttpResponseParser(self)
        self._seq = 0

    def post(self, seq: int, body: str) -> None:
        """Post a body."""
        self._seq = seq
        encoded = body.encode()
        self._transport.write(_HEAD.format(host=self._loop.host, length=len(encoded)).encode() + encoded)

    def on_message_complete(self) -> None:
        self._loop.answered(self, self._seq)


class Loop:
    """Takes, posts, deletes, until nothing is left."""

    def __init__(self, backlog: Backlog, host: str) -> None:
        self.host = host
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._backlog = backlog
        self._free: list[Poster] = []

    async def run(self, host: str, port: int) -> None:
        """Drain the backlog."""
        loop = asyncio.get_running_loop()
        for _ in range(CONNECTIONS):
            _, poster = await loop.create_connection(lambda: Poster(self), host, port)
            self._free.append(poster)
        self._post(CONNECTIONS)
        await self.over

    def answered(self, poster: Poster, seq: int) -> None:
        """A post was answered."""
        self._free.append(poster)
        places = self._backlog.answered(seq)
        if places:
            self._post(places)
        if not self._backlog.left and not self.over.done():
            self.over.set_result(None)

    def _post(self, places: int) -> None:
        for seq, body in self._backlog.take(places):
            self._free.pop().post(seq, body)


async def main(path: str, url: str, number: int) -> None:
    """Fill the table, wait for a word, drain it."""
    backlog = Backlog(path, number, "m" * 180)
    print("ready", flush=True)
    sys.stdin.readline()
    address = urlsplit(url)
    began = time.process_time()
    await Loop(backlog, address.netloc).run(address.hostname or "", address.port or 80)
    print((time.process_time() - began) / number * 1e6, flush=True)


if __name__ == "__main__":
    Path(sys.argv[1]).unlink(missing_ok=True)
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
