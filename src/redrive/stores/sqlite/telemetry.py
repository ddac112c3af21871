"""The embedded store's verbs of `TelemetryStore`."""

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import apsw
from typing_extensions import override

from redrive.engine.ports import TelemetryStore
from redrive.model.log import LogEvent, LogQuery, LogSpan
from redrive.model.metric import Bucket, MetricPoint, PointQuery, Series, SeriesQuery, ValueCount
from redrive.stores.sqlite import log_events, metric_points
from redrive.stores.sqlite.commit import GroupCommit

T = TypeVar("T")


class TelemetryVerbs(TelemetryStore, ABC):
    """Mixed into the store: telemetry shares its transactions, its connection for looks and its numbers."""

    _commit: GroupCommit

    @abstractmethod
    async def _look(self, look: Callable[[apsw.Cursor], T]) -> T: ...

    # ---- metrics -----------------------------------------------------------------------------------------

    @override
    def add_points(self, points: Sequence[MetricPoint]) -> asyncio.Future[None]:
        return self._commit.submit(
            lambda transaction: metric_points.add(points, transaction.cursor), grows=True
        )

    @override
    async def find_points(self, query: PointQuery) -> list[Bucket]:
        return await self._look(functools.partial(metric_points.find, query))

    @override
    async def find_points_each(self, query: PointQuery) -> Mapping[int, Sequence[Bucket]]:
        return await self._look(functools.partial(metric_points.find_each, query))

    @override
    async def find_values(self, query: PointQuery) -> list[ValueCount]:
        return await self._look(functools.partial(metric_points.find_values, query))

    @override
    async def find_series(self, query: SeriesQuery) -> list[Series]:
        return await self._look(functools.partial(metric_points.find_series, query))

    @override
    async def drop_points(self, before: int, limit: int) -> int:
        return await self._commit.submit(
            lambda transaction: metric_points.drop(before, limit, transaction.cursor)
        )

    # ---- logs --------------------------------------------------------------------------------------------

    @override
    def add_events(self, events: Sequence[LogEvent]) -> asyncio.Future[None]:
        return self._commit.submit(lambda transaction: log_events.add(events, transaction), grows=True)

    @override
    async def find_events(self, query: LogQuery) -> list[LogEvent]:
        return await self._look(functools.partial(log_events.find, query))

    @override
    async def log_spans(self, group_id: int, stream_ids: Sequence[int]) -> Mapping[int, LogSpan]:
        return await self._look(functools.partial(log_events.spans, group_id, stream_ids))

    @override
    async def log_bytes(self) -> Mapping[int, int]:
        return await self._look(log_events.sizes)

    @override
    async def drop_events(self, group_id: int, stream_id: int | None, before: int, limit: int) -> int:
        return await self._commit.submit(
            lambda transaction: log_events.drop(transaction.cursor, group_id, stream_id, before, limit)
        )
