"""The kinds of documents that topics, subscriptions and queues are kept as, and what is found beside them."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

from redrive.engine.ports import DocumentKind
from redrive.model.document import Document
from redrive.model.names import ResourceName, number_key
from redrive.model.queue import DAY_MS, Queue
from redrive.model.topic import Subscription, Topic

# A deleted queue's number may stand on its dead letters as their origin for as long as a message can be kept.
TOMBSTONE_MS: Final = 14 * DAY_MS

TOPIC: Final = DocumentKind.of("topic", Topic)
QUEUE: Final = DocumentKind.of("queue", Queue)
SUBSCRIPTION: Final = DocumentKind.of("subscription", Subscription)


def _write_key(key: str) -> dict[str, Any]:
    return {"key": key}


def _read_key(document: Any) -> str:
    key: str = document["key"]
    return key


# Of a backlog's number: its subscription's key.
SUBSCRIPTION_OF_BACKLOG: Final = DocumentKind("subscription_of_queue", _write_key, _read_key)
# Of an ordered topic's number, under which its archive is: the topic's key.
OF_ARCHIVE: Final = DocumentKind("topic_of_archive", _write_key, _read_key)
# Those that an account has at topics of others, by the account: they are found among nobody's own.
ELSEWHERE: Final = DocumentKind("subscription_elsewhere", _write_key, _read_key)
# Of a topic's key and a subscriber: the key of the one subscription that it has there.
SUBSCRIBER: Final = DocumentKind("subscriber", _write_key, _read_key)
# Of a subscription's key: the key of the queue that callers receive from for it.
SERVING: Final = DocumentKind("serving_queue", _write_key, _read_key)


@dataclass(frozen=True, slots=True)
class QueueRecord(Document):
    """The record of a queue's id, which outlives the queue."""

    restored: ClassVar = {"name": ResourceName._make, "dead_letters_to": ResourceName._make}

    id: int  # The number
    name: ResourceName  # The queue's
    deleted_at: int | None = None  # When the queue was deleted (ms)
    emptied: bool = False  # Whether it was emptied since
    dead_letters_to: ResourceName | None = None  # The queue that its dead letters went to when it was deleted
    is_name_free: bool = False  # Whether another queue may have its name at once


QUEUE_RECORD: Final = DocumentKind.of("queue_number", QueueRecord)
# Deleted queues once more by name, which may have been used for several in turn.
TOMBSTONE: Final = DocumentKind.of("deleted_queue", QueueRecord)


@dataclass(frozen=True, slots=True)
class Due:
    """A document that the sweep has to look at from a time (ms) on: a subscription that ends, a deleted queue."""

    at: int
    kind: str
    key: str

    @property
    def due_key(self) -> str:
        """The key of its document: the earliest due comes first."""
        return f"{self.at:015d}/{self.kind}/{self.key}"


DUE: Final[DocumentKind[Due]] = DocumentKind("due", asdict, lambda document: Due(**document))


def due_of(tombstone: QueueRecord) -> Due:
    """The entry for the sweep's next look at a deleted queue: at once, and once more before it is forgotten.

    A node that had not heard of the deletion may have sent there meanwhile.
    """
    at = (tombstone.deleted_at or 0) + (TOMBSTONE_MS if tombstone.emptied else 0)
    return Due(at, TOMBSTONE.name, tombstone_key(tombstone))


def expiry_of(subscription: Subscription, at: int) -> Due:
    """The entry that has the sweep delete a subscription at its end (ms)."""
    return Due(at, SUBSCRIPTION.name, subscription.key)


def tombstone_key(tombstone: QueueRecord) -> str:
    """The key of a deleted queue's tombstone: its name and its id."""
    return f"{tombstone.name.key}/{number_key(tombstone.id)}"


def of_account(account: str, region: str) -> str:
    """The beginning of the keys of an account's resources in a region; in any region where that is empty."""
    return f"{account}/{region}/" if region else f"{account}/"
