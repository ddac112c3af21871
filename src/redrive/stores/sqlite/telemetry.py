"""The embedded store's verbs of `TelemetryStore`."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import apsw
import orjson
from typing_extensions import override

from redrive.engine.ports import TelemetryStore
from redrive.model.log import EVENT_BYTES, LogEvent, LogQuery, LogSpan
from redrive.model.metric import (
    MetricPoint,
    PeriodStatistics,
    PointQuery,
    Series,
    SeriesQuery,
    Statistics,
    ValueCount,
)
from redrive.stores.sqlite import rows
from redrive.stores.sqlite.commit import GroupCommit
from redrive.stores.sqlite.inspection import as_look
from redrive.stores.sqlite.transaction import Transaction

# ---- log events: a group in order of time, and by an index each of its streams ---------------------------------

_INSERT_EVENTS: Final = (
    "INSERT INTO log_events (group_id, at, seq, stream_id, ingested_at, message) VALUES (?,?,?,?,?,?)"
)
_ADD_SIZES: Final = (
    "INSERT INTO log_sizes VALUES (?, ?) ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes"
)
_SELECT: Final = (
    "SELECT group_id, stream_id, at, ingested_at, message, seq FROM log_events WHERE group_id = :group"
)
_OF_STREAM: Final = " AND stream_id = :stream"
# The plus keeps the index of streams out: several of them are read in the group's order, not sorted.
_OF_STREAMS: Final = " AND +stream_id IN (SELECT value FROM json_each(:streams))"
_BEGINNINGS: Final = (
    "SELECT substr(message, 1, ?4) FROM log_events WHERE group_id = ?1 AND at >= ?2"
    " ORDER BY at DESC, seq DESC LIMIT ?3"
)
_LAST: Final = "WHERE group_id = ?1 AND stream_id = ?2 ORDER BY at DESC, seq DESC LIMIT 1"
_FIRST_AT: Final = "SELECT at FROM log_events WHERE group_id = ?1 AND stream_id = ?2 ORDER BY at LIMIT 1"
_SPAN: Final = f"SELECT ({_FIRST_AT}), at, ingested_at FROM log_events {_LAST}"
_DROP_EVENTS: Final = (
    "DELETE FROM log_events WHERE (group_id, at, seq) IN (SELECT group_id, at, seq FROM log_events"
    " WHERE group_id = :group AND at < :before{of_stream} ORDER BY at, seq LIMIT :limit)"
    " RETURNING octet_length(message)"
)


def add_log_events(events: Sequence[LogEvent], transaction: Transaction) -> None:
    """Write events of logs, and add their bytes to the sizes of their groups: see `TelemetryStore.add_events`."""
    cursor, next_seq = transaction.cursor, transaction.next_seq
    rows = [
        (event.group_id, event.at, next_seq(), event.stream_id, event.ingested_at, event.message)
        for event in events
    ]
    cursor.executemany(_INSERT_EVENTS, rows)
    sizes: Counter[int] = Counter()
    for event in events:
        sizes[event.group_id] += len(event.message.encode()) + EVENT_BYTES
    cursor.executemany(_ADD_SIZES, list(sizes.items()))


def find_log_events(cursor: apsw.Cursor, query: LogQuery) -> list[LogEvent]:
    """The events of a query, in order of their time, or of their arrival where `arrived_after` is given."""
    # The plus keeps the order of time out where that of arrival is asked for.
    at = "at" if query.arrived_after is None else "+at"
    statement = f"{_SELECT} AND {at} >= :since AND {at} < :until"
    streams = query.stream_ids
    if streams is not None:
        statement += _OF_STREAM if len(streams) == 1 else _OF_STREAMS
    order = "DESC" if query.backwards else "ASC"
    order_by = f"at {order}, seq {order}"
    if query.arrived_after is not None:
        statement, order_by = f"{statement} AND seq > :arrived_after", f"seq {order}"
    elif query.after is not None:
        statement += f" AND (at, seq) {'<' if query.backwards else '>'} (:after_at, :after_seq)"
    after_at, after_seq = query.after or (0, 0)
    arguments = {
        "group": query.group_id,
        "since": query.since,
        "until": query.until,
        "stream": streams[0] if streams else 0,
        "streams": orjson.dumps(streams).decode(),
        "after_at": after_at,
        "after_seq": after_seq,
        "arrived_after": query.arrived_after,
        "limit": query.limit,
    }
    records: list[Any] = cursor.execute(f"{statement} ORDER BY {order_by} LIMIT :limit", arguments).fetchall()
    return [LogEvent(*row) for row in records]


def log_beginnings(
    cursor: apsw.Cursor, group_ids: Sequence[int], since: int, limit: int, chars: int
) -> Mapping[int, Sequence[str]]:
    """See `TelemetryStore.log_beginnings`."""
    return {
        group_id: [text for (text,) in cursor.execute(_BEGINNINGS, (group_id, since, limit, chars))]
        for group_id in group_ids
    }


def log_spans(cursor: apsw.Cursor, group_id: int, stream_ids: Sequence[int]) -> Mapping[int, LogSpan]:
    """See `TelemetryStore.log_spans`."""
    records = {stream_id: rows.one(cursor, _SPAN, (group_id, stream_id)) for stream_id in stream_ids}
    return {stream_id: LogSpan(*row) for stream_id, row in records.items() if row}


def log_bytes(cursor: apsw.Cursor) -> Mapping[int, int]:
    """See `TelemetryStore.log_bytes`."""
    records: list[Any] = cursor.execute("SELECT group_id, bytes FROM log_sizes").fetchall()
    return dict(records)


def drop_log_events(
    cursor: apsw.Cursor, group_id: int, stream_id: int | None, before: int, limit: int
) -> int:
    """Remove up to `limit` events from before a moment, and subtract their bytes: see `TelemetryStore.drop_events`."""
    statement = _DROP_EVENTS.format(of_stream="" if stream_id is None else _OF_STREAM)
    oldest = {"group": group_id, "before": before, "stream": stream_id, "limit": limit}
    removed: list[Any] = cursor.execute(statement, oldest).fetchall()
    removed_bytes = sum(message_bytes + EVENT_BYTES for (message_bytes,) in removed)
    cursor.execute("UPDATE log_sizes SET bytes = bytes - ? WHERE group_id = ?", (removed_bytes, group_id))
    cursor.execute("DELETE FROM log_sizes WHERE group_id = ? AND bytes <= 0", (group_id,))
    return len(removed)


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


def add_points(cursor: apsw.Cursor, points: Sequence[MetricPoint]) -> None:
    """Add points to their series: see `TelemetryStore.add_points`. Those that fill gaps change no point that there is."""
    last_at = {point.series: point.at for point in sorted(points, key=lambda point: point.at)}
    cursor.executemany(
        _SERIES, [(*series[:4], _text_of(series), series.id, at) for series, at in last_at.items()]
    )
    cursor.executemany(_ADD, [_row_of(point) for point in points if not point.fills])
    cursor.executemany(_FILL, [_row_of(point) for point in points if point.fills])
    values = [
        (point.series.id, point.at, point.unit, value, count)
        for point in points
        for value, count in point.values.items()
    ]
    cursor.executemany(_ADD_VALUE, values)


def find_points(cursor: apsw.Cursor, query: PointQuery) -> list[PeriodStatistics]:
    """See `TelemetryStore.find_points`."""
    records: list[Any] = cursor.execute(_BUCKETS, _arguments(query)).fetchall()
    return [PeriodStatistics(at, unit, Statistics(*record)) for at, unit, *record in records]


def find_points_each(cursor: apsw.Cursor, query: PointQuery) -> dict[int, list[PeriodStatistics]]:
    """See `TelemetryStore.find_points_each`."""
    buckets: dict[int, list[PeriodStatistics]] = {}
    for series_id, at, unit, *record in cursor.execute(_BUCKETS_EACH, _arguments(query)):
        buckets.setdefault(series_id, []).append(PeriodStatistics(at, unit, Statistics(*record)))
    return buckets


def find_values(cursor: apsw.Cursor, query: PointQuery) -> list[ValueCount]:
    """See `TelemetryStore.find_values`."""
    records: list[Any] = cursor.execute(_VALUES, _arguments(query)).fetchall()
    return [ValueCount(*row) for row in records]


def find_series(cursor: apsw.Cursor, query: SeriesQuery) -> list[Series]:
    """A page of series, in the order of namespace, name and dimensions: see `TelemetryStore.find_series`."""
    after = query.after
    behind = ("", "", "") if after is None else (after.namespace, after.name, _text_of(after))
    arguments = (query.account, query.region, query.active_since, query.namespace, query.name)
    records: list[Any] = cursor.execute(_FIND_SERIES, (*arguments, *behind, query.limit)).fetchall()
    return [_series_of(row) for row in records]


def drop_points(cursor: apsw.Cursor, before: int, limit: int) -> int:
    """Remove points from before a moment, up to `limit` rows of each kind; how many rows went."""
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


class SqliteTelemetry(TelemetryStore):
    """Mixed into the store: telemetry shares its transactions, its connection for looks and its numbers."""

    _commit: GroupCommit

    @override
    def add_points(self, points: Sequence[MetricPoint]) -> asyncio.Future[None]:
        return self._commit.submit(lambda transaction: add_points(transaction.cursor, points), grows=True)

    find_points = as_look(find_points)
    find_points_each = as_look(find_points_each)
    find_values = as_look(find_values)
    find_series = as_look(find_series)

    @override
    async def drop_points(self, before: int, limit: int) -> int:
        return await self._commit.submit(lambda transaction: drop_points(transaction.cursor, before, limit))

    @override
    def add_events(self, events: Sequence[LogEvent]) -> asyncio.Future[None]:
        return self._commit.submit(lambda transaction: add_log_events(events, transaction), grows=True)

    find_events = as_look(find_log_events)
    log_beginnings = as_look(log_beginnings)
    log_spans = as_look(log_spans)
    log_bytes = as_look(log_bytes)

    @override
    async def drop_events(self, group_id: int, stream_id: int | None, before: int, limit: int) -> int:
        return await self._commit.submit(
            lambda transaction: drop_log_events(transaction.cursor, group_id, stream_id, before, limit)
        )
