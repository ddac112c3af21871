"""What was sent lately: a key of deduplication is remembered with the message that brought it."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from asyncpg import Connection

from redrive.engine.ports import Enqueued


class Memory(NamedTuple):
    """A key, and the message to answer its repetitions with.

    Attributes:
        queue_id: What the key is unique within: a queue, or a topic.
        key: None: not deduplicated.
        message_id: The message's.
        seq: Its place.
        until: How long (ms since the epoch) the key is remembered.
    """

    queue_id: int
    key: str | None
    message_id: bytes
    seq: int
    until: int


# Of two nodes that remember the same key at once, the second waits here until the first has committed. In order of
# the keys, so that they do not wait for each other in a circle.
_REMEMBER: Final = (
    "INSERT INTO deduplication (queue_id, key, message_id, seq, until)"
    " SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bigint[], $5::bigint[])"
    " ON CONFLICT (queue_id, key) DO NOTHING RETURNING queue_id, key"
)
_KNOWN: Final = (
    "SELECT key, message_id, seq, until FROM deduplication"
    " WHERE queue_id = $1 AND key = ANY($2::text[]) ORDER BY key FOR UPDATE"
)
_REPLACE: Final = (
    "UPDATE deduplication SET message_id = $3, seq = $4, until = $5 WHERE queue_id = $1 AND key = $2"
)


async def remember(
    connection: Connection, memories: Sequence[Memory], moments: Sequence[int]
) -> list[Enqueued]:
    """Remember each of these keys at its moment (ms); whether it was known, and if so the original's answer."""
    originals: dict[tuple[int, str], Memory] = {}
    first: dict[tuple[int, str], tuple[Memory, int]] = {}
    for memory, now in zip(memories, moments, strict=True):
        if memory.key is not None:
            first.setdefault((memory.queue_id, memory.key), (memory, now))
    pending = first
    while pending:
        fresh = await _insert(connection, [memory for memory, _ in pending.values()])
        originals |= {key: pending[key][0] for key in fresh}
        known = [pending[key] for key in pending if key not in fresh]
        found = await _look_up(connection, known)
        originals |= found
        pending = {key: one for key, one in pending.items() if key not in originals}  # forgotten in between
    return [_answer(memory, originals) for memory in memories]


async def _insert(connection: Connection, memories: Iterable[Memory]) -> set[tuple[int, str]]:
    ordered = sorted(memories, key=lambda memory: (memory.queue_id, memory.key))
    columns = [list(column) for column in zip(*ordered, strict=True)]
    return {(queue_id, key) for queue_id, key in await connection.fetch(_REMEMBER, *columns)}


async def _look_up(
    connection: Connection, known: Sequence[tuple[Memory, int]]
) -> dict[tuple[int, str], Memory]:
    """The originals of keys that are there; one whose time is over makes room for the new."""
    found: dict[tuple[int, str], Memory] = {}
    for queue_id in sorted({memory.queue_id for memory, _ in known}):
        asked = {memory.key: (memory, now) for memory, now in known if memory.queue_id == queue_id}
        for key, message_id, seq, until in await connection.fetch(_KNOWN, queue_id, list(asked)):
            memory, now = asked[key]
            if until > now:
                found[queue_id, key] = Memory(queue_id, key, message_id, seq, until)
            else:
                await connection.execute(_REPLACE, *memory)
                found[queue_id, key] = memory
    return found


def _answer(memory: Memory, originals: dict[tuple[int, str], Memory]) -> Enqueued:
    if memory.key is None:
        return Enqueued(memory.message_id, memory.seq, repeated=False)
    original = originals[memory.queue_id, memory.key]
    return Enqueued(original.message_id, original.seq, repeated=original.seq != memory.seq)
