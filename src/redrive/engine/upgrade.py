"""Upgrade: what an older version left half done in a store is put right once, before anything of it is taken up.

Older versions wrote a topic, a subscription or a queue as several documents one after the other, and their sweep ended
what a crash had cut short. Now each is one transaction, and what falls due is found by documents of its own.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

from redrive.engine.configuration.directory import Directory
from redrive.engine.configuration.draft import Draft
from redrive.engine.configuration.kinds import (
    DUE,
    OF_ARCHIVE,
    QUEUE,
    SERVING,
    SUBSCRIPTION,
    SUBSCRIPTION_OF_BACKLOG,
    TOMBSTONE,
    TOPIC,
    Due,
    QueueRecord,
    due_of,
    expiry_of,
    tombstone_key,
)
from redrive.engine.configuration.queues import Queues
from redrive.engine.configuration.subscriptions import Subscriptions
from redrive.engine.node.sealed_store import SealedStore
from redrive.engine.ports import DocumentKind
from redrive.model.names import number_key
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

T = TypeVar("T")

FORMAT: Final[DocumentKind[int]] = DocumentKind(
    "format", lambda number: {"number": number}, lambda d: int(d["number"])
)
_KEY: Final = "resources"
CURRENT: Final = 3  # 2: what falls due is found by documents; 3: archives are found by their topics' numbers
_SECRETS: Final = "secrets"  # documents of secret kinds are sealed
_AT_ONCE: Final = 200  # documents put right in one transaction


class Upgrade:
    """Repairs the documents of an older version."""

    def __init__(
        self, directory: Directory, queues: Queues, subscriptions: Subscriptions, store: SealedStore
    ) -> None:
        self._directory = directory
        self._queues = queues
        self._subscriptions = subscriptions
        self._store = store

    async def run(self) -> None:
        """Repair what was not repaired before; harmless if it is done again, also on two nodes at the same time."""
        if await self._directory.get(FORMAT, _SECRETS) is None:
            await self._store.seal_documents()
            await self._directory.update_or_create(FORMAT, _SECRETS, 1, lambda _: 1)
        if await self._directory.get(FORMAT, _KEY) == CURRENT:
            return
        await self._each(TOMBSTONE, self._end_deletion)
        await self._each(SUBSCRIPTION, self._check_subscription)
        await self._each(QUEUE, self._check_queue, lambda queue: bool(queue.serves))
        await self._each(TOPIC, self._check_topic, lambda topic: topic.ordered)
        await self._directory.update_or_create(FORMAT, _KEY, CURRENT, lambda _: CURRENT)

    async def _each(
        self,
        kind: DocumentKind[T],
        repair: Callable[[Draft, T], Awaitable[None]],
        needs_repair: Callable[[T], bool] = lambda _: True,
    ) -> None:
        """Repair each document of a kind that needs it, a page in a transaction."""
        async for page in self._pages(kind, needs_repair):

            async def decide(draft: Draft, keys: list[str] = page) -> None:
                for key in keys:
                    value: T | None = await draft.get(kind, key)
                    if value is not None:
                        await repair(draft, value)

            await self._directory.transact(decide)

    async def _pages(
        self, kind: DocumentKind[T], needs_repair: Callable[[T], bool]
    ) -> AsyncIterator[list[str]]:
        after = ""
        while page := await self._directory.find_versioned(kind, "", after, _AT_ONCE):
            yield [key for key, _, value in page if needs_repair(value)]
            after, *_ = page[-1]

    async def _end_deletion(self, draft: Draft, tombstone: QueueRecord) -> None:
        """Finish a deletion that an older version left half done, and have the sweep find its tombstone."""
        if not tombstone.emptied:
            queue: Queue | None = await draft.get(QUEUE, tombstone.name.key)
            if queue is not None and queue.id == tombstone.id:
                draft.remove(QUEUE, queue.name.key)
            if await self._end_unsubscription(draft, tombstone):
                return
        await _make_due(draft, due_of(tombstone))

    async def _end_unsubscription(self, draft: Draft, tombstone: QueueRecord) -> bool:
        """Remove a subscription whose backlog has this tombstone already; True if it was still there."""
        key: str | None = await draft.get(SUBSCRIPTION_OF_BACKLOG, number_key(tombstone.id))
        if key is None:
            return False
        subscription: Subscription | None = await draft.get(SUBSCRIPTION, key)
        if subscription is None or subscription.queue_id != tombstone.id:
            return False
        await self._remove(draft, subscription)
        return True

    async def _remove(self, draft: Draft, subscription: Subscription) -> None:
        for queue_id in subscription.backlogs:  # some may be buried already
            await draft.get(TOMBSTONE, tombstone_key(QueueRecord(queue_id, subscription.backlog_name)))
        await self._subscriptions.remove_in(draft, subscription)

    async def _check_subscription(self, draft: Draft, subscription: Subscription) -> None:
        """Delete a subscription whose topic's deletion was cut short; make the end of any other known to the sweep."""
        topic: Topic | None = await draft.get(TOPIC, subscription.topic.key)
        if topic is None:
            await self._remove(draft, subscription)
        elif subscription.expires_at is not None:
            await _make_due(draft, expiry_of(subscription, subscription.expires_at))

    async def _check_queue(self, draft: Draft, queue: Queue) -> None:
        """Delete a queue whose subscription was deleted; of any other note that it goes with its subscription."""
        if await draft.get(SUBSCRIPTION, queue.serves) is None:
            await self._queues.delete_in(draft, queue)
        elif await draft.get(SERVING, queue.serves) is None:
            draft.put(SERVING, queue.serves, queue.name.key)

    async def _check_topic(self, draft: Draft, topic: Topic) -> None:
        """Make the archive of an ordered topic known to the sweep."""
        if await draft.get(OF_ARCHIVE, number_key(topic.id)) is None:
            draft.put(OF_ARCHIVE, number_key(topic.id), topic.name.key)


async def _make_due(draft: Draft, due: Due) -> None:
    if await draft.get(DUE, due.due_key) is None:
        draft.put(DUE, due.due_key, due)
