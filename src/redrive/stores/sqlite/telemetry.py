"""The embedded store's verbs of `TelemetryStore`."""

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import apsw
import orjson
from typing_extensions import override

from redrive.engine.ports import TelemetryStore
from redrive.model.log import LogEvent, LogQuery, LogSpan
from redrive.model.metric import (
    MetricPoint,
    PeriodStatistics,
    PointQuery,
    Series,
    SeriesQuery,
    Statistics,
    ValueCount,
)
from redrive.stores.sqlite import log_events
from redrive.stores.sqlite.commit import GroupCommit

T = TypeVar("T")


class SqliteTelemetry(TelemetryStore, ABC):
    """Mixed into the store: telemetry shares its transactions, its connection for looks and its numbers."""

    _commit: GroupCommit

    @abstractmethod
    async def _look(self, look: Callable[[apsw.Cursor], T]) -> T: ...

    # ---- metrics -----------------------------------------------------------------------------------------

    @override
    def add_points(self, points: Sequence[MetricPoint]) -> asyncio.Future[None]:
        return self._commit.submit(lambda transaction: add_points(points, transaction.cursor), grows=True)

    @override
    async def find_points(self, query: PointQuery) -> list[PeriodStatistics]:
        return await self._look(functools.partial(find_points, query))

    @override
    async def find_points_each(self, query: PointQuery) -> Mapping[int, Sequence[PeriodStatistics]]:
        return await self._look(functools.partial(find_points_each, query))

    @override
    async def find_values(self, query: PointQuery) -> list[ValueCount]:
        return await self._look(functools.partial(find_values, query))

    @override
    async def find_series(self, query: SeriesQuery) -> list[Series]:
        return await self._look(functools.partial(find_series, query))

    @override
    async def drop_points(self, before: int, limit: int) -> int:
        return await self._commit.submit(lambda transaction: drop_points(before, limit, transaction.cursor))

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


# Metric points: added up as they come, gathered by period when they are asked for.

_SERIES: Final = (
    "INSERT INTO metric_series (account, region, namespace, name, dimensions, id, active_at)"
    " VALUES (?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET active_at = excluded.active_at"
    " WHERE excluded.active_at >= metric_series.active_at + 600000"  # ten minutes, see SeriesQuery
)
_INSERT: Final = (
    "INSERT INTO metric_points (series_id, at, unit, samples, total, least, greatest) VALUES (?,?,?,?,?,?,?)"
)
_FILL: Final = f"{_INSERT} ON CONFLICT DO NOTHING"
_ADD: Final = (
    f"{_INSERT} ON CONFLICT DO UPDATE SET samples = samples + excluded.samples, total = total + excluded.total,"
    " least = min(least, excluded.least), greatest = max(greatest, excluded.greatest)"
)
_ADD_VALUE: Final = (
    "INSERT INTO metric_values (series_id, at, unit, value, count) VALUES (?,?,?,?,?)"
    " ON CONFLICT DO UPDATE SET count = count + excluded.count"
)
_PERIOD: Final = "?2 + (at - ?2) / ?4 * ?4 AS period"
_OF_SERIES: Final = "series_id IN (SELECT value FROM json_each(?1)) AND at >= ?2 AND at < ?3"
_BUCKETS: Final = (
    f"SELECT {_PERIOD}, unit, sum(samples), sum(total), min(least), max(greatest)"
    f" FROM metric_points WHERE {_OF_SERIES} GROUP BY period, unit ORDER BY period, unit"
)
_BUCKETS_EACH: Final = (
    f"SELECT series_id, {_PERIOD}, unit, sum(samples), sum(total), min(least), max(greatest)"
    f" FROM metric_points WHERE {_OF_SERIES} GROUP BY series_id, period, unit ORDER BY series_id, period, unit"
)
_VALUES: Final = (
    f"SELECT {_PERIOD}, unit, value, sum(count) FROM metric_values WHERE {_OF_SERIES}"
    " GROUP BY period, unit, value ORDER BY period, unit, value"
)
_FIND_SERIES: Final = (
    "SELECT account, region, namespace, name, dimensions FROM metric_series"
    " WHERE account = ?1 AND region = ?2 AND active_at >= ?3"
    " AND (?4 IS NULL OR namespace = ?4) AND (?5 IS NULL OR name = ?5)"
    " AND (namespace, name, dimensions) > (?6, ?7, ?8) ORDER BY namespace, name, dimensions LIMIT ?9"
)
_DROP: Final = "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {moment} < ? LIMIT ?)"
_DROPS: Final = (
    _DROP.format(table="metric_points", key="series_id, at, unit", moment="at"),
    _DROP.format(table="metric_values", key="series_id, at, unit, value", moment="at"),
    _DROP.format(
        table="metric_series", key="account, region, namespace, name, dimensions", moment="active_at"
    ),
)


def add_points(points: Sequence[MetricPoint], cursor: apsw.Cursor) -> None:
    """See `TelemetryStore.add_points`."""
    active = {point.series: point.at for point in sorted(points, key=lambda point: point.at)}
    cursor.executemany(
        _SERIES, [(*series[:4], _text_of(series), series.id, at) for series, at in active.items()]
    )
    cursor.executemany(_ADD, [_row_of(point) for point in points if not point.fills])
    cursor.executemany(_FILL, [_row_of(point) for point in points if point.fills])
    values = [
        (point.series.id, point.at, point.unit, value, count)
        for point in points
        for value, count in point.values.items()
    ]
    cursor.executemany(_ADD_VALUE, values)


def find_points(query: PointQuery, cursor: apsw.Cursor) -> list[PeriodStatistics]:
    """See `TelemetryStore.find_points`."""
    records: list[Any] = cursor.execute(_BUCKETS, _arguments(query)).fetchall()
    return [PeriodStatistics(at, unit, Statistics(*record)) for at, unit, *record in records]


def find_points_each(query: PointQuery, cursor: apsw.Cursor) -> dict[int, list[PeriodStatistics]]:
    """See `TelemetryStore.find_points_each`."""
    buckets: dict[int, list[PeriodStatistics]] = {}
    for series_id, at, unit, *record in cursor.execute(_BUCKETS_EACH, _arguments(query)):
        buckets.setdefault(series_id, []).append(PeriodStatistics(at, unit, Statistics(*record)))
    return buckets


def find_values(query: PointQuery, cursor: apsw.Cursor) -> list[ValueCount]:
    """See `TelemetryStore.find_values`."""
    records: list[Any] = cursor.execute(_VALUES, _arguments(query)).fetchall()
    return [ValueCount(*row) for row in records]


def find_series(query: SeriesQuery, cursor: apsw.Cursor) -> list[Series]:
    """See `TelemetryStore.find_series`."""
    after = query.after
    behind = ("", "", "") if after is None else (after.namespace, after.name, _text_of(after))
    arguments = (query.account, query.region, query.active_since, query.namespace, query.name)
    records: list[Any] = cursor.execute(_FIND_SERIES, (*arguments, *behind, query.limit)).fetchall()
    return [_series_of(row) for row in records]


def drop_points(before: int, limit: int, cursor: apsw.Cursor) -> int:
    """See `TelemetryStore.drop_points`."""
    removed = 0
    for statement in _DROPS:
        cursor.execute(statement, (before, limit))
        removed += cursor.connection.changes()
    return removed


def _row_of(point: MetricPoint) -> tuple[Any, ...]:
    statistics = point.statistics
    return (
        point.series.id,
        point.at,
        point.unit,
        statistics.samples,
        statistics.total,
        statistics.least,
        statistics.greatest,
    )


def _text_of(series: Series) -> str:
    return orjson.dumps(series.dimensions).decode()


def _series_of(row: tuple[str, str, str, str, str]) -> Series:
    *names, dimensions = row
    account, region, namespace, name = names
    pairs = tuple((pair[0], pair[1]) for pair in orjson.loads(dimensions))
    return Series(account, region, namespace, name, pairs)


def _arguments(query: PointQuery) -> tuple[str, int, int, int]:
    ids = orjson.dumps([sery.id for sery in query.series]).decode()
    return ids, query.since, query.until, query.period_ms
