"""Messages: the part of the door through which messages come and go."""

from collections.abc import Mapping, Sequence

from redrive.engine.configuration.queues import Queues
from redrive.engine.ports import Clock, Counts, QueueStore
from redrive.engine.publish.fan_out import TopicPublisher
from redrive.engine.publish.sender import Publisher
from redrive.engine.queue_counts import QueueCounts
from redrive.engine.receive.notifier import Cancellation, QueueNotifier
from redrive.engine.receive.receiver import Receiver
from redrive.engine.receive.settler import Settler
from redrive.engine.sweep import ROWS_PER_SWEEP, Sweeper
from redrive.engine.tasks.archive import size
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

    def __init__(
        self,
        store: QueueStore,
        clock: Clock,
        queues: Queues,
        topic_publisher: TopicPublisher,
        publisher: Publisher,
        receiver: Receiver,
        settler: Settler,
        sweeper: Sweeper,
        notifier: QueueNotifier,
    ) -> None:
        self._store = store
        self._clock = clock
        self._queues = queues
        self._sweeper = sweeper
        self._notifier = notifier
        self._counts = QueueCounts(store, clock)
        self.publish = topic_publisher.publish
        self.publish_each = topic_publisher.publish_each
        self.publish_alone_in = topic_publisher.publish_alone_in
        self.send = publisher.send
        self.receive = receiver.receive
        self.delete = settler.delete
        self.release = settler.release
        self.reject = settler.reject
        self.extend = settler.extend

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
        """Let what nobody has claimed yet wait as long as what is new in the queue, from its arrival."""
        last: int | None = 0
        while last is not None:
            last = await self._store.delay(queue.id, queue.delay_ms, last, ROWS_PER_SWEEP)
        self._counts.forget(queue)
        self._notifier.announce(queue.id)

    async def purge(self, queue: Queue, rest_ms: int = 0) -> int:
        """Remove all that is in a queue now, claimed or not; how many.

        Raises:
            Refused: It was emptied less than `rest_ms` ago.
        """
        await self._queues.note_purge(queue, rest_ms)
        number = await self._sweeper.purge(queue.id)
        self._counts.forget(queue)  # of a moment at which some of it was removed
        return number
