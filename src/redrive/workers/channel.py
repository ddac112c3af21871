"""The channel between a supervisor and a worker: JSON objects, each behind its length, over a pair of sockets.

What is sent: a worker says `ready` and, at its end, `last`, and asks for `metrics` or `readiness`; the supervisor answers
with `answer`, asks a worker to `read` its metrics (`text`) and to `retire`.
"""

import asyncio
import socket
from typing import Any, Final

import orjson

Message = dict[str, Any]

_LENGTH_BYTES: Final = 4


class WorkerChannel:
    """One end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> "WorkerChannel":
        """The channel over one end of a pair of sockets, which is the channel's from now on."""
        return cls(*await asyncio.open_connection(sock=end))

    def send(self, kind: str, **content: Any) -> None:
        """Send a message; to an end that is gone it is lost."""
        message = orjson.dumps({"kind": kind, **content})
        self._writer.write(len(message).to_bytes(_LENGTH_BYTES) + message)

    async def receive(self) -> Message | None:
        """The next message; None: the other end is gone."""
        try:
            length = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES))
            message: Message = orjson.loads(await self._reader.readexactly(length))
        except (OSError, asyncio.IncompleteReadError):
            return None
        return message

    async def flush(self) -> None:
        """Return when what was sent has left this process."""
        try:
            await self._writer.drain()
        except OSError:
            return

    def close(self) -> None:
        """End the channel, once what was sent has left."""
        self._writer.close()
