"""Dispatch: deliveries are pushed to endpoints, each subscription at its own pace.

    due ──claim──► render ──push──► attempt ──decide──► settle (delivered, retry, dead letter, dropped)

The backlog of each subscription has a consumer (`backlog`). Between deliveries it costs one timer; a million retries
on their way are a million rows and still one timer.
"""

import asyncio
import contextlib
import logging
from typing import Final

from redrive.engine.configuration.topics import Topics
from redrive.engine.push.backlog import BacklogConsumer
from redrive.engine.push.settlement import PushParts
from redrive.model.topic import Subscription

logger = logging.getLogger(__name__)

PAGE: Final = 500  # subscriptions read together
LOOKS_MAX: Final = 5_000  # backlogs looked into in one round of upkeep: 0.3 s of work in 30


class Dispatcher:
    """Pushes the backlogs of all subscriptions.

    Attributes:
        parts: The parts of the engine that attempts go through.
    """

    def __init__(self, parts: PushParts, topics: Topics) -> None:
        self.parts = parts
        self.topics = topics
        self._consumers: dict[int, BacklogConsumer] = {}  # by backlog
        self._last_key = ""
        self._unseen: set[int] = set()  # backlogs that no page has named in this round
        self._closed = False
        topics.subscriptions.on_backlog = self._watch
        topics.subscriptions.on_no_backlog = self._unwatch

    async def open(self) -> None:
        """Take up every backlog."""
        after = ""
        while page := await self.topics.subscriptions.all_after(after, PAGE):
            for subscription in page:
                self._watch(subscription)
            after = page[-1].key

    async def look_round(self) -> None:
        """Look into the next backlogs, announced or not; a call goes on where the last one stopped.

        Subscriptions are made on other nodes, and a node that dies tells nobody what it enqueued or held.
        """
        for _ in range(LOOKS_MAX // PAGE):
            page = await self.topics.subscriptions.all_after(self._last_key, PAGE)
            for subscription in page:
                self._unseen.discard(subscription.queue_id)
                self._watch(subscription)
            self._last_key = page[-1].key if len(page) == PAGE else ""
            if not self._last_key:
                self._look_into_the_unseen()
                return

    def _look_into_the_unseen(self) -> None:
        """A backlog that was in no page has lost its subscription, on another node: its consumer finds that out."""
        for queue_id in self._unseen & self._consumers.keys():
            self._consumers[queue_id].wake()
        self._unseen = set(self._consumers)

    async def close_circuit(self, subscription: Subscription) -> bool:
        """Close the circuit breaker of a subscription's endpoint, and serve it at once; whether it was open."""
        was_open = await self.parts.circuits.close(subscription)
        self._watch(subscription)
        return was_open

    def next_at(self) -> int | None:
        """The moment (ms) at which this node tries a delivery next, as far as it knows; None: none waits for one."""
        return self.parts.notifier.next_watched()

    async def drain(self, seconds: float) -> None:
        """Stop claiming and wait up to so many seconds for running attempts; those cut off then are pushed again."""
        self._closed = True
        for consumer in self._consumers.values():
            consumer.stop_claiming()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while work := self._work():
                    await asyncio.wait(work)

    async def close(self) -> None:
        """Cancel running attempts, whose leases run out, and claim nothing more."""
        self._closed = True
        if outcome_count := self.parts.retrier.waiting:
            logger.warning(
                "dispatch.left number=%d: the store was unavailable; they are pushed again", outcome_count
            )
        consumers = [self.forget(queue_id) for queue_id in list(self._consumers)]
        work = [task for consumer in consumers if consumer is not None for task in consumer.stop()]
        await asyncio.gather(*work, return_exceptions=True)
        await self.parts.late_pushes.close()

    async def until_quiet(self) -> None:
        """Return when no attempt is under way but those that hang: simulated time must not run ahead of the others."""
        await self.parts.soft_timeout.until_quiet(self._work)

    @property
    def is_quiet(self) -> bool:
        """True if no attempt is under way."""
        return all(not consumer.is_busy for consumer in self._consumers.values())

    def _work(self) -> list[asyncio.Future[None]]:
        return [task for consumer in self._consumers.values() for task in consumer.work()]

    def _watch(self, subscription: Subscription) -> None:
        """Have a subscription's backlog consumed, and look into it now."""
        if self._closed:
            return
        consumer = self._consumers.get(subscription.queue_id)
        if consumer is None:
            consumer = BacklogConsumer(self.parts, self.topics, subscription.queue_id, self.forget)
            self._consumers[subscription.queue_id] = consumer
            self.parts.notifier.watch(subscription.queue_id, consumer.wake)
        consumer.wake()

    def _unwatch(self, queue_id: int) -> None:
        consumer = self.forget(queue_id)
        if consumer is not None:
            consumer.stop()

    def forget(self, queue_id: int) -> BacklogConsumer | None:
        """Watch a backlog no more; the consumer that it had."""
        self.parts.notifier.unwatch(queue_id)
        self.parts.contexts.forget(queue_id)
        return self._consumers.pop(queue_id, None)
