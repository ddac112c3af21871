"""Sweep: what nobody asks for any more is removed, a little at a time.

Every node sweeps, without a leader: removing what is expired is the same whoever does it, and twice does no harm.
Receivers check the retention period themselves, so sweeping late loses disk and never correctness.
"""

from collections.abc import Awaitable, Callable

from redrive.engine.measure import Measure
from redrive.engine.ports import Clock, Store
from redrive.engine.probation import Probations
from redrive.engine.queues import TOMBSTONE_MS, Number, Queues
from redrive.engine.topics import Topics
from redrive.model.queue import Queue
from redrive.model.topic import Subscription

QUEUES_PER_TURN = 50  # documents read and queues swept before others have their turn
ROWS_PER_SWEEP = 1_000  # about 5 ms of the store's time
# An archive keeps days, and a publication is remembered for five minutes: to read every topic for that each time would
# be most of a round where there are thousands.
ARCHIVES_MS = 300_000
MAKING_MS = 60_000  # a subscription may be made before its topic, and that a moment later


class Sweeper:
    """Walks round all queues."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        queues: Queues,
        topics: Topics,
        probations: Probations,
        measure: Measure,
        end_unasked: Callable[[Queue], Awaitable[None]],
        forget: Callable[[int], None],
    ) -> None:
        """Sweep this store.

        Args:
            store: The store.
            clock: The time.
            queues: All of them.
            topics: Likewise.
            probations: Of the subscriptions' endpoints.
            measure: Where what went is counted.
            end_unasked: See `Receiver.end_unasked`; for queues whose deliveries end otherwise than by being removed.
            forget: Called with the number of every queue that is gone, once a round as long as it is known that it was:
                whichever node deleted it, what this one remembers of it is of no use.
        """
        self._store = store
        self._clock = clock
        self._queues = queues
        self._topics = topics
        self._probations = probations
        self._measure = measure
        self._end_unasked = end_unasked
        self._forget = forget
        self._archives_at = 0

    async def round(self) -> int:
        """Sweep every queue once, and empty deleted ones; how many deliveries went."""
        gone = 0
        after = ""
        while queues := await self._queues.all_after(after, QUEUES_PER_TURN):
            for queue in queues:
                gone += await self._sweep_queue(queue)
            after = queues[-1].name.key
        gone += await self._backlogs() + await self._archives()
        await self._probations.sweep(self._topics.is_there)
        for grave in await self._queues.graves():
            gone += await self._tend(grave)
            self._forget(grave.id)
        return gone

    async def _sweep_queue(self, queue: Queue) -> int:
        """What goes to a dead-letter queue when its time is over must not be removed before it got there.

        A queue whose subscription is over, or was not made in the end, goes as a whole.
        """
        settled = self._clock.now() >= queue.created_at + MAKING_MS
        if queue.serves and settled and not await self._topics.is_there(queue.serves):
            await self._queues.delete(queue)
            return 0
        if queue.ends_unasked:
            await self._end_unasked(queue)
        buries = queue.buries_expired and await self._queues.dead_letters_to(queue) is not None
        now = self._clock.now()
        gone = await self._sweep(queue.id, 0 if buries else now - queue.retention_ms, now)
        if gone:
            self._measure.queue(queue).messages_expired += gone
        return gone

    async def _backlogs(self) -> int:
        """A backlog's deliveries end by their schedule, never by age; only its memories are swept."""
        gone = 0
        after = ""
        while page := await self._topics.all_after(after, QUEUES_PER_TURN):
            for subscription in page:
                gone += await self._sweep_backlog(subscription)
            after = page[-1].key
        return gone

    async def _sweep_backlog(self, subscription: Subscription) -> int:
        """Also take away subscriptions that are over, and those whose topic's deletion was cut short."""
        now = self._clock.now()
        over = subscription.expires_at is not None and now >= subscription.expires_at
        settled = now >= subscription.created_at + MAKING_MS
        if over or (settled and await self._topics.get(subscription.topic) is None):
            await self._topics.unsubscribe(subscription)
        return await self._sweep(subscription.queue_id, 0, now)

    async def _archives(self) -> int:
        """What an ordered topic keeps under its own number: an archive, and the memory of what was published."""
        gone, after = 0, ""
        now = self._clock.now()  # a topic that begins to archive now has nothing older to lose
        if now < self._archives_at:
            return 0
        self._archives_at = now + ARCHIVES_MS
        while page := await self._topics.everybodys(QUEUES_PER_TURN, after):
            for topic in page:
                if topic.ordered:
                    gone += await self._sweep(topic.id, now - topic.archive_ms, now)
            after = page[-1].name.key
        return gone

    async def _sweep(self, queue_id: int, enqueued_before: int, now: int) -> int:
        """Sweep until nothing is left that ended by then; how many deliveries went."""
        total = 0
        while True:
            swept = await self._store.sweep(queue_id, enqueued_before, now, ROWS_PER_SWEEP)
            total += swept.deliveries
            if not swept.left:
                return total

    async def _tend(self, grave: Number) -> int:
        forgotten_at = (grave.deleted_at or 0) + TOMBSTONE_MS
        if grave.emptied and self._clock.now() < forgotten_at:
            return 0
        await self._queues.finish_deletion(grave)
        await self._topics.finish_removal(grave.id)
        gone = await self.empty(
            grave
        )  # in the end once more: a node that had not heard yet may have sent there
        if grave.emptied:
            await self._queues.forget(grave)
        else:
            await self._queues.emptied(grave)
        return gone

    async def empty(self, grave: Number) -> int:
        """Remove all that a deleted queue left, deduplication included; how many deliveries went."""
        gone = await self.purge(grave.id)
        now = self._clock.now()
        return gone + await self._sweep(grave.id, now, now + TOMBSTONE_MS)

    async def purge(self, queue_id: int) -> int:
        """Remove all that arrived in a queue up to now; how many."""
        seq_max = await self._store.last_seq()
        total = 0
        while gone := await self._store.purge(queue_id, seq_max, ROWS_PER_SWEEP):
            total += gone
        return total
