"""Messages: the part of the door through which messages come and go."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from redrive.engine.parts import EngineParts
from redrive.engine.ports import COUNTED_AT_ONCE, Clock, Counts, QueueStore
from redrive.engine.publish.archive import size
from redrive.engine.receive.notifier import Cancellation
from redrive.engine.sweep import ROWS_PER_SWEEP
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

__all__ = ["Cancellation", "Messages"]


class Messages:
    """Publishes, sends, receives and settles.

    The verbs of the hot paths are those of the parts that carry them out, so that the door costs them no call.

    Attributes:
        publish: Messages to one topic (`TopicPublisher.publish`).
        publish_each: To several topics in one transaction (`TopicPublisher.publish_each`).
        publish_alone_in: One message to one subscription, confirmed or not, in the transaction of a draft
            (`TopicPublisher.publish_alone_in`).
        send: Messages to one queue (`Publisher.send`).
        receive: Claims deliveries of a queue, and may wait for them (`Receiver.receive`).
        delete: The consumer has the messages (`Settler.delete`).
        release: The consumer cannot take them now (`Settler.release`).
        reject: The consumer will never take them (`Settler.reject`).
        extend: Claims hold longer, or end at once (`Settler.extend`).
    """

    def __init__(self, parts: EngineParts) -> None:
        self._store: QueueStore = parts.store
        self._clock = parts.clock
        self._queues = parts.queues
        self._sweeper = parts.sweeper
        self._notifier = parts.notifier
        self._counts = QueueCounts(parts.store, parts.clock)
        self.publish = parts.topic_publisher.publish
        self.publish_each = parts.topic_publisher.publish_each
        self.publish_alone_in = parts.topic_publisher.publish_alone_in
        self.send = parts.publisher.send
        self.receive = parts.receiver.receive
        self.delete = parts.settler.delete
        self.release = parts.settler.release
        self.reject = parts.settler.reject
        self.extend = parts.settler.extend

    async def peek(self, queue: Queue, limit: int, after_seq: int = 0) -> list[Delivery]:
        """Look without touching: deliveries of a queue in order of arrival, waiting and claimed."""
        return await self._store.peek(queue.id, limit, after_seq)

    async def count(self, queue: Queue, at_most: int | None = None) -> Counts:
        """The numbers of deliveries of a queue: available, claimed and delayed.

        Those of a large queue may be some seconds old (`QueueCounts.of`); with `at_most` they are of this moment, as far
        as that.
        """
        if at_most is None:
            return await self._counts.of(queue)
        return await self._store.count(queue.id, self._clock.now(), at_most)

    async def count_backlog(self, subscription: Subscription, at_most: int | None = None) -> Counts:
        """The numbers of deliveries of a subscription that wait to be pushed, are being tried, and wait for later."""
        return await self._store.count(subscription.queue_id, self._clock.now(), at_most)

    async def count_each(self, queues: Sequence[Queue], at_most: int) -> Mapping[int, Counts]:
        """The counts of several queues by their numbers, each as far as `at_most`, in one read."""
        return await self._count_numbers([queue.id for queue in queues], at_most)

    async def count_backlogs(
        self, subscriptions: Sequence[Subscription], at_most: int
    ) -> Mapping[int, Counts]:
        """The same of subscriptions' backlogs, by the numbers of these."""
        return await self._count_numbers([subscription.queue_id for subscription in subscriptions], at_most)

    async def first_owed(self, subscriptions: Sequence[Subscription]) -> Mapping[int, Delivery]:
        """The delivery that came first of what each subscription is still owed, by the numbers of their backlogs."""
        numbers = [subscription.queue_id for subscription in subscriptions]
        return await self._store.first_of_each(numbers) if numbers else {}

    async def _count_numbers(self, numbers: Sequence[int], at_most: int) -> Mapping[int, Counts]:
        return await self._store.count_each(numbers, self._clock.now(), at_most) if numbers else {}

    async def archive_size(self, topic: Topic) -> tuple[int, int]:
        """The number and the bytes of the publications in a topic's archive; see `archive.size`."""
        return await size(self._store, self._clock, topic)

    async def delay(self, queue: Queue) -> None:
        """Apply the queue's delay to unclaimed deliveries, counted from their arrival."""
        last: int | None = 0
        while last is not None:
            last = await self._store.delay(queue.id, queue.delay_ms, last, ROWS_PER_SWEEP)
        self._counts.forget(queue)
        self._notifier.announce(queue.id)  # with a shorter delay, receivers that wait may have something now

    async def purge(self, queue: Queue, rest_ms: int = 0) -> int:
        """Remove all that is in a queue now, claimed or not; how many.

        Raises:
            Refused: It was emptied less than `rest_ms` ago.
        """
        await self._queues.note_purge(queue, rest_ms)
        number = await self._sweeper.purge(queue.id)
        self._counts.forget(queue)  # of a moment at which some of it was removed
        return number


# Counts of queues as callers ask for them: at each call while that is cheap, remembered for a moment where it is not.
#
# SQS calls its counts approximate, and lets them lag a minute behind (API reference, GetQueueAttributes). A million
# messages take 50 ms to count, and up to five times as long beside a search of them; a monitor that asks without a
# pause must neither wait for that nor have it done for each call.

KEPT_MS_MAX: Final = 10_000
# A count stands for so many times as long as it took: at most a hundredth of a thread goes into counting one queue.
KEPT_PER_MS: Final = 100

# A queue's number, and when it was emptied last: what was counted before does not stand.
_CountKey = tuple[int, int]  # a queue's id, and when it was last purged (ms)


class _KeptCount(NamedTuple):
    """A count, when it began (ms), and the moment to which it stands; a while longer for those who have it renewed."""

    counts: Counts
    began: int
    until: int


class QueueCounts:
    """The counts of queues; those of large queues may be a moment old."""

    def __init__(self, store: QueueStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        # Of queues whose counting took a millisecond at least.
        self._kept_counts: dict[_CountKey, _KeptCount] = {}
        self._counting: dict[_CountKey, asyncio.Task[Counts]] = {}

    async def of(self, queue: Queue) -> Counts:
        """The numbers of deliveries of a queue.

        They are exact for a queue of fewer than `COUNTED_AT_ONCE`, and otherwise at most twice `KEPT_MS_MAX` old: newer,
        the quicker they are counted. On a simulated clock counting takes no time, so they are exact there.
        """
        count_key = queue.id, queue.purged_at
        now = self._clock.now()
        recent = self._kept_counts.get(count_key)
        if recent is not None and recent.began <= now < recent.until + KEPT_MS_MAX:
            if now >= recent.until:
                self._count(count_key)
            return recent.counts
        counts = await self._store.count(queue.id, now, COUNTED_AT_ONCE)
        if sum(counts) < COUNTED_AT_ONCE:  # a kind that was not counted to its end would be as many alone
            return counts
        return await asyncio.shield(self._count(count_key))

    def forget(self, queue: Queue) -> None:
        """Remember no count of a queue that was begun before now, as after a purge."""
        for by_key in (self._kept_counts, self._counting):
            for count_key in [count_key for count_key in by_key if count_key[0] == queue.id]:
                del by_key[count_key]

    def _count(self, count_key: _CountKey) -> "asyncio.Task[Counts]":
        """Count a queue; concurrent callers share one count."""
        task = self._counting.get(count_key)
        if task is None:
            task = self._counting[count_key] = asyncio.create_task(
                self._count_and_keep(count_key), name="redrive-count"
            )
            task.add_done_callback(lambda ended: self._drop_task(count_key, ended))
        return task

    def _drop_task(self, count_key: _CountKey, task: "asyncio.Task[Counts]") -> None:
        if self._counting.get(count_key) is task:
            del self._counting[count_key]
        if not task.cancelled():
            task.exception()  # read, so that asyncio does not log it: whoever waits has it

    async def _count_and_keep(self, count_key: _CountKey) -> Counts:
        """Count a queue, and keep the counts the longer, the longer that took; those that are too old are dropped."""
        queue_id, _ = count_key
        began = self._clock.now()
        counts = await self._store.count(queue_id, began)
        now = self._clock.now()
        if self._counting.get(count_key) is not asyncio.current_task():
            return counts  # it was forgotten meanwhile
        kept_ms = min(KEPT_MS_MAX, (now - began) * KEPT_PER_MS)
        self._kept_counts = {
            key: recent
            for key, recent in self._kept_counts.items()
            if recent.began <= now < recent.until + KEPT_MS_MAX
        }
        self._kept_counts.pop(count_key, None)
        if kept_ms > 0:  # else counting took no time, or the clock was set back meanwhile
            self._kept_counts[count_key] = _KeptCount(counts, began, now + kept_ms)
        return counts
