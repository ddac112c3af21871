"""Consumers: who receives from a queue on this node, kept in memory for people who ask whether it is being emptied."""

from dataclasses import dataclass
from typing import Final

CONSUMERS_MAX: Final = 50  # of a queue; the one that was silent for longest makes room
_QUEUES_MAX: Final = 10_000
_AGENT_CHARS_MAX: Final = 120


@dataclass(slots=True)
class Consumer:
    """A caller of ReceiveMessage, identified by its principal and its address."""

    principal: str  # ARN
    address: str
    agent: str  # User agent of its first receive
    receives: int = 0
    messages: int = 0
    last_at: int = 0  # Time of its last receive (ms)


class Consumers:
    """The consumers of each queue since this node started."""

    def __init__(self) -> None:
        self._by_queue: dict[int, dict[tuple[str, str], Consumer]] = {}

    def note(self, queue_id: int, principal: str, address: str, agent: str, messages: int, now: int) -> None:
        """Count a receive and its messages. Every receive does this, so it costs no more than two look-ups."""
        consumers = self._by_queue.get(queue_id)
        consumer = None if consumers is None else consumers.get((principal, address))
        if consumer is None:
            consumer = self._add(queue_id, principal, address, agent)
        consumer.receives += 1
        consumer.messages += messages
        consumer.last_at = now

    def of(self, queue_id: int) -> list[Consumer]:
        """The consumers of a queue, the latest first."""
        return sorted(self._by_queue.get(queue_id, {}).values(), key=lambda each: -each.last_at)

    def _add(self, queue_id: int, principal: str, address: str, agent: str) -> Consumer:
        """A new consumer of a queue; the oldest queue and the longest idle consumer make room for it."""
        if queue_id not in self._by_queue and len(self._by_queue) >= _QUEUES_MAX:
            del self._by_queue[next(iter(self._by_queue))]
        consumers = self._by_queue.setdefault(queue_id, {})
        if len(consumers) >= CONSUMERS_MAX:
            del consumers[min(consumers, key=lambda each: consumers[each].last_at)]
        consumer = consumers[principal, address] = Consumer(principal, address, agent[:_AGENT_CHARS_MAX])
        return consumer
