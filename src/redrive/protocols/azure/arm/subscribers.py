"""Event subscriptions as the engine keeps them: up to four documents, written and removed in an order that holds.

An event subscription is a subscription of the engine's. Where it has a dead-letter destination, there are beside it
the queue that its dead letters stand in, and one more subscription whose endpoint is the container. In queue mode there
is the queue that callers receive from. All these are written first and removed last, so whatever is cut short leaves
nothing that points to what is not there, and doing it again does the rest.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from redrive.engine.engine import Engine
from redrive.model.errors import AlreadyExists, NotFound
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, CopyTarget, Queue
from redrive.model.topic import Subscription, Topic
from redrive.protocols.azure.arm.subscription_documents import engine_queue
from redrive.protocols.azure.eventgrid import names, settings
from redrive.protocols.azure.eventgrid.dead_letters import DELAY_MS
from redrive.protocols.azure.eventgrid.dialect import PULL

DEAD_LETTERS_KEPT_MS = 14 * DAY_MS


class Subscribers:
    """Writes and removes event subscriptions."""

    def __init__(self, engine: Engine) -> None:
        """Keep them in this engine."""
        self._topics = engine.resources.topics
        self._subscriptions = engine.resources.subscriptions
        self._queues = engine.resources.queues

    async def of(self, topic: Topic) -> list[Subscription]:
        """A topic's event subscriptions, without what stands beside them."""
        found = await self._subscriptions.of(topic.name)
        return [subscription for subscription in found if not names.is_dead_letter_store(subscription.id)]

    # ---- write -------------------------------------------------------------------------------------------------

    async def write(self, topic: Topic, wanted: Subscription) -> Subscription:
        """Make an event subscription, or change the existing one; a new one begins with an empty queue.

        Args:
            topic: The topic whose events it gets.
            wanted: The event subscription; its number and the time of its making are looked after here.
        """
        await self._write_dead_letters(wanted)
        if wanted.protocol == PULL:
            left = await self._queues.get(ResourceName.from_key(wanted.endpoint))
            if left is not None and await self._subscriptions.get(topic.name, wanted.id) is None:
                await self._queues.delete(left)
            await self._write_queue(await self._pull_queue(wanted, topic))
        written = await self._write(wanted)
        if wanted.dead_letter is None:
            await self._remove_dead_letters(wanted)
        return written

    async def follow(self, topic: Topic) -> None:
        """Let a topic's queues keep events for as long as the topic does by now."""
        for subscription in await self.of(topic):
            if subscription.protocol == PULL:
                await self._write_queue(await self._pull_queue(subscription, topic))

    async def _write(self, wanted: Subscription) -> Subscription:
        while True:
            existing = await self._subscriptions.get(wanted.topic, wanted.id)
            if existing is None:  # a topic that is gone is another matter: the caller is told
                with contextlib.suppress(AlreadyExists):
                    return await self._subscriptions.create(wanted)
            else:
                with contextlib.suppress(NotFound):
                    return await self._subscriptions.update(
                        existing, lambda current: _in_place_of(current, wanted)
                    )
            # Another writer was faster: look again.

    async def _write_dead_letters(self, wanted: Subscription) -> None:
        container = settings.delivery_settings(wanted).dead_letter_container
        if wanted.dead_letter is None or container is None:
            return
        if await self._queues.get(wanted.dead_letter) is None:
            with contextlib.suppress(AlreadyExists):
                await self._queues.create(Queue(0, wanted.dead_letter, retention_ms=DEAD_LETTERS_KEPT_MS))
        store = replace(
            wanted,
            id=names.dead_letter_store(wanted.id),
            protocol="blob",
            endpoint=container,
            confirmed=False,
            filter_text=None,
            dead_letter=None,
        )
        await self._write(store)

    async def _pull_queue(self, subscription: Subscription, topic: Topic) -> Queue:
        """The queue of an event subscription; a copy of each dead letter goes to the container."""
        queue = engine_queue(subscription, topic)
        store = await self._subscriptions.get(topic.name, names.dead_letter_store(subscription.id))
        if store is None or subscription.dead_letter is None:
            return queue
        return replace(queue, copies=CopyTarget(store.queue_id, DELAY_MS))

    async def _write_queue(self, wanted: Queue) -> None:
        while True:
            try:
                if await self._queues.get(wanted.name) is None:
                    await self._queues.create(wanted)
                else:
                    await self._queues.update(
                        wanted.name, lambda current: _queue_in_place_of(current, wanted)
                    )
            except (AlreadyExists, NotFound):
                continue  # another writer was faster
            return

    # ---- remove ------------------------------------------------------------------------------------------------

    async def remove(self, subscription: Subscription) -> None:
        """Remove an event subscription with its dead letters, and the queue that it is received from."""
        await self._subscriptions.delete(subscription)
        if subscription.protocol == PULL:
            await self._remove_queue(ResourceName.from_key(subscription.endpoint))
        await self._remove_dead_letters(subscription)

    async def remove_topics(self, topics: Sequence[Topic]) -> None:
        """Remove topics with their event subscriptions."""
        for topic in topics:
            for subscription in await self.of(topic):
                await self.remove(subscription)
            await self._topics.delete(topic)

    async def _remove_dead_letters(self, subscription: Subscription) -> None:
        name = subscription.topic
        store = await self._subscriptions.get(name, names.dead_letter_store(subscription.id))
        if store is not None:
            await self._subscriptions.delete(store)
        await self._remove_queue(names.dead_letter_queue(name, subscription.id))

    async def _remove_queue(self, name: ResourceName) -> None:
        queue = await self._queues.get(name)
        if queue is not None:
            await self._queues.delete(queue)


def _in_place_of(current: Subscription, wanted: Subscription) -> Subscription:
    return replace(wanted, queue_id=current.queue_id, created_at=current.created_at)


def _queue_in_place_of(current: Queue, wanted: Queue) -> Queue:
    return replace(
        wanted,
        id=current.id,
        created_at=current.created_at,
        modified_at=current.modified_at,
        purged_at=current.purged_at,
    )
