"""A port that leads to another server: what fails between a node and its database is made to fail there."""

import asyncio
import contextlib
from typing import Final

_PIECE: Final = 1 << 16


class Relay:
    """Passes everything on, in both directions, as long as a subclass says nothing else.

    Attributes:
        port: Of this end, on 127.0.0.1, once it is open.
    """

    def __init__(self, far_host: str, far_port: int) -> None:
        """Lead to a server."""
        self._far = (far_host, far_port)
        self._ends: set[asyncio.StreamWriter] = set()
        self._links: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self.port = 0

    async def open(self) -> None:
        """Take connections."""
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End all that is connected, also what is only just about to be: an open socket would fail the test."""
        self._is_closed = True
        self.refuse()
        for link in self._links:
            link.cancel()
        while self._links:
            await asyncio.wait(self._links)

    def refuse(self) -> None:
        """End every connection, and take no more."""
        self._listener.close()
        self.abort_all()

    def abort_all(self) -> None:
        """End every connection that there is."""
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    async def admits(self) -> bool:
        """Returns whether a new connection is led on; asked once for each."""
        return True

    async def passes(self, *, is_answer: bool) -> bool:
        """Returns whether a piece is passed on; asked once for each, and what it waits for delays the piece."""
        return True

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closed:
            writer.transport.abort()
            return
        link = asyncio.create_task(self._link(reader, writer))
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.ExitStack() as ends, contextlib.suppress(OSError):
            ends.callback(self._end, writer)
            self._ends.add(writer)
            if not await self.admits():
                return
            far_reader, far_writer = await asyncio.open_connection(*self._far)
            ends.callback(self._end, far_writer)
            self._ends.add(far_writer)
            flows = [
                asyncio.create_task(self._flow(reader, far_writer, is_answer=False)),
                asyncio.create_task(self._flow(far_reader, writer, is_answer=True)),
            ]
            try:
                await asyncio.wait(flows, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for flow in flows:
                    flow.cancel()
                await asyncio.wait(flows)

    def _end(self, end: asyncio.StreamWriter) -> None:
        end.transport.abort()
        self._ends.discard(end)

    async def _flow(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while piece := await source.read(_PIECE):
                if await self.passes(is_answer=is_answer):
                    sink.write(piece)
