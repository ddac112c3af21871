"""Delivering: a stream is flushed when enough waits in it, or when its oldest record has waited long enough.

Every node flushes what came by it. What another node has left behind, dead or stopped, is found by looking at the oldest
record of each stream: at the start, and where there are several nodes every ten seconds.
"""

import asyncio
import functools
import logging
from dataclasses import dataclass
from typing import Final

from redrive.aws.firehose.flushing import Flusher, FlushFailed
from redrive.aws.firehose.records import STREAM, DeliveryStream, buffer_of
from redrive.engine.engine import Engine
from redrive.engine.ports import Timer
from redrive.engine.upkeep import Upkeep
from redrive.model.errors import StoreUnavailable
from redrive.model.names import ResourceName

logger = logging.getLogger(__name__)

ROUND_MS: Final = 10_000
#: So much later than its own node would, another one delivers a record.
_GRACE_MS: Final = 10_000
_RETRY_MS: Final = 1_000  # after a first failure; twice as long after each further one
_RETRY_MS_MAX: Final = 5 * 60_000


@dataclass(slots=True)
class _Buffer:
    """A stream as this node knows it."""

    id: str  # Id of the stream
    name: ResourceName  # Name of the stream
    size: int = 0  # Bytes that came through this node and are not delivered yet, at least
    due_at: int | None = None  # When it is flushed (ms); None: nothing waits
    timer: Timer | None = None  # Goes off then
    failures: int = 0  # Flushes that failed, one after another
    flush: asyncio.Task[None] | None = None  # Under way


class Deliveries:
    """Flushes the streams of a node (`redrive.composition.extension.ClockDriven`)."""

    def __init__(self, engine: Engine, flusher: Flusher, *, sole_node: bool) -> None:
        self._engine = engine
        self._flusher = flusher
        self._sole_node = sole_node  # no other node can be at this store
        self._buffers: dict[str, _Buffer] = {}
        self._upkeep = Upkeep(self._take_up, engine.clock, ROUND_MS, "firehose.unread", once=sole_node)
        self._closed = False

    # ---- driven by the clock -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin: take up what waits."""
        self._upkeep.start()

    @property
    def is_quiet(self) -> bool:
        """True if no flush is under way."""
        return not self._flushes

    async def until_quiet(self) -> None:
        """Return when no flush is under way."""
        while flushes := self._flushes:
            await asyncio.wait(flushes)

    async def close(self) -> None:
        """Stop; what was not finished is left to the next start, or to another node."""
        self._closed = True
        await self._upkeep.close()
        tasks = self._flushes
        for task in tasks:
            task.cancel()
        for buffer in self._buffers.values():
            if buffer.timer is not None:
                buffer.timer.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def _flushes(self) -> list[asyncio.Task[None]]:
        return [buffer.flush for buffer in self._buffers.values() if buffer.flush is not None]

    async def _take_up(self) -> None:
        """Schedule a flush of each stream in which records wait, also of those that came by a node that has stopped."""
        grace_ms = 0 if self._sole_node else _GRACE_MS
        for _, stream in await self._engine.resources.documents.entries(STREAM):
            buffer = self._buffers.get(stream.id)
            if buffer is None or (buffer.due_at is None and buffer.flush is None):
                await self._schedule_oldest(stream, grace_ms)

    async def _schedule_oldest(self, stream: DeliveryStream, grace_ms: int = 0) -> None:
        """Schedule the flush of a stream by its oldest record, if there is one."""
        queue = await self._engine.resources.queues.get(buffer_of(stream.resource))
        oldest = [] if queue is None else await self._engine.messages.peek(queue, 1)
        if oldest:
            due_at = oldest[0].sent_at + stream.interval_ms + grace_ms
            if due_at <= self._engine.clock.now() and oldest[0].token is not None:
                # Claimed by a node that has died, or by one that flushes it now.
                due_at = max(due_at, oldest[0].available_at)
            self._schedule(stream, due_at)

    # ---- when a flush is due ----------------------------------------------------------------------------------

    def note(self, stream: DeliveryStream, size: int, at: int) -> None:
        """Schedule the flush of records of so many bytes, which are on disk since that moment (ms)."""
        buffer = self._buffer(stream)
        buffer.size += size
        if buffer.size >= stream.bytes_max and not buffer.failures:
            self._schedule(stream, at)
        elif buffer.due_at is None:
            self._schedule(stream, at + stream.interval_ms)

    def reschedule(self, stream: DeliveryStream) -> None:
        """Schedule a flush by a stream's new settings: at once after failures, else by the new interval."""
        buffer = self._buffers.get(stream.id)
        if buffer is None or buffer.due_at is None:
            return
        now = self._engine.clock.now()
        self._schedule(stream, now if buffer.failures else min(buffer.due_at, now + stream.interval_ms))

    def _schedule(self, stream: DeliveryStream, at: int) -> None:
        """Flush a stream at a moment (ms), or earlier if it is due before that; after the flush that is under way."""
        buffer = self._buffer(stream)
        if self._closed or (buffer.due_at is not None and buffer.due_at <= at):
            return
        buffer.due_at = at
        if buffer.timer is not None:
            buffer.timer.cancel()
        buffer.timer = None
        if buffer.flush is None:
            self._set_timer(buffer, at)

    def _buffer(self, stream: DeliveryStream) -> _Buffer:
        return self._buffers.setdefault(stream.id, _Buffer(stream.id, stream.resource))

    def _set_timer(self, buffer: _Buffer, at: int) -> None:
        buffer.timer = self._engine.clock.call_at(at, functools.partial(self._begin, buffer))

    def _begin(self, buffer: _Buffer) -> None:
        buffer.timer = buffer.due_at = None
        if not self._closed:
            buffer.flush = asyncio.get_running_loop().create_task(self._flush(buffer))

    # ---- a flush -----------------------------------------------------------------------------------------

    async def _flush(self, buffer: _Buffer) -> None:
        """Deliver a buffer; after a failure a retry is due. Records that came meanwhile have their timer then."""
        name = buffer.name
        try:
            await self._deliver(buffer)
        except (FlushFailed, StoreUnavailable) as failure:
            logger.warning("firehose.delayed stream=%s error=%s", name.key, failure)
            self._schedule_retry(buffer)
        except Exception:
            logger.exception("firehose.interrupted stream=%s: its records come back", name.key)
            self._schedule_retry(buffer)
        finally:
            buffer.flush = None
            if buffer.due_at is not None and not self._closed:
                self._set_timer(buffer, buffer.due_at)

    def _schedule_retry(self, buffer: _Buffer) -> None:
        delay_ms = min(_RETRY_MS << min(buffer.failures, 16), _RETRY_MS_MAX)
        buffer.failures += 1
        buffer.due_at = self._engine.clock.now() + delay_ms

    async def _deliver(self, buffer: _Buffer) -> None:
        """Deliver one object after another, until what waits is less than an object and not due yet."""
        resources = self._engine.resources
        while True:
            stream = await resources.documents.get(STREAM, buffer.name.key)
            queue = await resources.queues.get(buffer_of(buffer.name))
            if stream is None or stream.id != buffer.id or queue is None:
                self._buffers.pop(buffer.id, None)
                return
            delivered_bytes = await self._flusher.flush(stream, queue)
            buffer.failures = 0
            # 0 bytes: nothing could be claimed, so what was counted has gone by another way.
            buffer.size = max(0, buffer.size - delivered_bytes) if delivered_bytes else 0
            buffer.due_at = None
            await self._schedule_oldest(stream)  # sets `due_at` if records wait
            due_at: int | None = buffer.due_at
            if due_at is None or not delivered_bytes:
                return
            if due_at > self._engine.clock.now() and buffer.size < stream.bytes_max:
                return
