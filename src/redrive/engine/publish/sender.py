"""Send: messages that callers put into one queue become deliveries."""

from collections.abc import Sequence

from redrive.engine.node.memory import Listeners, NodeCounters
from redrive.engine.node.sealed_store import MessageSeals
from redrive.engine.ports import Clock, DeathRecord, Enqueued, MessageStore, NewDelivery
from redrive.engine.receive.notifier import QueueNotifier
from redrive.model.names import bytes_of, content_deduplication_id
from redrive.model.queue import DEDUPLICATION_MS, Queue
from redrive.model.topic import Message


class Publisher:
    """Puts messages into queues."""

    def __init__(
        self,
        store: MessageStore,
        clock: Clock,
        notifier: QueueNotifier,
        counters: NodeCounters,
        listeners: Listeners,
        seals: MessageSeals,
    ) -> None:
        """Enqueue into this store and tell this notifier; `seals` encrypt what has to be."""
        self._seals = seals
        self._store = store
        self._clock = clock
        self._notifier = notifier
        self._counters = counters
        self._listeners = listeners

    async def send(
        self, queue: Queue, messages: Sequence[Message], death: DeathRecord | None = None
    ) -> list[Enqueued]:
        """Send messages to one queue, in their order; all of them are on disk when this returns.

        `death` is what makes the only message a dead letter; None: they are not dead letters.
        """
        now = self._clock.now()
        new_deliveries = [_arrival(queue, message, now) for message in messages]
        if death is not None:
            (letter,) = new_deliveries
            letter.origin, letter.message_id, letter.note = death
        sealer = self._seals.of_queue(queue)
        if sealer is not None:
            for new_delivery in new_deliveries:
                new_delivery.sealer = sealer
        enqueued = await self._store.enqueue(new_deliveries)
        self._count(queue, messages, now)
        self._tell(queue, new_deliveries, now)
        return enqueued

    def _count(self, queue: Queue, messages: Sequence[Message], now: int) -> None:
        """Count messages that were sent, and tell the listeners."""
        body_bytes = sum([bytes_of(message.body) for message in messages])
        counters = self._counters.queue(queue)
        counters.messages_sent += len(messages)
        counters.bytes_sent += body_bytes
        self._listeners.queues.sent(queue, len(messages), body_bytes, now)

    def _tell(self, queue: Queue, new_deliveries: Sequence[NewDelivery], now: int) -> None:
        """Wake receivers for the messages that are due, and let the notifier expect the others."""
        due = 0
        for new_delivery in new_deliveries:
            if new_delivery.available_at <= now:
                due += 1
            else:
                self._notifier.expect(queue.id, new_delivery.available_at)
        if due:
            self._notifier.announce(queue.id, due)


def _arrival(queue: Queue, message: Message, now: int) -> NewDelivery:
    """The delivery of a message that enters a queue now, after the message's own delay or else the queue's."""
    delay_ms = queue.delay_ms if message.delay_ms is None else message.delay_ms
    new_delivery = NewDelivery(
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
        _deduplicate(queue, message, new_delivery)
    return new_delivery


def _deduplicate(queue: Queue, message: Message, new_delivery: NewDelivery) -> None:
    """Give a delivery its deduplication ID, and the key that repetitions are found by."""
    deduplication_id = message.deduplication_id
    if deduplication_id is None and queue.deduplicates_content:
        deduplication_id = content_deduplication_id(message.body)
    new_delivery.deduplication_id = deduplication_id
    if deduplication_id is not None:
        key = f"{message.group_id}\n{deduplication_id}" if queue.deduplicates_per_group else deduplication_id
        # A purge forgets what was sent before it: with its moment in the key, none of that is found again.
        new_delivery.deduplication_key = f"{key}\r{queue.purged_at}" if queue.purged_at else key
        new_delivery.deduplicate_until = new_delivery.enqueued_at + DEDUPLICATION_MS
