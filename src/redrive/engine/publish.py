"""Send: messages that callers put into one queue become deliveries."""

from collections.abc import Sequence

from redrive.engine.arrivals import Arrivals
from redrive.engine.listeners import Listeners
from redrive.engine.measure import Measure
from redrive.engine.ports import Arrival, Clock, Enqueued, Store
from redrive.model.message import Message, bytes_of, content_deduplication_id
from redrive.model.queue import DEDUPLICATION_MS, Queue


class Publisher:
    """Puts messages into queues."""

    def __init__(
        self, store: Store, clock: Clock, arrivals: Arrivals, measure: Measure, listeners: Listeners
    ) -> None:
        """Enqueue into this store and tell these arrivals."""
        self._store = store
        self._clock = clock
        self._arrivals = arrivals
        self._measure = measure
        self._listeners = listeners

    async def send(self, queue: Queue, messages: Sequence[Message]) -> list[Enqueued]:
        """Send messages to one queue, in their order; all of them are on disk when this returns."""
        now = self._clock.now()
        arrivals = [_arrival(queue, message, now) for message in messages]
        enqueued = await self._store.enqueue(arrivals)
        self._count(queue, messages, now)
        self._tell(arrivals, now)
        return enqueued

    def _count(self, queue: Queue, messages: Sequence[Message], now: int) -> None:
        body_bytes = sum([bytes_of(message.body) for message in messages])
        measure = self._measure.queue(queue)
        measure.messages_sent += len(messages)
        measure.bytes_sent += body_bytes
        self._listeners.queues.sent(queue, len(messages), body_bytes, now)

    def _tell(self, arrivals: Sequence[Arrival], now: int) -> None:
        due: dict[int, int] = {}
        for arrival in arrivals:
            if arrival.available_at <= now:
                due[arrival.queue_id] = due.get(arrival.queue_id, 0) + 1
            else:
                self._arrivals.expect(arrival.queue_id, arrival.available_at)
        for queue_id, number in due.items():
            self._arrivals.announce(queue_id, number)


def _arrival(queue: Queue, message: Message, now: int) -> Arrival:
    delay_ms = queue.delay_ms if message.delay_ms is None else message.delay_ms
    arrival = Arrival(
        queue.id,
        message.id,
        message.body,
        message.headers,
        now + delay_ms,
        now,
        message.group_id,
        queue.ordered,
    )
    if queue.ordered:
        _deduplicate(queue, message, arrival)
    return arrival


def _deduplicate(queue: Queue, message: Message, arrival: Arrival) -> None:
    given = message.deduplication_id
    if given is None and queue.deduplicates_content:
        given = content_deduplication_id(message.body)
    arrival.deduplication_id = given
    if given is not None:
        key = f"{message.group_id}\n{given}" if queue.deduplicates_per_group else given
        # What was sent before a purge is forgotten by it: nothing that comes after is known by the same key.
        arrival.deduplication_key = f"{key}\r{queue.purged_at}" if queue.purged_at else key
        arrival.deduplicate_until = arrival.enqueued_at + DEDUPLICATION_MS
