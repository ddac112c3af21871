"""Removes deliveries that are purged or past their retention period."""

from collections.abc import Sequence
from typing import Any, Final

from asyncpg import Connection

from redrive.engine.ports import NOTES_KEPT_MS, Swept
from redrive.model.claiming import Pace
from redrive.model.delivery import LinePosition
from redrive.stores.postgres import rows
from redrive.stores.postgres.access_paths import key_of

_OLDEST: Final = (
    "SELECT seq, group_id FROM deliveries WHERE queue_id = $1 AND seq <= $2 ORDER BY seq LIMIT $3"
)
_OLDEST_EXPIRED: Final = (
    "SELECT seq, group_id FROM"
    " (SELECT seq, group_id, enqueued_at FROM deliveries WHERE queue_id = $1 ORDER BY seq LIMIT $3) AS oldest"
    " WHERE enqueued_at <= $2"
)
_DELETE: Final = f"{rows.REMOVE} RETURNING d.place, d.group_id"


def _forget_old(table: str, moment: str, *key: str) -> str:
    """DELETE: up to $3 memories of queue $1 whose moment is $2 or before, by what stands behind the queue in their key.

    Skipping what another node is just about to answer with, or to forget.
    """
    further = "".join(f" AND d.{column} = own.{column}" for column in key[1:])
    return (
        f"WITH own AS MATERIALIZED (SELECT {', '.join(key)}, {moment} FROM {table}"
        f" WHERE queue_id = $1 AND {moment} <= $2 ORDER BY {moment} LIMIT $3 FOR UPDATE SKIP LOCKED)"
        f" DELETE FROM {table} d USING own WHERE {key_of('d', f'own.{key[0]}', key[0], tie=f'own.{moment}')}{further}"
    )


_FORGET_KEYS: Final = _forget_old("deduplication", "until", "key")
_FORGET_ATTEMPTS: Final = _forget_old("claim_attempts", "until", "attempt_id")
_FORGET_NOTES: Final = _forget_old("attempts", "at", "message_id", "number")
_FORGET_PACE: Final = "DELETE FROM paces WHERE queue_id = $1 AND next_us <= $2"
_PURGE_OUTBOX: Final = "DELETE FROM outbox WHERE queue_id = $1 AND seq <= $2"


async def purge(connection: Connection, queue_id: int, seq_max: int, limit: int) -> int:
    """Remove the `limit` oldest deliveries, claimed or not, that arrived no later than `seq_max`.

    First those that have not entered the queue yet: behind the others' removal they could enter in between.
    """
    await connection.execute(_PURGE_OUTBOX, queue_id, seq_max)
    return await _remove(connection, queue_id, await connection.fetch(_OLDEST, queue_id, seq_max, limit))


async def sweep(connection: Connection, queue_id: int, enqueued_before: int, now: int, limit: int) -> Swept:
    """Remove what expired among the `limit` oldest deliveries, and as many memories that ended.

    The oldest by arrival is the oldest by age, but for dead letters, which bring their age along: one of them
    behind the window goes when it comes to the front, or when somebody tries to claim it.
    """
    expired_rows = await connection.fetch(_OLDEST_EXPIRED, queue_id, enqueued_before, limit)
    removed = await _remove(connection, queue_id, expired_rows)
    async with connection.transaction():
        forgotten = [
            await _forget(connection, statement, queue_id, moment, limit)
            for statement, moment in (
                (_FORGET_KEYS, now),
                (_FORGET_ATTEMPTS, now),
                (_FORGET_NOTES, now - NOTES_KEPT_MS),
            )
        ]
        await connection.execute(_FORGET_PACE, queue_id, Pace.over_us(now))
    return Swept(removed, has_more=max(removed, *forgotten) >= limit)


async def _forget(connection: Connection, statement: str, queue_id: int, moment: int, limit: int) -> int:
    status: str = await connection.execute(statement, queue_id, moment, limit)
    return int(status.removeprefix("DELETE "))


async def _remove(connection: Connection, queue_id: int, expired_rows: Sequence[Any]) -> int:
    """Remove deliveries, unless they were claimed meanwhile; the turns of their groups are passed on."""
    if not expired_rows:
        return 0
    seqs = [seq for seq, _ in expired_rows]
    async with connection.transaction():
        await rows.lock_groups(connection, {(queue_id, name) for _, name in expired_rows if name is not None})
        await rows.hold(connection, queue_id, seqs)
        removed = await connection.fetch(_DELETE, queue_id, seqs)
        groups_left = [name for turn, name in removed if turn == LinePosition.HEAD and name is not None]
        await rows.pass_turns(connection, queue_id, groups_left)
    return len(removed)
