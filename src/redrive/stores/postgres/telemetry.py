"""The PostgreSQL store's verbs of `TelemetryStore`.

On Citus these tables stay with the coordinator: they hold what somebody may look at later, and nobody waits for them.
"""

from collections.abc import Mapping, Sequence

from redrive.model.log import LogEvent, LogQuery, LogSpan
from redrive.model.metric import Bucket, MetricPoint, PointQuery, Series, SeriesQuery, ValueCount
from redrive.stores.postgres import log_events, metric_points
from redrive.stores.postgres.connections import Connections


class TelemetryVerbs:
    """Mixed into the store: telemetry shares its connections."""

    _connections: Connections

    # ---- metrics -----------------------------------------------------------------------------------------

    async def add_points(self, points: Sequence[MetricPoint]) -> None:
        """See `TelemetryStore.add_points`."""
        await self._connections.run(lambda connection: metric_points.add(connection, points))

    async def find_points(self, query: PointQuery) -> list[Bucket]:
        """See `TelemetryStore.find_points`."""
        return await self._connections.run(lambda connection: metric_points.find(connection, query))

    async def find_points_each(self, query: PointQuery) -> Mapping[int, Sequence[Bucket]]:
        """See `TelemetryStore.find_points_each`."""
        return await self._connections.run(lambda connection: metric_points.find_each(connection, query))

    async def find_values(self, query: PointQuery) -> list[ValueCount]:
        """See `TelemetryStore.find_values`."""
        return await self._connections.run(lambda connection: metric_points.find_values(connection, query))

    async def find_series(self, query: SeriesQuery) -> list[Series]:
        """See `TelemetryStore.find_series`."""
        return await self._connections.run(lambda connection: metric_points.find_series(connection, query))

    async def drop_points(self, before: int, limit: int) -> int:
        """See `TelemetryStore.drop_points`."""
        return await self._connections.run(lambda connection: metric_points.drop(connection, before, limit))

    # ---- logs --------------------------------------------------------------------------------------------

    async def add_events(self, events: Sequence[LogEvent]) -> None:
        """See `TelemetryStore.add_events`."""
        await self._connections.run(lambda connection: log_events.add(connection, events))

    async def find_events(self, query: LogQuery) -> list[LogEvent]:
        """See `TelemetryStore.find_events`."""
        return await self._connections.run(lambda connection: log_events.find(connection, query))

    async def log_spans(self, group_id: int, stream_ids: Sequence[int]) -> Mapping[int, LogSpan]:
        """See `TelemetryStore.log_spans`."""
        return await self._connections.run(
            lambda connection: log_events.spans(connection, group_id, stream_ids)
        )

    async def log_bytes(self) -> Mapping[int, int]:
        """See `TelemetryStore.log_bytes`."""
        return await self._connections.run(log_events.sizes)

    async def drop_events(self, group_id: int, stream_id: int | None, before: int, limit: int) -> int:
        """See `TelemetryStore.drop_events`."""
        return await self._connections.run(
            lambda connection: log_events.drop(connection, group_id, stream_id, before, limit)
        )
