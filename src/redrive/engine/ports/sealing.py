"""Sealing: messages of some queues and topics are encrypted before they reach the store.

What is sealed looks the same to every store: its body is `SEAL_MARK`, with which no message of a facade begins, and
`Delivery.sealed` has its content and says how to open it. Headers that do not tell what the message says stay readable
beside it. What older versions sealed is text: behind the mark, and in a member `"sealed"` of the headers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from typing_extensions import override

from redrive.engine.ports.documents import Resource
from redrive.model.attempt import Attempt
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.model.topic import Topic

#: The body, the headers and the sealed bytes of a message as they are stored; a tuple, since each message makes one.
StoredContent: TypeAlias = tuple[str, bytes | None, bytes | None]


@dataclass(slots=True)
class OpenedDelivery(Delivery):
    """A delivery that is encrypted in the store, decrypted."""

    seal: Any = None  # How it was sealed, as its facade knows it


class Sealer(Protocol):
    """Encrypts what enters one queue, or the backlogs and the archive of one topic."""

    @property
    def lasts(self) -> bool:
        """True if `admit` lets everything in, always: its key is not a caller's, who could take it away."""
        ...

    async def admit(self, topic: Topic) -> Attempt | None:
        """The reason why what was published to a topic may not enter the queue now; None: it may."""
        ...

    async def prepare(self) -> None:
        """Get what `seal` needs; raises KeyUnusable if the key cannot be used now."""
        ...

    def seal(self, queue_id: int, message_id: bytes, body: str, headers: bytes | None) -> StoredContent:
        """The content of a message as it is stored in this queue; headers are a JSON object. `prepare` came before."""
        ...


class DocumentSealing(Protocol):
    """The encryption of documents of secret kinds at rest."""

    def sealed(self, kind: str, key: str, document: Any) -> Any:
        """A document that no one else can read."""
        ...

    def opened(self, resource: Resource) -> Resource:
        """The document as it was.

        Raises:
            StoreUnavailable: Its key is not there, or it was changed since.
        """
        ...


class MessageSealing(Protocol):
    """The encryption of messages at rest."""

    def of_queue(self, queue: Queue) -> Sealer | None:
        """The sealer of a queue; None: its messages are stored as they are."""
        ...

    def of_topic(self, topic: Topic) -> Sealer | None:
        """The sealer of a topic's backlogs and archive; None: they are stored as they are."""
        ...

    async def opened(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Deliveries, the sealed ones opened; as they are where their key cannot be used."""
        ...


class _NoSealing(MessageSealing):
    """Stores everything as it is."""

    @override
    def of_queue(self, queue: Queue) -> Sealer | None:
        return None

    @override
    def of_topic(self, topic: Topic) -> Sealer | None:
        return None

    @override
    async def opened(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        return list(deliveries)


NO_SEALING: Final[MessageSealing] = _NoSealing()
