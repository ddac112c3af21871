"""Access paths of statements, written so that the planner cannot choose another.

A queue is empty one minute and a million rows long the next. The planner's picture of it is minutes old, and where it
believes a queue to be empty it takes any index, and reads all of the queue each time. So statements leave no choice:

* Rows are looked up one by one, in LATERAL subqueries that cannot be merged into the statement around them, each by
  the whole key of one index.
* What must come by a certain index asks for that index's order, and `connections` has turned sorting off.
* Rows to be changed are reached by ctid, from a CTE that found them. A row that another changed while the statement
  waited for it is passed over: its new version has another ctid. So such rows are locked by a statement before, or
  whoever passes one over looks again.
"""

from typing import Final

COLUMNS: Final = (
    "queue_id, seq, available_at, attempts, token, enqueued_at, sent_at, first_claimed_at, message_id, group_id,"
    " deduplication_id, origin, headers, body"
)
_LEAST: Final = "-9223372036854775808"  # below every seq


def of(alias: str) -> str:
    """The columns of a delivery, qualified."""
    return ", ".join(f"{alias}.{column}" for column in COLUMNS.split(", "))


def each(columns: str, lock: str = "OFFSET 0") -> str:
    """FROM: queue $1's deliveries with the places `one.seq`, as `found`."""
    return (
        f"CROSS JOIN LATERAL (SELECT {columns} FROM deliveries"  # noqa: S608 - constants
        f" WHERE queue_id = $1 AND seq = one.seq {lock}) AS found"
    )


def own(arrays: str, names: str, also: str = "") -> str:
    """CTE `own`: the deliveries of queue $1 with these places, and `at` where each is.

    Args:
        arrays: Parameters for `unnest`, the first of them the places.
        names: What the arrays hold: `seq, …`; columns of `own`, and of `one` in `also`.
        also: Further conditions.
    """
    return (
        f"own AS MATERIALIZED (SELECT found.at, one.* FROM unnest({arrays}) AS one ({names})"  # noqa: S608 - constants
        f" {each('ctid AS at', f'{also} OFFSET 0')})"
    )


def in_group(columns: str, place: int, limit: str) -> str:
    """The oldest deliveries of the group `g.id` that stand in this place."""
    return (
        f"SELECT {columns} FROM deliveries WHERE queue_id = $1 AND group_id IS NOT NULL"  # noqa: S608 - constants
        f" AND (group_id, place, seq) > (g.id, {place}, {_LEAST})"
        f" AND (group_id, place, seq) < (g.id, {place + 1}, {_LEAST})"
        f" ORDER BY group_id, place, seq LIMIT {limit}"
    )
