"""The embedded store's verbs of `TelemetryStore`."""

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import apsw

from redrive.model.log import LogEvent, LogQuery, LogSpan
from redrive.model.metric import Bucket, MetricPoint, PointQuery, Series, SeriesQuery, ValueCount
from redrive.stores.sqlite import log_events, metric_points
from redrive.stores.sqlite.commit import GroupCommit

T = TypeVar("T")


class TelemetryVerbs(ABC):
    """Mixed into the store: telemetry shares its transactions, its connection for looks and its numbers."""

    _commit: GroupCommit

    @abstractmethod
    async def _look(self, look: Callable[[apsw.Cursor], T]) -> T: ...

    # ---- metrics -----------------------------------------------------------------------------------------

    def add_points(self, points: Sequence[MetricPoint]) -> asyncio.Future[None]:
        """See `TelemetryStore.add_points`."""
        return self._commit.submit(lambda transaction: metric_points.add(points, transaction.cursor))

    async def find_points(self, query: PointQuery) -> list[Bucket]:
        """See `TelemetryStore.find_points`."""
        return await self._look(functools.partial(metric_points.find, query))

    async def find_points_each(self, query: PointQuery) -> Mapping[int, Sequence[Bucket]]:
        """See `TelemetryStore.find_points_each`."""
        return await self._look(functools.partial(metric_points.find_each, query))

    async def find_values(self, query: PointQuery) -> list[ValueCount]:
        """See `TelemetryStore.find_values`."""
        return await self._look(functools.partial(metric_points.find_values, query))

    async def find_series(self, query: SeriesQuery) -> list[Series]:
        """See `TelemetryStore.find_series`."""
        return await self._look(functools.partial(metric_points.find_series, query))

    async def drop_points(self, before: int, limit: int) -> int:
        """See `TelemetryStore.drop_points`."""
        return await self._commit.submit(
            lambda transaction: metric_points.drop(before, limit, transaction.cursor)
        )

    # ---- logs --------------------------------------------------------------------------------------------

    def add_events(self, events: Sequence[LogEvent]) -> asyncio.Future[None]:
        """See `TelemetryStore.add_events`."""
        return self._commit.submit(lambda transaction: log_events.add(events, transaction))

    async def find_events(self, query: LogQuery) -> list[LogEvent]:
        """See `TelemetryStore.find_events`."""
        return await self._look(functools.partial(log_events.find, query))

    async def log_spans(self, group_id: int, stream_ids: Sequence[int]) -> Mapping[int, LogSpan]:
        """See `TelemetryStore.log_spans`."""
        return await self._look(functools.partial(log_events.spans, group_id, stream_ids))

    async def log_bytes(self) -> Mapping[int, int]:
        """See `TelemetryStore.log_bytes`."""
        return await self._look(log_events.sizes)

    async def drop_events(self, group_id: int, stream_id: int | None, before: int, limit: int) -> int:
        """See `TelemetryStore.drop_events`."""
        return await self._commit.submit(
            lambda transaction: log_events.drop(transaction.cursor, group_id, stream_id, before, limit)
        )
