"""Receive: a caller asks a queue for deliveries, and may wait for them."""

import logging

from redrive.engine.configuration.queues import Queues
from redrive.engine.node.memory import Listeners, NodeCounters
from redrive.engine.ports import (
    Claim,
    ClaimRequest,
    ClaimResult,
    MessageStore,
    MoveTarget,
    QueueStore,
    Runtime,
)
from redrive.engine.receive.notifier import LOOK_AGAIN_MS, Cancellation, QueueNotifier
from redrive.model.delivery import DeadLetterReason, Delivery
from redrive.model.errors import InFlightLimit
from redrive.model.queue import Queue

logger = logging.getLogger(__name__)

# How many deliveries of one queue may be in flight (SQS quotas, standard and FIFO).
IN_FLIGHT_MAX = 120_000
COUNT_EVERY_MS = 1_000  # a full queue of a million is counted in 50 ms
ENDINGS_MAX = 1_000  # deliveries of a queue's front looked at in one turn of upkeep


class Receiver:
    """Claims deliveries for callers, at once or when they arrive."""

    def __init__(
        self,
        messages: MessageStore,
        store: QueueStore,
        runtime: Runtime,
        queues: Queues,
        notifier: QueueNotifier,
        counters: NodeCounters,
        listeners: Listeners,
    ) -> None:
        self._store = messages
        self._runtime = runtime
        self._queues = queues
        self._notifier = notifier
        self._counters = counters
        self._listeners = listeners
        self._flights = InFlightEstimate(store, runtime)
        self._closing = False

    @property
    def in_flight(self) -> "InFlightEstimate":
        """The estimate of deliveries in flight, for the parts that end claims."""
        return self._flights

    def close(self) -> None:
        """Answer waiting callers with nothing; from now on no call waits."""
        self._closing = True
        self._notifier.announce_all()

    async def receive(
        self,
        queue: Queue,
        limit: int,
        *,
        lease_ms: int | None = None,
        wait_ms: int | None = None,
        attempt_id: str | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Delivery]:
        """Claim up to `limit` deliveries, waiting up to `wait_ms` for the first.

        Args:
            queue: The queue.
            limit: The largest number.
            lease_ms: How long the claim holds; None: the queue's own lease.
            wait_ms: How long to wait; None: the queue's own wait.
            attempt_id: See `ClaimRequest.attempt_id`.
            cancellation: Tells when the caller hangs up: the wait ends, and what was claimed for it is given back.

        Raises:
            InFlightLimit: An unordered queue has too many deliveries in flight, and the caller does not wait.
        """
        clock, notifier = self._runtime.clock, self._notifier
        wait_ms = queue.wait_ms if wait_ms is None else wait_ms
        now = clock.now()
        until = now + wait_ms
        woken = False
        while True:
            count = notifier.count(queue.id)
            try:
                claimed = await self._claim(queue, limit, lease_ms, attempt_id, now, waits=wait_ms > 0)
            except BaseException:
                if woken:
                    # the delivery that woke this receiver is still there, for the next one
                    notifier.announce(queue.id)
                raise
            if claimed.deliveries:
                self._listeners.queues.received(queue, len(claimed.deliveries), now)
                if cancellation is not None and cancellation.happened:
                    await self._give_back(queue, claimed.deliveries)
                    return []
                if notifier.anyone(queue.id):  # the next receiver finds more, or learns when to look again
                    notifier.announce(queue.id)
                return claimed.deliveries
            now = clock.now()
            due_at = None if claimed.next_at is None else max(claimed.next_at, now + LOOK_AGAIN_MS)
            if now >= until or self._closing or (cancellation is not None and cancellation.happened):
                self._leave(queue, due_at, now)
                return []
            await notifier.wait(queue.id, count, until, due_at, cancellation)
            woken, now = True, clock.now()

    async def _give_back(self, queue: Queue, deliveries: list[Delivery]) -> None:
        """End the claims of a caller who went away, so that the next receiver gets the deliveries."""
        now = self._runtime.clock.now()
        claims = [Claim(delivery.seq, delivery.token or 0, now) for delivery in deliveries]
        await self._store.extend(queue.id, claims, now, ordered=queue.ordered)
        self._flights.add(queue.id, -len(deliveries))
        self._notifier.announce(queue.id, len(deliveries))

    def _leave(self, queue: Queue, due_at: int | None, now: int) -> None:
        """Count an empty receive; a receiver who goes on waiting looks again when the next delivery falls due."""
        self._counters.queue(queue).empty_receives += 1
        self._listeners.queues.received(queue, 0, now)
        if due_at is not None:
            self._notifier.remind(queue.id, due_at)

    async def _claim(
        self, queue: Queue, limit: int, lease_ms: int | None, attempt_id: str | None, now: int, *, waits: bool
    ) -> ClaimResult:
        """Claim, unless too many are in flight: then one who waits, or an ordered queue, gets nothing for the moment."""
        if self._flights.seems_full(queue.id) and await self._flights.is_full(queue.id):
            if not (queue.ordered or waits):
                raise InFlightLimit(f"{IN_FLIGHT_MAX} messages of {queue.name.key} are in flight")
            return ClaimResult(next_at=now + COUNT_EVERY_MS)
        target = None if queue.dead_letter is None else await self._queues.dead_letters_to(queue)
        claimed = await self._store.claim(
            ClaimRequest(
                queue_id=queue.id,
                ordered=queue.ordered,
                limit=limit,
                now=now,
                lease_ms=queue.lease_ms if lease_ms is None else lease_ms,
                token=self._runtime.token(),
                limits=queue.limits(dead_letters=target is not None),
                dead_letters_to=target,
                attempt_id=attempt_id,
            )
        )
        if number := len(claimed.deliveries):
            self._flights.add(queue.id, number)
            self._counters.queue(queue).messages_received += number
        self._count_ends(queue, claimed, target)
        return claimed

    async def end_unasked(self, queue: Queue) -> None:
        """Dead-letter or drop exhausted and expired messages at the front of a queue that may have no receivers."""
        target = await self._queues.dead_letters_to(queue)
        request = ClaimRequest(
            queue_id=queue.id,
            ordered=queue.ordered,
            limit=ENDINGS_MAX,
            now=self._runtime.clock.now(),
            lease_ms=0,
            token=0,
            limits=queue.limits(dead_letters=target is not None),
            dead_letters_to=target,
            claims_nothing=True,
        )
        while True:
            claimed = await self._store.claim(request)
            self._count_ends(queue, claimed, target)
            if claimed.expired + claimed.dropped + claimed.dead_lettered < ENDINGS_MAX:
                return

    def _count_ends(self, queue: Queue, claimed: ClaimResult, target: MoveTarget | None) -> None:
        """Count and tell of the messages that expired, or had too many receives, when the store looked for others."""
        if not (claimed.expired or claimed.dropped or claimed.dead_lettered):
            return
        counters = self._counters.queue(queue)
        counters.messages_expired += claimed.expired
        counters.messages_dropped += claimed.dropped
        if claimed.expired or claimed.dropped:
            self._tell_dropped(queue, claimed)
        if claimed.dead_lettered and target is not None:
            counters.messages_dead_lettered += claimed.dead_lettered
            logger.info("delivery.dead_lettered queue=%s number=%d", queue.name.key, claimed.dead_lettered)
            # In queues that dead-letter expired messages, too, the store does not say why one was dead-lettered.
            why, now = DeadLetterReason.EXHAUSTED, self._runtime.clock.now()
            self._listeners.queues.buried(queue, claimed.dead_lettered, why, now)
            self._notifier.announce(target.queue_id, claimed.dead_lettered)
            self._notifier.expect_copies(target, now)

    def _tell_dropped(self, queue: Queue, claimed: ClaimResult) -> None:
        """Tell the listeners how many messages a claim dropped, and why."""
        now = self._runtime.clock.now()
        for number, why in (
            (claimed.expired, DeadLetterReason.EXPIRED),
            (claimed.dropped, DeadLetterReason.EXHAUSTED),
        ):
            if number:
                self._listeners.queues.dropped(queue, number, why, now)


class InFlightEstimate:
    """An upper estimate of the deliveries in flight, so that a claim can enforce the limit without counting.

    The estimate only misses claims that ran out, which makes it too high. When it reaches the limit the store counts,
    at most every `COUNT_EVERY_MS` for a queue.
    """

    def __init__(self, store: QueueStore, runtime: Runtime, limit: int = IN_FLIGHT_MAX) -> None:
        """Allow `limit` in each queue."""
        self._store = store
        self._clock = runtime.clock
        self._limit = limit
        self._estimates: dict[int, int] = {}
        self._counted_at: dict[int, int] = {}

    def add(self, queue_id: int, number: int) -> None:
        """Count deliveries that were claimed, or (negative) settled."""
        estimate = self._estimates.get(queue_id, 0) + number
        if estimate > 0:
            self._estimates[queue_id] = estimate
        else:
            self._estimates.pop(queue_id, None)

    def forget(self, queue_id: int) -> None:
        """Forget a queue that is gone."""
        self._estimates.pop(queue_id, None)
        self._counted_at.pop(queue_id, None)

    def seems_full(self, queue_id: int) -> bool:
        """True if the limit may be reached; where it does not seem so, it is not."""
        return self._estimates.get(queue_id, 0) >= self._limit

    async def is_full(self, queue_id: int) -> bool:
        """True if the limit is reached, of a queue that seems full."""
        now = self._clock.now()
        if now - self._counted_at.get(queue_id, 0) >= COUNT_EVERY_MS:
            self._counted_at[queue_id] = now
            self._estimates[queue_id] = (await self._store.count(queue_id, now)).claimed
        return self.seems_full(queue_id)
