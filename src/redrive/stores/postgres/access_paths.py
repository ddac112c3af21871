"""Access paths of statements, written so that the planner cannot choose another.

A queue is empty one minute and a million rows long the next. The planner's picture of it is minutes old, and where it
takes a queue to be empty it takes any index, and reads all of the queue each time. So statements leave no choice:

* Rows are looked up one by one, in LATERAL subqueries that cannot be merged into the statement around them, each by
  the whole key of one index.
* What must come by a certain index asks for that index's order, and `connections` has turned sorting off.
* Rows to be changed are reached by their key, joined to the places that are wanted (`key_of`). A plan made without the
  values, as `connections` asks for, finds the queue in that join alone, so no way is open to it but row by row.

Citus must see which queue a statement is about. It plans with the values, and finds `queue_id = $1` in each of them.
"""

from typing import Final

COLUMNS: Final = (
    "queue_id, seq, available_at, attempts, token, enqueued_at, sent_at, first_claimed_at, message_id, group_id,"
    " deduplication_id, origin, headers, body, failure, sealed"
)
_LEAST: Final = "-9223372036854775808"  # below every seq
_GREATEST: Final = "9223372036854775807"


def of(alias: str) -> str:
    """The columns of a delivery, qualified."""
    return ", ".join(f"{alias}.{column}" for column in COLUMNS.split(", "))


def each(columns: str, lock: str = "OFFSET 0") -> str:
    """FROM: queue $1's deliveries with the places `one.seq`, as `found`."""
    return (
        f"CROSS JOIN LATERAL (SELECT {columns} FROM deliveries"
        f" WHERE queue_id = $1 AND seq = one.seq {lock}) AS found"
    )


def key_of(row: str, shard: str = "own.seq", column: str = "seq", *, tie: str = "") -> str:
    """WHERE: `row` is in queue $1 and its `column` is `shard`, which is an expression of another table's.

    With its value, $1 is all that `coalesce` comes to: a constant, by which Citus knows the shard. Without it, the
    planner has to fetch `tie` before it can look. An array, since an equality would make it expect a merge of two
    sorted tables, and read all of this one where it takes that to be small.

    Args:
        row: The alias of the table that is changed.
        shard: What to look for.
        column: Where: the key's next column.
        tie: A bigint of the other table's; `shard`, unless that is none.
    """
    return f"{row}.queue_id = ANY (ARRAY[coalesce($1, {tie or shard})]) AND {row}.{column} = {shard}"


def in_group(columns: str, position: int, limit: str) -> str:
    """The oldest deliveries of the group `g.id` in that `LinePosition`, their `place`."""
    return (
        f"SELECT {columns} FROM deliveries WHERE queue_id = $1 AND group_id IS NOT NULL"
        f" AND (group_id, place, seq) > (g.id, {position}, {_LEAST})"
        f" AND (group_id, place, seq) < (g.id, {position + 1}, {_LEAST})"
        f" ORDER BY group_id, place, seq LIMIT {limit}"
    )


def in_failures(origin: str, failure: str) -> str:
    """WHERE: a dead letter of this cause. As bounds of one index, whose order (origin, failure, seq) is asked for."""
    return (
        f"failure IS NOT NULL AND (origin, failure, seq) > ({origin}, {failure}, {_LEAST})"
        f" AND (origin, failure, seq) <= ({origin}, {failure}, {_GREATEST})"
    )
