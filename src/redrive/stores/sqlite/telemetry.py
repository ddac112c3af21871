"""Metric points and log events in SQLite: the store's verbs of `TelemetryStore`."""

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import apsw
import orjson

from redrive.model.log import EVENT_BYTES, LogEvent, LogQuery, LogSpan
from redrive.model.metric import Bucket, MetricPoint, Series, Statistics, ValueCount
from redrive.stores.sqlite import rows
from redrive.stores.sqlite.commit import GroupCommit
from redrive.stores.sqlite.rows import NextSeq

T = TypeVar("T")


class TelemetryVerbs(ABC):
    """Mixed into the store: telemetry shares its transactions, its reading connection and its numbers."""

    _commit: GroupCommit

    @abstractmethod
    async def _read(self, look: Callable[[apsw.Cursor], T]) -> T: ...

    @abstractmethod
    def _next_seq(self) -> int: ...

    def add_points(self, points: Sequence[MetricPoint]) -> asyncio.Future[None]:
        """See `TelemetryStore.add_points`."""
        return self._commit.submit(functools.partial(_add_points, points))

    async def buckets(self, series: Sequence[Series], since: int, until: int, period_ms: int) -> list[Bucket]:
        """See `TelemetryStore.buckets`."""
        return await self._read(functools.partial(_buckets, (series, since, until, period_ms)))

    async def values(
        self, series: Sequence[Series], since: int, until: int, period_ms: int
    ) -> list[ValueCount]:
        """See `TelemetryStore.values`."""
        return await self._read(functools.partial(_values, (series, since, until, period_ms)))

    async def find_series(
        self,
        account: str,
        region: str,
        *,
        namespace: str | None,
        name: str | None,
        active_since: int,
        after: Series | None,
        limit: int,
    ) -> list[Series]:
        """See `TelemetryStore.find_series`."""
        behind = ("", "", "") if after is None else (after.namespace, after.name, _text(after))
        wanted = (account, region, active_since, namespace, name, *behind, limit)
        return await self._read(functools.partial(_find_series, wanted))

    async def drop_points(self, before: int, limit: int) -> int:
        """See `TelemetryStore.drop_points`."""
        return await self._commit.submit(functools.partial(_drop_points, before, limit))

    def add_events(self, events: Sequence[LogEvent]) -> asyncio.Future[None]:
        """See `TelemetryStore.add_events`."""
        return self._commit.submit(lambda cursor: _add_events(events, self._next_seq, cursor))

    async def find_events(self, query: LogQuery) -> list[LogEvent]:
        """See `TelemetryStore.find_events`."""
        return await self._read(functools.partial(_find_events, query))

    async def log_spans(self, group_id: int, stream_ids: Sequence[int]) -> Mapping[int, LogSpan]:
        """See `TelemetryStore.log_spans`."""
        return await self._read(functools.partial(_log_spans, group_id, stream_ids))

    async def log_bytes(self) -> Mapping[int, int]:
        """See `TelemetryStore.log_bytes`."""
        return await self._read(lambda cursor: dict(cursor.execute("SELECT group_id, bytes FROM log_sizes")))

    async def drop_events(self, group_id: int, stream_id: int | None, before: int, limit: int) -> int:
        """See `TelemetryStore.drop_events`."""
        return await self._commit.submit(
            functools.partial(_drop_events, group_id, stream_id, (before, limit))
        )


# ---- metrics -------------------------------------------------------------------------------------------------

_TEN_MINUTES_MS: Final = 600_000
_SERIES: Final = (
    "INSERT INTO metric_series (account, region, namespace, name, dimensions, id, active_at)"  # noqa: S608 - constants
    " VALUES (?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET active_at = excluded.active_at"
    f" WHERE excluded.active_at >= metric_series.active_at + {_TEN_MINUTES_MS}"
)
_FILL: Final = "INSERT INTO metric_points VALUES (?,?,?,?,?,?,?) ON CONFLICT DO NOTHING"
_ADD: Final = (
    "INSERT INTO metric_points (series_id, at, unit, samples, total, least, greatest) VALUES (?,?,?,?,?,?,?)"
    " ON CONFLICT DO UPDATE SET samples = samples + excluded.samples, total = total + excluded.total,"
    " least = min(least, excluded.least), greatest = max(greatest, excluded.greatest)"
)
_ADD_VALUE: Final = (
    "INSERT INTO metric_values (series_id, at, unit, value, count) VALUES (?,?,?,?,?)"
    " ON CONFLICT DO UPDATE SET count = count + excluded.count"
)
_PERIOD: Final = "?2 + (at - ?2) / ?4 * ?4"
_OF_SERIES: Final = "series_id IN (SELECT value FROM json_each(?1)) AND at >= ?2 AND at < ?3"
_BUCKETS: Final = (
    f"SELECT {_PERIOD} AS period, unit, sum(samples), sum(total), min(least), max(greatest)"  # noqa: S608 - constants
    f" FROM metric_points WHERE {_OF_SERIES} GROUP BY period, unit ORDER BY period, unit"
)
_VALUES: Final = (
    f"SELECT {_PERIOD} AS period, unit, value, sum(count)"  # noqa: S608 - constants
    f" FROM metric_values WHERE {_OF_SERIES} GROUP BY period, unit, value ORDER BY period, unit, value"
)
_FIND_SERIES: Final = (
    "SELECT account, region, namespace, name, dimensions FROM metric_series"
    " WHERE account = ?1 AND region = ?2 AND active_at >= ?3"
    " AND (?4 IS NULL OR namespace = ?4) AND (?5 IS NULL OR name = ?5)"
    " AND (namespace, name, dimensions) > (?6, ?7, ?8) ORDER BY namespace, name, dimensions LIMIT ?9"
)
_DROP: Final = (
    "DELETE FROM metric_points WHERE (series_id, at, unit) IN"
    " (SELECT series_id, at, unit FROM metric_points WHERE at < ? LIMIT ?)",
    "DELETE FROM metric_values WHERE (series_id, at, unit, value) IN"
    " (SELECT series_id, at, unit, value FROM metric_values WHERE at < ? LIMIT ?)",
    "DELETE FROM metric_series WHERE (account, region, namespace, name, dimensions) IN"
    " (SELECT account, region, namespace, name, dimensions FROM metric_series WHERE active_at < ? LIMIT ?)",
)

Range = tuple[Sequence[Series], int, int, int]  # series, since, until, period


def _add_points(points: Sequence[MetricPoint], cursor: apsw.Cursor) -> None:
    active = {point.series: point.at for point in sorted(points, key=lambda point: point.at)}
    cursor.executemany(_SERIES, [(*one[:4], _text(one), one.id, at) for one, at in active.items()])
    cursor.executemany(_FILL, [_row(point) for point in points if point.fills])
    cursor.executemany(_ADD, [_row(point) for point in points if not point.fills])
    values = [
        (point.series.id, point.at, point.unit, value, count)
        for point in points
        for value, count in point.values.items()
    ]
    cursor.executemany(_ADD_VALUE, values)


def _row(point: MetricPoint) -> tuple[Any, ...]:
    kept = point.statistics
    return point.series.id, point.at, point.unit, kept.samples, kept.total, kept.least, kept.greatest


def _text(series: Series) -> str:
    return orjson.dumps(series.dimensions).decode()


def _arguments(wanted: Range) -> tuple[Any, ...]:
    series, *rest = wanted
    return orjson.dumps([one.id for one in series]).decode(), *rest


def _buckets(wanted: Range, cursor: apsw.Cursor) -> list[Bucket]:
    found = cursor.execute(_BUCKETS, _arguments(wanted)).fetchall()
    return [Bucket(at, unit, Statistics(*kept)) for at, unit, *kept in found]


def _values(wanted: Range, cursor: apsw.Cursor) -> list[ValueCount]:
    return [ValueCount(*row) for row in cursor.execute(_VALUES, _arguments(wanted))]


def _find_series(wanted: tuple[Any, ...], cursor: apsw.Cursor) -> list[Series]:
    found = cursor.execute(_FIND_SERIES, wanted).fetchall()
    return [
        Series(*names, tuple((name, value) for name, value in orjson.loads(dimensions)))
        for *names, dimensions in found
    ]


def _drop_points(before: int, limit: int, cursor: apsw.Cursor) -> int:
    gone = 0
    for statement in _DROP:
        cursor.execute(statement, (before, limit))
        gone += cursor.connection.changes()
    return gone


# ---- logs ----------------------------------------------------------------------------------------------------

_EVENT: Final = (
    "INSERT INTO log_events (group_id, at, seq, stream_id, ingested_at, message) VALUES (?,?,?,?,?,?)"
)
_WEIGH: Final = (
    "INSERT INTO log_sizes VALUES (?, ?) ON CONFLICT DO UPDATE SET bytes = log_sizes.bytes + excluded.bytes"
)
_EVENTS: Final = (
    "SELECT group_id, stream_id, at, ingested_at, message, seq FROM log_events WHERE group_id = :group"
)
# The plus keeps the index of streams out: several of them are read in the group's order, not sorted.
_OF_STREAMS: Final = " AND +stream_id IN (SELECT value FROM json_each(:streams))"
_SPAN: Final = (
    "SELECT (SELECT at FROM log_events WHERE group_id = ?1 AND stream_id = ?2 ORDER BY at LIMIT 1), at, ingested_at"
    " FROM log_events WHERE group_id = ?1 AND stream_id = ?2 ORDER BY at DESC, seq DESC LIMIT 1"
)
_EXPIRED: Final = "SELECT group_id, at, seq FROM log_events WHERE group_id = :group AND at < :before"
_DROP_EVENTS: Final = (
    "DELETE FROM log_events WHERE (group_id, at, seq) IN ({expired} ORDER BY at, seq LIMIT :limit)"
    " RETURNING octet_length(message)"
)


def _add_events(events: Sequence[LogEvent], next_seq: NextSeq, cursor: apsw.Cursor) -> None:
    cursor.executemany(
        _EVENT, [(e.group_id, e.at, next_seq(), e.stream_id, e.ingested_at, e.message) for e in events]
    )
    cursor.executemany(_WEIGH, [(e.group_id, len(e.message.encode()) + EVENT_BYTES) for e in events])


def _find_events(query: LogQuery, cursor: apsw.Cursor) -> list[LogEvent]:
    statement = f"{_EVENTS} AND at >= :since AND at < :until"
    if query.stream_ids is not None:
        statement += " AND stream_id = :stream" if len(query.stream_ids) == 1 else _OF_STREAMS
    if query.after is not None:
        statement += f" AND (at, seq) {'<' if query.backwards else '>'} (:after_at, :after_seq)"
    order = "DESC" if query.backwards else "ASC"
    after_at, after_seq = query.after or (0, 0)
    streams = query.stream_ids or ()
    arguments = {
        "group": query.group_id,
        "since": query.since,
        "until": query.until,
        "stream": streams[0] if streams else 0,
        "streams": orjson.dumps(streams).decode(),
        "after_at": after_at,
        "after_seq": after_seq,
        "limit": query.limit,
    }
    found = cursor.execute(f"{statement} ORDER BY at {order}, seq {order} LIMIT :limit", arguments)
    return [LogEvent(*row) for row in found]


def _log_spans(group_id: int, stream_ids: Sequence[int], cursor: apsw.Cursor) -> Mapping[int, LogSpan]:
    spans = {stream_id: rows.one(cursor, _SPAN, (group_id, stream_id)) for stream_id in stream_ids}
    return {stream_id: LogSpan(*row) for stream_id, row in spans.items() if row}


def _drop_events(group_id: int, stream_id: int | None, oldest: tuple[int, int], cursor: apsw.Cursor) -> int:
    before, limit = oldest
    expired = _EXPIRED if stream_id is None else f"{_EXPIRED} AND stream_id = :stream"
    arguments = {"group": group_id, "before": before, "limit": limit, "stream": stream_id}
    gone = cursor.execute(_DROP_EVENTS.format(expired=expired), arguments).fetchall()
    weight = sum(size + EVENT_BYTES for (size,) in gone)
    cursor.execute("UPDATE log_sizes SET bytes = bytes - ? WHERE group_id = ?", (weight, group_id))
    cursor.execute("DELETE FROM log_sizes WHERE group_id = ? AND bytes <= 0", (group_id,))
    return len(gone)
