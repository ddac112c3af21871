"""Numbers of queues under which anything is kept, found in each table by leaps along its index from number to number.

Citus recurses over no distributed table: there each shard groups its own rows by their number.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from asyncpg import Connection

from redrive.engine.ports import NOTES_KEPT_MS, OLDEST_AMONG, Occupied, merge_occupied
from redrive.model.pace import Pace

_BY_LEAPS: Final = """
    WITH RECURSIVE held (id) AS (
        (SELECT queue_id FROM {table} WHERE queue_id > $1 ORDER BY queue_id LIMIT 1)
        UNION ALL
        SELECT (SELECT queue_id FROM {table} WHERE queue_id > held.id ORDER BY queue_id LIMIT 1)
        FROM held WHERE held.id IS NOT NULL
    ), numbers AS (SELECT id FROM held WHERE id IS NOT NULL LIMIT $2)
    SELECT id, (SELECT min(moment) FROM (
        SELECT {moment} AS moment FROM {table} WHERE queue_id = numbers.id ORDER BY {order} LIMIT {among}
    ) AS first) AS moment FROM numbers
"""
_BY_GROUPS: Final = """
    SELECT queue_id AS id, min({moment}) AS moment FROM {table}
    WHERE queue_id > $1 GROUP BY queue_id ORDER BY queue_id LIMIT $2
"""


class _Look(NamedTuple):
    """The statements that look through a table, on one database and over the shards of Citus."""

    by_leaps: str
    by_groups: str


def _look(table: str, moment: str, order: str = "", among: int = 1) -> _Look:
    """Numbers in `table`, with the least `moment` among the first so many rows of each by `order`, or by the moment."""
    parts = {"table": table, "moment": moment, "order": order or moment, "among": among}
    return _Look(_BY_LEAPS.format(**parts), _BY_GROUPS.format(**parts))


_DELIVERIES: Final = _look("deliveries", "enqueued_at", "seq", OLDEST_AMONG)
_MEMORIES: Final[Sequence[tuple[_Look, Callable[[int], int]]]] = (
    (_look("deduplication", "until"), lambda until: until),
    (_look("claim_attempts", "until"), lambda until: until),
    (_look("attempts", "at"), lambda at: at + NOTES_KEPT_MS),
    (_look("paces", "next_us"), Pace.ends_at),
)


async def occupied(connection: Connection, after: int, limit: int, *, distributed: bool) -> list[Occupied]:
    """See `Store.occupied`; `distributed` over the shards of Citus."""

    async def first_of(look: _Look) -> list[tuple[int, int]]:
        statement = look.by_groups if distributed else look.by_leaps
        return [(row["id"], row["moment"]) for row in await connection.fetch(statement, after, limit)]

    memories = [[(number, ends(at)) for number, at in await first_of(look)] for look, ends in _MEMORIES]
    return merge_occupied(await first_of(_DELIVERIES), memories, limit)
