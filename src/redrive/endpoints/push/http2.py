"""One HTTP/2 connection: what h2 makes of it, over the event loop's sockets.

h2 is given the bytes that come and asked for those that go. Every request has its own stream; as many are under
way as the service allows, and the others wait for their turn.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from hyperframe.frame import Frame, GoAwayFrame
from typing_extensions import override

from redrive.endpoints.kept_connection import KeptConnection

ALPN: Final = "h2"
_BODY_BYTES_MAX: Final = 4096  # of an answer; what is beyond is read and forgotten

# Apple asks its clients to keep connections open for hours, and takes one after the other for an attack.
_REST_SECONDS: Final = 3600


class Http2Answer(NamedTuple):
    """The answer of a service; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Unprocessed(ConnectionError):  # noqa: N818 - an answer: the request may go by another connection
    """The connection ended, and the service did nothing about the request, as far as one can know."""


@dataclass(slots=True)
class _Exchange:
    """A request under way."""

    answered: asyncio.Future[Http2Answer]  # The end of it
    unsent: bytes  # Rest of its body
    reads_before: int  # How often something had come over the connection when it began
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class _Graceful(H2Connection):
    """h2 takes the announcement of an end (GOAWAY) for the end; services announce it, and still answer what they have."""

    @override
    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
        """Keep the connection's state, which h2 would close: requests under way are still answered after a GOAWAY."""
        before = self.state_machine.state
        answer = super()._receive_goaway_frame(frame)
        if before is not ConnectionState.CLOSED:
            self.state_machine.state = before
        return answer


class Http2Connection(KeptConnection):
    """Posts to one service.

    Args:
        authority: The service's host, with a port where it is not the usual one.
        secure: Whether there is TLS around it.
    """

    def __init__(self, authority: str, *, secure: bool) -> None:
        super().__init__("service")
        self._authority = authority
        self._scheme = "https" if secure else "http"
        self._h2 = _Graceful(H2Configuration(header_encoding="utf-8"))
        self._exchanges: dict[int, _Exchange] = {}
        self._changed = asyncio.Event()
        self._read_count = 0
        self._has_settings = False  # the service has said how many streams it allows
        self.answered = False  # anything at all

    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> Http2Answer:
        """Post a body that is not empty.

        Raises:
            Unprocessed: See there; an abandoned request ends its stream and no other.
            ConnectionError: The connection ended, or the service ended the stream.
        """
        self._stay()
        reads_before = self._read_count
        try:
            await self._turn()
            return await self._exchange(path, headers, body)
        except asyncio.CancelledError:
            self.usable = self.usable and self._read_count > reads_before  # else it may be dead
            raise
        except ProtocolError as error:
            self.usable = False  # h2 may have written half of it
            raise ConnectionError(f"The request cannot be said in HTTP/2: {error}") from None
        finally:
            self._rest(_REST_SECONDS)

    async def _exchange(self, path: str, headers: Mapping[str, str], body: bytes) -> Http2Answer:
        """Send a request on a new stream, and wait for its answer."""
        stream = self._h2.get_next_available_stream_id()
        exchange = self._exchanges[stream] = _Exchange(self._loop.create_future(), body, self._read_count)
        try:
            self._h2.send_headers(stream, self._head(path, headers))
            self._send_body(stream, exchange)
            self._flush()
            answer = await exchange.answered
        except asyncio.CancelledError:
            self._abandon(stream)
            raise
        else:
            if exchange.unsent:  # the service answered without reading all of it
                self._abandon(stream)
            return answer
        finally:
            del self._exchanges[stream]
            self._changed.set()

    # ---- the socket ------------------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != ALPN:
            self._end(ConnectionError("The service does not speak HTTP/2"))
            return
        self._h2.initiate_connection()
        self._flush()

    @override
    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._read_count += 1
        try:
            for event in self._h2.receive_data(data):
                self._hear(event)
        except ProtocolError as error:
            self._flush()
            self._end(ConnectionError(f"The service does not speak HTTP/2 as it should: {error}"))
        self._flush()

    def _flush(self) -> None:
        content = self._h2.data_to_send()
        if content and self._socket is not None:
            self._socket.write(content)

    # ---- what the service says -------------------------------------------------------------------------------

    def _hear(self, event: Event) -> None:
        """Act on one event of h2; those that concern no request under way are left out."""
        match event:
            case RemoteSettingsChanged():
                self._has_settings = True
                self._send_waiting()
            case WindowUpdated():
                self._send_waiting()
            case ResponseReceived(stream_id=int(stream), headers=[*head]):
                self._hear_head(stream, head)
            case DataReceived(stream_id=int(stream), data=data, flow_controlled_length=int(length)):
                self._hear_body(stream, data or b"", length)
            case StreamEnded(stream_id=int(stream)) if stream in self._exchanges:
                exchange = self._exchanges[stream]
                self.answered = True
                _resolve(exchange, Http2Answer(exchange.status, exchange.headers, bytes(exchange.body)))
            case StreamReset(stream_id=int(stream), error_code=code) if stream in self._exchanges:
                _resolve(
                    self._exchanges[stream], ConnectionResetError(f"The service ended the request: {code}")
                )
            case ConnectionTerminated(last_stream_id=last):
                self._hear_goodbye(last or 0, event)

    def _hear_head(self, stream: int, head: Sequence[tuple[str | bytes, str | bytes]]) -> None:
        exchange = self._exchanges.get(stream)
        if exchange is not None:
            exchange.headers = {str(name): str(value) for name, value in head}
            exchange.status = int(exchange.headers.pop(":status"))

    def _hear_body(self, stream: int, data: bytes, length: int) -> None:
        self._h2.acknowledge_received_data(length, stream)
        exchange = self._exchanges.get(stream)
        if exchange is not None:
            exchange.body += data[: _BODY_BYTES_MAX - len(exchange.body)]

    def _hear_goodbye(self, last: int, event: ConnectionTerminated) -> None:
        """Take a GOAWAY: requests before the announced stream are still answered, the others were not processed."""
        self.usable = False
        self._changed.set()
        text = (event.additional_data or b"").decode("utf-8", "replace") or str(event.error_code)
        self._failure = ConnectionResetError(f"The service ends the connection: {text}")
        for stream, exchange in self._exchanges.items():
            if stream > last:
                _resolve(exchange, Unprocessed(str(self._failure)))
        if event.error_code != ErrorCodes.NO_ERROR:
            self._end(self._failure)
        self._rest(_REST_SECONDS)

    def _end(self, error: Exception) -> None:
        """End the connection and fail every request.

        One that began after the connection had answered others, and heard nothing since, may go by another connection.
        """
        self.usable = False
        self._failure = error
        self._changed.set()
        for exchange in self._exchanges.values():
            is_unprocessed = self.answered and exchange.reads_before == self._read_count
            _resolve(exchange, Unprocessed(str(error)) if is_unprocessed else error)
        self._close_socket()

    @override
    def _fail(self, failure: Exception) -> None:
        self._end(failure)

    # ---- what we say -----------------------------------------------------------------------------------------

    async def _turn(self) -> None:
        """Wait until one more stream is allowed."""
        while self.usable:
            if self._has_settings and len(self._exchanges) < self._h2.remote_settings.max_concurrent_streams:
                return
            self._changed.clear()
            await self._changed.wait()
        raise Unprocessed(str(self._failure))

    def _head(self, path: str, headers: Mapping[str, str]) -> list[tuple[str, str]]:
        return [
            (":method", "POST"),
            (":scheme", self._scheme),
            (":authority", self._authority),
            (":path", path),
            *headers.items(),
        ]

    def _send_body(self, stream: int, exchange: _Exchange) -> None:
        """Send as much of the body as the service's flow-control window allows."""
        while exchange.unsent:
            room = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
            if room <= 0:
                return
            part, exchange.unsent = exchange.unsent[:room], exchange.unsent[room:]
            self._h2.send_data(stream, part, end_stream=not exchange.unsent)

    def _send_waiting(self) -> None:
        self._changed.set()
        for stream, exchange in self._exchanges.items():
            if not exchange.answered.done():
                self._send_body(stream, exchange)

    def _abandon(self, stream: int) -> None:
        """End an abandoned stream."""
        with suppress(ProtocolError):  # it has ended by itself, or the connection has
            self._h2.reset_stream(stream, ErrorCodes.CANCEL)
        self._flush()

    @override
    def _is_busy(self) -> bool:
        return bool(self._exchanges)

    @override
    def _say_goodbye(self) -> None:
        self._h2.close_connection()
        self._flush()
        self._close_socket()


def _resolve(exchange: _Exchange, result: Http2Answer | Exception) -> None:
    """End a request with its answer or an error."""
    if exchange.answered.done():  # its push may have been cut short
        return
    if isinstance(result, Exception):
        exchange.answered.set_exception(result)
    else:
        exchange.answered.set_result(result)
