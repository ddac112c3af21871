"""Numbers of queues under which anything is kept, found in each table by leaps along its index from number to number."""

from collections.abc import Callable, Sequence
from typing import Final

import apsw

from redrive.engine.ports import NOTES_KEPT_MS, OLDEST_AMONG, Occupied, merge_occupied
from redrive.model.pace import Pace

_NUMBERS: Final = """
    WITH RECURSIVE held (id) AS (
        SELECT min(queue_id) FROM {table} WHERE queue_id > ?1
        UNION ALL
        SELECT (SELECT min(queue_id) FROM {table} WHERE queue_id > held.id) FROM held WHERE held.id IS NOT NULL LIMIT ?2
    )
    SELECT id, (SELECT min(moment) FROM (
        SELECT {moment} AS moment FROM {table} WHERE queue_id = held.id ORDER BY {order} LIMIT {among}
    )) FROM held WHERE id IS NOT NULL
"""
_OLDEST: Final = _NUMBERS.format(table="deliveries", moment="enqueued_at", order="seq", among=OLDEST_AMONG)


def _first(table: str, moment: str) -> str:
    return _NUMBERS.format(table=table, moment=moment, order=moment, among=1)


_MEMORIES: Final[Sequence[tuple[str, Callable[[int], int]]]] = (
    (_first("deduplication", "until"), lambda until: until),
    (_first("claim_attempts", "until"), lambda until: until),
    (_first("attempts", "at"), lambda at: at + NOTES_KEPT_MS),
    (_first("paces", "next_us"), Pace.ends_at),
)


def occupied(after: int, limit: int, cursor: apsw.Cursor) -> list[Occupied]:
    """See `Store.occupied`."""

    def first_of(statement: str) -> list[tuple[int, int]]:
        return [(int(number), int(moment)) for number, moment in cursor.execute(statement, (after, limit))]

    memories = [[(number, ends(at)) for number, at in first_of(sql)] for sql, ends in _MEMORIES]
    return merge_occupied(first_of(_OLDEST), memories, limit)
