"""The PostgreSQL store's verbs of `TelemetryStore`.

On Citus these tables stay with the coordinator: they hold what somebody may look at later, and nobody waits for them.
"""

from collections.abc import Mapping, Sequence

from typing_extensions import override

from redrive.engine.ports import TelemetryStore
from redrive.model.log import LogEvent, LogQuery, LogSpan
from redrive.model.metric import Bucket, MetricPoint, PointQuery, Series, SeriesQuery, ValueCount
from redrive.stores.postgres import log_events, metric_points
from redrive.stores.postgres.connections import Connections


class TelemetryVerbs(TelemetryStore):
    """Mixed into the store: telemetry shares its connections."""

    _connections: Connections

    # ---- metrics -----------------------------------------------------------------------------------------

    @override
    async def add_points(self, points: Sequence[MetricPoint]) -> None:
        await self._connections.run(lambda connection: metric_points.add(connection, points))

    @override
    async def find_points(self, query: PointQuery) -> list[Bucket]:
        return await self._connections.run(lambda connection: metric_points.find(connection, query))

    @override
    async def find_points_each(self, query: PointQuery) -> Mapping[int, Sequence[Bucket]]:
        return await self._connections.run(lambda connection: metric_points.find_each(connection, query))

    @override
    async def find_values(self, query: PointQuery) -> list[ValueCount]:
        return await self._connections.run(lambda connection: metric_points.find_values(connection, query))

    @override
    async def find_series(self, query: SeriesQuery) -> list[Series]:
        return await self._connections.run(lambda connection: metric_points.find_series(connection, query))

    @override
    async def drop_points(self, before: int, limit: int) -> int:
        return await self._connections.run(lambda connection: metric_points.drop(connection, before, limit))

    # ---- logs --------------------------------------------------------------------------------------------

    @override
    async def add_events(self, events: Sequence[LogEvent]) -> None:
        await self._connections.run(lambda connection: log_events.add(connection, events))

    @override
    async def find_events(self, query: LogQuery) -> list[LogEvent]:
        return await self._connections.run(lambda connection: log_events.find(connection, query))

    @override
    async def log_spans(self, group_id: int, stream_ids: Sequence[int]) -> Mapping[int, LogSpan]:
        return await self._connections.run(
            lambda connection: log_events.spans(connection, group_id, stream_ids)
        )

    @override
    async def log_bytes(self) -> Mapping[int, int]:
        return await self._connections.run(log_events.sizes)

    @override
    async def drop_events(self, group_id: int, stream_id: int | None, before: int, limit: int) -> int:
        return await self._connections.run(
            lambda connection: log_events.drop(connection, group_id, stream_id, before, limit)
        )
