"""Telemetry as a whole: what collects, what is collected in, and when it is written down, sampled and swept.

Nothing wakes up while nothing happens, so that a simulated clock can leap over quiet weeks: the flusher waits for
news, the sampler for an active queue.
"""

import asyncio
import logging
from collections.abc import Awaitable

from redrive.engine.ports import Clock, NodeStore
from redrive.model.errors import StoreUnavailable
from redrive.model.log import END_OF_TIME, LOG_GROUP, LOG_STREAM, LogGroup
from redrive.model.metric import MINUTE_MS
from redrive.model.queue import DAY_MS
from redrive.telemetry.gauges import Gauges, Places
from redrive.telemetry.logs import LogBuffer
from redrive.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

FLUSH_MS = 5_000  # what a crash may lose of metrics and logs; whoever reads on this node flushes first
POINTS_PER_CALL = 200  # one transaction's worth: about 2 ms of the store's time
SWEEP_MS = 60 * MINUTE_MS
ROWS_PER_SWEEP = 1_000
# CloudWatch keeps minutes for 15 days, then five-minute sums for 63 days and hours for 455; here all ends with the
# minutes, and seconds, which there live three hours, last as long.
POINTS_KEPT_MS = 15 * DAY_MS


class Telemetry:
    """Counts and logs for one node.

    Attributes:
        metrics: A `Listener`, for the engine.
        logs: A `LogSink`, for those who write logs.
    """

    def __init__(self, store: NodeStore, clock: Clock, places: Places) -> None:
        """Write to this store; `places` are its queues."""
        self._store = store
        self._clock = clock
        self._news = asyncio.Event()
        self._active = asyncio.Event()
        self._lock = asyncio.Lock()
        self.metrics = Metrics(self._stir)
        self.logs = LogBuffer(store, self._news.set)
        self._gauges = Gauges(store, places, self.metrics)

    async def run(self) -> None:
        """Write down, sample and sweep, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._flush_on_news(), name="redrive-telemetry-flush")
            group.create_task(self._sample_every_minute(), name="redrive-telemetry-sample")
            group.create_task(self._sweep_every_hour(), name="redrive-telemetry-sweep")

    async def flush(self) -> None:
        """Write down what was counted and logged until now.

        Raises:
            StoreUnavailable: What was not written is kept for the next time.
        """
        async with self._lock:
            await self._flush()

    async def quiet(self) -> None:
        """Return when nothing that was set off is under way any more."""
        async with self._lock:
            pass

    async def close(self) -> None:
        """Write down what is left, if the store takes it."""
        await _survive(self.flush(), "flush")

    async def reset(self) -> None:
        """Forget every metric, every log, and what was not yet written down."""
        async with self._lock:
            await self._flush()
            self.metrics.activity.clear()
            while await self._store.drop_points(END_OF_TIME, ROWS_PER_SWEEP):
                pass
            for kind in (LOG_STREAM, LOG_GROUP):
                for resource in await self._store.find(kind, ""):
                    await self._store.remove(kind, resource.key)
            await self._sweep_logs()

    def _stir(self) -> None:
        self._news.set()
        self._active.set()

    # ---- writing down ------------------------------------------------------------------------------------

    async def _flush_on_news(self) -> None:
        while True:
            await self._news.wait()
            await self._clock.sleep_until(self._clock.now() + FLUSH_MS)
            await _survive(self.flush(), "flush")

    async def _flush(self) -> None:
        self._news.clear()
        points = self.metrics.take()
        try:
            while points:
                await self._store.add_points(points[:POINTS_PER_CALL])
                del points[:POINTS_PER_CALL]
            await self.logs.flush(self._clock.now())
        except StoreUnavailable:
            self._news.set()
            raise
        finally:
            self.metrics.put_back(points)

    # ---- sampling ----------------------------------------------------------------------------------------

    async def _sample_every_minute(self) -> None:
        await _survive(self._gauges.begin(self._clock.now()), "begin")
        while True:
            if not self.metrics.activity:
                self._active.clear()
                await self._active.wait()
            minute = (self._clock.now() // MINUTE_MS + 1) * MINUTE_MS
            await self._clock.sleep_until(minute)
            await _survive(self._sample(minute), "sample")

    async def _sample(self, minute: int) -> None:
        async with self._lock:
            await self._flush()  # first: zeros fill what nothing was counted for
            points = await self._gauges.sample(minute)
            while points:
                await self._store.add_points(points[:POINTS_PER_CALL])
                del points[:POINTS_PER_CALL]

    # ---- sweeping ----------------------------------------------------------------------------------------

    async def _sweep_every_hour(self) -> None:
        while True:
            await _survive(self.sweep(), "sweep")
            await self._clock.sleep_until(self._clock.now() + SWEEP_MS)

    async def sweep(self) -> None:
        """Drop metrics that are too old, events out of their group's retention, and what deleted groups left."""
        while await self._store.drop_points(self._clock.now() - POINTS_KEPT_MS, ROWS_PER_SWEEP):
            pass
        await self._sweep_logs()

    async def _sweep_logs(self) -> None:
        group_ids = await self._store.log_bytes()  # before the groups: one made in between has events rightly
        documents = await self._store.find(LOG_GROUP, "")
        groups = {group.id: group for group in (LogGroup.from_document(one.document) for one in documents)}
        now = self._clock.now()
        for group_id in group_ids:
            group = groups.get(group_id)
            before = END_OF_TIME if group is None else group.expired_before(now)
            while before and await self._store.drop_events(group_id, None, before, ROWS_PER_SWEEP):
                pass


async def _survive(work: Awaitable[None], what: str) -> None:
    """A store that is away is tried again the next time; and nothing here may take delivering down with it."""
    try:
        await work
    except StoreUnavailable as error:
        logger.warning("telemetry.interrupted during=%s error=%s", what, error)
    except Exception:
        logger.exception("telemetry.failed during=%s", what)
