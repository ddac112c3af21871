"""An AMQP broker on a socket of its own, which settles messages as it is told, or not at all.

Proton speaks here as it does in the endpoint, at the other end: what a broker says in trouble no real one can be made
to say. That the endpoint speaks as others do is RabbitMQ's to show.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

from proton import Collector, Condition, Connection, Delivery, Endpoint, Event, Message, Transport

USER: Final = "RootManageSharedAccessKey"
CREDIT: Final = 1000

Settle = Callable[["Session", Delivery], None]


def accept(_: "Session", delivery: Delivery) -> None:
    delivery.update(Delivery.ACCEPTED)
    delivery.settle()


def release(_: "Session", delivery: Delivery) -> None:
    delivery.update(Delivery.RELEASED)
    delivery.settle()


def hang(_: "Session", __: Delivery) -> None:
    """Say nothing of it."""


def reject(condition: str, description: str) -> Settle:
    def settle(_: "Session", delivery: Delivery) -> None:
        delivery.local.condition = Condition(condition, description)
        delivery.update(Delivery.REJECTED)
        delivery.settle()

    return settle


def detach(condition: str, description: str) -> Settle:
    """Close the link instead of settling."""

    def settle(_: "Session", delivery: Delivery) -> None:
        delivery.link.condition = Condition(condition, description)
        delivery.link.close()

    return settle


def disconnect(condition: str, description: str) -> Settle:
    """Close the connection instead, and say why."""

    def settle(session: "Session", _: Delivery) -> None:
        session.connection.condition = Condition(condition, description)
        session.connection.close()

    return settle


def drop(session: "Session", _: Delivery) -> None:
    """Close the socket instead."""
    session.abort()


@dataclass
class Broker:
    """Keeps what it is sent, and settles each message as `settle` says.

    Attributes:
        attach: Why a link is not opened: condition and description; None: it is.
        message_bytes_max: What it says when a link is opened; 0 for no limit.
        credit: What it gives.
    """

    settle: Settle = accept
    messages: list[Any] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)
    attach: tuple[str, str] | None = None
    message_bytes_max: int = 0
    credit: int = CREDIT
    port: int = 0
    sessions: list["Session"] = field(default_factory=list)


class Session(asyncio.Protocol):
    """One connection to it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._collector = Collector()
        self._proton = Transport(Transport.SERVER)
        mechanisms = self._proton.sasl()
        mechanisms.allowed_mechs("ANONYMOUS")
        self.connection = Connection()
        self.connection.collect(self._collector)
        self.connection.container = "broker"
        self._proton.bind(self.connection)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast("asyncio.Transport", transport)  # uvloop's are of no such class
        self._broker.sessions.append(self)
        self._flush()

    def data_received(self, data: bytes) -> None:
        while data and (room := self._proton.capacity()) > 0:
            self._proton.push(data[:room])
            data = data[room:]
            self._flush()

    def abort(self) -> None:
        self._socket.abort()

    def _flush(self) -> None:
        while (event := self._collector.peek()) is not None:
            self._hear(event)
            self._collector.pop()
        while (pending := self._proton.pending()) > 0:
            self._socket.write(self._proton.peek(pending) or b"")
            self._proton.pop(pending)

    def _hear(self, event: Event) -> None:
        kind = event.type
        place: Any = event.context  # what it is about: a delivery, a link, a session or the connection
        if kind == Event.DELIVERY and place.readable and not place.partial:
            self._receive(place)
        elif kind == Event.LINK_REMOTE_OPEN:
            self._attach(place)
        elif kind == Event.CONNECTION_REMOTE_OPEN:
            self._broker.containers.append(place.remote_container)
            place.open()
        elif kind == Event.SESSION_REMOTE_OPEN:
            place.open()
        elif kind in (Event.CONNECTION_REMOTE_CLOSE, Event.SESSION_REMOTE_CLOSE, Event.LINK_REMOTE_CLOSE):
            place.close()

    def _attach(self, link: Any) -> None:
        broker = self._broker
        broker.addresses.append(link.remote_target.address)
        link.target.address = link.remote_target.address
        link.max_message_size = broker.message_bytes_max
        link.open()
        if broker.attach is None:
            link.flow(broker.credit)
        else:
            link.condition = Condition(*broker.attach)
            link.close()

    def _receive(self, delivery: Any) -> None:
        message = Message()
        message.decode(delivery.link.recv(delivery.pending))
        delivery.link.advance()
        self._broker.messages.append(message)
        self._broker.settle(self, delivery)
        if delivery.link.state & Endpoint.LOCAL_ACTIVE:
            delivery.link.flow(1)


@asynccontextmanager
async def broker(tls: ssl.SSLContext | None = None) -> AsyncIterator[Broker]:
    """A broker on a free port, accepting everything."""
    keeper = Broker()
    server = await asyncio.get_running_loop().create_server(lambda: Session(keeper), "127.0.0.1", 0, ssl=tls)
    keeper.port = server.sockets[0].getsockname()[1]
    try:
        yield keeper
    finally:  # uvloop waits for ever for what a test that fails leaves open
        server.close()
        for session in keeper.sessions:
            session.abort()
        await server.wait_closed()
