"""Event subscriptions as the engine keeps them: up to four resources, written and removed in one transaction.

An event subscription is a subscription of the engine's. Where it has a dead-letter destination, there are beside it
the queue that its dead letters stand in, and one more subscription whose endpoint is the container. In queue mode there
is the queue that callers receive from.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from redrive.azure.arm.resource import id_of, no_such
from redrive.azure.arm.subscription_documents import engine_queue
from redrive.azure.eventgrid import names, settings
from redrive.azure.eventgrid.dead_letters import DELAY_MS
from redrive.azure.eventgrid.dialect import PULL
from redrive.engine.engine import Engine
from redrive.engine.resources import Draft
from redrive.model.queue import DAY_MS, CopyTarget, Queue
from redrive.model.topic import Subscription, Topic

DEAD_LETTERS_KEPT_MS = 14 * DAY_MS


class Subscribers:
    """Writes and removes event subscriptions."""

    def __init__(self, engine: Engine) -> None:
        self._write = engine.resources.write
        self._topics = engine.resources.topics
        self._subscriptions = engine.resources.subscriptions
        self._queues = engine.resources.queues

    async def of(self, topic: Topic) -> list[Subscription]:
        """A topic's event subscriptions, without what stands beside them."""
        subscriptions = await self._subscriptions.of(topic.name)
        return [
            subscription for subscription in subscriptions if not names.is_dead_letter_store(subscription.id)
        ]

    async def write(self, topic: Topic, subscription: Subscription) -> Subscription:
        """Make an event subscription, or change it; a topic without a number is made with it.

        The number and the time of creation of the event subscription are set here.

        Raises:
            NotFound: The topic does not exist any more.
        """
        return await self._write(lambda draft: self.write_in(draft, topic, subscription))

    async def write_in(self, draft: Draft, topic: Topic, subscription: Subscription) -> Subscription:
        """Make an event subscription, or change it, in a transaction (`write`)."""
        if not topic.id and await self._topics.get_in(draft, topic.name) is None:
            await self._make_topic_in(draft, topic)
        copies = await self._write_dead_letters_in(draft, subscription)
        if subscription.protocol == PULL:
            await self._queues.put_in(draft, replace(engine_queue(subscription, topic), copies=copies))
        return await self._subscriptions.put_in(draft, subscription)

    async def make_topic(self, topic: Topic) -> Topic:
        """Make a topic; one of a domain is only made while the domain stands.

        Raises:
            AlreadyExists: There is one of that name.
            AzureError: The domain does not exist any more.
        """
        return await self._write(lambda draft: self._make_topic_in(draft, topic))

    async def _make_topic_in(self, draft: Draft, topic: Topic) -> Topic:
        """Make a topic; raises AzureError if its domain is gone."""
        domain = names.domain_of(topic.name)
        if domain is not None and await self._topics.get_in(draft, domain) is None:
            resource = id_of(topic.attributes)
            raise no_such(resource._replace(parts=resource.parts[:2]))
        return await self._topics.create_in(draft, topic)

    async def follow_in(self, draft: Draft, topic: Topic) -> None:
        """Let a topic's queues keep events for as long as the topic does by now."""
        for subscription in await self.of(topic):
            if subscription.protocol == PULL:
                queue = engine_queue(subscription, topic)
                stored_queue = await self._queues.get_in(draft, queue.name)
                if stored_queue is not None:
                    await self._queues.put_in(draft, replace(queue, copies=stored_queue.copies))

    async def remove(self, subscription: Subscription, *, topic_goes_too: bool = False) -> None:
        """Remove an event subscription, its dead letters and its queue; if it was its topic's last, that may go too."""

        async def decide(draft: Draft) -> None:
            await self.remove_in(draft, subscription)
            if not topic_goes_too or await self._subscriptions.of_in(draft, subscription.topic):
                return
            topic = await self._topics.get_in(draft, subscription.topic)
            if topic is not None:
                await self._topics.delete_in(draft, topic)

        await self._write(decide)

    async def remove_in(self, draft: Draft, subscription: Subscription) -> None:
        """See `remove`; the topic stays."""
        await self._subscriptions.delete_in(draft, subscription)
        await self._remove_dead_letters_in(draft, subscription)

    async def remove_topics(self, topics: Sequence[Topic]) -> None:
        """Remove topics and domains, one after the other; see `remove_topic`."""
        for topic in topics:
            await self.remove_topic(topic)

    async def remove_topic(self, topic: Topic) -> None:
        """Remove a topic, or a domain with its topics, with all event subscriptions.

        Each goes in one transaction, as far as the engine has one for it; a domain only once no topic is in it, so that
        none stays behind which was made meanwhile.
        """
        beginning = names.within(topic.name)
        is_gone = False
        while not is_gone:
            for inner in await self._topics.find(beginning):
                while not await self._write(partial(self._remove_topic_in, inner)):
                    pass
            is_gone = await self._write(partial(self._remove_empty_in, topic))

    async def _remove_empty_in(self, topic: Topic, draft: Draft) -> bool:
        """Remove a topic that none is in any more; False: there are some. One made meanwhile undoes the transaction."""
        beginning = names.within(topic.name)
        if await self._topics.find(beginning, limit=1):
            return False
        self._topics.require_none_in(draft, beginning)
        return await self._remove_topic_in(topic, draft)

    async def _remove_topic_in(self, topic: Topic, draft: Draft) -> bool:
        is_gone = await self._topics.delete_in(draft, topic)
        for queue in await self._queues.find(names.dead_letter_queue(topic.name, "")):
            await self._queues.delete_in(draft, queue)
        return is_gone

    async def _write_dead_letters_in(self, draft: Draft, subscription: Subscription) -> CopyTarget | None:
        """Write what keeps dead letters, or remove it; where copies of those in a queue go."""
        container = settings.delivery_settings(subscription).dead_letter_container
        if subscription.dead_letter is None or container is None:
            await self._remove_dead_letters_in(draft, subscription)
            return None
        if await self._queues.get_in(draft, subscription.dead_letter) is None:
            queue = Queue(0, subscription.dead_letter, retention_ms=DEAD_LETTERS_KEPT_MS)
            await self._queues.create_in(draft, queue)
        store = replace(
            subscription,
            id=names.dead_letter_store(subscription.id),
            protocol="blob",
            endpoint=container,
            confirmed=False,
            filter_text=None,
            dead_letter=None,
            attributes={**subscription.attributes, settings.CONTAINER: settings.REQUIRED},
        )
        return CopyTarget((await self._subscriptions.put_in(draft, store)).queue_id, DELAY_MS)

    async def _remove_dead_letters_in(self, draft: Draft, subscription: Subscription) -> None:
        """Remove what keeps the dead letters of an event subscription: its store and its queue."""
        name = subscription.topic
        store = await self._subscriptions.get_in(draft, name, names.dead_letter_store(subscription.id))
        if store is not None:
            await self._subscriptions.delete_in(draft, store)
        queue = await self._queues.get_in(draft, names.dead_letter_queue(name, subscription.id))
        if queue is not None:
            await self._queues.delete_in(draft, queue)
