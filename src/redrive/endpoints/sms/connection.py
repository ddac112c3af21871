"""One bound SMPP session: submissions within a window, texts that come the other way, and signs of life."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from typing_extensions import override

from redrive.endpoints.kept_connection import KeptConnection
from redrive.endpoints.sms import pdu as smpp
from redrive.endpoints.sms.gateway import MessageCentre
from redrive.endpoints.sms.pdu import Delivered, Pdu
from redrive.endpoints.sms.verdicts import BindRefused

logger = logging.getLogger(__name__)

Hearing = Callable[[Delivered], Awaitable[None]]

# Centres drop a session that says nothing, after a minute at the earliest.
_SILENCE_SECONDS: Final = 30
_PATIENCE_SECONDS: Final = 10  # for the answer to `enquire_link`
_SEQUENCE_MAX: Final = 0x7FFFFFFF  # 5.1.4
_TEXTS_WAITING_MAX: Final = 100  # whose hearing takes time; one more is told to come later


class SmsConnection(KeptConnection):
    """A transceiver.

    Args:
        gateway: The centre, and who we are there.
        hear: Takes each text that comes; it is acknowledged when that is done.
    """

    def __init__(self, gateway: MessageCentre, hear: Hearing) -> None:
        super().__init__("message centre")
        self._gateway = gateway
        self._hear = hear
        self._window = asyncio.Semaphore(gateway.window)
        self._buffer = bytearray()
        self._waiting: dict[int, asyncio.Future[Pdu]] = {}
        self._hearing: set[asyncio.Task[None]] = set()
        self._sequence = 0
        self._probing = False

    async def bind(self) -> None:
        """Say who we are.

        Raises:
            BindRefused: The centre will not have us.
            OSError: It closed instead.
        """
        gateway = self._gateway
        body = smpp.bind_body(gateway.user, gateway.password, gateway.system_type)
        answer = await self._ask(smpp.BIND_TRANSCEIVER, body)
        if answer.status != smpp.OK:
            raise BindRefused(answer.status, smpp.read_answer(answer.body).words)

    async def submit(self, body: bytes) -> Pdu:
        """Hand in a text or a part, when the window has room.

        Raises:
            OSError: The connection ended before the answer.
        """
        async with self._window:
            answer = await self._ask(smpp.SUBMIT_SM, body)
        if answer.status == smpp.NOT_BOUND:  # signs of life go on, so nothing else would end it
            self._end(ConnectionResetError("The message centre has lost the session"))
        return answer

    def probe(self) -> None:
        """Probe the connection; without an answer it is closed. Concurrent probes are one."""
        if not self._probing:
            self._probing = True
            self._send(Pdu(smpp.ENQUIRE_LINK, smpp.OK, self._numbered()))
            self._after(_PATIENCE_SECONDS, self._give_up)

    # ---- the socket ------------------------------------------------------------------------------------------

    @override
    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._probing = False
        self._after(_SILENCE_SECONDS, self.probe)
        self._buffer += data
        try:
            for pdu in smpp.taken(self._buffer):
                self._take(pdu)
        except smpp.Garbled as error:
            self._end(ConnectionError(f"What the message centre sent is no SMPP: {error}"))

    @override
    def _is_busy(self) -> bool:
        return bool(self._waiting)

    @override
    def _say_goodbye(self) -> None:
        self._send(Pdu(smpp.UNBIND, smpp.OK, self._numbered()))

    @override
    def _fail(self, why: Exception) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(why)
        for hearing in self._hearing:
            hearing.cancel()

    def _end(self, why: Exception) -> None:
        self._why = why
        self._close_socket()

    def _give_up(self) -> None:
        self._why = ConnectionResetError("The message centre gives no sign of life")
        self.abort()

    # ---- what is said ------------------------------------------------------------------------------------------

    async def _ask(self, command: int, body: bytes) -> Pdu:
        if self._socket is None:
            raise self._why
        sequence = self._numbered()
        answer: asyncio.Future[Pdu] = self._loop.create_future()
        self._waiting[sequence] = answer
        self._send(Pdu(command, smpp.OK, sequence, body))
        try:
            return await answer
        finally:
            del self._waiting[sequence]

    def _numbered(self) -> int:
        self._sequence = self._sequence % _SEQUENCE_MAX + 1
        return self._sequence

    def _send(self, pdu: Pdu) -> None:
        if self._socket is not None:
            self._socket.write(pdu.octets())

    # ---- what is heard -----------------------------------------------------------------------------------------

    def _take(self, pdu: Pdu) -> None:
        if pdu.is_response:
            answer = self._waiting.get(pdu.sequence)  # none for an abandoned request
            if answer is not None and not answer.done():
                answer.set_result(pdu)
            elif pdu.command == smpp.UNBIND | smpp.RESPONSE:
                self._end(ConnectionResetError("Unbound"))
            return
        match pdu.command:
            case smpp.ENQUIRE_LINK:
                self._send(pdu.answer())
            case smpp.UNBIND:
                self._send(pdu.answer())
                self._end(ConnectionResetError("The message centre ended the session"))
            case smpp.DELIVER_SM:
                self._take_text(pdu)
            case _:
                self._send(Pdu(smpp.GENERIC_NACK, smpp.INVALID_COMMAND, pdu.sequence))

    def _take_text(self, pdu: Pdu) -> None:
        if len(self._hearing) >= _TEXTS_WAITING_MAX:
            self._send(pdu.answer(smpp.TRY_LATER, b"\0"))
            return
        hearing = self._loop.create_task(self._hear_out(pdu))
        self._hearing.add(hearing)
        hearing.add_done_callback(self._hearing.discard)

    async def _hear_out(self, pdu: Pdu) -> None:
        """Acknowledge what has been heard, and nothing else: the centre keeps the rest for later."""
        status = smpp.TRY_LATER
        try:
            await self._hear(smpp.delivered(pdu.body))
            status = smpp.OK
        except smpp.Garbled as error:
            logger.warning("sms.garbled gateway=%s: %s", self._gateway, error)
            status = smpp.SYSTEM_ERROR
        except Exception:
            logger.exception(
                "sms.unheard gateway=%s: the message centre is asked to come again", self._gateway
            )
        self._send(pdu.answer(status, b"\0"))
