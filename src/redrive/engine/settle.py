"""Settle: callers end their claims, or make them hold longer."""

from collections.abc import Sequence

from redrive.engine.arrivals import Arrivals
from redrive.engine.listeners import Listeners
from redrive.engine.measure import Measure
from redrive.engine.ports import AttemptNote, Clock, Settled, Settlement, Store
from redrive.engine.queues import Queues
from redrive.engine.receive import Flights
from redrive.model.delivery import End, Ending
from redrive.model.queue import Queue


class Settler:
    """Ends and extends claims by their tokens."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        queues: Queues,
        arrivals: Arrivals,
        flights: Flights,
        measure: Measure,
        listeners: Listeners,
    ) -> None:
        """Settle in this store."""
        self._store = store
        self._clock = clock
        self._queues = queues
        self._arrivals = arrivals
        self._flights = flights
        self._measure = measure
        self._listeners = listeners

    async def delete(
        self, queue: Queue, claims: Sequence[tuple[int, int]], *, in_time: bool = False
    ) -> list[Settled]:
        """End claims `(seq, token)` of messages that the consumer is done with.

        Args:
            queue: Where they were claimed.
            claims: The deliveries' places and the claims' tokens.
            in_time: A claim that ran out is refused ("lapsed"), as it is in an ordered queue, though nobody has
                claimed the delivery since.
        """
        settlements = [Settlement(seq, token) for seq, token in claims]
        settled, now = await self._settle(queue, settlements, in_time=in_time)
        done = sum(answer.done for answer in settled)
        self._measure.queue(queue).messages_deleted += len(claims)
        self._listeners.queues.deleted(queue, len(claims), now)
        if queue.ordered and done:  # a group's next may be claimed now
            self._arrivals.announce(queue.id, done)
        return settled

    async def release(
        self, queue: Queue, claims: Sequence[tuple[int, int]], delay_ms: int, *, in_time: bool = False
    ) -> list[Settled]:
        """End claims of messages that the consumer cannot take now; they are offered again after `delay_ms`."""
        due_at = self._clock.now() + delay_ms
        settlements = [Settlement(seq, token, Ending.RETRY, due_at) for seq, token in claims]
        settled, now = await self._settle(queue, settlements, in_time=in_time)
        if (done := sum(answer.done for answer in settled)) and due_at <= now:
            self._arrivals.announce(queue.id, done)
        elif done:
            self._arrivals.expect(queue.id, due_at)
        return settled

    async def reject(
        self, queue: Queue, claims: Sequence[tuple[int, int, AttemptNote]], *, in_time: bool = False
    ) -> list[Settled]:
        """End claims of messages that the consumer will never take; without a dead-letter queue they are dropped."""
        target = await self._queues.dead_letters_to(queue)
        ending = Ending.DROPPED if target is None else Ending.DEAD_LETTERED
        settlements = [
            Settlement(seq, token, ending, target=target, note=note) for seq, token, note in claims
        ]
        settled, now = await self._settle(queue, settlements, in_time=in_time)
        done = sum(answer.done for answer in settled)
        measure = self._measure.queue(queue)
        if target is None:
            measure.messages_dropped += done
            self._listeners.queues.dropped(queue, done, End.REJECTED, now)
        elif done:
            measure.messages_dead_lettered += done
            self._arrivals.announce(target.queue_id, done)
            self._arrivals.expect_copies(target, now)
        return settled

    async def _settle(
        self, queue: Queue, settlements: Sequence[Settlement], *, in_time: bool
    ) -> tuple[list[Settled], int]:
        now = self._clock.now()
        settled = await self._store.settle(queue.id, settlements, now, ordered=queue.ordered or in_time)
        self._flights.add(queue.id, -sum(answer.done for answer in settled))
        return settled, now

    async def extend(
        self, queue: Queue, claims: Sequence[tuple[int, int, int]], *, in_time: bool = False
    ) -> list[Settled]:
        """Let claims `(seq, token, lease_ms)` hold so long from now on; 0 gives the message back."""
        now = self._clock.now()
        until = [(seq, token, now + lease_ms) for seq, token, lease_ms in claims]
        settled = await self._store.extend(queue.id, until, now, ordered=queue.ordered or in_time)
        for (_, _, due_at), answer in zip(until, settled, strict=True):
            if not answer.done:
                continue
            if due_at <= now:
                self._flights.add(queue.id, -1)
                self._arrivals.announce(queue.id)
            else:
                self._arrivals.expect(queue.id, due_at)
        return settled
