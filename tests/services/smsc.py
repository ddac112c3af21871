"""A message centre on a socket of its own, which can be made to refuse; its codec is smpp34's, not ours."""

import asyncio
import itertools
import ssl
import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import smpp34

from redrive.model.text_parts import text_of

USER, PASSWORD = "redrive", "p@ss/w"
OK: Final = 0
NOT_BOUND: Final = 0x04
SYSTEM_ERROR: Final = 0x08
THROTTLED: Final = 0x58
INVALID_DESTINATION: Final = 0x0B
WRONG_PASSWORD: Final = 0x0E

_RESPONSE: Final = 0x80000000
_SUBMIT, _DELIVER, _UNBIND, _BIND, _ENQUIRE = 0x04, 0x05, 0x06, 0x09, 0x15

SAR_REFERENCE, SAR_TOTAL, SAR_NUMBER = 0x020C, 0x020E, 0x020F  # 5.3.2.22 to 24

HANG: Final = None
CLOSE: Final = -1
Answer = tuple[int, str] | int | None


def _unit(command: int, status: int, sequence: int, body: bytes = b"") -> bytes:
    return struct.pack(">IIII", 16 + len(body), command, status, sequence) + body


@dataclass
class Smsc:
    """Keeps what is handed in.

    Attributes:
        answer: What a submission gets: a status, a status with words, HANG or CLOSE.
        bind_status: What a bind gets.
        lively: It answers `enquire_link`.
        sessions: Bound now.
        binds: `(system_id, password)` of all that tried.
        enquired: Set by each `enquire_link`.
        bound: Set by each bind that was accepted.
        unbound: How many said goodbye.
        goodbye: What is done in place of answering one.
    """

    messages: list[Any] = field(default_factory=list)
    answer: Callable[[Any], Answer] = lambda _: OK
    bind_status: int = OK
    lively: bool = True
    sessions: list[asyncio.StreamWriter] = field(default_factory=list)
    binds: list[tuple[str, str]] = field(default_factory=list)
    enquired: asyncio.Event = field(default_factory=asyncio.Event)
    unbound: int = 0
    goodbye: Callable[[], object] | None = None
    port: int = 0
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _told: dict[int, "asyncio.Future[int]"] = field(default_factory=dict)
    bound: asyncio.Event = field(default_factory=asyncio.Event)

    def texts(self) -> list[str]:
        """Return the texts that arrived, put together as a telephone does, in order of completion."""
        whole, parts = [], defaultdict[tuple[str, int, int], dict[int, bytes]](dict)
        for message in self.messages:
            octets, wide = bytes(message.short_message), message.data_coding == 8
            place = place_of(message)
            if place is None:
                whole.append(text_of(octets, wide=wide))
                continue
            reference, total, number = place
            text = octets[6:] if message.esm_class & 0x40 else octets
            key = (message.destination_addr, reference, total)
            parts[key][number] = text
            if len(parts[key]) == total:
                together = parts.pop(key)
                whole.append(text_of(b"".join(together[one] for one in range(1, total + 1)), wide=wide))
        return whole

    async def tell(self, source: str, octets: bytes, **more: Any) -> int:
        """A telephone writes: the status of the answer."""
        sequence = next(self._numbers)
        self._told[sequence] = asyncio.get_running_loop().create_future()
        written = smpp34.DeliverSm(source, "12345", octets, sequence_number=sequence, **more)
        self.sessions[-1].write(written.encode())
        return await asyncio.wait_for(self._told[sequence], 10)

    def hang_up(self) -> None:
        """Close all sessions."""
        for writer in self.sessions:
            writer.transport.abort()

    async def unbind(self) -> None:
        """End a session as the protocol has it."""
        self.sessions[-1].write(_unit(_UNBIND, 0, next(self._numbers)))

    def enquire(self) -> None:
        """Ask the last session for a sign of life."""
        self.sessions[-1].write(_unit(_ENQUIRE, 0, next(self._numbers)))

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while True:
                head = await reader.readexactly(16)
                length, command, status, sequence = struct.unpack(">IIII", head)
                body = await reader.readexactly(length - 16)
                self._take(writer, head + body, command, status, sequence)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            if writer in self.sessions:
                self.sessions.remove(writer)
            writer.close()

    def _take(
        self, writer: asyncio.StreamWriter, unit: bytes, command: int, status: int, sequence: int
    ) -> None:
        body = unit[16:]
        match command:
            case c if c == _BIND:
                user, password = body.split(b"\0")[:2]
                self.binds.append((user.decode(), password.decode()))
                writer.write(_unit(_BIND | _RESPONSE, self.bind_status, sequence, b"smsc\0"))
                if self.bind_status == OK:
                    self.sessions.append(writer)
                    self.bound.set()
            case c if c == _SUBMIT:
                self._take_submission(writer, smpp34.decode(unit), sequence)
            case c if c == _ENQUIRE:
                self.enquired.set()
                if self.lively:
                    writer.write(_unit(_ENQUIRE | _RESPONSE, OK, sequence))
            case c if c == _UNBIND:
                self.unbound += 1
                if self.goodbye is not None:
                    self.goodbye()
                else:
                    writer.write(_unit(_UNBIND | _RESPONSE, OK, sequence))
            case c if c == _DELIVER | _RESPONSE:
                self._told[sequence].set_result(status)

    def _take_submission(self, writer: asyncio.StreamWriter, message: Any, sequence: int) -> None:
        answer = self.answer(message)
        if answer == CLOSE:
            writer.transport.abort()
            return
        if answer is HANG:
            return
        status, words = answer if isinstance(answer, tuple) else (answer, "")
        if status == OK:
            self.messages.append(message)
        name = f"id-{next(self._numbers)}".encode() if status == OK else b""
        said = struct.pack(">HH", 0x001D, len(words.encode())) + words.encode() if words else b""
        writer.write(_unit(0x80000004, status, sequence, name + b"\0" + said))


def place_of(message: Any) -> tuple[int, int, int] | None:
    """Return a message's place among its parts: the reference, the total and the number."""
    if message.esm_class & 0x40:
        octets = bytes(message.short_message)
        assert octets[:3] == b"\5\0\3", octets[:6]
        return octets[3], octets[4], octets[5]
    beside = {one.tag: one.as_int() for one in message.tlvs}
    if SAR_REFERENCE not in beside:
        return None
    return (
        beside[SAR_REFERENCE],
        beside[SAR_TOTAL],
        beside[SAR_NUMBER],
    )


@asynccontextmanager
async def message_centre(tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[Smsc]:
    """A message centre on a free port."""
    keeper = Smsc()
    server = await asyncio.start_server(keeper.converse, "127.0.0.1", port, ssl=tls)
    keeper.port = server.sockets[0].getsockname()[1]
    try:
        yield keeper
    finally:
        server.close()
        keeper.hang_up()
        await server.wait_closed()
