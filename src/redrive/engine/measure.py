"""What happened, in numbers since this node started; the door counts, nobody else."""

from collections.abc import Iterator
from dataclasses import dataclass, fields


@dataclass(slots=True)
class QueueMeasure:
    """Counts of one queue. Field names are the metric names, units last."""

    messages_sent: int = 0
    bytes_sent: int = 0
    messages_received: int = 0
    empty_receives: int = 0
    messages_deleted: int = 0
    messages_dead_lettered: int = 0
    messages_expired: int = 0
    messages_dropped: int = 0
    messages_redriven: int = 0


class Measure:
    """The counts of every queue this node touched."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._queues: dict[int, QueueMeasure] = {}

    def queue(self, queue_id: int) -> QueueMeasure:
        """The counts of a queue, to be added to."""
        found = self._queues.get(queue_id)
        if found is None:
            found = self._queues[queue_id] = QueueMeasure()
        return found

    def forget(self, queue_id: int) -> None:
        """The queue is gone."""
        self._queues.pop(queue_id, None)

    def __iter__(self) -> Iterator[tuple[int, QueueMeasure]]:
        return iter(list(self._queues.items()))


METRIC_NAMES = tuple(field.name for field in fields(QueueMeasure))
