"""Settle: callers end their claims, or make them hold longer."""

from collections.abc import Awaitable, Sequence
from operator import attrgetter
from typing import Final

from redrive.engine.configuration.queues import Queues
from redrive.engine.node.memory import Listeners, NodeCounters
from redrive.engine.ports import AttemptNote, Claim, Clock, MessageStore, Settled, Settlement
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.receive.receiver import InFlightEstimate
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.model.queue import Queue

_DONE: Final = attrgetter("done")


class Settler:
    """Ends and extends claims by their tokens."""

    def __init__(
        self,
        store: MessageStore,
        clock: Clock,
        queues: Queues,
        notifier: QueueNotifier,
        in_flight: InFlightEstimate,
        counters: NodeCounters,
        listeners: Listeners,
    ) -> None:
        self._store = store
        self._clock = clock
        self._queues = queues
        self._notifier = notifier
        self._flights = in_flight
        self._counters = counters
        self._listeners = listeners

    async def delete(
        self, queue: Queue, claims: Sequence[tuple[int, int]], *, strict_lease: bool = False
    ) -> list[Settled]:
        """End claims `(seq, token)` of messages that the consumer is done with.

        Args:
            queue: Where they were claimed.
            claims: The deliveries' places and the claims' tokens.
            strict_lease: A claim that ran out is refused ("lapsed"), as it is in an ordered queue, though nobody has
                claimed the delivery since.
        """
        settlements = [Settlement(seq, token) for seq, token in claims]
        now = self._clock.now()
        settled = await self._settle(queue, settlements, now, strict_lease=strict_lease)
        ended_count = self._count_ended(queue, settled)
        self._counters.queue(queue).messages_deleted += len(claims)
        self._listeners.queues.deleted(queue, len(claims), now)
        if queue.ordered and ended_count:  # a group's next may be claimed now
            self._notifier.announce(queue.id, ended_count)
        return settled

    async def release(
        self, queue: Queue, claims: Sequence[tuple[int, int]], delay_ms: int, *, strict_lease: bool = False
    ) -> list[Settled]:
        """End claims of messages that the consumer cannot take now; they are offered again after `delay_ms`."""
        now = self._clock.now()
        due_at = now + delay_ms
        settlements = [Settlement(seq, token, Outcome.RETRY, due_at) for seq, token in claims]
        settled = await self._settle(queue, settlements, now, strict_lease=strict_lease)
        ended_count = self._count_ended(queue, settled)
        if ended_count and due_at <= now:
            self._notifier.announce(queue.id, ended_count)
        elif ended_count:
            self._notifier.expect(queue.id, due_at)
        return settled

    async def reject(
        self, queue: Queue, claims: Sequence[tuple[int, int, AttemptNote]], *, strict_lease: bool = False
    ) -> list[Settled]:
        """End claims of messages that the consumer will never take; without a dead-letter queue they are dropped."""
        target = await self._queues.dead_letters_to(queue)
        outcome = Outcome.DROPPED if target is None else Outcome.DEAD_LETTERED
        settlements = [
            Settlement(seq, token, outcome, target=target, note=note) for seq, token, note in claims
        ]
        now = self._clock.now()
        settled = await self._settle(queue, settlements, now, strict_lease=strict_lease)
        ended_count = self._count_ended(queue, settled)
        counters = self._counters.queue(queue)
        if target is None:
            counters.messages_dropped += ended_count
            self._listeners.queues.dropped(queue, ended_count, DeadLetterReason.REJECTED, now)
        elif ended_count:
            counters.messages_dead_lettered += ended_count
            self._listeners.queues.buried(queue, ended_count, DeadLetterReason.REJECTED, now)
            self._notifier.announce(target.queue_id, ended_count)
            self._notifier.expect_copies(target, now)
        return settled

    def _settle(
        self, queue: Queue, settlements: Sequence[Settlement], now: int, *, strict_lease: bool
    ) -> Awaitable[list[Settled]]:
        """Ask the store; a plain function, since each delete of a message waits for it."""
        return self._store.settle(
            queue.id, settlements, now, ordered=queue.ordered, strict_lease=strict_lease
        )

    def _count_ended(self, queue: Queue, settled: Sequence[Settled]) -> int:
        """The number of claims that ended, which are in flight no more."""
        ended_count = list(map(_DONE, settled)).count(True)
        self._flights.add(queue.id, -ended_count)
        return ended_count

    async def extend(
        self, queue: Queue, claims: Sequence[tuple[int, int, int]], *, strict_lease: bool = False
    ) -> list[Settled]:
        """Let claims `(seq, token, lease_ms)` hold so long from now on; 0 gives the message back."""
        now = self._clock.now()
        until = [Claim(seq, token, now + lease_ms) for seq, token, lease_ms in claims]
        settled = await self._store.extend(
            queue.id, until, now, ordered=queue.ordered, strict_lease=strict_lease
        )
        for (_, _, due_at), answer in zip(until, settled, strict=True):
            if not answer.done:
                continue
            if due_at <= now:
                self._flights.add(queue.id, -1)
                self._notifier.announce(queue.id)
            else:
                self._notifier.expect(queue.id, due_at)
        return settled
