"""From responses to bytes."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from email.utils import formatdate
from typing import Final, cast

import orjson

from redrive.model.http import PHRASES, Response

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_LARGE_BYTES: Final = 16 * 1024
_BODILESS: Final = frozenset({204, 304})


def error_response(status: int, message: str, **members: str) -> Response:
    """The front's own errors, which no protocol has words for: `{"message": …}`."""
    return Response(status, orjson.dumps({"message": message, **members}))


class Renderer:
    """Writes responses, keeping every head that repeats for as long as the Date header stays the same."""

    __slots__ = ("_date", "_heads", "_now", "_second")

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._second = -1
        self._date = ""
        self._heads: dict[tuple[int, str], bytes] = {}
        self.tick()

    def tick(self) -> None:
        """Look at the clock; to be called about once a second."""
        second = self._now() // 1000
        if second != self._second:
            self._second = second
            self._date = formatdate(second, usegmt=True)
            self._heads.clear()

    def render(self, response: Response, method: str, connection: bytes = b"") -> bytes:
        """The bytes of `response` to a request of `method`; `connection` is a whole header line or nothing.

        Raises:
            ValueError: A header that would break the head apart, or that is not latin-1.
        """
        body = response.body
        head = self._heads.get((response.status, response.content_type)) or self._head(response)
        if response.headers:
            connection += _lines(response.headers.items())
        if response.cookies:
            connection += _set_cookies(response.cookies)
        if response.status in _BODILESS:
            return b"%b%b\r\n" % (head, connection)
        if method == "HEAD":
            length = len(body) if response.length is None else response.length
            return b"%bContent-Length: %d\r\n%b\r\n" % (head, length, connection)
        return b"%bContent-Length: %d\r\n%b\r\n%b" % (head, len(body), connection, body)

    def pieces(self, response: Response, method: str, connection: bytes) -> tuple[bytes, ...]:
        """As `render`, with a large body for itself: behind its head it would be a copy.

        Raises:
            ValueError: As `render`.
        """
        length = len(response.body)
        if length <= _LARGE_BYTES or method == "HEAD" or response.status in _BODILESS:
            return (self.render(response, method, connection),)
        return self.begin(response, connection + content_length(length)), response.body

    def begin(self, response: Response, connection: bytes) -> bytes:
        """The head of a response whose body follows in parts; `connection` are whole header lines.

        Raises:
            ValueError: As `render`.
        """
        head = self._heads.get((response.status, response.content_type)) or self._head(response)
        lines = _lines(response.headers.items()) + _set_cookies(response.cookies)
        return b"%b%b%b\r\n" % (head, connection, lines)

    def _head(self, response: Response) -> bytes:
        """The head of a response up to its own headers; remembered for this second, as it has the date."""
        status = response.status
        reason = PHRASES.get(status, "")
        lines = {"Server": "Redrive", "Date": self._date}
        if response.content_type and status not in _BODILESS:
            lines["Content-Type"] = response.content_type
        head = b"HTTP/1.1 %d %b\r\n%b" % (status, reason.encode(), _lines(lines.items()))
        self._heads[(status, response.content_type)] = head
        return head


def content_length(count: int | None) -> bytes:
    """The header line of a body's length; nothing if that is not known."""
    return b"" if count is None else b"Content-Length: %d\r\n" % count


def _set_cookies(cookies: Sequence[str]) -> bytes:
    return _lines([("Set-Cookie", cookie) for cookie in cookies])


def _lines(headers: Iterable[tuple[str, str]]) -> bytes:
    """Header lines; raises ValueError if one holds a line break, or is not latin-1."""
    text = ""
    for name, value in headers:  # the one header of most answers; a `map` takes half as long again
        line = f"{name}: {value}"
        if "\n" in line or "\r" in line or "\0" in line:
            raise ValueError("A response header holds a line break")
        text += f"{line}\r\n"
    return text.encode("latin-1")


# Bodies that are written as they come: in chunks, no faster than the client reads them.

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
        """Write it, from the next turn of the loop on; `on_end` is told whether the body is whole.

        Not `chunked` is a body with a length, and one for HTTP/1.0, where it ends with the connection.
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
        """Write each part as it comes, as far as the client reads; EOFError if there are fewer bytes than announced."""
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
