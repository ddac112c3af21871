"""Sweep: what nobody asks for any more is removed, a little at a time.

Every node sweeps, without a leader: removing what is expired is the same whoever does it, and twice does no harm.
Receivers check the retention period themselves, so sweeping late loses disk and never correctness.
"""

from collections.abc import Awaitable, Callable

from redrive.engine.counters import NodeCounters
from redrive.engine.kinds import DUE, SUBSCRIPTION, TOMBSTONE_MS, Due, QueueRecord
from redrive.engine.listeners import Listeners
from redrive.engine.ports import Clock, Store
from redrive.engine.push.circuit_breakers import CircuitBreakers
from redrive.engine.resources import Resources
from redrive.model.delivery import DeadLetterReason
from redrive.model.queue import Queue

QUEUES_PER_TURN = 50  # documents read and queues swept before others have their turn
ROWS_PER_SWEEP = 1_000  # about 5 ms of the store's time
# An archive keeps days, and a publication is remembered for five minutes: to read every topic for that each time would
# be most of a round where there are thousands.
ARCHIVES_MS = 300_000


class Sweeper:
    """Walks round all queues."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        resources: Resources,
        circuits: CircuitBreakers,
        counters: NodeCounters,
        listeners: Listeners,
        end_unasked: Callable[[Queue], Awaitable[None]],
        forget: Callable[[int], None],
    ) -> None:
        """Sweep this store.

        Args:
            store: The store.
            clock: The time.
            resources: What is there, and what of it falls due.
            circuits: Of the subscriptions' endpoints.
            counters: Where what went is counted.
            listeners: Told of what nobody received in time.
            end_unasked: See `Receiver.end_unasked`; for queues whose deliveries end otherwise than by being removed.
            forget: Called with the number of every queue that is gone and had something happen to it on this node.
        """
        self._store = store
        self._clock = clock
        self._documents = resources.documents
        self._queues = resources.queues
        self._topics = resources.topics
        self._subscriptions = resources.subscriptions
        self._probations = circuits
        self._measure = counters
        self._listeners = listeners
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
        gone += await self._backlogs() + await self._archives() + await self._due()
        await self._probations.sweep(self._subscriptions.is_there)
        await self._forget_the_gone()
        return gone

    async def _forget_the_gone(self) -> None:
        """Whichever node deleted a queue, what this one remembers of it is of no use."""
        for counts in self._measure:
            queue = self._queues.known(counts.name) or await self._queues.get(counts.name)
            if queue is None or queue.id != counts.queue_id:
                self._forget(counts.queue_id)

    async def _sweep_queue(self, queue: Queue) -> int:
        """Sweep a queue; deliveries that are dead-lettered when they expire are not removed before that."""
        if queue.ends_unasked:
            await self._end_unasked(queue)
        buries = queue.buries_expired and await self._queues.dead_letters_to(queue) is not None
        now = self._clock.now()
        gone = await self._sweep(queue.id, 0 if buries else now - queue.retention_ms, now)
        if gone:
            self._measure.queue(queue).messages_expired += gone
            self._listeners.queues.dropped(queue, gone, DeadLetterReason.EXPIRED, now)
        return gone

    async def _backlogs(self) -> int:
        """A backlog's deliveries end by their schedule, never by age; only its memories are swept."""
        gone = 0
        after = ""
        while page := await self._subscriptions.all_after(after, QUEUES_PER_TURN):
            for subscription in page:
                gone += await self._sweep(subscription.queue_id, 0, self._clock.now())
            after = page[-1].key
        return gone

    async def _due(self) -> int:
        """Take away the subscriptions whose time is over, and empty queues that were deleted; how much was in them."""
        gone = 0
        while page := await self._documents.find(DUE, "", limit=QUEUES_PER_TURN):
            for due in page:
                if due.at > self._clock.now():
                    return gone
                gone += await self._look_at(due)
        return gone

    async def _look_at(self, due: Due) -> int:
        if due.kind == SUBSCRIPTION.name:
            await self._subscriptions.end(due)
            return 0
        tombstone = await self._queues.tombstone(due.key)
        if tombstone is None:
            await self._documents.remove(DUE, due.due_key)
            return 0
        gone = await self.empty(tombstone)
        if tombstone.emptied:
            await self._queues.forget(tombstone)
        else:
            await self._queues.emptied(tombstone)
        return gone

    async def _archives(self) -> int:
        """Sweep what ordered topics keep under their own ids: archives, and the memory of publications."""
        gone, after = 0, ""
        now = self._clock.now()  # a topic that begins to archive now has nothing older to lose
        if now < self._archives_at:
            return 0
        self._archives_at = now + ARCHIVES_MS
        while page := await self._topics.all_after(after, QUEUES_PER_TURN):
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

    async def empty(self, tombstone: QueueRecord) -> int:
        """Remove all that a deleted queue left, deduplication included; how many deliveries went."""
        gone = await self.purge(tombstone.id)
        now = self._clock.now()
        return gone + await self._sweep(tombstone.id, now, now + TOMBSTONE_MS)

    async def purge(self, queue_id: int) -> int:
        """Remove all that arrived in a queue up to now; how many."""
        seq_max = await self._store.last_seq()
        total = 0
        while gone := await self._store.purge(queue_id, seq_max, ROWS_PER_SWEEP):
            total += gone
        return total
