"""Counts of queues as callers ask for them: at each call while that is cheap, remembered for a moment where it is not.

SQS calls its counts approximate, and lets them lag a minute behind (API reference, GetQueueAttributes). A million
messages take 50 ms to count, and up to five times as long beside a search of them; a monitor that asks without a pause
must neither wait for that nor have it done for each call.
"""

import asyncio
from typing import Final, NamedTuple

from redrive.engine.ports import COUNTED_AT_ONCE, Clock, Counts, QueueStore
from redrive.model.queue import Queue

KEPT_MS_MAX: Final = 10_000
# A count stands for so many times as long as it took: at most a hundredth of a thread goes into counting one queue.
KEPT_PER_MS: Final = 100

# A queue's number, and when it was emptied last: what was counted before does not stand.
_Asked = tuple[int, int]


class _Known(NamedTuple):
    """A count, when it began (ms), and the moment to which it stands; a while longer for those who have it renewed."""

    counts: Counts
    began: int
    until: int


class QueueCounts:
    """The counts of queues, and those of the large ones as of a moment ago."""

    def __init__(self, store: QueueStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[_Asked, _Known] = {}  # of queues whose counting took a millisecond at least
        self._counting: dict[_Asked, asyncio.Task[Counts]] = {}

    async def of(self, queue: Queue) -> Counts:
        """The numbers of deliveries of a queue.

        They are exact where it holds fewer than `COUNTED_AT_ONCE`; else at most twice `KEPT_MS_MAX` old, and the less so
        the quicker they were counted. On a simulated clock counting takes no time, so they are exact there.
        """
        counted_key = queue.id, queue.purged_at
        now = self._clock.now()
        known = self._known.get(counted_key)
        if known is not None and known.began <= now < known.until + KEPT_MS_MAX:
            if now >= known.until:
                self._count(counted_key)
            return known.counts
        counts = await self._store.count(queue.id, now, COUNTED_AT_ONCE)
        if sum(counts) < COUNTED_AT_ONCE:  # a kind that was not counted to its end would be as many alone
            return counts
        return await asyncio.shield(self._count(counted_key))

    def forget(self, queue: Queue) -> None:
        """Remember no count of a queue that was begun before now, as after a purge."""
        for remembered in (self._known, self._counting):
            for counted_key in [counted_key for counted_key in remembered if counted_key[0] == queue.id]:
                del remembered[counted_key]

    def _count(self, counted_key: _Asked) -> "asyncio.Task[Counts]":
        """Have a queue counted, once for all who ask meanwhile."""
        task = self._counting.get(counted_key)
        if task is None:
            task = self._counting[counted_key] = asyncio.create_task(
                self._counted(counted_key), name="redrive-count"
            )
            task.add_done_callback(lambda ended: self._ended(counted_key, ended))
        return task

    def _ended(self, counted_key: _Asked, task: "asyncio.Task[Counts]") -> None:
        if self._counting.get(counted_key) is task:
            del self._counting[counted_key]
        if not task.cancelled():
            task.exception()  # whoever waits is told; nobody may, and then the next who asks has it counted again

    async def _counted(self, counted_key: _Asked) -> Counts:
        began = self._clock.now()
        counts = await self._store.count(counted_key[0], began)
        now = self._clock.now()
        if self._counting.get(counted_key) is not asyncio.current_task():
            return counts  # it was forgotten meanwhile
        kept_ms = min(KEPT_MS_MAX, (now - began) * KEPT_PER_MS)
        self._known = {
            key: known for key, known in self._known.items() if known.began <= now < known.until + KEPT_MS_MAX
        }
        self._known.pop(counted_key, None)
        if kept_ms > 0:  # else counting took no time, or the clock was set back meanwhile
            self._known[counted_key] = _Known(counts, began, now + kept_ms)
        return counts
