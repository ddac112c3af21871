"""Deduplication: a key is remembered with the message that brought it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from asyncpg import Connection

from redrive.engine.ports import Enqueued
from redrive.stores.postgres import inserting


class Memory(NamedTuple):
    """A key, and the message to answer its repetitions with.

    Attributes:
        queue_id: What the key is unique within: a queue, or a topic.
        key: None: not deduplicated.
        message_id: The message's.
        seq: Its place.
        since: When it was sent (ms).
        until: How long (ms since the epoch) the key is remembered.
    """

    queue_id: int
    key: str | None
    message_id: bytes
    seq: int
    since: int
    until: int


# A key that is known and still holds is answered as it is, one whose time is over is taken over. Of two nodes that
# remember the same key at once, the second waits here until the first has committed. In order of the keys, so that
# they do not wait for each other in a circle.
_INTO: Final = "INSERT INTO deduplication AS known (queue_id, key, message_id, seq, since, until)"
_ROW: Final = "({0}, {1}, {2}, {3}, {4}, {5})"
_OR_KNOWN: Final = """
    ON CONFLICT (queue_id, key) DO UPDATE SET
        message_id = CASE WHEN known.until > excluded.since THEN known.message_id ELSE excluded.message_id END,
        seq = CASE WHEN known.until > excluded.since THEN known.seq ELSE excluded.seq END,
        since = CASE WHEN known.until > excluded.since THEN known.since ELSE excluded.since END,
        until = CASE WHEN known.until > excluded.since THEN known.until ELSE excluded.until END
    RETURNING queue_id, key, message_id, seq
"""
_REMEMBER: Final = (
    f"{_INTO} SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[])"
    f" {_OR_KNOWN}"
)

_Key = tuple[int, str]
_Original = tuple[bytes, int]  # message, place


async def remember(
    connection: Connection, memories: Sequence[Memory], *, by_values: bool = False
) -> list[Enqueued]:
    """Remember each of these keys; whether it was known, and if so the original's answer.

    Args:
        connection: In a transaction.
        memories: The keys.
        by_values: All of them are of one queue on Citus: see `inserting`.
    """
    first: dict[_Key, Memory] = {}
    for memory in memories:
        if memory.key is not None:
            first.setdefault((memory.queue_id, memory.key), memory)
    originals: dict[_Key, _Original] = {}
    if first:
        rows = [first[key] for key in sorted(first)]
        if by_values:
            inserted = await inserting.insert(connection, _INTO, _ROW, rows, _OR_KNOWN)
        else:
            inserted = await connection.fetch(
                _REMEMBER, *(list(column) for column in zip(*rows, strict=True))
            )
        originals = {(queue_id, key): (message_id, seq) for queue_id, key, message_id, seq in inserted}
    return [_answer(memory, originals) for memory in memories]


def _answer(memory: Memory, originals: dict[_Key, _Original]) -> Enqueued:
    if memory.key is None:
        return Enqueued(memory.message_id, memory.seq, repeated=False)
    message_id, seq = originals[memory.queue_id, memory.key]
    return Enqueued(message_id, seq, repeated=seq != memory.seq)
