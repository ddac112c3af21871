"""Text messages: requests handed to a message centre over SMPP 3.4."""

import asyncio
import logging
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from zlib import crc32

from typing_extensions import override

from redrive.endpoints.sms.connection import SmsConnection, of_all, of_failure, of_status, too_long
from redrive.endpoints.sms.gateway import MessageCentre
from redrive.endpoints.sms.pdu import Address, ShortMessage, Submission, read_answer
from redrive.endpoints.verdicts import TimedEndpoint, Verdict
from redrive.engine.ports import PushRequest
from redrive.model.attempt import AttemptResult
from redrive.model.text_parts import PARTS_MAX, TextParts, parts_of, text_of

logger = logging.getLogger(__name__)

_BIND_SECONDS: Final = 10
# A centre that was away this long ago is not asked again; whoever comes is told the same.
_PAUSE_SECONDS: Final = 1
_PAUSE_SECONDS_MAX: Final = 30
_UNFINISHED_MAX: Final = 1000

_INTERNATIONAL: Final = (1, 1)  # type of number and numbering plan (5.2.5, 5.2.6): E.164
_SHORT_CODE: Final = (3, 0)  # of the network alone
_NAME: Final = (5, 0)  # alphanumeric
_CENTRES_OWN: Final = (0, 0)
_SHORT_CODE_DIGITS_MAX: Final = 7
_UCS2: Final = 8

Reader = Callable[[str, str], Awaitable[None]]


async def _unread(number: str, text: str) -> None:
    logger.debug("sms.unread number=%s characters=%d: incoming texts are not processed", number, len(text))


class SmsEndpoint(TimedEndpoint):
    """Hands in each request as a text message, in parts if it is long.

    A request's endpoint is a telephone number (`+49301234567`), its body the text. Of its headers, `Sender` is a number,
    a short code or a name, `Priority` what SMPP has under that name (0 to 3), and `Message-ID` tells texts apart: parts
    of a text that the centre has taken are not handed in again when the others are.

    Delivered means that the centre has taken all of it; no receipts are asked for. The session is bound at `start`, or
    with the first request, and again whenever it is lost.

    Args:
        now: Milliseconds, for durations.
        gateway: The centre.
        ca_file: Certificates in PEM that are trusted besides the system's.
    """

    def __init__(self, now: Callable[[], int], gateway: MessageCentre, ca_file: Path | None = None) -> None:
        super().__init__(now)
        self._gateway = gateway
        self._trust: ssl.SSLContext | None = None
        if gateway.secure:
            self._trust = ssl.create_default_context()
            if ca_file is not None:
                self._trust.load_verify_locations(ca_file)
        self._opening: asyncio.Task[SmsConnection] | None = None
        self._pause: asyncio.TimerHandle | None = None  # after a bind that failed
        self._keeper: asyncio.Task[None] | None = None
        self._unfinished: OrderedDict[str, dict[int, Verdict]] = OrderedDict()  # parts accepted, by text
        self._state = ""
        #: Reads what telephones write: gets the number and the text, which is gone when it returns.
        self.reader: Reader = _unread

    def start(self) -> None:
        """Be bound from now on, as far as the centre lets us."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="redrive-sms")

    @override
    async def close(self) -> None:
        """Unbind."""
        for task in (self._keeper, self._opening):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._pause is not None:
            self._pause.cancel()
        connection = self._open_one()
        if connection is not None:
            await connection.close()

    # ---- a text ----------------------------------------------------------------------------------------------

    @override
    async def _verdict(self, push_request: PushRequest) -> Verdict:
        """Hand a text to the message centre in parts, of which too many are refused."""
        self.start()
        try:
            text = parts_of(push_request.body.decode())
            if len(text.parts) > PARTS_MAX:
                return too_long(len(text.parts), PARTS_MAX)
            submissions = self._submissions(push_request, text)
            async with asyncio.timeout(push_request.timeout_ms / 1000):
                connection = await self._session()
                return await self._hand_in(connection, push_request, submissions)
        except (OSError, ValueError) as error:
            if isinstance(error, TimeoutError) and (bound := self._open_one()):
                bound.probe()  # it may be dead without anybody knowing
            return of_failure(error)

    async def _hand_in(
        self, connection: SmsConnection, push_request: PushRequest, submissions: Sequence[bytes]
    ) -> Verdict:
        """Hand in the parts of a text that the centre has not accepted at an earlier attempt."""
        accepted = self._accepted_parts(push_request) if len(submissions) > 1 else {}

        async def hand_in(number: int, body: bytes) -> Verdict:
            if number not in accepted:
                answer = await connection.submit(body)
                verdict = of_status(answer.status, read_answer(answer.body))
                if verdict.result is not AttemptResult.DELIVERED:
                    return verdict
                accepted[number] = verdict
            return accepted[number]

        tries = (hand_in(number, body) for number, body in enumerate(submissions))
        answers = await asyncio.gather(*tries, return_exceptions=True)
        verdicts = [of_failure(each) if isinstance(each, BaseException) else each for each in answers]
        if len(accepted) == len(submissions):
            self._unfinished.pop(_key(push_request), None)
        return of_all(verdicts)

    def _accepted_parts(self, push_request: PushRequest) -> dict[int, Verdict]:
        """The parts of a text that the centre has already; remembered of the last thousand unfinished texts."""
        accepted = self._unfinished.setdefault(_key(push_request), {})
        self._unfinished.move_to_end(_key(push_request))
        if len(self._unfinished) > _UNFINISHED_MAX:
            self._unfinished.popitem(last=False)
        return accepted

    def _submissions(self, push_request: PushRequest, text: TextParts) -> list[bytes]:
        """The bodies of its units; the reference is the same at each attempt, so a telephone puts parts together.

        Raises:
            ValueError: An address is not valid.
        """
        total, reference = len(text.parts), crc32(_key(push_request).encode()) & 0xFFFF
        source = _source(push_request.headers.get("Sender") or self._gateway.sender)
        return [
            Submission(
                source,
                Address(*_INTERNATIONAL, push_request.endpoint.removeprefix("+")),
                part,
                _UCS2 if text.wide else 0,
                int(push_request.headers.get("Priority", "0")),
                (reference, total, number) if total > 1 else None,
                self._gateway.header,
            ).body()
            for number, part in enumerate(text.parts, start=1)
        ]

    # ---- the session -------------------------------------------------------------------------------------------

    async def _session(self) -> SmsConnection:
        """The session, shared by all callers: a cancelled caller does not cancel it."""
        opening = self._opening
        if opening is None or (_is_over(opening) and not self._pause):
            opening = self._opening = asyncio.create_task(self._open())
            opening.add_done_callback(_is_over)  # reads the error, which asyncio would log if nobody did
        return await asyncio.shield(opening)

    async def _open(self) -> SmsConnection:
        """Connect and bind; after a failure no other is tried for `_PAUSE_SECONDS`."""
        gateway, loop = self._gateway, asyncio.get_running_loop()
        connection: SmsConnection | None = None
        try:
            async with asyncio.timeout(_BIND_SECONDS):
                _, connection = await loop.create_connection(
                    lambda: SmsConnection(gateway, self._hear), gateway.host, gateway.port, ssl=self._trust
                )
                await connection.bind()
        except BaseException as error:
            if connection is not None:
                connection.abort()
            self._pause = loop.call_later(_PAUSE_SECONDS, self._end_pause)
            if isinstance(error, OSError | ValueError):
                self._tell(f"sms.away gateway={gateway}: {str(error) or type(error).__name__}")
            raise
        self._tell(f"sms.bound gateway={gateway}")
        return connection

    def _end_pause(self) -> None:
        self._pause = None

    async def _keep(self) -> None:
        """Bind again whenever the session is lost: soon, and then less and less often."""
        pause = _PAUSE_SECONDS
        while True:
            with suppress(OSError, ValueError):
                connection = await self._session()
                bound_at = self._now()
                why = await asyncio.shield(connection.closed)
                self._tell(f"sms.lost gateway={self._gateway}: {str(why) or type(why).__name__}")
                if self._now() - bound_at > _PAUSE_SECONDS_MAX * 1000:
                    pause = _PAUSE_SECONDS
            await _rest(pause)
            pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    def _tell(self, state: str) -> None:
        """Say it once; a centre that is away is asked twice a minute."""
        if state != self._state:
            self._state = state
            logger.log(logging.INFO if state.startswith("sms.bound") else logging.WARNING, "%s", state)

    def _open_one(self) -> SmsConnection | None:
        opening = self._opening
        return None if opening is None or not opening.done() or _is_over(opening) else opening.result()

    async def _hear(self, message: ShortMessage) -> None:
        """Give a text from a telephone to the reader; receipts are left out."""
        if not message.is_text:
            logger.debug("sms.receipt: not asked for")
            return
        number = "+" + message.source.text.removeprefix("+")
        await self.reader(number, text_of(message.octets, wide=message.coding == _UCS2))


def _key(push_request: PushRequest) -> str:
    """The identity of a text: its message id, or its content where it has none."""
    return f"{push_request.headers.get('Message-ID') or push_request.body.decode()} {push_request.endpoint}"


def _source(sender: str) -> Address:
    """The sender's address: a number in international form, a short code, a name, or the centre's own."""
    digits = sender.removeprefix("+")
    if not sender:
        return Address(*_CENTRES_OWN, "")
    if not (digits.isascii() and digits.isdigit()):
        return Address(*_NAME, sender)
    short = digits == sender and len(digits) <= _SHORT_CODE_DIGITS_MAX
    return Address(*(_SHORT_CODE if short else _INTERNATIONAL), digits)


def _is_over(opening: "asyncio.Task[SmsConnection]") -> bool:
    if not opening.done():
        return False
    return opening.cancelled() or opening.exception() is not None or opening.result().closed.done()


async def _rest(seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()
