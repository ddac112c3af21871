"""One bound SMPP session: submissions within a window, texts that come the other way, and signs of life.

A message centre's statuses (SMPP 3.4, 5.1.3) have the HTTP status nearest to each. What asks for a slower pace, says that
the centre is in trouble, or is a status of the centre's own, may pass; what is wrong with the message stays wrong.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from typing_extensions import override

from redrive.endpoints import verdicts
from redrive.endpoints.kept_connection import KeptConnection
from redrive.endpoints.sms import pdu as smpp
from redrive.endpoints.sms.gateway import MessageCentre
from redrive.endpoints.sms.pdu import OK, CentreAnswer, Pdu, ShortMessage
from redrive.endpoints.verdicts import FULL, IN_TROUBLE, INVALID, NOT_AUTHENTICATED, THROTTLED, Verdict
from redrive.model.attempt import AttemptResult


class BindRefused(ConnectionError):  # noqa: N818 - said of a bind
    """The message centre refused the login: an error of settings, which can be mended in time."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(_text(status, words))
        self.status = status


_NAMES: Final = {
    0x01: "ESME_RINVMSGLEN",
    0x02: "ESME_RINVCMDLEN",
    0x03: "ESME_RINVCMDID",
    0x04: "ESME_RINVBNDSTS",
    0x05: "ESME_RALYBND",
    0x06: "ESME_RINVPRTFLG",
    0x07: "ESME_RINVREGDLVFLG",
    0x08: "ESME_RSYSERR",
    0x0A: "ESME_RINVSRCADR",
    0x0B: "ESME_RINVDSTADR",
    0x0C: "ESME_RINVMSGID",
    0x0D: "ESME_RBINDFAIL",
    0x0E: "ESME_RINVPASWD",
    0x0F: "ESME_RINVSYSID",
    0x14: "ESME_RMSGQFUL",
    0x15: "ESME_RINVSERTYP",
    0x43: "ESME_RINVESMCLASS",
    0x45: "ESME_RSUBMITFAIL",
    0x48: "ESME_RINVSRCTON",
    0x49: "ESME_RINVSRCNPI",
    0x50: "ESME_RINVDSTTON",
    0x51: "ESME_RINVDSTNPI",
    0x53: "ESME_RINVSYSTYP",
    0x54: "ESME_RINVREPFLAG",
    0x58: "ESME_RTHROTTLED",
    0x61: "ESME_RINVSCHED",
    0x62: "ESME_RINVEXPIRY",
    0x63: "ESME_RINVDFTMSGID",
    0x64: "ESME_RX_T_APPN",
    0x65: "ESME_RX_P_APPN",
    0x66: "ESME_RX_R_APPN",
    0xC0: "ESME_RINVOPTPARSTREAM",
    0xC1: "ESME_ROPTPARNOTALLWD",
    0xC2: "ESME_RINVPARLEN",
    0xC3: "ESME_RMISSINGOPTPARAM",
    0xC4: "ESME_RINVOPTPARAMVAL",
    0xFE: "ESME_RDELIVERYFAILURE",
    0xFF: "ESME_RUNKNOWNERR",
}
_TROUBLE: Final = (IN_TROUBLE, 500)
_INVALID: Final = (INVALID, 400)
_TOO_LARGE: Final = (verdicts.TOO_LARGE, 413)
_BY_STATUS: Final = {
    **dict.fromkeys((0x02, 0x03, 0x06, 0x07, 0x0A, 0x0B, 0x0C, 0x15, 0x43, 0x48, 0x49, 0x50, 0x51), _INVALID),
    **dict.fromkeys((0x53, 0x54, 0x61, 0x62, 0x63, 0x65, 0x66, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4), _INVALID),
    0x01: _TOO_LARGE,
    0x14: (FULL, 507),
    0x58: (THROTTLED, 429),
}
_BIND_DENIED: Final = frozenset({0x0D, 0x0E, 0x0F, 0x53})


def of_status(status: int, answer: CentreAnswer) -> Verdict:
    """The verdict on a submission's status."""
    if status == OK:
        return _accepted(answer.name)
    meaning, nearest = _BY_STATUS.get(status, _TROUBLE)
    return meaning.verdict(nearest, _text(status, answer.words))


def of_all(parts: Sequence[Verdict]) -> Verdict:
    """The verdict on a text of several parts: a refused part ends it, a failed part is sent again."""
    for result in (AttemptResult.REFUSED, AttemptResult.FAILED):
        for verdict in parts:
            if verdict.result is result:
                return verdict
    names = ",".join(name for verdict in parts for _, name in verdict.identifiers)
    return _accepted(names)


def of_failure(error: BaseException) -> Verdict:
    """The verdict on a missing answer; only a text that cannot be sent is not tried again."""
    if not isinstance(error, BindRefused):
        return verdicts.of_failure(error)
    meaning, nearest = (NOT_AUTHENTICATED, 401) if error.status in _BIND_DENIED else _TROUBLE
    return meaning.verdict(nearest, f"bind: {str(error) or type(error).__name__}")


def too_long(parts: int, parts_max: int) -> Verdict:
    """A text of more parts than their numbers have room for."""
    meaning, nearest = _TOO_LARGE
    return meaning.verdict(nearest, f"{parts} parts; there are at most {parts_max}")


def _accepted(names: str) -> Verdict:
    return verdicts.ACCEPTED.verdict(200, identifiers=(("message_id", names),))


def _text(status: int, words: str) -> str:
    name = _NAMES.get(status, f"0x{status:08X}")
    return f"{name}: {words}" if words else name


logger = logging.getLogger(__name__)

Hearing = Callable[[ShortMessage], Awaitable[None]]

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
        self._hearing: set[asyncio.Task[None]] = set()  # that take texts in
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
            self._send(Pdu(smpp.ENQUIRE_LINK, smpp.OK, self._next_sequence()))
            self._after(_PATIENCE_SECONDS, self._give_up)

    # ---- the socket ------------------------------------------------------------------------------------------

    @override
    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._probing = False
        self._after(_SILENCE_SECONDS, self.probe)
        self._buffer += data
        try:
            for pdu in smpp.take_units(self._buffer):
                self._take(pdu)
        except smpp.Garbled as error:
            self._end(ConnectionError(f"What the message centre sent is no SMPP: {error}"))

    @override
    def _is_busy(self) -> bool:
        return bool(self._waiting)

    @override
    def _say_goodbye(self) -> None:
        self._send(Pdu(smpp.UNBIND, smpp.OK, self._next_sequence()))

    @override
    def _fail(self, failure: Exception) -> None:
        """Fail what is under way, and stop hearing texts."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(failure)
        for hearing in self._hearing:
            hearing.cancel()

    def _end(self, failure: Exception) -> None:
        self._failure = failure
        self._close_socket()

    def _give_up(self) -> None:
        self._failure = ConnectionResetError("The message centre gives no sign of life")
        self.abort()

    # ---- what is said ------------------------------------------------------------------------------------------

    async def _ask(self, command: int, body: bytes) -> Pdu:
        """Send a request and wait for the answer with its sequence number."""
        if self._socket is None:
            raise self._failure
        sequence = self._next_sequence()
        answer: asyncio.Future[Pdu] = self._loop.create_future()
        self._waiting[sequence] = answer
        self._send(Pdu(command, smpp.OK, sequence, body))
        try:
            return await answer
        finally:
            del self._waiting[sequence]

    def _next_sequence(self) -> int:
        self._sequence = self._sequence % _SEQUENCE_MAX + 1
        return self._sequence

    def _send(self, pdu: Pdu) -> None:
        if self._socket is not None:
            self._socket.write(pdu.octets())

    # ---- what is heard -----------------------------------------------------------------------------------------

    def _take(self, pdu: Pdu) -> None:
        """Take a unit of the message centre: an answer, or a request of its own, which is answered at once."""
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
        """Have a text heard beside the others; too many at once are put off."""
        if len(self._hearing) >= _TEXTS_WAITING_MAX:
            self._send(pdu.answer(smpp.TRY_LATER, b"\0"))
            return
        hearing = self._loop.create_task(self._hear_and_acknowledge(pdu))
        self._hearing.add(hearing)
        hearing.add_done_callback(self._hearing.discard)

    async def _hear_and_acknowledge(self, pdu: Pdu) -> None:
        """Have a message heard, and acknowledge it; if it was not, the centre is asked to send it again later."""
        status = smpp.TRY_LATER
        try:
            await self._hear(smpp.read_short_message(pdu.body))
            status = smpp.OK
        except smpp.Garbled as error:
            logger.warning("sms.garbled gateway=%s: %s", self._gateway, error)
            status = smpp.SYSTEM_ERROR
        except Exception:
            logger.exception(
                "sms.unheard gateway=%s: the message centre is asked to come again", self._gateway
            )
        self._send(pdu.answer(status, b"\0"))
