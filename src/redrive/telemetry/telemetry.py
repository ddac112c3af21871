"""Telemetry as a whole: what collects, what is collected in, and when it is written down, sampled and swept.

The flusher waits for news. The sampler looks each minute at the queues that are active; where the clock leaps it does
so only after something happened, and nobody flushes or sweeps by the clock: every moment at which somebody wakes up
costs a leap some milliseconds. Whoever reads flushes, which catches up with the minutes that passed; a leap ends
with `tidy`.
"""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

from redrive.engine.ports import Clock, NodeStore
from redrive.model.errors import StoreUnavailable
from redrive.model.log import END_OF_TIME, LOG_GROUP, LogGroup
from redrive.model.metric import MINUTE_MS, MetricPoint, SeriesGroup
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS
from redrive.telemetry.backlogs import ArchiveGauges, BacklogGauges, OfBacklog, Size, TopicPlaces
from redrive.telemetry.gauges import Gauges, Level, QueueDirectory
from redrive.telemetry.logs import LogBuffer
from redrive.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

FLUSH_MS = 5_000  # what a crash may lose of metrics and logs; whoever reads on this node flushes first
POINTS_PER_CALL = 200  # one transaction's worth: about 2 ms of the store's time
SWEEP_MS = 60 * MINUTE_MS
FORGET_MS = 5 * MINUTE_MS  # 0.1 s of processor time for 100,000 topics
ROWS_PER_SWEEP = 1_000
# CloudWatch keeps minutes for 15 days, then five-minute sums for 63 days and hours for 455; here all ends with the
# minutes, and seconds, which there live three hours, last as long. A queue in constant use takes 11 MB of SQLite by
# then (9 points a minute of 57 bytes), and 0.1 ms of processor time a minute.
POINTS_KEPT_MS = 15 * DAY_MS
_TOPIC = "topic"  # the kind of its document


class Telemetry:
    """Counts and logs for one node.

    Attributes:
        metrics: A `Listener`, for the engine.
        logs: A `LogSink`, for those who write logs.
    """

    def __init__(
        self,
        store: NodeStore,
        clock: Clock,
        places: QueueDirectory,
        topics: TopicPlaces,
        archive_size: Size,
        of_backlog: OfBacklog,
        *,
        simulated: bool = False,
    ) -> None:
        """Write to this store; `archive_size` is in number and bytes; `of_backlog` finds a backlog's subscription."""
        self._store = store
        self._clock = clock
        self._simulated = simulated
        self._sampled_minute = 0
        self._news = asyncio.Event()
        self._active = asyncio.Event()
        self._lock = asyncio.Lock()
        self.metrics = Metrics(self._note_activity)
        self.logs = LogBuffer(store, self._news.set)
        self._topics = topics
        self._gauges = Gauges(store, places, self.metrics)
        self._backlogs = BacklogGauges(store, of_backlog)
        self._archives = ArchiveGauges(topics, archive_size, self.metrics)

    async def run(self) -> None:
        """Write down, sample and sweep, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sample_every_minute(), name="redrive-telemetry-sample")
            if not self._simulated:
                group.create_task(self._flush_on_news(), name="redrive-telemetry-flush")
                group.create_task(self._sweep_every_hour(), name="redrive-telemetry-sweep")
                group.create_task(self._forget_at_times(), name="redrive-telemetry-forget")

    @property
    def queue_levels(self) -> Sequence[Level]:
        """The queues that held something at the last look, a minute ago at most."""
        return self._gauges.levels

    @property
    def backlog_levels(self) -> Sequence[Level]:
        """The topics whose subscriptions' backlogs held something at the last look."""
        return self._backlogs.levels

    def document_changed(self, kind: str, key: str, value: object | None) -> None:
        """This node wrote a document; see `Directory.on_write`."""
        if kind == _TOPIC:
            self.metrics.topic_changed(ResourceName.from_key(key), is_deleted=value is None)

    def count(self, points: Iterable[MetricPoint]) -> None:
        """Write down points that a facade counted by itself, with the next ones."""
        self.metrics.count(points)
        self._news.set()

    def add(self, group: SeriesGroup, value: float, at: int) -> None:
        """Write down a sample of that moment (ms) with the next ones, in each series of a group."""
        self.metrics.add(group, value, at)
        self._news.set()

    async def flush(self) -> None:
        """Write down what was counted and logged until now, and catch up with the minutes that passed.

        Raises:
            StoreUnavailable: What was not written is kept for the next time.
        """
        async with self._lock:
            await self._flush()
            await self._sample()

    async def tidy(self) -> None:
        """Flush and sweep once."""
        await _survive(self.flush(), "flush")
        await _survive(self._look_at_backlogs(), "look")
        await _survive(self.sweep(), "sweep")

    @property
    def is_quiet(self) -> bool:
        """True if nothing that was set off is under way."""
        return not self._lock.locked()

    async def until_quiet(self) -> None:
        """Return when nothing that was set off is under way any more."""
        async with self._lock:
            pass

    async def close(self) -> None:
        """Write down what is left, if the store takes it."""
        await _survive(self.flush(), "flush")

    async def reset(self) -> None:
        """Forget every metric, what was not yet written down, and the events of groups that are gone."""
        async with self._lock:
            await self._flush()
            self._gauges.forget()
            self._backlogs.forget()
            self._archives.forget()
            self.metrics.totals.clear()
            while await self._store.drop_points(END_OF_TIME, ROWS_PER_SWEEP):
                pass
            await self._sweep_logs()

    def _note_activity(self) -> None:
        self._news.set()
        self._active.set()

    # ---- writing down ------------------------------------------------------------------------------------

    async def _flush_on_news(self) -> None:
        while True:
            await self._news.wait()
            await self._clock.sleep_until(self._clock.now() + FLUSH_MS)
            await _survive(self.flush(), "flush")

    async def _flush(self) -> None:
        """Write down what was counted and logged; what cannot be written now is kept for the next time."""
        self._news.clear()
        points = [*self.metrics.take(), *self.metrics.take_traffic()]
        try:
            await self._add(points)
            await self.logs.flush(self._clock.now())
        except StoreUnavailable:
            self._news.set()
            raise
        finally:
            self.metrics.put_back(points)  # those that `_add` has not written: it takes the others out

    async def _add(self, points: list[MetricPoint]) -> None:
        """Write points down; each leaves the list once it is written."""
        while points:
            await self._store.add_points(points[:POINTS_PER_CALL])
            del points[:POINTS_PER_CALL]

    # ---- sampling ----------------------------------------------------------------------------------------

    async def _sample_every_minute(self) -> None:
        """Flush and look at each minute's beginning, as long as anything happens; otherwise wait until something does."""
        await _survive(self._gauges.begin(self._clock.now()), "begin")
        await _survive(self._look_at_backlogs(), "begin")
        while True:
            if self._simulated or not (self.metrics.activity or self.metrics.archives or self._backlogs.busy):
                self._active.clear()
                await self._active.wait()
            await self._flush_at((self._clock.now() // MINUTE_MS + 1) * MINUTE_MS)
            if not self._simulated:
                await _survive(self._look_at_backlogs(), "look")

    async def _flush_at(self, moment: int) -> None:
        """Flush when the clock comes to that moment (ms).

        The task is begun by whoever moves the clock: what a leap does may be deferred, and this is a part of it.
        """
        flush_task: asyncio.Future[asyncio.Task[None]] = asyncio.get_running_loop().create_future()
        begin = functools.partial(_begin, flush_task, lambda: _survive(self.flush(), "sample"))
        timer = self._clock.call_at(moment, begin)
        try:
            await (await flush_task)  # first until it begins, then until it is over
        finally:
            timer.cancel()

    async def _look_at_backlogs(self) -> None:
        """Look for the exposition's sake: whoever reads metrics of a facade, and flushes, does not wait for it."""
        await self._backlogs.sample(self._clock.now())

    async def _sample(self) -> None:
        """Fill the minutes that passed; whatever was counted in them is written down already."""
        minute = self._clock.now() // MINUTE_MS * MINUTE_MS
        if minute > self._sampled_minute:
            self._sampled_minute = minute
            await self._add(await self._gauges.sample(minute))
            await self._add(await self._archives.sample(minute))

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
        await self._forget_the_gone()

    async def _forget_at_times(self) -> None:
        while True:
            await self._clock.sleep_until(self._clock.now() + FORGET_MS)
            await _survive(self._forget_the_gone(), "forget")

    async def _forget_the_gone(self) -> None:
        """Forget the counters of topics that another node deleted."""
        totals = self.metrics.totals
        for name, _ in totals:
            if await self._topics.get(name) is None:
                totals.forget(name)

    async def _sweep_logs(self) -> None:
        """Remove expired events, and all those of groups that were deleted."""
        # read before the groups: else a group made in between would look like one that is gone
        group_ids = await self._store.log_bytes()
        documents = await self._store.find(LOG_GROUP, "")
        groups = {
            group.id: group for group in (LogGroup.from_document(document.document) for document in documents)
        }
        now = self._clock.now()
        for group_id in group_ids:
            group = groups.get(group_id)
            before = END_OF_TIME if group is None else group.expired_before(now)
            while before and await self._store.drop_events(group_id, None, before, ROWS_PER_SWEEP):
                pass


def _begin(
    task_future: "asyncio.Future[asyncio.Task[None]]", work: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    if not task_future.done():
        task_future.set_result(asyncio.get_running_loop().create_task(work()))


async def _survive(work: Awaitable[None], what: str) -> None:
    """Do some work, and log its failure: the next round tries again, and delivering goes on whatever fails here."""
    try:
        await work
    except StoreUnavailable as error:
        logger.warning("telemetry.interrupted during=%s error=%s", what, error)
    except Exception:
        logger.exception("telemetry.failed during=%s", what)
