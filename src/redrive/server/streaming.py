"""Bodies that are written as they come: in chunks, no faster than the client reads them."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, cast

from redrive.model.http import Response

CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
_LAST: Final = b"0\r\n\r\n"


class BodyWriter:
    """Writes one body.

    Attributes:
        task: Done when the body is whole, or was given up.
    """

    __slots__ = ("_chunked", "_flows", "_length", "_parts", "_transport", "task")

    def __init__(
        self,
        transport: asyncio.Transport,
        response: Response,
        *,
        chunked: bool,
        on_end: Callable[[bool], None],
    ) -> None:
        """Write it, from the next turn of the loop on.

        Args:
            transport: To the client.
            response: One with parts, which are closed at the end, or when the client has gone.
            chunked: False where the body has a length, and for HTTP/1.0, where it ends with the connection.
            on_end: Told whether the body is whole.
        """
        self._transport = transport
        self._parts = cast("AsyncGenerator[bytes]", response.parts)
        self._chunked = chunked
        self._length = response.length
        self._flows: asyncio.Future[None] | None = None
        self.task = asyncio.get_running_loop().create_task(self._write())
        self.task.add_done_callback(lambda task: on_end(not task.cancelled() and task.exception() is None))

    def pause(self) -> None:
        """Write nothing more until `resume`: the client does not read."""
        self._flows = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        """Go on."""
        if self._flows is not None and not self._flows.done():
            self._flows.set_result(None)

    def cancel(self) -> None:
        """Give up: the client has gone."""
        self.task.cancel()

    async def _write(self) -> None:
        written = 0
        async with aclosing(self._parts):
            async for part in self._parts:
                if part:  # a chunk of no bytes would be the last
                    size = len(part)
                    written += size
                    self._transport.write(b"%x\r\n%b\r\n" % (size, part) if self._chunked else part)
                    if self._flows is not None:
                        await self._flows
        if self._length is not None and written != self._length:
            raise EOFError(f"{written} of {self._length} bytes were there")
        if self._chunked:
            self._transport.write(_LAST)
