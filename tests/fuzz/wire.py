"""Asking servers over their sockets: many connections at once, an answer for each request within its time."""

import asyncio
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from redrive.model.http import Request, Response
from tests.fuzz.asking import Asked, Asking

ANSWER_SECONDS_MAX: Final = 60.0  # a function may take ten, and the machine may be busy
_LINE_MAX: Final = 1 << 20


@dataclass(slots=True)
class Faults:
    """Answers that should not be, with their requests.

    Attributes:
        failed: Answers of 500.
        silent: Requests that nobody answered in time.
        cut: Connections that ended before an answer, where the request was whole.
        unavailable: Answers of 503.
    """

    failed: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    unavailable: int = 0

    @property
    def number(self) -> int:
        return len(self.failed) + len(self.silent) + len(self.cut)


class Connection:
    """A kept connection to a server, opened again when it ends."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Request) -> Response | None:
        """The answer; None: the connection ended before there was one."""
        for again in (True, False):
            fresh = self._streams is None
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, self._port, limit=_LINE_MAX)
            reader, writer = self._streams
            try:
                writer.write(written(request))
                await writer.drain()
                return await self._answer(reader, request.method)
            except (ConnectionError, asyncio.IncompleteReadError):
                self.close()
                if fresh or not again:
                    return None
        return None

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _answer(self, reader: asyncio.StreamReader, method: str) -> Response:
        status, headers = await self._head(reader)
        while status == 100:
            status, headers = await self._head(reader)
        body = b""
        if method != "HEAD" and status not in (204, 304):
            body = await self._body(reader, headers)
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Response(status, body, headers.get("content-type", ""), headers)

    async def _head(self, reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
        first = await reader.readline()
        if not first:
            raise ConnectionResetError
        headers = {}
        while line := (await reader.readline()).rstrip(b"\r\n"):
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return int(first.split()[1]), headers

    async def _body(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await reader.readexactly(int(headers.get("content-length", "0")))
        body = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return body


def written(request: Request) -> bytes:
    """A request as bytes, its length right."""
    target = f"{request.path or '/'}?{request.query}" if request.query else request.path or "/"
    skipped = ("content-length", "transfer-encoding", "expect", "connection")
    headers = {name: text for name, text in request.headers.items() if name not in skipped}
    head = [f"{request.method} {_one_line(target).replace(' ', '%20')} HTTP/1.1"]
    head += [f"{name}: {_one_line(str(text))}" for name, text in headers.items()]
    head.append(f"content-length: {len(request.body)}")
    return "\r\n".join(head).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + request.body


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


async def ask_all(asking: Asking, urls: list[str], number: int, connections: int) -> Faults:
    """Ask so many requests of servers in turn, over so many connections at once."""
    faults, left = Faults(), number

    async def work(connection: Connection) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            asked = asking.next()
            try:
                response = await asyncio.wait_for(connection.ask(asked.request), ANSWER_SECONDS_MAX)
            except TimeoutError:
                faults.silent.append(_told(asked))
                connection.close()
                continue
            _judge(faults, asked, response)
            if response is not None:
                asking.answered(asked, response)
        connection.close()

    await asyncio.gather(*(work(Connection(urls[at % len(urls)])) for at in range(connections)))
    return faults


def _judge(faults: Faults, asked: Asked, response: Response | None) -> None:
    if response is None:
        faults.cut.append(_told(asked))
    elif response.status == 503:
        faults.unavailable += 1
    elif asked.is_failed_by(response):
        faults.failed.append(f"{_told(asked)} -> {response.status} {response.body[:300]!r}")


def _told(asked: Asked) -> str:
    return f"{asked.kind} {asked.operation} {written(asked.request)[:1500]!r}"
