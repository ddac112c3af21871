"""Sweep: unreachable and expired rows are removed in small steps.

Every node sweeps, without a leader: removing what is expired is the same whoever does it, and twice does no harm.
Receivers check the retention period themselves, so sweeping late loses disk and never correctness.

A round goes where something is kept, not to each queue: of 100,000 empty ones that took 43 s of processor time.
"""

from collections.abc import Awaitable, Callable

from redrive.engine.configuration.kinds import DUE, SUBSCRIPTION, TOMBSTONE_MS, Due, QueueRecord
from redrive.engine.node.memory import Listeners, NodeCounters
from redrive.engine.ports import Clock, Occupied, QueueStore
from redrive.engine.push.circuit_breakers import CircuitBreakers
from redrive.engine.resources import Resources
from redrive.model.delivery import DeadLetterReason
from redrive.model.queue import Queue

QUEUES_PER_TURN = 100  # numbers looked at together: under a millisecond of the store's time
ROWS_PER_SWEEP = 1_000  # about 5 ms of the store's time


class Sweeper:
    """Visits everything that is stored."""

    def __init__(
        self,
        store: QueueStore,
        clock: Clock,
        resources: Resources,
        circuits: CircuitBreakers,
        counters: NodeCounters,
        listeners: Listeners,
        end_unasked: Callable[[Queue], Awaitable[None]],
        forget: Callable[[int], None],
    ) -> None:
        """Create a sweeper of a store.

        `end_unasked` is `Receiver.end_unasked`, for queues whose deliveries end otherwise than by being removed; `forget`
        is called with the number of every queue that is gone and had something happen to it on this node.
        """
        self._store = store
        self._clock = clock
        self._documents = resources.documents
        self._queues = resources.queues
        self._topics = resources.topics
        self._subscriptions = resources.subscriptions
        self._circuits = circuits
        self._counters = counters
        self._listeners = listeners
        self._end_unasked = end_unasked
        self._forget = forget
        self._never_old: set[int] = set()  # numbers of backlogs: no queue and no archive gets one of these

    async def round(self) -> int:
        """Sweep all that is kept once, and take away what falls due; how many deliveries went."""
        removed, after = 0, 0
        occupied_numbers: set[int] = set()
        while occupied := await self._store.occupied(after, QUEUES_PER_TURN):
            for occupied_queue in occupied:
                removed += await self._sweep_number(occupied_queue)
            occupied_numbers.update(occupied_queue.queue_id for occupied_queue in occupied)
            after = occupied[-1].queue_id
        self._never_old &= occupied_numbers
        removed += await self._sweep_due()
        await self._circuits.sweep(self._subscriptions.exists)
        await self._forget_the_gone()
        return removed

    async def _sweep_number(self, occupied_queue: Occupied) -> int:
        """Sweep a queue, a topic's archive or a subscription's backlog, if there is anything to be swept."""
        removed = 0
        if occupied_queue.oldest_at is not None and occupied_queue.queue_id not in self._never_old:
            removed += await self._sweep_old(occupied_queue.queue_id, occupied_queue.oldest_at)
        now = self._clock.now()
        if occupied_queue.memories_end_at is not None and occupied_queue.memories_end_at <= now:
            removed += await self._sweep(occupied_queue.queue_id, 0, now)
        return removed

    async def _sweep_old(self, queue_id: int, oldest_at: int) -> int:
        """Sweep a queue or an archive.

        A backlog's deliveries end by their schedule, never by age; those of a queue that is gone go by its tombstone.
        """
        queue = await self._queues.of_number(queue_id)
        if queue is not None:
            return await self._sweep_queue(queue, oldest_at)
        topic = await self._topics.of_archive(queue_id)
        if topic is None:
            self._never_old.add(queue_id)
            return 0
        now = self._clock.now()
        if oldest_at > now - topic.archive_ms:
            return 0
        return await self._sweep(topic.id, now - topic.archive_ms, now)

    async def _forget_the_gone(self) -> None:
        """Forget the counts of queues that any node deleted."""
        for counts in self._counters:
            queue = self._queues.known(counts.name) or await self._queues.get(counts.name)
            if queue is None or queue.id != counts.queue_id:
                self._forget(counts.queue_id)

    async def _sweep_queue(self, queue: Queue, oldest_at: int) -> int:
        """Sweep a queue; deliveries that are dead-lettered when they expire are not removed before that."""
        if queue.ends_unasked:
            await self._end_unasked(queue)
        now = self._clock.now()
        if oldest_at > now - queue.retention_ms:
            return 0
        if queue.buries_expired and await self._queues.dead_letters_to(queue) is not None:
            return 0
        removed = await self._sweep(queue.id, now - queue.retention_ms, now)
        if removed:
            self._counters.queue(queue).messages_expired += removed
            self._listeners.queues.dropped(queue, removed, DeadLetterReason.EXPIRED, now)
        return removed

    async def _sweep_due(self) -> int:
        """Delete subscriptions whose time is over, and empty deleted queues; how many deliveries were in those."""
        removed, after = 0, ""
        while page := await self._documents.find(DUE, "", after, QUEUES_PER_TURN):
            for due in page:
                if due.at > self._clock.now():
                    return removed
                removed += await self._act_on_due(due)
            after = page[-1].due_key
        return removed

    async def _act_on_due(self, due: Due) -> int:
        """End the subscription, or empty or forget the deleted queue, that is due; how many deliveries went."""
        if due.kind == SUBSCRIPTION.name:
            await self._subscriptions.end(due)
            return 0
        tombstone = await self._queues.tombstone(due.key)
        if tombstone is None:
            await self._documents.remove(DUE, due.due_key)
            return 0
        removed = await self.empty(tombstone)
        if tombstone.emptied:
            await self._queues.forget(tombstone)
        else:
            await self._queues.note_emptied(tombstone)
        return removed

    async def _sweep(self, queue_id: int, enqueued_before: int, now: int) -> int:
        """Sweep until nothing from before `enqueued_before` is left; how many deliveries went."""
        total = 0
        while True:
            swept = await self._store.sweep(queue_id, enqueued_before, now, ROWS_PER_SWEEP)
            total += swept.deliveries
            if not swept.has_more:
                return total

    async def empty(self, tombstone: QueueRecord) -> int:
        """Remove all that a deleted queue left, deduplication included; how many deliveries went."""
        removed = await self.purge(tombstone.id)
        now = self._clock.now()
        return removed + await self._sweep(tombstone.id, now, now + TOMBSTONE_MS)

    async def purge(self, queue_id: int) -> int:
        """Remove all that arrived in a queue up to now; how many."""
        seq_max = await self._store.last_seq()
        total = 0
        while removed := await self._store.purge(queue_id, seq_max, ROWS_PER_SWEEP):
            total += removed
        return total
