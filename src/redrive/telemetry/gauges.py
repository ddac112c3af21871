"""Gauges: how full each queue is, looked at once a minute while anybody cares.

A queue is looked at as long as something was done to it in the last six hours, or messages are in it; a dead-letter
queue counts as touched whenever one of its sources is. That is when AWS calls a queue active, and like there a
queue that is active without being used reports that it counted nothing.
"""

from collections.abc import Iterator
from typing import Protocol

from redrive.engine.ports import Counts, Store
from redrive.model.delivery import Delivery
from redrive.model.metric import MINUTE_MS, MetricPoint, Statistics
from redrive.model.queue import Queue, ResourceName
from redrive.telemetry.metrics import Metrics
from redrive.telemetry.tally import QUEUE_COUNTERS, queue_series

ACTIVE_MS = 6 * 60 * MINUTE_MS
LOOKED_AT = 10  # of the oldest messages of a queue, for the age of the oldest that is not stuck
STUCK_ATTEMPTS = 3  # a message claimed so often does not count for the age (SQS metrics)
_NOTHING = Statistics.of(0)
_QUEUES_PER_PAGE = 100


class Places(Protocol):
    """Where queues are found by name."""

    async def get(self, name: ResourceName) -> Queue | None:
        """The queue of that name."""
        ...

    async def all_after(self, key: str, limit: int) -> list[Queue]:
        """Queues of anybody, by key."""
        ...


class Gauges:
    """Samples the queues that are active."""

    def __init__(self, store: Store, places: Places, metrics: Metrics) -> None:
        """Look at this store's queues, those of `metrics.activity`."""
        self._store = store
        self._places = places
        self._activity = metrics.activity

    async def begin(self, now: int) -> None:
        """Call the queues active that have messages: what was done to them before the start is not known."""
        after = ""
        while page := await self._places.all_after(after, _QUEUES_PER_PAGE):
            for queue in page:
                if any(await self._store.count(queue.id, now)):
                    self._activity.setdefault(queue.name, now)
            after = page[-1].name.key

    async def sample(self, minute: int) -> list[MetricPoint]:
        """Look at every active queue as a minute (ms) begins.

        Returns:
            How full each is, for that minute, and a zero for each counter that counted nothing in the minute before.
        """
        points: list[MetricPoint] = []
        for name, touched_at in list(self._activity.items()):
            queue = await self._places.get(name)
            counts = None if queue is None else await self._store.count(queue.id, minute)
            if queue is None or counts is None or _is_idle(counts, touched_at, minute):
                self._activity.pop(name, None)
                continue
            age_seconds = await self._oldest_age_seconds(queue, minute) if any(counts) else 0
            points += _full(name, counts, age_seconds, minute)
            points += _zeros(name, minute - MINUTE_MS)
        return points

    async def _oldest_age_seconds(self, queue: Queue, now: int) -> int:
        """The age of the oldest message that is not stuck.

        Among the dead letters of an unordered queue the age goes on where it was in the source.
        """
        for delivery in await self._oldest(queue):
            if delivery.attempts < STUCK_ATTEMPTS:
                return max(0, now - delivery.enqueued_at) // 1000
        return 0

    async def _oldest(self, queue: Queue) -> list[Delivery]:
        first = await self._store.peek(queue.id, 1)
        if not first or first[0].attempts < STUCK_ATTEMPTS:
            return first
        return await self._store.peek(queue.id, LOOKED_AT)


def _is_idle(counts: Counts, touched_at: int, now: int) -> bool:
    return not any(counts) and now - touched_at > ACTIVE_MS


def _full(queue: ResourceName, counts: Counts, age_seconds: int, minute: int) -> Iterator[MetricPoint]:
    gauges = {
        "messages_available": counts.available,
        "messages_claimed": counts.claimed,
        "messages_delayed": counts.delayed,
        "oldest_age_seconds": age_seconds,
    }
    for name, value in gauges.items():
        # Every node that knows the queue looks at it; the first to say what it saw is enough.
        yield MetricPoint(queue_series(queue, name), minute, "", Statistics.of(value), fills=True)


def _zeros(queue: ResourceName, minute: int) -> Iterator[MetricPoint]:
    for name in QUEUE_COUNTERS:
        yield MetricPoint(queue_series(queue, name), minute, "", _NOTHING, fills=True)
