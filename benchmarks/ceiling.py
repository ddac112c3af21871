"""The ceiling: the least work that a durable queue can be in CPython. `python -m benchmarks.ceiling FILE`.

It answers the same requests as Redrive from the same machine's loop (uvloop), parser (httptools), JSON (orjson) and
disk (SQLite, WAL, an fsync before each answer, many calls to a transaction), and does nothing else: one queue, no
names, no checks, no attributes, no signatures, no order, no deduplication, no dead letters. What Redrive reaches of
its speed is what all of that costs.

As in Redrive, statements run on the loop's own thread and only COMMIT beside it.
"""

import asyncio
import hashlib
import os
import sys
import threading
import time
from queue import SimpleQueue
from typing import Any, Final
from urllib.parse import parse_qs

import apsw
import httptools
import orjson
import uvloop

from benchmarks.connection import Connection

LEASE_MS: Final = 120_000
FAN_OUT: Final = 4  # deliveries of one publication

_PRAGMAS: Final = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "wal_autocheckpoint = 10000",
    "cache_size = -65536",
)
_SCHEMA: Final = """
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY, available_at INTEGER, attempts INTEGER, id TEXT, digest TEXT, body TEXT
);
CREATE INDEX line ON messages (available_at, seq);
"""
_INSERT: Final = "INSERT INTO messages VALUES (?, ?, 0, ?, ?, ?)"
_DUE: Final = (
    "SELECT seq, id, digest, body FROM messages WHERE available_at <= ? ORDER BY available_at, seq LIMIT ?"
)
_CLAIM: Final = "UPDATE messages SET available_at = ?, attempts = attempts + 1 WHERE seq = ?"
_DELETE: Final = "DELETE FROM messages WHERE seq = ?"

Row = tuple[int, int, str, str, str]


class Table:
    """The messages on disk, changed by whole groups of calls."""

    def __init__(self, path: str) -> None:
        self._connection = apsw.Connection(path)
        for pragma in _PRAGMAS:
            self._connection.execute(f"PRAGMA {pragma}")
        # Otherwise SQLite plans a query anew, 7 us, whenever a value it compares with an indexed column changes.
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        self._connection.execute(_SCHEMA)
        self._cursor = self._connection.cursor()
        self._seq = 0
        self._loop = asyncio.get_running_loop()
        self._arrived: list[Row] = []
        self._waiting: list[tuple[Client, Any]] = []
        self._answers: list[tuple[Client, bytes]] = []
        self._is_busy = False
        self._jobs: SimpleQueue[None] = SimpleQueue()
        threading.Thread(target=self._commit_forever, daemon=True).start()

    def new_delivery(self, body: str) -> Row:
        """Make a message of a body and let it arrive with the next group."""
        self._seq += 1
        row = (self._seq, now_ms(), new_id(), hashlib.md5(body.encode()).hexdigest(), body)
        self._arrived.append(row)
        return row

    def submit(self, client: "Client", step: Any) -> None:
        """Answer a client when the next group is on disk.

        Args:
            client: Who asked.
            step: The answer, where it is known already; how many messages to claim; or (seq,) to delete.
        """
        self._waiting.append((client, step))
        if not self._is_busy:
            self._is_busy = True
            self._loop.call_soon(self._next_group)

    def _next_group(self) -> None:
        waiting, self._waiting = self._waiting, []
        arrived, self._arrived = self._arrived, []
        self._cursor.execute("BEGIN IMMEDIATE")
        if arrived:
            self._cursor.executemany(_INSERT, arrived)
        self._answers = [
            (client, step if isinstance(step, bytes) else self._change(step)) for client, step in waiting
        ]
        self._jobs.put(None)

    def _change(self, step: int | tuple[int]) -> bytes:
        if isinstance(step, tuple):
            self._cursor.execute(_DELETE, step)
            return b"{}"
        now = now_ms()
        due: list[Any] = self._cursor.execute(_DUE, (now, step)).fetchall()
        self._cursor.executemany(_CLAIM, [(now + LEASE_MS, row[0]) for row in due])
        return orjson.dumps({"Messages": [_received(*row) for row in due]})

    def _commit_forever(self) -> None:
        while True:
            self._jobs.get()
            self._connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(self._committed)

    def _committed(self) -> None:
        answers, self._answers = self._answers, []
        if self._waiting:
            self._next_group()
        else:
            self._is_busy = False
        for client, answer in answers:
            client.answer(answer)


class Client(Connection):
    """One connection."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._parser = httptools.HttpRequestParser(self)

    def on_message_begin(self) -> None:
        self._target = b""
        self._body = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"x-amz-target":
            self._target = value

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._target:
            self._call(self._target, orjson.loads(self._body))
        else:
            self._publish()

    def _call(self, target: bytes, wish: dict[str, Any]) -> None:
        if target == b"AmazonSQS.SendMessage":
            _, _, identity, digest, _ = self._table.new_delivery(wish["MessageBody"])
            self._table.submit(self, orjson.dumps({"MessageId": identity, "MD5OfMessageBody": digest}))
        elif target == b"AmazonSQS.SendMessageBatch":
            successful = [
                _sent(entry["Id"], self._table.new_delivery(entry["MessageBody"]))
                for entry in wish["Entries"]
            ]
            self._table.submit(self, orjson.dumps({"Successful": successful}))
        elif target == b"AmazonSQS.ReceiveMessage":
            self._table.submit(self, wish.get("MaxNumberOfMessages", 1))
        else:
            self._table.submit(self, (int(wish["ReceiptHandle"]),))

    def _publish(self) -> None:
        (body,) = parse_qs(self._body.decode())["Message"]
        for _ in range(FAN_OUT):
            identity = self._table.new_delivery(body)[2]
        result = f"<PublishResult><MessageId>{identity}</MessageId></PublishResult>"
        self._table.submit(self, f"<PublishResponse>{result}</PublishResponse>".encode())

    def answer(self, body: bytes) -> None:
        """Write an answer, if anybody is left to read it."""
        if not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """A message id: 128 random bits with hyphens in them."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _sent(entry_id: str, row: Row) -> dict[str, str]:
    return {"Id": entry_id, "MessageId": row[2], "MD5OfMessageBody": row[3]}


def _received(seq: int, identity: str, digest: str, body: str) -> dict[str, str]:
    return {"MessageId": identity, "ReceiptHandle": str(seq), "MD5OfBody": digest, "Body": body}


async def serve(path: str) -> None:
    """Serve for ever on a free port, which is printed."""
    table = Table(path)
    server = await asyncio.get_running_loop().create_server(lambda: Client(table), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
