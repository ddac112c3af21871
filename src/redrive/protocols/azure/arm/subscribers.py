"""Event subscriptions as the engine keeps them: up to three documents, written and removed in an order that holds.

An event subscription is a subscription of the engine's. Where it has a dead-letter destination, there are beside it
the queue that its dead letters stand in, and one more subscription whose endpoint is the container. Those two are
written first and removed last, so whatever is cut short leaves nothing that points to what is not there, and doing
it again does the rest.
"""

import contextlib
from dataclasses import replace

from redrive.engine.engine import Engine
from redrive.model.errors import AlreadyExists, NotFound
from redrive.model.queue import DAY_MS, Queue, ResourceName
from redrive.model.topic import Subscription, Topic
from redrive.protocols.azure.eventgrid import names, settings
from redrive.protocols.azure.eventgrid.dialect import PULL

DEAD_LETTERS_KEPT_MS = 14 * DAY_MS


class Subscribers:
    """Writes and removes event subscriptions."""

    def __init__(self, engine: Engine) -> None:
        """Keep them in this engine."""
        self._engine = engine

    async def of(self, topic: Topic) -> list[Subscription]:
        """A topic's event subscriptions, without what stands beside them."""
        found = await self._engine.resources.subscriptions.of(topic.name)
        return [one for one in found if not names.is_dead_letter_store(one.id)]

    async def write(self, wanted: Subscription) -> Subscription:
        """Make an event subscription, or change the one that stands to what is wanted.

        Args:
            wanted: Its queue and the time of its making are looked after here.
        """
        await self._write_dead_letters(wanted)
        written = await self._write(wanted)
        if wanted.dead_letter is None:
            await self._remove_dead_letters(wanted)
        return written

    async def _write(self, wanted: Subscription) -> Subscription:
        topics = self._engine.resources.topics
        while True:
            existing = await topics.subscription(wanted.topic, wanted.id)
            if existing is None:  # a topic that is gone is another matter: whoever asks is told
                with contextlib.suppress(AlreadyExists):
                    return await topics.subscribe(wanted)
            else:
                with contextlib.suppress(NotFound):
                    return await topics.change(existing, lambda current: _in_place_of(current, wanted))
            # Somebody was faster: look again.

    async def _write_dead_letters(self, wanted: Subscription) -> None:
        container = settings.delivery_settings(wanted).dead_letter_container
        if wanted.dead_letter is None or container is None:
            return
        if await self._engine.resources.queues.get(wanted.dead_letter) is None:
            with contextlib.suppress(AlreadyExists):
                await self._engine.resources.queues.create(
                    Queue(0, wanted.dead_letter, retention_ms=DEAD_LETTERS_KEPT_MS)
                )
        beside = replace(
            wanted,
            id=names.dead_letter_store(wanted.id),
            protocol="blob",
            endpoint=container,
            confirmed=False,
            filter_text=None,
            dead_letter=None,
        )
        await self._write(beside)

    async def remove(self, subscription: Subscription) -> None:
        """Take an event subscription away, with its dead letters, and the queue that it is received from."""
        await self._engine.resources.subscriptions.delete(subscription)
        if subscription.protocol == PULL:
            await self._remove_queue(ResourceName.from_key(subscription.endpoint))
        await self._remove_dead_letters(subscription)

    async def remove_all(self, topic: Topic) -> None:
        """Take away all that a topic has."""
        for subscription in await self.of(topic):
            await self.remove(subscription)

    async def _remove_dead_letters(self, subscription: Subscription) -> None:
        name, store = subscription.topic, names.dead_letter_store(subscription.id)
        beside = await self._engine.resources.subscriptions.get(name, store)
        if beside is not None:
            await self._engine.resources.subscriptions.delete(beside)
        await self._remove_queue(names.dead_letter_queue(name, subscription.id))

    async def _remove_queue(self, name: ResourceName) -> None:
        queue = await self._engine.resources.queues.get(name)
        if queue is not None:
            await self._engine.resources.queues.delete(queue)


def _in_place_of(current: Subscription, wanted: Subscription) -> Subscription:
    return replace(wanted, queue_id=current.queue_id, created_at=current.created_at)
