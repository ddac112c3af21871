"""Settle: a claim ends, or is made to hold longer."""

from collections.abc import Sequence

from redrive.engine.arrivals import Arrivals
from redrive.engine.facts import Listener
from redrive.engine.measure import Measure
from redrive.engine.ports import Clock, Settled, Settlement, Store
from redrive.engine.receive import Flights
from redrive.model.queue import Queue


class Settler:
    """Ends and extends claims by their tokens."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        arrivals: Arrivals,
        flights: Flights,
        measure: Measure,
        listeners: Sequence[Listener],
    ) -> None:
        """Settle in this store."""
        self._store = store
        self._clock = clock
        self._arrivals = arrivals
        self._flights = flights
        self._measure = measure
        self._listeners = listeners

    async def delete(self, queue: Queue, claims: Sequence[tuple[int, int]]) -> list[Settled]:
        """The consumer has the messages: end their claims `(seq, token)` for good."""
        settlements = [Settlement(seq, token) for seq, token in claims]
        now = self._clock.now()
        settled = await self._store.settle(queue.id, settlements, now, ordered=queue.ordered)
        done = sum(one.done for one in settled)
        self._flights.add(queue.id, -done)
        self._measure.queue(queue.id).messages_deleted += len(claims)
        for listener in self._listeners:
            listener.deleted(queue, len(claims), now)
        if queue.ordered and done:  # a group's next may be claimed now
            self._arrivals.announce(queue.id, done)
        return settled

    async def extend(self, queue: Queue, claims: Sequence[tuple[int, int, int]]) -> list[Settled]:
        """Let claims `(seq, token, lease_ms)` hold so long from now on; 0 gives the message back."""
        now = self._clock.now()
        until = [(seq, token, now + lease_ms) for seq, token, lease_ms in claims]
        settled = await self._store.extend(queue.id, until, now, ordered=queue.ordered)
        for (_, _, due_at), one in zip(until, settled, strict=True):
            if not one.done:
                continue
            if due_at <= now:
                self._flights.add(queue.id, -1)
                self._arrivals.announce(queue.id)
            else:
                self._arrivals.expect(queue.id, due_at)
        return settled
