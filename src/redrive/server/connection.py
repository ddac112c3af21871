"""One client's connection: requests read, handed over one at a time, answered in order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from types import CoroutineType
from typing import Any, Final, TypeAlias, cast

from typing_extensions import override

from redrive.model.http import Request, Response
from redrive.server.limits import SLICE_BYTES, ClientLoad, HttpLimits
from redrive.server.reading import BodyBound, ReadingPhase, RefusedRequestError, RequestReader
from redrive.server.rendering import CHUNKED, CONTINUE, BodyWriter, Renderer, content_length, error_response

Handler: TypeAlias = Callable[[Request], Response | Awaitable[Response]]
OnRefused: TypeAlias = Callable[[str, RefusedRequestError], None]

_log = logging.getLogger(__name__)
_NEVER: Final = float("inf")
_CLOSE: Final = b"Connection: close\r\n"
_KEEP_ALIVE: Final = b"Connection: keep-alive\r\n"
_REFUSALS_MAX: Final = 256
"""Connections above the limit that are told so; what comes beyond them is closed without a word."""


@dataclass(slots=True)
class Shared:
    """The state that all connections of a front share."""

    handler: Handler
    limits: HttpLimits
    renderer: Renderer
    new_request_id: Callable[[], str]
    loop: asyncio.AbstractEventLoop
    load: ClientLoad  # Memory that its requests hold
    # How large a body may be, by its head; None: any may be as large as the limits have it.
    body_bound: BodyBound | None = None
    # Told of each request that is answered here because it is not a whole request, and whose it was.
    on_refused: OnRefused | None = None
    connections: set["Connection"] = field(default_factory=set)  # Those that are open
    is_draining: bool = False  # Every response is the last of its connection
    # Set when the last connection has gone while draining.
    emptied: asyncio.Event = field(default_factory=asyncio.Event)


class Connection(asyncio.Protocol):
    """A connection. The event loop calls it, and the front's sweep when its `deadline` has passed.

    A request is begun when the one before it is answered: RFC 9112, 9.3.2 lets only safe methods overlap, and
    nearly every call here is a POST. While a handler runs there is no deadline, so a long poll costs nothing.

    Attributes:
        deadline: The loop's time at which `expire` wants to be called.
    """

    __slots__ = (
        "_address",
        "_counted_bytes",
        "_is_closing",
        "_is_paused",
        "_is_stalled",
        "_phase_since",
        "_reader",
        "_request",
        "_running",
        "_scheme",
        "_shared",
        "_streaming",
        "_transport",
        "_unparsed",
        "_unread",
        "deadline",
    )

    _transport: asyncio.Transport
    _reader: RequestReader
    _request: Request
    _address: str

    def __init__(self, shared: Shared, scheme: str) -> None:
        self.deadline = _NEVER
        self._shared = shared
        self._scheme = scheme
        self._unparsed = b""  # read and not parsed yet
        self._counted_bytes = 0  # bytes of what is not answered yet, as they stand in `Shared.load`
        self._unread = 0  # bytes of answers, likewise
        self._is_paused = False  # we do not read
        self._is_stalled = False  # the client does not read
        self._is_closing = False  # the last answer is written
        self._phase_since = 0.0  # on the loop's clock
        self._running: asyncio.Future[Any] | None = None
        self._streaming: BodyWriter | None = None

    # What the event loop calls.

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come: greet it, or send it away where there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        shared = self._shared
        limits = shared.limits
        peer = transport.get_extra_info("peername")
        self._address = peer[0] if peer else ""
        self._reader = RequestReader(limits, self._scheme, self._address, shared.body_bound)
        self.deadline = shared.loop.time() + limits.keep_alive_seconds
        shared.connections.add(self)
        excess = shared.load.admit(self._address)
        if excess > _REFUSALS_MAX:
            self.abort()
        elif excess > 0 or shared.is_draining:
            self._refuse(RefusedRequestError(503, "The server has no room for another connection"))

    @override
    def data_received(self, data: bytes) -> None:
        """Parse what has come, a slice at a time, and answer as it goes."""
        if self._is_paused:
            self._unparsed += data  # was on its way when reading was paused
            return
        reader = self._reader
        for start in range(0, len(data), SLICE_BYTES):
            if start and self._is_full():
                self._unparsed = data[start:]
                break
            reader.feed(data[start : start + SLICE_BYTES])
            self._answer()
        if not (reader.phase or reader.ready or self._is_stalled) or self._is_over():
            return  # nearly every time a request came whole, and is under way
        if reader.phase:
            self._await_rest()
        if self._is_full() and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        if reader.ready or reader.begun_bytes > SLICE_BYTES:
            self._count()

    @override
    def pause_writing(self) -> None:
        """The client does not read its answers: nothing more is done for it until it does."""
        self._is_stalled = True
        if self._streaming is not None:
            self._streaming.pause()
        self.deadline = self._flush_deadline()
        if not self._count_unread(self._transport.get_write_buffer_size()):
            self.abort()

    @override
    def resume_writing(self) -> None:
        """Read again."""
        self._is_stalled = False
        if self._streaming is not None:
            self._streaming.resume()
        self._count_unread(0)
        if not self._is_over():
            self.deadline = self._shared.loop.time() + self._shared.limits.keep_alive_seconds
            self._proceed()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone. A handler that waits for it to be worth while may stop; the others go on.

        Cancelling would be wrong: a handler that has begun to change something has to tell others of it.
        """
        shared = self._shared
        shared.connections.discard(self)
        shared.load.leave(self._address, self._counted_bytes, self._unread)
        self._counted_bytes = self._unread = 0
        if shared.is_draining and not shared.connections:
            shared.emptied.set()
        self._is_closing = True
        self._unparsed = b""
        self._reader.close()
        if self._running is not None and self._request.on_gone is not None:
            self._request.on_gone()

    # What the front calls.

    def expire(self, now: float) -> None:
        """The deadline has passed: act by what the connection was waiting for."""
        phase = self._reader.phase
        if self._running is not None and not self._is_stalled:
            self.deadline = _NEVER
        elif self._is_stalled or self._is_over():
            self.abort()
        elif phase is ReadingPhase.HEAD:
            self._refuse(RefusedRequestError(408, "The request's head took too long"))
        elif phase is ReadingPhase.BODY:
            self.deadline = self._body_deadline()
            if self.deadline <= now:
                self._refuse(RefusedRequestError(408, "The request's body came too slowly"))
        else:
            self._close()

    def drain(self) -> None:
        """Close as soon as what is under way is answered: at once where there is nothing."""
        if self._running is None and not self._reader.phase and not self._reader.ready:
            nothing_to_flush = not self._transport.get_write_buffer_size()
            self._close()
            if nothing_to_flush:  # over TLS it would wait for the goodbye of a client that rests
                self.deadline = self._shared.loop.time()

    def abort(self) -> None:
        """Close now, answered or not."""
        self._transport.abort()

    # Answering.

    def _answer(self) -> None:
        """Hand over what is ready, until one has to be waited for."""
        reader = self._reader
        ready = reader.ready
        while ready and self._is_free():
            request = ready.popleft()
            try:
                reply = self._shared.handler(request)
                if not isinstance(reply, Response):
                    self._wait_for(request, reply)
                    return
            except Exception as error:  # noqa: BLE001  whatever it is, it is logged and answered
                reply = self._failure(request, error)
            self._send(request, reply)
        if reader.refusal and not ready and self._is_free():
            self._refuse(reader.refusal)

    def _is_free(self) -> bool:
        return self._running is None and not self._is_stalled and not self._is_over()

    def _is_over(self) -> bool:
        # A transport that has failed says so before the loop comes to call connection_lost.
        return self._is_closing or self._transport.is_closing()

    def _wait_for(self, request: Request, reply: Awaitable[Response]) -> None:
        """Answer when a reply is there; until then, no other request of this connection is handled."""
        # A Task costs 1.7 µs more than a bare Future. To drive a coroutine's first step by hand is slower still.
        loop = self._shared.loop
        # `ensure_future` finds out what it was given, in four calls, before it does the same.
        running: asyncio.Future[Response] = (
            loop.create_task(reply)
            if isinstance(reply, CoroutineType)
            else asyncio.ensure_future(reply, loop=loop)
        )
        running.add_done_callback(self._on_done)
        self._request = request
        self._running = running
        if len(request.body) > SLICE_BYTES:
            self._count()

    def _on_done(self, running: asyncio.Future[Response]) -> None:
        """Send the reply that was waited for, and go on."""
        self._running = None
        request = self._request
        try:
            reply = running.result()
        except asyncio.CancelledError:
            reply = error_response(503, "The server stopped before this was done")
        except BaseException as error:  # noqa: BLE001  as in `_answer`
            reply = self._failure(request, error)
        if not self._is_over():
            self._send(request, reply)
            self._proceed()

    def _send(self, request: Request, reply: Response) -> None:
        """Write a reply; the connection is closed behind the last one."""
        shared = self._shared
        reader = self._reader
        if self._counted_bytes:
            self._count()
        is_last = shared.is_draining or (reader.is_finished and not reader.ready and not reader.refusal)
        keeps_alive = _KEEP_ALIVE if "connection" in request.headers else b""
        connection = _CLOSE if is_last else keeps_alive
        try:
            if reply.parts is not None and request.method != "HEAD":
                self._stream(request, reply, connection)
                return
            pieces = shared.renderer.pieces(reply, request.method, connection)
        except Exception as error:  # noqa: BLE001  a response that cannot be written is the handler's failure too
            pieces = shared.renderer.pieces(self._failure(request, error), request.method, connection)
        # Before writing, which may find the client stalled and set its own deadline.
        self.deadline = shared.loop.time() + shared.limits.keep_alive_seconds
        for piece in pieces:
            self._transport.write(piece)
        if is_last:
            self._close()

    def _stream(self, request: Request, reply: Response, connection: bytes) -> None:
        """Write a response's head, and then its body as that comes; until its end the request is running."""
        chunked = self._reader.takes_chunks and reply.length is None
        has_end = chunked or reply.length is not None  # else the connection's end is the body's
        is_last = connection == _CLOSE or not has_end
        lines = (_CLOSE if is_last else connection) + (CHUNKED if chunked else content_length(reply.length))
        self.deadline = _NEVER
        self._transport.write(self._shared.renderer.begin(reply, lines))
        writer = BodyWriter(
            self._transport, reply, chunked=chunked, on_end=partial(self._on_stream_end, is_last)
        )
        self._streaming, self._request, self._running = writer, request, writer.task
        request.on_gone = writer.cancel

    def _on_stream_end(self, is_last: bool, whole: bool) -> None:  # noqa: FBT001 - as a callback
        """Go on after a streamed body; one that is not `whole` cuts the connection off."""
        self._running = self._streaming = None
        if not whole:
            self.abort()  # the only way to say so
        elif is_last or self._shared.is_draining:
            self._close()
        else:
            self.deadline = self._shared.loop.time() + self._shared.limits.keep_alive_seconds
            self._proceed()

    def _failure(self, request: Request, error: BaseException) -> Response:
        request_id = self._shared.new_request_id()
        _log.error("%s %s failed, request id %s", request.method, request.path, request_id, exc_info=error)
        return error_response(500, "Internal failure", requestId=request_id)

    def _refuse(self, refusal: RefusedRequestError) -> None:
        """Write the last answer, then read on into nothing for a while: see `HttpLimits.linger_seconds`."""
        shared = self._shared
        if shared.on_refused is not None:
            shared.on_refused(self._address, refusal)
        answer = error_response(refusal.status, refusal.message)
        self._reader.refuse(refusal)
        self._is_closing = True
        self._transport.write(shared.renderer.render(answer, "POST", _CLOSE))
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self.deadline = shared.loop.time() + shared.limits.linger_seconds

    def _close(self) -> None:
        """Close when all is written; `expire` sees to it that a client which does not read cannot prevent it."""
        self._is_closing = True
        self.deadline = self._flush_deadline()
        self._transport.close()

    # What is held.

    def _count(self) -> None:
        """Count what is held for this client; where there is no room for more, nothing more is read of it."""
        reader = self._reader
        bytes_held = len(self._unparsed) + reader.begun_bytes + sum(len(each.body) for each in reader.ready)
        if self._running is not None:
            bytes_held += len(self._request.body)
        more = bytes_held - self._counted_bytes
        self._counted_bytes = bytes_held
        has_room = self._shared.load.add(self._address, more)
        if more > 0 and not has_room and reader.begun_bytes and not reader.is_finished:
            reader.refuse(RefusedRequestError(503, "Too many unanswered requests; try again later"))
            self._unparsed = b""
            self._answer()
            self._count()

    def _count_unread(self, size: int) -> bool:
        more = size - self._unread
        self._unread = size
        return self._shared.load.add_unread(self._address, more)

    # Reading on.

    def _proceed(self) -> None:
        """Go on after an answer, or after the client began to read again."""
        self._answer()
        phase = self._reader.phase
        if not (phase or self._is_paused) or self._is_over():
            return
        if phase:
            self._await_rest()
        if self._is_paused and not self._is_full():
            self._is_paused = False
            self._transport.resume_reading()
            data, self._unparsed = self._unparsed, b""
            self.data_received(data)

    def _is_full(self) -> bool:
        return self._is_stalled or len(self._reader.ready) >= self._shared.limits.pipelined_max

    def _await_rest(self) -> None:
        """Time the rest of a request that is half here, once those before it are answered."""
        reader = self._reader
        if not self._is_free():
            return
        if reader.phase_is_new:
            reader.phase_is_new = False
            self._phase_since = self._shared.loop.time()
        if reader.phase is ReadingPhase.HEAD:
            self.deadline = self._phase_since + self._shared.limits.header_seconds
            return
        self.deadline = self._body_deadline()
        if reader.wants_continue:
            reader.wants_continue = False
            self._transport.write(CONTINUE)

    def _body_deadline(self) -> float:
        limits = self._shared.limits
        return self._phase_since + limits.grace_seconds + self._reader.body_bytes / limits.bytes_per_second

    def _flush_deadline(self) -> float:
        limits = self._shared.limits
        seconds = limits.grace_seconds + self._transport.get_write_buffer_size() / limits.bytes_per_second
        return self._shared.loop.time() + seconds
