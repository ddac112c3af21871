"""A wire between a store and its database that a test can cut, or let fall silent."""

import asyncio
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
        self._flows: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.cut()
        for flow in self._flows:
            flow.cancel()
        await asyncio.gather(*self._flows, return_exceptions=True)

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

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._far.hostname, self._far.port)
        self._ends |= {writer, far_writer}
        for flow in (self._flow(reader, far_writer), self._answer_flow(far_reader, writer)):
            task = asyncio.create_task(flow)
            self._flows.add(task)
            task.add_done_callback(self._flows.discard)

    async def _flow(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(_PIECE):
                sink.write(piece)
        except ConnectionError:
            pass
        finally:
            sink.close()

    async def _answer_flow(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(_PIECE):
                if self._open.is_set():
                    sink.write(piece)
        except ConnectionError:
            pass
        finally:
            sink.close()
