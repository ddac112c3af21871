"""Notes of failed attempts, kept so that a dead letter can show its history."""

from collections.abc import Sequence
from typing import Final

from asyncpg import Connection

from redrive.engine.ports import NOTES_FIRST, NOTES_LAST, AttemptNote
from redrive.stores.postgres.access_paths import key_of

Written = tuple[int, bytes, AttemptNote]  # queue, message, note

_WRITE: Final = (
    "INSERT INTO attempts (queue_id, message_id, number, at, duration_ms, reason, status, response)"
    " SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::integer[], $4::bigint[], $5::bigint[], $6::text[],"
    " $7::integer[], $8::text[])"
    " ON CONFLICT (queue_id, message_id, number) DO UPDATE SET at = excluded.at,"
    " duration_ms = excluded.duration_ms, reason = excluded.reason, status = excluded.status,"
    " response = excluded.response"
)
_THIN: Final = (
    "DELETE FROM attempts WHERE queue_id = $1 AND message_id = $2 AND number = (SELECT number FROM attempts"
    " WHERE queue_id = $1 AND message_id = $2 AND number >= $3 ORDER BY number LIMIT 1)"
)
_FORGET: Final = (
    "DELETE FROM attempts a USING unnest($2::bytea[]) WITH ORDINALITY AS own (id, number)"
    f" WHERE {key_of('a', 'own.id', 'message_id', tie='own.number')}"
)
_READ: Final = (
    "SELECT number, at, duration_ms, reason, status, response FROM attempts"
    " WHERE queue_id = $1 AND message_id = $2 ORDER BY number"
)

_READ_EACH: Final = (
    "SELECT own.id, note.* FROM unnest($2::bytea[]) AS own (id) CROSS JOIN LATERAL"
    " (SELECT number, at, duration_ms, reason, status, response FROM attempts"
    " WHERE queue_id = $1 AND message_id = own.id ORDER BY number OFFSET 0) AS note"
)


async def write(connection: Connection, notes: Sequence[Written]) -> None:
    """Write notes of attempts; of a delivery with many, one in the middle is deleted: the first and last ones stay."""
    if notes:  # a statement cannot write the same row twice: of one attempt the last note holds
        written = {(queue, message, note.number): (queue, message, *note) for queue, message, note in notes}
        await connection.execute(_WRITE, *(list(column) for column in zip(*written.values(), strict=True)))
    many = [
        (queue, message, note.number - NOTES_LAST)
        for queue, message, note in notes
        if note.number > NOTES_FIRST + NOTES_LAST
    ]
    if many:
        await connection.executemany(_THIN, many)


async def forget(connection: Connection, queue_id: int, messages: Sequence[bytes]) -> None:
    """Forget deliveries that are through."""
    if messages:
        await connection.execute(_FORGET, queue_id, messages)


async def read(connection: Connection, queue_id: int, message_id: bytes) -> list[AttemptNote]:
    """The attempts remembered, in their order."""
    return [AttemptNote(*record) for record in await connection.fetch(_READ, queue_id, message_id)]


async def read_each(
    connection: Connection, messages: Sequence[tuple[int, bytes]]
) -> dict[tuple[int, bytes], list[AttemptNote]]:
    """See `Store.notes_of_each`: a statement for each queue, by which Citus finds the shard."""
    by_queue: dict[int, list[bytes]] = {}
    for queue_id, message_id in messages:
        by_queue.setdefault(queue_id, []).append(message_id)
    notes: dict[tuple[int, bytes], list[AttemptNote]] = {}
    for queue_id, ids in by_queue.items():
        for message_id, *note in await connection.fetch(_READ_EACH, queue_id, ids):
            notes.setdefault((queue_id, message_id), []).append(AttemptNote(*note))
    return notes
