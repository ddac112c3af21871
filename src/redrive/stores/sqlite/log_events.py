"""Log events: a group in order of time, and by an index each of its streams."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import apsw
import orjson

from redrive.model.log import EVENT_BYTES, LogEvent, LogQuery, LogSpan
from redrive.stores.sqlite import rows
from redrive.stores.sqlite.transaction import Transaction

_INSERT: Final = (
    "INSERT INTO log_events (group_id, at, seq, stream_id, ingested_at, message) VALUES (?,?,?,?,?,?)"
)
_WEIGH: Final = "INSERT INTO log_sizes VALUES (?, ?) ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes"
_SELECT: Final = (
    "SELECT group_id, stream_id, at, ingested_at, message, seq FROM log_events WHERE group_id = :group"
)
_OF_STREAM: Final = " AND stream_id = :stream"
# The plus keeps the index of streams out: several of them are read in the group's order, not sorted.
_OF_STREAMS: Final = " AND +stream_id IN (SELECT value FROM json_each(:streams))"
_LAST: Final = "WHERE group_id = ?1 AND stream_id = ?2 ORDER BY at DESC, seq DESC LIMIT 1"
_FIRST_AT: Final = "SELECT at FROM log_events WHERE group_id = ?1 AND stream_id = ?2 ORDER BY at LIMIT 1"
_SPAN: Final = f"SELECT ({_FIRST_AT}), at, ingested_at FROM log_events {_LAST}"
_DROP: Final = (
    "DELETE FROM log_events WHERE (group_id, at, seq) IN (SELECT group_id, at, seq FROM log_events"
    " WHERE group_id = :group AND at < :before{of_stream} ORDER BY at, seq LIMIT :limit)"
    " RETURNING octet_length(message)"
)


def add(events: Sequence[LogEvent], transaction: Transaction) -> None:
    """See `TelemetryStore.add_events`."""
    cursor, next_seq = transaction.cursor, transaction.next_seq
    written = [(e.group_id, e.at, next_seq(), e.stream_id, e.ingested_at, e.message) for e in events]
    cursor.executemany(_INSERT, written)
    weights: Counter[int] = Counter()
    for event in events:
        weights[event.group_id] += len(event.message.encode()) + EVENT_BYTES
    cursor.executemany(_WEIGH, list(weights.items()))


def find(query: LogQuery, cursor: apsw.Cursor) -> list[LogEvent]:
    """See `TelemetryStore.find_events`."""
    # The plus keeps the order of time out where that of arrival is asked for.
    at = "at" if query.arrived_after is None else "+at"
    statement = f"{_SELECT} AND {at} >= :since AND {at} < :until"
    streams = query.stream_ids
    if streams is not None:
        statement += _OF_STREAM if len(streams) == 1 else _OF_STREAMS
    order = "DESC" if query.backwards else "ASC"
    by = f"at {order}, seq {order}"
    if query.arrived_after is not None:
        statement, by = f"{statement} AND seq > :arrived_after", f"seq {order}"
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
    records: list[Any] = cursor.execute(f"{statement} ORDER BY {by} LIMIT :limit", arguments).fetchall()
    return [LogEvent(*row) for row in records]


def spans(group_id: int, stream_ids: Sequence[int], cursor: apsw.Cursor) -> Mapping[int, LogSpan]:
    """See `TelemetryStore.log_spans`."""
    records = {stream_id: rows.one(cursor, _SPAN, (group_id, stream_id)) for stream_id in stream_ids}
    return {stream_id: LogSpan(*row) for stream_id, row in records.items() if row}


def sizes(cursor: apsw.Cursor) -> Mapping[int, int]:
    """See `TelemetryStore.log_bytes`."""
    records: list[Any] = cursor.execute("SELECT group_id, bytes FROM log_sizes").fetchall()
    return dict(records)


def drop(cursor: apsw.Cursor, group_id: int, stream_id: int | None, before: int, limit: int) -> int:
    """See `TelemetryStore.drop_events`."""
    statement = _DROP.format(of_stream="" if stream_id is None else _OF_STREAM)
    oldest = {"group": group_id, "before": before, "stream": stream_id, "limit": limit}
    removed: list[Any] = cursor.execute(statement, oldest).fetchall()
    weight = sum(message_bytes + EVENT_BYTES for (message_bytes,) in removed)
    cursor.execute("UPDATE log_sizes SET bytes = bytes - ? WHERE group_id = ?", (weight, group_id))
    cursor.execute("DELETE FROM log_sizes WHERE group_id = ? AND bytes <= 0", (group_id,))
    return len(removed)
