"""A pooler between a store and its database, as PgBouncer is one: in session mode, or in transaction mode."""

import asyncio
import contextlib
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

_ENCRYPTED: Final = 80877103  # a client asks for TLS
_TAKEN: Final = frozenset({b"user", b"database", b"application_name", b"client_encoding"})

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Pooler:
    """Passes on what clients say to sessions of its own: of a transaction's clients the latest come first."""

    def __init__(self, url: str, *, by_transaction: bool) -> None:
        self._far = urlsplit(url)
        self._by_transaction = by_transaction
        self._idle: list[_Streams] = []
        self._sessions: list[_Streams] = []
        self._links: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._greeting = b""
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        for link in self._links:
            link.cancel()
        while self._links:
            await asyncio.wait(self._links)
        for _, writer in self._sessions:
            writer.transport.abort()

    @property
    def url(self) -> str:
        port = self._listener.sockets[0].getsockname()[1]
        return self._far._replace(netloc=f"{self._far.username}@127.0.0.1:{port}").geturl()

    async def _session(self) -> _Streams:
        """A session of the database that nobody has."""
        if self._idle:
            return self._idle.pop()
        reader, writer = await asyncio.open_connection(self._far.hostname, self._far.port)
        self._sessions.append((reader, writer))
        name = self._far.path.removeprefix("/")
        content = f"user\0{self._far.username}\0database\0{name}\0\0".encode()
        writer.write((8 + len(content)).to_bytes(4) + (196608).to_bytes(4) + content)
        said, greeting = b"", b""
        while said[:1] != b"Z":
            said = await _message(reader)
            greeting += said if said[:1] == b"S" else b""
        self._greeting = greeting
        return reader, writer

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.create_task(self._link(reader, writer))
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await _begin(reader)
        while int.from_bytes(asked[4:8]) == _ENCRYPTED:
            writer.write(b"N")
            asked = await _begin(reader)
        words = asked[8:].split(b"\0")
        if refused := set(words[0:-2:2]) - _TAKEN:
            text = b"SFATAL\0C08P01\0Munsupported startup parameter: " + min(refused) + b"\0\0"
            writer.write(b"E" + (4 + len(text)).to_bytes(4) + text)
            await writer.drain()
            return
        self._idle.append(await self._session())
        writer.write(b"R" + (8).to_bytes(4) + (0).to_bytes(4) + self._greeting)
        writer.write(b"K" + (12).to_bytes(4) + (77).to_bytes(4) + (77).to_bytes(4) + b"Z\0\0\0\5I")
        await self._pass_on(reader, writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session: _Streams | None = None
        answering: asyncio.Task[bytes] | None = None
        try:
            while (said := await _message(reader))[:1] != b"X":
                session = session or await self._session()
                until = b"Z" if self._by_transaction else b""
                answering = answering or asyncio.create_task(_answer(session[0], writer, until))
                session[1].write(said)
                if self._by_transaction and said[:1] in b"QS":
                    state, answering = await answering, None
                    if state == b"I":
                        self._idle.append(session)
                        session = None
        finally:
            if answering is not None:
                answering.cancel()
                await asyncio.wait([answering])


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, until: bytes) -> bytes:
    """Pass on what the database says, up to a message of that type; the state of its transaction."""
    said = b""
    while not until or said[:1] != until:
        said = await _message(reader)
        writer.write(said)
    return said[5:6]


async def _begin(reader: asyncio.StreamReader) -> bytes:
    length = await reader.readexactly(4)
    return length + await reader.readexactly(int.from_bytes(length) - 4)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(int.from_bytes(head[1:]) - 4)
