"""A wire between a store and its database that a test can cut, or let fall silent."""

import asyncio
import contextlib
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

_PIECE: Final = 1 << 16


class Wire:
    """Passes everything on, in both directions, as long as it is told nothing else."""

    def __init__(self, url: str) -> None:
        self._far = urlsplit(url)
        self._open = asyncio.Event()
        self._open.set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._links: set[asyncio.Task[None]] = set()
        self._left = False

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all that was connected, also what is only just about to be: an open socket would fail the test."""
        self._left = True
        self._listener.close()
        self.cut()
        for link in self._links:
            link.cancel()
        while self._links:
            await asyncio.wait(self._links)

    @property
    def url(self) -> str:
        """The database's URL at this end of the wire."""
        port = self._listener.sockets[0].getsockname()[1]
        return self._far._replace(netloc=f"{self._far.username}@127.0.0.1:{port}").geturl()

    def silence(self) -> None:
        """From now on the database hears everything and its answers get lost."""
        self._open.clear()

    def cut(self) -> None:
        """End every connection; new ones are made as before, and heard."""
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()
        self._open.set()

    def refuse(self) -> None:
        """End every connection, and take no more."""
        self._listener.close()
        self.cut()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._left:
            writer.transport.abort()
            return
        link = asyncio.create_task(self._link(reader, writer))
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as ends:
            ends.callback(self._end, writer)
            self._ends.add(writer)
            far_reader, far_writer = await asyncio.open_connection(self._far.hostname, self._far.port)
            ends.callback(self._end, far_writer)
            self._ends.add(far_writer)
            await asyncio.gather(self._flow(reader, far_writer), self._answer_flow(far_reader, writer))

    def _end(self, end: asyncio.StreamWriter) -> None:
        end.transport.abort()
        self._ends.discard(end)

    async def _flow(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await source.read(_PIECE):
                sink.write(piece)
        sink.close()

    async def _answer_flow(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await source.read(_PIECE):
                if self._open.is_set():
                    sink.write(piece)
        sink.close()
