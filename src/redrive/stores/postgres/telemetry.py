"""The PostgreSQL store's verbs of `TelemetryStore`.

On Citus these tables stay with the coordinator: they hold what somebody may look at later, and nobody waits for them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
from asyncpg import Connection

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
from redrive.stores.postgres.connections import Connections, on_connection

# ---- log events: a group in order of time, and by an index each of its streams ---------------------------------

_INSERT_EVENTS: Final = (
    "INSERT INTO log_events (group_id, at, seq, stream_id, ingested_at, message)"
    " SELECT group_id, at, nextval('log_seq'), stream_id, ingested_at, message"
    " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])"
    " AS new (group_id, at, stream_id, ingested_at, message)"
)
_ADD_SIZES: Final = (
    "INSERT INTO log_sizes AS known (group_id, bytes) SELECT * FROM unnest($1::bigint[], $2::bigint[])"
    " ON CONFLICT (group_id) DO UPDATE SET bytes = known.bytes + excluded.bytes"
)
_SELECT: Final = (
    "SELECT group_id, stream_id, at, ingested_at, message, seq FROM log_events"
    " WHERE group_id = $1 AND at >= $2 AND at < $3"
)
_OF_STREAM: Final = " AND stream_id = ($4::bigint[])[1]"
# The sum keeps the index of streams out: several of them are read in the group's order, not sorted.
_OF_STREAMS: Final = " AND stream_id + 0 = ANY($4::bigint[])"
_OF_ALL: Final = " AND $4::bigint[] IS NULL"
_BEGINNINGS: Final = (
    "SELECT one.id, newest.text FROM unnest($1::bigint[]) AS one (id)"
    " CROSS JOIN LATERAL (SELECT left(message, $4) AS text, at, seq FROM log_events"
    " WHERE group_id = one.id AND at >= $2 ORDER BY at DESC, seq DESC LIMIT $3) AS newest"
    " ORDER BY one.id, newest.at DESC, newest.seq DESC"
)
_SPANS: Final = (
    "SELECT one.id, first.at, last.at, last.ingested_at FROM unnest($2::bigint[]) AS one (id)"
    " CROSS JOIN LATERAL (SELECT at FROM log_events WHERE group_id = $1 AND stream_id = one.id"
    " ORDER BY at LIMIT 1) AS first"
    " CROSS JOIN LATERAL (SELECT at, ingested_at FROM log_events WHERE group_id = $1 AND stream_id = one.id"
    " ORDER BY at DESC, seq DESC LIMIT 1) AS last"
)
# Skipping what another node is just sweeping.
_DROP_EVENTS: Final = (
    "WITH gone AS (DELETE FROM log_events WHERE ctid = ANY(ARRAY(SELECT ctid FROM log_events"
    " WHERE group_id = $1 AND at < $2 AND ($3::bigint IS NULL OR stream_id = $3)"
    " ORDER BY at, seq LIMIT $4 FOR UPDATE SKIP LOCKED)) RETURNING octet_length(message) AS bytes)"
    " SELECT count(*), coalesce(sum(bytes), 0) FROM gone"
)
_SUBTRACT_SIZE: Final = "UPDATE log_sizes SET bytes = bytes - $2 WHERE group_id = $1"
_DROP_EMPTY_SIZE: Final = "DELETE FROM log_sizes WHERE group_id = $1 AND bytes <= 0"


async def add_log_events(connection: Connection, events: Sequence[LogEvent]) -> None:
    """Write events of logs, and add their bytes to the sizes of their groups: see `TelemetryStore.add_events`."""
    sizes: Counter[int] = Counter()
    messages = [_storable(event.message) for event in events]
    for event, message in zip(events, messages, strict=True):
        sizes[event.group_id] += len(message.encode()) + EVENT_BYTES
    groups = sorted(sizes)
    async with connection.transaction():
        await connection.execute(
            _INSERT_EVENTS,
            [event.group_id for event in events],
            [event.at for event in events],
            [event.stream_id for event in events],
            [event.ingested_at for event in events],
            messages,
        )
        await connection.execute(_ADD_SIZES, groups, [sizes[group_id] for group_id in groups])


async def find_log_events(connection: Connection, query: LogQuery) -> list[LogEvent]:
    """The events of a query, in order of their time, or of their arrival where `arrived_after` is given."""
    streams = query.stream_ids
    statement = _SELECT
    if streams is None:
        statement += _OF_ALL
    else:
        statement += _OF_STREAM if len(streams) == 1 else _OF_STREAMS
    after: tuple[int, ...] = ()
    order = "DESC" if query.backwards else "ASC"
    order_by = f"at {order}, seq {order}"
    if query.arrived_after is not None:
        after, order_by = (query.arrived_after,), f"seq {order}"
        statement += " AND seq > $6::bigint"
    elif query.after is not None:
        after = query.after
        statement += f" AND (at, seq) {'<' if query.backwards else '>'} ($6::bigint, $7::bigint)"
    statement += f" ORDER BY {order_by} LIMIT $5"
    bounds = (query.group_id, query.since, query.until, None if streams is None else list(streams))
    return [LogEvent(*record) for record in await connection.fetch(statement, *bounds, query.limit, *after)]


async def log_beginnings(
    connection: Connection, group_ids: Sequence[int], since: int, limit: int, chars: int
) -> Mapping[int, Sequence[str]]:
    """See `TelemetryStore.log_beginnings`."""
    texts: dict[int, list[str]] = {group_id: [] for group_id in group_ids}
    for group_id, text in await connection.fetch(_BEGINNINGS, list(group_ids), since, limit, chars):
        texts[group_id].append(text)
    return texts


async def log_spans(
    connection: Connection, group_id: int, stream_ids: Sequence[int]
) -> Mapping[int, LogSpan]:
    """See `TelemetryStore.log_spans`."""
    records = await connection.fetch(_SPANS, group_id, list(stream_ids))
    return {stream_id: LogSpan(*span) for stream_id, *span in records}


async def log_bytes(connection: Connection) -> Mapping[int, int]:
    """See `TelemetryStore.log_bytes`."""
    return dict(await connection.fetch("SELECT group_id, bytes FROM log_sizes"))


async def drop_log_events(
    connection: Connection, group_id: int, stream_id: int | None, before: int, limit: int
) -> int:
    """Remove up to `limit` events from before a moment, and subtract their bytes: see `TelemetryStore.drop_events`."""
    async with connection.transaction():
        number, message_bytes = await connection.fetchrow(_DROP_EVENTS, group_id, before, stream_id, limit)
        if number:
            await connection.execute(_SUBTRACT_SIZE, group_id, int(message_bytes) + number * EVENT_BYTES)
            await connection.execute(_DROP_EMPTY_SIZE, group_id)
    return int(number)


def _storable(message: str) -> str:
    """A message without the one character that PostgreSQL's text cannot hold."""
    return message.replace("\0", "\N{REPLACEMENT CHARACTER}")


# Metric points: added up as they come, gathered by period when they are asked for.
#
# Rows are written in order of their keys, so that two nodes that add to the same minute do not wait for each other in
# a circle; and each row once, for a statement may not change a row twice.

_SERIES: Final = (
    "INSERT INTO metric_series AS known (account, region, namespace, name, dimensions, id, active_at)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])"
    " ON CONFLICT (account, region, namespace, name, dimensions) DO UPDATE SET active_at = excluded.active_at"
    " WHERE excluded.active_at >= known.active_at + 600000"  # ten minutes, see SeriesQuery
)
_INSERT: Final = (
    "INSERT INTO metric_points AS known (series_id, at, unit, samples, total, least, greatest)"
    " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[],"
    " $4::float8[], $5::float8[], $6::float8[], $7::float8[])"
)
_ADD: Final = (
    f"{_INSERT} ON CONFLICT (series_id, at, unit) DO UPDATE SET"
    " samples = known.samples + excluded.samples, total = known.total + excluded.total,"
    " least = least(known.least, excluded.least), greatest = greatest(known.greatest, excluded.greatest)"
)
_FILL: Final = f"{_INSERT} ON CONFLICT (series_id, at, unit) DO NOTHING"
_ADD_VALUES: Final = (
    "INSERT INTO metric_values AS known (series_id, at, unit, value, count)"
    " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::float8[], $5::float8[])"
    " ON CONFLICT (series_id, at, unit, value) DO UPDATE SET count = known.count + excluded.count"
)
_PERIOD: Final = "$2::bigint + (at - $2) / $4::bigint * $4"
_OF_SERIES: Final = "series_id = ANY($1::bigint[]) AND at >= $2 AND at < $3"
_FIND: Final = (
    f"SELECT {_PERIOD} AS period, unit, sum(samples), sum(total), min(least), max(greatest)"
    f" FROM metric_points WHERE {_OF_SERIES} GROUP BY period, unit ORDER BY period, unit"
)
_FIND_EACH: Final = (
    f"SELECT series_id, {_PERIOD} AS period, unit, sum(samples), sum(total), min(least), max(greatest)"
    f" FROM metric_points WHERE {_OF_SERIES} GROUP BY series_id, period, unit ORDER BY series_id, period, unit"
)
_FIND_VALUES: Final = (
    f"SELECT {_PERIOD} AS period, unit, value, sum(count) FROM metric_values"
    f" WHERE {_OF_SERIES} GROUP BY period, unit, value ORDER BY period, unit, value"
)
_FIND_SERIES: Final = (
    "SELECT account, region, namespace, name, dimensions FROM metric_series"
    " WHERE account = $1 AND region = $2 AND active_at >= $3"
    " AND ($4::text IS NULL OR namespace = $4) AND ($5::text IS NULL OR name = $5)"
    " AND (namespace, name, dimensions) > ($6, $7, $8) ORDER BY namespace, name, dimensions LIMIT $9"
)
# Skipping what another node is just sweeping.
_DROP: Final = (
    "WITH gone AS (DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {moment} < $1"
    " LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING 1) SELECT count(*) FROM gone"
)
_DROPS: Final = (
    _DROP.format(table="metric_points", moment="at"),
    _DROP.format(table="metric_values", moment="at"),
    _DROP.format(table="metric_series", moment="active_at"),
)

_Key = tuple[int, int, str]


async def add_points(connection: Connection, points: Sequence[MetricPoint]) -> None:
    """Add points to their series: see `TelemetryStore.add_points`. One that `fills` does not change a stored one."""
    last_at: dict[Series, int] = {}
    for point in points:
        last_at[point.series] = max(point.at, last_at.get(point.series, point.at))
    series_rows = sorted(
        (series.account, series.region, series.namespace, series.name, _text_of(series), series.id, at)
        for series, at in last_at.items()
    )
    async with connection.transaction():
        for statement, rows in (
            (_SERIES, series_rows),
            (_ADD, _rows(point for point in points if not point.fills)),
            (_FILL, _rows(point for point in points if point.fills)),
            (_ADD_VALUES, _values(points)),
        ):
            if rows:
                await connection.execute(statement, *map(list, zip(*rows, strict=True)))


async def find_points(connection: Connection, query: PointQuery) -> list[PeriodStatistics]:
    """See `TelemetryStore.find_points`."""
    records = await connection.fetch(_FIND, *_arguments(query))
    return [PeriodStatistics(at, unit, Statistics(*record)) for at, unit, *record in records]


async def find_points_each(connection: Connection, query: PointQuery) -> dict[int, list[PeriodStatistics]]:
    """See `TelemetryStore.find_points_each`."""
    buckets: dict[int, list[PeriodStatistics]] = {}
    for series_id, at, unit, *record in await connection.fetch(_FIND_EACH, *_arguments(query)):
        buckets.setdefault(series_id, []).append(PeriodStatistics(at, unit, Statistics(*record)))
    return buckets


async def find_values(connection: Connection, query: PointQuery) -> list[ValueCount]:
    """See `TelemetryStore.find_values`."""
    return [ValueCount(*record) for record in await connection.fetch(_FIND_VALUES, *_arguments(query))]


async def find_series(connection: Connection, query: SeriesQuery) -> list[Series]:
    """A page of series, in the order of namespace, name and dimensions: see `TelemetryStore.find_series`."""
    after = query.after
    behind = ("", "", "") if after is None else (after.namespace, after.name, _text_of(after))
    arguments = (query.account, query.region, query.active_since, query.namespace, query.name)
    return [
        _series_of(record)
        for record in await connection.fetch(_FIND_SERIES, *arguments, *behind, query.limit)
    ]


async def drop_points(connection: Connection, before: int, limit: int) -> int:
    """See `TelemetryStore.drop_points`."""
    async with connection.transaction():
        return sum([int(await connection.fetchval(statement, before, limit)) for statement in _DROPS])


def _rows(points: Iterable[MetricPoint]) -> list[tuple[Any, ...]]:
    """Each series, moment and unit once, with all that is to be added to it."""
    sums: dict[_Key, Statistics] = {}
    for point in points:
        key = (point.series.id, point.at, point.unit)
        sum_so_far = sums.get(key)
        sums[key] = point.statistics if sum_so_far is None else sum_so_far + point.statistics
    return [
        (*key, statistics.samples, statistics.total, statistics.least, statistics.greatest)
        for key, statistics in sorted(sums.items())
    ]


def _values(points: Sequence[MetricPoint]) -> list[tuple[Any, ...]]:
    """Each value of each series, moment and unit once, with its number of samples."""
    counts: dict[tuple[int, int, str, float], float] = {}
    for point in points:
        for value, count in point.values.items():
            key = (point.series.id, point.at, point.unit, value)
            counts[key] = counts.get(key, 0) + count
    return [(*key, count) for key, count in sorted(counts.items())]


def _text_of(series: Series) -> str:
    return orjson.dumps(series.dimensions).decode()


def _series_of(record: Any) -> Series:
    account, region, namespace, name, dimensions = record
    pairs = tuple((key, value) for key, value in orjson.loads(dimensions))
    return Series(account, region, namespace, name, pairs)


def _arguments(query: PointQuery) -> tuple[list[int], int, int, int]:
    return [sery.id for sery in query.series], query.since, query.until, query.period_ms


class PostgresTelemetry(TelemetryStore):
    """Mixed into the store: telemetry shares its connections."""

    connections: Connections

    add_points = on_connection(add_points)
    find_points = on_connection(find_points)
    find_points_each = on_connection(find_points_each)
    find_values = on_connection(find_values)
    find_series = on_connection(find_series)
    drop_points = on_connection(drop_points)

    add_events = on_connection(add_log_events)
    find_events = on_connection(find_log_events)
    log_beginnings = on_connection(log_beginnings)
    log_spans = on_connection(log_spans)
    log_bytes = on_connection(log_bytes)
    drop_events = on_connection(drop_log_events)
