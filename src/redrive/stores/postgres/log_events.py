"""Log events: a group in order of time, and by an index each of its streams."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from asyncpg import Connection

from redrive.model.log import EVENT_BYTES, LogEvent, LogQuery, LogSpan

_INSERT: Final = (
    "INSERT INTO log_events (group_id, at, seq, stream_id, ingested_at, message)"
    " SELECT group_id, at, nextval('log_seq'), stream_id, ingested_at, message"
    " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])"
    " AS new (group_id, at, stream_id, ingested_at, message)"
)
_WEIGH: Final = (
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
_SPANS: Final = (
    "SELECT one.id, first.at, last.at, last.ingested_at FROM unnest($2::bigint[]) AS one (id)"
    " CROSS JOIN LATERAL (SELECT at FROM log_events WHERE group_id = $1 AND stream_id = one.id"
    " ORDER BY at LIMIT 1) AS first"
    " CROSS JOIN LATERAL (SELECT at, ingested_at FROM log_events WHERE group_id = $1 AND stream_id = one.id"
    " ORDER BY at DESC, seq DESC LIMIT 1) AS last"
)
# Skipping what another node is just sweeping.
_DROP: Final = (
    "WITH gone AS (DELETE FROM log_events WHERE ctid = ANY(ARRAY(SELECT ctid FROM log_events"
    " WHERE group_id = $1 AND at < $2 AND ($3::bigint IS NULL OR stream_id = $3)"
    " ORDER BY at, seq LIMIT $4 FOR UPDATE SKIP LOCKED)) RETURNING octet_length(message) AS bytes)"
    " SELECT count(*), coalesce(sum(bytes), 0) FROM gone"
)
_UNWEIGH: Final = "UPDATE log_sizes SET bytes = bytes - $2 WHERE group_id = $1"
_FORGET: Final = "DELETE FROM log_sizes WHERE group_id = $1 AND bytes <= 0"


async def add(connection: Connection, events: Sequence[LogEvent]) -> None:
    """See `TelemetryStore.add_events`."""
    weights: Counter[int] = Counter()
    messages = [_storable(event.message) for event in events]
    for event, message in zip(events, messages, strict=True):
        weights[event.group_id] += len(message.encode()) + EVENT_BYTES
    groups = sorted(weights)
    async with connection.transaction():
        await connection.execute(
            _INSERT,
            [event.group_id for event in events],
            [event.at for event in events],
            [event.stream_id for event in events],
            [event.ingested_at for event in events],
            messages,
        )
        await connection.execute(_WEIGH, groups, [weights[group_id] for group_id in groups])


async def find(connection: Connection, query: LogQuery) -> list[LogEvent]:
    """See `TelemetryStore.find_events`."""
    streams = query.stream_ids
    statement = _SELECT
    if streams is None:
        statement += _OF_ALL
    else:
        statement += _OF_STREAM if len(streams) == 1 else _OF_STREAMS
    after: tuple[int, ...] = ()
    order = "DESC" if query.backwards else "ASC"
    by = f"at {order}, seq {order}"
    if query.arrived_after is not None:
        after, by = (query.arrived_after,), f"seq {order}"
        statement += " AND seq > $6::bigint"
    elif query.after is not None:
        after = query.after
        statement += f" AND (at, seq) {'<' if query.backwards else '>'} ($6::bigint, $7::bigint)"
    statement += f" ORDER BY {by} LIMIT $5"
    bounds = (query.group_id, query.since, query.until, None if streams is None else list(streams))
    return [LogEvent(*record) for record in await connection.fetch(statement, *bounds, query.limit, *after)]


async def spans(connection: Connection, group_id: int, stream_ids: Sequence[int]) -> Mapping[int, LogSpan]:
    """See `TelemetryStore.log_spans`."""
    records = await connection.fetch(_SPANS, group_id, list(stream_ids))
    return {stream_id: LogSpan(*span) for stream_id, *span in records}


async def sizes(connection: Connection) -> Mapping[int, int]:
    """See `TelemetryStore.log_bytes`."""
    return dict(await connection.fetch("SELECT group_id, bytes FROM log_sizes"))


async def drop(connection: Connection, group_id: int, stream_id: int | None, before: int, limit: int) -> int:
    """See `TelemetryStore.drop_events`."""
    async with connection.transaction():
        number, message_bytes = await connection.fetchrow(_DROP, group_id, before, stream_id, limit)
        if number:
            await connection.execute(_UNWEIGH, group_id, int(message_bytes) + number * EVENT_BYTES)
            await connection.execute(_FORGET, group_id)
    return int(number)


def _storable(message: str) -> str:
    """A message without the one character that PostgreSQL's text cannot hold."""
    return message.replace("\0", "\N{REPLACEMENT CHARACTER}")
