"""One connection to a webhook: HTTP/1.1, one request under way at a time, and its answer as far as a push asks for it."""

import asyncio
import zlib
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

import httptools
from typing_extensions import override

from redrive.endpoints import verdicts
from redrive.endpoints.kept_connection import KeptConnection
from redrive.endpoints.verdicts import FORBIDDEN, Verdict
from redrive.engine.ports import PushRequest

# Under the 60 s after which load balancers drop a resting connection; an endpoint that is quicker is noticed, and a
# push that meets the very moment is repeated on a fresh connection.
_REST_SECONDS: Final = 30
_TOGETHER_BYTES_MAX: Final = 65_536  # a larger body is not copied behind its head
# Of an answer without its body: its head, those of interim answers, what frames its chunks, its trailers. httptools has
# no bound of its own, and copies what it has of a name or value with each read.
_BESIDE_BODY_BYTES_MAX: Final = 65_536
# For each byte of a body, not counted: a chunk of one byte needs five, or nine if padded.
_FRAMING_BYTES: Final = 16
_BODILESS: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class UnansweredError(ConnectionError):
    """The connection ended before there was anything of an answer."""


class WebAnswer(NamedTuple):
    """The answer to a request."""

    status: int  # Its status code
    phrase: bytes  # Its reason phrase
    headers: Sequence[tuple[bytes, bytes]]  # Names in lower case, in the order they came
    body: bytes  # Its beginning; all of it where it is no longer than was asked for


AnswerTaker: TypeAlias = Callable[[WebAnswer | Exception], None]


class HttpConnection(KeptConnection):
    """A connection to one host. The parser calls the `on_…` methods; what it need not accept ends the connection.

    The parser lets pass what webhooks send and nobody is hurt by: spaces after a chunk's size, bare line feeds, whatever
    bytes in the values of headers.
    """

    def __init__(self) -> None:
        super().__init__("endpoint")
        self._take: AnswerTaker | None = None  # who waits for an answer
        self._outcome: WebAnswer | Exception | None = None  # the answer, while the parser is at work
        self._parser = self._new_parser()
        self._begin("", 0)

    def _new_parser(self) -> httptools.HttpResponseParser:
        """A parser that lets pass what servers get wrong without doubt about where an answer ends."""
        parser = httptools.HttpResponseParser(self)
        parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        return parser

    def _begin(self, method: str, bytes_max: int) -> None:
        """Forget the last answer; the next one belongs to a request of this method."""
        self._method = method
        self._bytes_max = bytes_max
        self._phrase = b""
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._beside_body = 0
        self._head_ended = False
        self._ends_with_connection = False

    async def ask(self, method: str, head: bytes, body: bytes, bytes_max: int) -> WebAnswer:
        """Send a request; its answer, with so many bytes of its body at most.

        The connection can be used again unless `usable` is false: some of the answer or the request is left over then.

        Raises:
            UnansweredError: The connection ended before the head of an answer.
            OSError: It ended later, or what came is no answer.
        """
        answering: asyncio.Future[WebAnswer] = self._loop.create_future()

        def take(outcome: WebAnswer | Exception) -> None:
            if answering.done():
                return
            if isinstance(outcome, Exception):
                answering.set_exception(outcome)
            else:
                answering.set_result(outcome)

        self._stay()
        self._send(method, head, body, bytes_max, take)
        try:
            return await answering
        except asyncio.CancelledError:
            self.cancel()
            raise

    def begin(
        self, method: str, head: bytes, body: bytes, bytes_max: int, seconds: float, take: AnswerTaker
    ) -> None:
        """Send a request, and hand over what `ask` returns or raises; a `TimeoutError` after so many seconds.

        Raises:
            UnansweredError: The connection has ended.
        """
        self._send(method, head, body, bytes_max, take)
        self._after(seconds, self._time_out)

    def cancel(self) -> None:
        """Wait for the answer no longer, and close the connection."""
        self._take = None
        self._drop()
        self._rest(_REST_SECONDS)

    def _send(self, method: str, head: bytes, body: bytes, bytes_max: int, take: AnswerTaker) -> None:
        """Write a request; `take` gets the answer's outcome. A small body goes in one packet with the head."""
        if self._socket is None:
            raise UnansweredError(str(self._failure))
        self._begin(method, bytes_max)
        self._take = take
        if len(body) <= _TOGETHER_BYTES_MAX:
            self._socket.write(head + body)
        else:
            self._socket.write(head)
            self._socket.write(body)

    def _time_out(self) -> None:
        self._lose(TimeoutError())

    def _end(self) -> None:
        """Hand over the outcome, if there is one; the connection rests by then, and may be used for the next request."""
        outcome, self._outcome = self._outcome, None
        take, self._take = self._take, None
        self._rest(_REST_SECONDS)
        if take is not None and outcome is not None:
            take(outcome)

    # ---- the socket ------------------------------------------------------------------------------------------

    @override
    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if self._take is None:  # unrequested
            self._drop()
            return
        self._beside_body += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._drop()  # its own protocol is spoken from here on
        except httptools.HttpParserError as error:
            self._fail_with(ConnectionError(f"The answer is no HTTP: {error}"))
        else:
            self._check_limits()
        if self._outcome is not None:
            self._end()

    @override
    def eof_received(self) -> None:
        """See asyncio.Protocol."""
        if self._ends_with_connection and self._take is not None:
            self._answer()
            self._end()

    def _check_limits(self) -> None:
        """End an answer that has all of the body that is asked for, or too much beside it."""
        if self._outcome is not None:
            return
        if self._head_ended and self._body_bytes >= self._bytes_max:
            self._drop()
            self._answer()
        elif self._beside_body > _BESIDE_BODY_BYTES_MAX:
            self._fail_with(
                ConnectionError(f"The answer has more than {_BESIDE_BODY_BYTES_MAX} bytes beside its body")
            )

    # ---- what the parser calls -------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first byte of an answer."""
        if self._outcome is not None:
            self._drop()  # one after the answer

    def on_status(self, phrase: bytes) -> None:
        """The reason phrase, or a part of it."""
        self._phrase += phrase

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer."""
        if not self._head_ended:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is over; that of an interim answer says nothing."""
        status = self._parser.get_status_code()
        if self._is_interim(status):
            return
        self._head_ended = True
        if not self._parser.should_keep_alive():
            self.usable = False
            self._ends_with_connection = status not in _BODILESS
        if self._method == "HEAD":
            self._drop()  # the parser would wait for the body that the head speaks of
            self._answer()

    def on_body(self, body: bytes) -> None:
        """A part of the body, which `data_received` has counted with the rest of its read."""
        self._beside_body = max(0, self._beside_body - _FRAMING_BYTES * len(body))
        if self._body_bytes < self._bytes_max:
            self._body.append(body)
            self._body_bytes += len(body)

    def on_message_complete(self) -> None:
        """The answer is whole, unless it was an interim one."""
        if self._is_interim(self._parser.get_status_code()):
            self._phrase, self._headers = b"", []
        else:
            self._answer()

    @staticmethod
    def _is_interim(status: int) -> bool:
        return status < HTTPStatus.OK and status != HTTPStatus.SWITCHING_PROTOCOLS

    # ---- the answer ------------------------------------------------------------------------------------------

    def _answer(self) -> None:
        """Make the outcome of what has been read; `_end` hands it over."""
        if self._outcome is not None:
            return
        if self._socket is not None and self._socket.get_write_buffer_size():
            self._drop()  # it did not want the rest of the request
        status = self._parser.get_status_code()
        body = b"".join(self._body)[: self._bytes_max]
        self._outcome = WebAnswer(status, self._phrase, self._headers, body)

    def _fail_with(self, failure: Exception) -> None:
        if self._outcome is None:
            self._outcome = failure
        self._drop()

    def _lose(self, failure: Exception) -> None:
        if self._take is not None:
            self._fail_with(failure)
            self._end()

    def _drop(self) -> None:
        self.usable = False
        self.abort()

    @override
    def _is_busy(self) -> bool:
        return self._take is not None

    @override
    def _say_goodbye(self) -> None:
        self._close_socket()

    @override
    def _fail(self, failure: Exception) -> None:
        unanswered = UnansweredError(str(failure))
        self._lose(ConnectionError(f"The answer is not whole: {failure}") if self._head_ended else unanswered)


# ---- answers, as far as a push asks for them, and their verdicts ---------------------------------------------

_INFLATED: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class WebhookAnswer(NamedTuple):
    """An endpoint's answer."""

    status: int
    text: str  # The beginning of its body, or the reason phrase
    challenges: list[str]  # WWW-Authenticate headers
    headers: tuple[tuple[str, str], ...]  # Requested response headers


def answer_of(web_answer: WebAnswer, push_request: PushRequest) -> WebhookAnswer:
    """An answer as far as a push asks for it."""
    body = web_answer.body
    if body:
        encoding = ",".join(values_of(web_answer, b"content-encoding"))
        body = _inflated(body, encoding, push_request.answer_bytes_max)
    text = body.decode("utf-8", "replace") or text_of(web_answer.phrase)
    unauthorized = web_answer.status == HTTPStatus.UNAUTHORIZED
    challenges = values_of(web_answer, b"www-authenticate") if unauthorized else []
    first_values = {
        name: values_of(web_answer, name.lower().encode())[:1] for name in push_request.headers_kept
    }
    headers_kept = tuple((name, value) for name, values in first_values.items() for value in values)
    return WebhookAnswer(web_answer.status, text, challenges, headers_kept)


def values_of(web_answer: WebAnswer, name: bytes) -> list[str]:
    """The values of a header, whose name is in lower case."""
    return [text_of(value).strip() for other, value in web_answer.headers if other == name]


def text_of(raw: bytes) -> str:
    """A phrase, or what stands in a header, whatever bytes it has."""
    return raw.decode("utf-8", "surrogateescape")


def _inflated(body: bytes, encoding: str, bytes_max: int) -> bytes:
    """The beginning of a compressed body, inflated; a body that cannot be inflated stays as it is."""
    window_bits = _INFLATED.get(encoding.strip().lower())
    if window_bits is None:
        return body
    try:
        return zlib.decompressobj(window_bits).decompress(body, bytes_max)
    except zlib.error:
        return body


def verdict_of(answer: WebhookAnswer) -> Verdict:
    """The verdict that an answer is for a delivery."""
    return verdicts.of_status(answer.status, answer.text, identifiers=answer.headers)


def verdict_of_failure(error: Exception) -> Verdict:
    """The same of an exception that ended a push; what is forbidden cannot be made."""
    return verdicts.of_failure(error, unusable=FORBIDDEN)
