"""Lines between a node and its databases, that are cut, stall, or are slow."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

_PIECE: Final = 1 << 16


class Line:
    """A port that leads to another one; whatever is wrong with it ends by `mend`."""

    def __init__(self, far_port: int) -> None:
        """Lead to a port of this machine."""
        self._far_port = far_port
        self._ends: set[asyncio.StreamWriter] = set()
        self._links: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_cut = False
        self._delay_seconds = 0.0
        self.port = 0

    async def open(self) -> None:
        """Take connections."""
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End all."""
        self._listener.close()
        self.cut()
        for link in self._links:
            link.cancel()
        while self._links:
            await asyncio.wait(self._links)

    def cut(self) -> None:
        """End every connection, and take no new one."""
        self._is_cut = True
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    def stall(self) -> None:
        """Let nothing pass, in neither direction, and say nothing of it."""
        self._flows.clear()

    def slow(self, seconds: float) -> None:
        """Let each piece pass so much later."""
        self._delay_seconds = seconds

    def mend(self) -> None:
        """Let everything pass again, also what stalled."""
        self._is_cut, self._delay_seconds = False, 0.0
        self._flows.set()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.create_task(self._link(reader, writer))
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.ExitStack() as ends, contextlib.suppress(OSError):
            ends.callback(self._end, writer)
            self._ends.add(writer)
            await self._flows.wait()
            if self._is_cut:
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._far_port)
            ends.callback(self._end, far_writer)
            self._ends.add(far_writer)
            flows = [
                asyncio.create_task(self._flow(reader, far_writer)),
                asyncio.create_task(self._flow(far_reader, writer)),
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

    async def _flow(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await source.read(_PIECE):
                await self._flows.wait()
                if self._delay_seconds:
                    await after(self._delay_seconds)
                sink.write(piece)


async def after(seconds: float) -> None:
    """Return so much later: for faults that last, and callers who do not come at once."""
    passed = asyncio.get_running_loop().create_future()
    timer = asyncio.get_running_loop().call_later(seconds, _pass, passed)
    try:
        await passed
    finally:
        timer.cancel()


def _pass(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


Fault = Callable[[Line], None]
