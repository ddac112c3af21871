"""The documents of a store, held against each other: whatever a call makes, changes or removes is there whole or not.

A subscription stands at a topic and is found by its backlog's number, its subscriber and its account; a queue has a
record of its number; a queue that serves a subscription goes with it; what falls due stands in the list of that. Each
pair is written in one transaction, so no moment and no crash may show one without the other.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from redrive.engine.configuration.kinds import (
    DUE,
    ELSEWHERE,
    QUEUE,
    QUEUE_RECORD,
    SERVING,
    SUBSCRIBER,
    SUBSCRIPTION,
    SUBSCRIPTION_OF_BACKLOG,
    TOMBSTONE,
    TOPIC,
    Due,
    QueueRecord,
    due_of,
    tombstone_key,
)
from redrive.engine.ports import Change, DocumentKind, Put, Remove, Resource
from redrive.model.names import number_key
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

T = TypeVar("T")
Find = Callable[[str, str], Awaitable[Sequence[Resource]]]

_KINDS: Final[Sequence[DocumentKind[Any]]] = (
    *(TOPIC, SUBSCRIPTION, SUBSCRIPTION_OF_BACKLOG, ELSEWHERE, SUBSCRIBER, SERVING),
    *(QUEUE, QUEUE_RECORD, TOMBSTONE, DUE),
)
_NAMES: Final = frozenset(kind.name for kind in _KINDS)


def are_configuration(changes: Sequence[Change]) -> bool:
    """True if some of the changes are of documents that are looked at here."""
    return any(change.kind in _NAMES for change in changes if isinstance(change, Put | Remove))


async def read_configuration(find: Find) -> "Configuration":
    """Read what is configured in a store, by its verb `find`."""
    return Configuration({kind.name: await find(kind.name, "") for kind in _KINDS})


class Configuration:
    """The configured resources.

    Attributes:
        found: The documents, by kind.
        topics: By key, as are the subscriptions and the queues.
    """

    def __init__(self, found: dict[str, Sequence[Resource]]) -> None:
        self.found = found
        self.topics: dict[str, Topic] = self.all_of(TOPIC)
        self.subscriptions: dict[str, Subscription] = self.all_of(SUBSCRIPTION)
        self.queues: dict[str, Queue] = self.all_of(QUEUE)
        self._tombstones: dict[str, QueueRecord] = self.all_of(TOMBSTONE)

    def all_of(self, kind: DocumentKind[T]) -> dict[str, T]:
        """The values of a kind, by key."""
        return {one.key: kind.read(one.document) for one in self.found[kind.name]}

    def half_written(self) -> list[str]:
        """Return the documents that stand without those they belong with, each in a few words; else nothing."""
        return [
            *self._subscriptions(),
            *self._found_by(),
            *self._queues(),
            *self._deleted(),
            *self._falls_due(),
        ]

    # ---- subscriptions -------------------------------------------------------------------------------------

    def _subscriptions(self) -> Iterator[str]:
        of_queue, subscribers = self.all_of(SUBSCRIPTION_OF_BACKLOG), self.all_of(SUBSCRIBER)
        elsewhere, dues = set(self.all_of(ELSEWHERE).values()), self.all_of(DUE).values()
        ends = {(due.key, due.at) for due in dues if due.kind == SUBSCRIPTION.name}
        for key, one in self.subscriptions.items():
            if one.topic.key not in self.topics:
                yield f"subscription {key} without its topic"
            if of_queue.get(number_key(one.queue_id)) != key:
                yield f"subscription {key} is not found by its backlog {one.queue_id}"
            if one.owner != one.topic.account and key not in elsewhere:
                yield f"subscription {key} is not found by its account {one.owner}"
            if one.subscriber is not None and subscribers.get(f"{one.topic.key}/{one.subscriber}") != key:
                yield f"subscription {key} is not found by its subscriber {one.subscriber}"
            if one.expires_at is not None and (key, one.expires_at) not in ends:
                yield f"nothing ends subscription {key} at {one.expires_at}"

    def _found_by(self) -> Iterator[str]:
        for number, key in self.all_of(SUBSCRIPTION_OF_BACKLOG).items():
            found = self.subscriptions.get(key)
            if found is None or number_key(found.queue_id) != number:
                yield f"backlog {number} without its subscription {key}"
        for kind in (ELSEWHERE, SUBSCRIBER, SERVING):
            for name, key in self.all_of(kind).items():
                there = self.queues if kind is SERVING else self.subscriptions
                if key not in there:
                    yield f"{kind.name} {name} leads to {key}, which is not there"

    # ---- queues --------------------------------------------------------------------------------------------

    def _queues(self) -> Iterator[str]:
        records, serving = self.all_of(QUEUE_RECORD), self.all_of(SERVING)
        for key, queue in self.queues.items():
            record = records.get(number_key(queue.id))
            if record is None or record.name != queue.name or record.deleted_at is not None:
                yield f"queue {key} has the record {record}"
            if queue.serves and queue.serves not in self.subscriptions:
                yield f"queue {key} without the subscription {queue.serves} that it serves"
            if queue.serves and serving.get(queue.serves) != key:
                yield f"queue {key} is not found by the subscription {queue.serves} that it serves"
        for number, record in records.items():
            found = self.queues.get(record.name.key)
            if record.deleted_at is None and (found is None or number_key(found.id) != number):
                yield f"number {number} without its queue {record.name.key}"

    def _deleted(self) -> Iterator[str]:
        standing = [one.id for one in self.queues.values()]
        standing += [queue_id for one in self.subscriptions.values() for queue_id in one.backlogs]
        standing += [one.id for one in self.topics.values()]
        if len(standing) != len(set(standing)):
            yield f"a number stands for two: {sorted(standing)}"
        for key, tombstone in self._tombstones.items():
            if tombstone.id in standing:
                yield f"{key} stands, and is deleted"
        for record in self.all_of(QUEUE_RECORD).values():
            if record.deleted_at is not None and tombstone_key(record) not in self._tombstones:
                yield f"queue {record.name.key} was deleted, and nothing empties it"

    # ---- what falls due ------------------------------------------------------------------------------------

    def _falls_due(self) -> Iterator[str]:
        dues: dict[str, Due] = self.all_of(DUE)
        for key, tombstone in self._tombstones.items():
            if due_of(tombstone).due_key not in dues:
                yield f"nothing looks at deleted {key}"
        for due in dues.values():
            if due.kind == TOMBSTONE.name:
                deleted = self._tombstones.get(due.key)
                wanted = None if deleted is None else due_of(deleted).at
            else:
                found = self.subscriptions.get(due.key)
                wanted = None if found is None else found.expires_at
            if wanted != due.at:
                yield f"{due.kind} {due.key} falls due at {due.at}, not at {wanted}"
