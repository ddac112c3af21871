"""Counts of operations on each queue since this node started."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from redrive.model.names import ResourceName
from redrive.model.queue import Queue


@dataclass(slots=True)
class QueueCounters:
    """Counts of one queue. Names of the fields after the first two are the metric names, units last."""

    queue_id: int
    name: ResourceName
    messages_sent: int = 0
    bytes_sent: int = 0
    messages_received: int = 0
    empty_receives: int = 0
    messages_deleted: int = 0
    messages_dead_lettered: int = 0
    messages_expired: int = 0
    messages_dropped: int = 0
    messages_redriven: int = 0


class NodeCounters:
    """The counts of every queue in which something happened on this node.

    They know the queue's name: to look up 100,000 names for each scrape took minutes.
    """

    def __init__(self) -> None:
        self._queues: dict[int, QueueCounters] = {}

    def queue(self, queue: Queue) -> QueueCounters:
        """The counts of a queue, to be added to."""
        counters = self._queues.get(queue.id)
        if counters is None:
            counters = self._queues[queue.id] = QueueCounters(queue.id, queue.name)
        return counters

    def forget(self, queue_id: int) -> None:
        """The queue is gone."""
        self._queues.pop(queue_id, None)

    def __contains__(self, queue_id: int) -> bool:
        return queue_id in self._queues

    def __iter__(self) -> Iterator[QueueCounters]:
        return iter(list(self._queues.values()))


METRIC_NAMES = tuple(field.name for field in fields(QueueCounters)[2:])
