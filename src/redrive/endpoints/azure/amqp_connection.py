"""One AMQP connection: what Proton makes of it, over the event loop's sockets.

Proton is given the bytes that come and asked for those that go; it opens no socket, starts no thread and needs no TLS
library, because the event loop has one. Every entity has its own session, since some brokers end the session
where others end the link.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final, cast

from proton import (
    Collector,
    Connection,
    Delivery,
    Disposition,
    Event,
    Link,
    Sender,
    Session,
    Transport,
    TransportException,
)
from typing_extensions import override

from redrive.endpoints import verdicts
from redrive.endpoints.azure.namespaces import Namespace
from redrive.endpoints.kept_connection import KeptConnection
from redrive.endpoints.verdicts import (
    DISABLED,
    FULL,
    IN_TROUBLE,
    MISSING,
    NOT_AUTHENTICATED,
    THROTTLED,
    Verdict,
    of_failure,
)
from redrive.model.attempt import Reason

Answer = asyncio.Future[Verdict]

# Well under the minutes after which brokers drop a connection that says nothing; so it needs no heartbeats.
_REST_SECONDS: Final = 30

# RabbitMQ allows 2,047 sessions, Service Bus 4,999, and Proton says nothing to whoever asks for one more.
_ENTITIES_MAX: Final = 1000

_OUTCOMES: Final[dict[int, str]] = {
    Disposition.ACCEPTED: "accepted",
    Disposition.REJECTED: "rejected",
    Disposition.RELEASED: "released",
    Disposition.MODIFIED: "modified",
}
_ENDS: Final = (Event.LINK_REMOTE_CLOSE, Event.LINK_REMOTE_DETACH, Event.SESSION_REMOTE_CLOSE)


@dataclass(slots=True)
class _Entity:
    """The transfers under way to one queue, topic or event hub."""

    sender: Sender  # Its link
    # Messages that the broker gave no credit for yet.
    waiting: dict[Answer, bytes] = field(default_factory=dict)
    # Those whose outcome it has not told yet, by their tags.
    sent: dict[str, Answer] = field(default_factory=dict)
    tags: int = 0  # How many were used

    @property
    def under_way(self) -> list[Answer]:
        """The awaited answers."""
        return [answer for answer in (*self.waiting, *self.sent.values()) if not answer.done()]


class AmqpConnection(KeptConnection):
    """Sends messages to the entities of a namespace.

    Args:
        namespace: Where to, and as whom.
        container: What this end calls itself; no two connections of a broker share a name.
    """

    def __init__(self, namespace: Namespace, container: str) -> None:
        super().__init__("broker")
        self._entities: dict[str, _Entity] = {}
        self._collector = Collector()
        self._proton = Transport(Transport.CLIENT)
        self._connection = self._open(namespace, container)
        self._final_verdict: Verdict | None = None  # the reason why the connection ended

    async def send(self, address: str, message: bytes) -> Verdict:
        """Send a message; the verdict is the broker's, or says what ended the link or the connection first.

        Where no answer comes in time, or nobody waits for it any more, the next message goes by another connection:
        this one may be dead without anybody knowing.
        """
        if self._final_verdict is not None:
            return self._final_verdict
        self._stay()
        entity = self._entities.get(address) or self._attach(address)
        answer: Answer = self._loop.create_future()
        entity.waiting[answer] = message
        self._send_waiting(entity)
        self._flush()
        try:
            return await answer
        except asyncio.CancelledError:
            self.usable = False
            raise
        finally:
            entity.waiting.pop(answer, None)
            self._rest(_REST_SECONDS)

    # ---- the socket ------------------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._flush()

    @override
    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        try:
            while data and (room := self._proton.capacity()) > 0:
                self._proton.push(data[:room])
                data = data[room:]
                self._work()
        except TransportException as error:
            self._end(of_failure(ConnectionError(str(error))))
        self._flush()

    def _flush(self) -> None:
        """Write what Proton has to say."""
        self._work()
        while self._socket is not None and (pending := self._proton.pending()) != 0:
            if pending < 0:  # Proton has nothing more to write; an event says why
                self._work()
                self._socket.close()
                return
            written = self._proton.peek(pending) or b""
            self._socket.write(written)
            self._proton.pop(len(written))
            self._work()

    # ---- what the broker says ----------------------------------------------------------------------------------

    def _work(self) -> None:
        while (event := self._collector.peek()) is not None:
            self._hear(event)
            self._collector.pop()

    def _hear(self, event: Event) -> None:
        """Act on one event of Proton: an outcome, credit to send, or the end of a link, session or connection."""
        match event.type:
            case Event.DELIVERY:
                self._hear_outcome(cast("Delivery", event.delivery))
            case Event.LINK_FLOW:
                entity = self._entity_of(cast("Link", event.link))
                if entity is not None:
                    self._send_waiting(entity)
            case kind if kind in _ENDS:
                self._hear_end(cast("Link | Session", event.context))
            case Event.CONNECTION_REMOTE_CLOSE:
                self._end(_verdict_of_end(self._connection))
                self._connection.close()
            case Event.TRANSPORT_ERROR:
                condition = self._proton.condition
                name_and_text = (condition.name, condition.description or "") if condition else ("", "")
                self._end(verdict_of_condition(*name_and_text))

    def _hear_outcome(self, delivery: Delivery) -> None:
        """Answer the sender of a delivery once the broker has settled it, or says what became of it."""
        entity = self._entity_of(delivery.link)
        if entity is None or not (delivery.settled or delivery.remote_state in _OUTCOMES):
            return
        answer = entity.sent.pop(delivery.tag, None)
        if answer is not None:
            _tell(answer, _verdict_of(delivery))
        delivery.settle()

    def _hear_end(self, ended: Link | Session) -> None:
        """Fail what is under way to an entity whose link or session has ended; the other entities go on."""
        for address, entity in list(self._entities.items()):
            session = entity.sender.session
            if ended in (entity.sender, session):
                del self._entities[address]
                verdict = _verdict_of_end(ended, len(entity.under_way))
                for answer in entity.under_way:
                    _tell(answer, verdict)
                entity.sender.close()
                session.close()

    def _end(self, verdict: Verdict) -> None:
        """End the connection: everything under way gets this verdict."""
        self.usable = False
        self._final_verdict = self._final_verdict or verdict
        for entity in self._entities.values():
            for answer in entity.under_way:
                _tell(answer, verdict)
        self._entities.clear()
        self._close_socket()

    @override
    def _fail(self, failure: Exception) -> None:
        self._end(of_failure(failure))

    # ---- what we say -------------------------------------------------------------------------------------------

    def _open(self, namespace: Namespace, container: str) -> Connection:
        """Begin an AMQP connection, with the namespace's user or anonymously."""
        mechanisms = self._proton.sasl()
        mechanisms.allowed_mechs("PLAIN" if namespace.user else "ANONYMOUS")
        mechanisms.allow_insecure_mechs = True  # Proton cannot see whether there is TLS around it
        connection = Connection()
        connection.collect(self._collector)
        connection.container = container
        connection.hostname = namespace.host
        connection.user, connection.password = namespace.user, namespace.password
        self._proton.bind(connection)
        connection.open()
        return connection

    def _attach(self, address: str) -> _Entity:
        """Open a link to an entity in a session of its own; with too many entities, no more are begun here."""
        session = self._connection.session()
        session.open()
        sender = session.sender(address)
        sender.target.address = address
        sender.snd_settle_mode = Link.SND_UNSETTLED
        sender.open()
        entity = self._entities[address] = _Entity(sender)
        self.usable = self.usable and len(self._entities) <= _ENTITIES_MAX
        return entity

    def _send_waiting(self, entity: _Entity) -> None:
        """Send waiting messages, as far as the broker gives credit; those too large for the link are refused here."""
        sender = entity.sender
        while entity.waiting and sender.credit > 0:
            answer = next(iter(entity.waiting))
            message = entity.waiting.pop(answer)
            bytes_max = sender.remote_max_message_size
            if 0 < bytes_max < len(message):
                _tell(answer, verdict_of_size(len(message), bytes_max))
                continue
            entity.tags += 1
            tag = str(entity.tags)
            sender.delivery(tag)
            sender.send(message)
            sender.advance()
            entity.sent[tag] = answer

    def _entity_of(self, link: Link) -> _Entity | None:
        entity = self._entities.get(link.name)
        return entity if entity is not None and entity.sender == link else None

    @override
    def _is_busy(self) -> bool:
        return any(entity.under_way for entity in self._entities.values())

    @override
    def _say_goodbye(self) -> None:
        self._connection.close()
        self._flush()


def _tell(answer: Answer, verdict: Verdict) -> None:
    if not answer.done():  # its push may have been cut short
        answer.set_result(verdict)


def _verdict_of(delivery: Delivery) -> Verdict:
    """The verdict on a delivery by its final state at the broker."""
    state = delivery.remote_state
    if state == Disposition.ACCEPTED:
        return ACCEPTED
    condition = delivery.remote.condition
    if condition is not None:
        return verdict_of_condition(condition.name, condition.description or "")
    return verdict_of_condition(_OUTCOMES.get(state, "settled"), "no reason given")


def _verdict_of_end(ended: Connection | Link | Session, messages: int = 0) -> Verdict:
    condition = ended.remote_condition
    if condition is None:
        return of_failure(ConnectionResetError("The broker ended it without saying why"))
    return verdict_of_end(condition.name, condition.description or "", messages)


# Verdicts on a broker's conditions: AMQP 1.0's own, and those that Azure adds (`com.microsoft:…`).
#
# Each has the HTTP status nearest to it, so that schedules and probation which go by statuses hold for brokers too.

ACCEPTED: Final = verdicts.ACCEPTED.verdict(200)

_UNKNOWN: Final = (IN_TROUBLE, 500)
_INVALID: Final = (verdicts.INVALID, 400)
_DENIED: Final = (NOT_AUTHENTICATED, 401)
_TOO_LARGE: Final = (verdicts.TOO_LARGE, 413)
_BUSY: Final = (THROTTLED, 503)
_BY_CONDITION: Final = {
    "amqp:not-found": (MISSING, 404),
    "amqp:unauthorized-access": _DENIED,
    "amqp:resource-limit-exceeded": (FULL, 507),
    "amqp:link:message-size-exceeded": _TOO_LARGE,
    "amqp:decode-error": _INVALID,
    "amqp:invalid-field": _INVALID,
    "amqp:not-allowed": _INVALID,
    "amqp:not-implemented": _INVALID,
    "amqp:precondition-failed": _INVALID,
    "com.microsoft:argument-error": _INVALID,
    "com.microsoft:argument-out-of-range": _INVALID,
    "com.microsoft:auth-failed": _DENIED,
    "com.microsoft:entity-disabled": (DISABLED, 423),
    "com.microsoft:server-busy": _BUSY,
    "com.microsoft:timeout": (IN_TROUBLE, 504),
}


def verdict_of_condition(condition: str, text: str) -> Verdict:
    """The verdict on a message, or the entity it is for, that was refused with a condition."""
    meaning, status = _BY_CONDITION.get(condition, _UNKNOWN)
    return meaning.verdict(status, f"{condition}: {text}" if text else condition)


def verdict_of_end(condition: str, text: str, messages: int) -> Verdict:
    """The verdict on messages under way whose link was ended.

    A condition about one message ends the link for all: unless it was the only one, nobody can tell which it was.
    """
    verdict = verdict_of_condition(condition, text)
    if verdict.reason not in (Reason.CLIENT_ERROR, Reason.TOO_LARGE) or messages == 1:
        return verdict
    meaning, status = _UNKNOWN
    return meaning.verdict(status, verdict.response)


def verdict_of_size(message_bytes: int, message_bytes_max: int) -> Verdict:
    """The entity said how large a message may be, so that it need not be sent to be refused."""
    meaning, status = _TOO_LARGE
    return meaning.verdict(status, f"{message_bytes} bytes; the entity takes {message_bytes_max}")
