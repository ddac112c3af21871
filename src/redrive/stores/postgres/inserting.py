"""Rows of one queue, inserted as Citus does it best: by VALUES, which go to the queue's node in one statement.

`INSERT … SELECT FROM unnest(…)`, by which PostgreSQL takes many rows quickest, Citus runs on the coordinator. It copies
the rows to their nodes and commits in two phases, even where all of them are for one node: five ways through the network
instead of one. And a node that is lost between the phases shows the rows later than what was sent after them.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from asyncpg import Connection

_ROWS_MAX: Final = 32  # in one statement
# Of more rows, Citus takes longer to read the values than to copy them, where either will do: 13 ms and 8 ms for 64 rows,
# 0.8 ms and 4.4 ms for a single row. As many rows at most are a single statement, which commits for itself.
QUICKER_MAX: Final = 16

Row = Sequence[Any]


async def insert(
    connection: Connection, into: str, row: str, rows: Sequence[Row], then: str = ""
) -> list[Any]:
    """Insert rows of one queue; in a transaction where there are more than `QUICKER_MAX` of them.

    Args:
        connection: To the coordinator.
        into: The statement up to VALUES.
        row: What stands behind VALUES for one row; `{0}`, `{1}` … are its values.
        rows: The values of each.
        then: The statement from the last row on.

    Returns:
        What the statement returns, row by row.
    """
    records: list[Any] = []
    for batch in _batches(rows):
        statement = _statement(into, row, then, len(batch), len(batch[0]))
        records += await connection.fetch(statement, *(value for values in batch for value in values))
    return records


def _batches(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Batches of one of two sizes, and a last one of at most `QUICKER_MAX`, so that statements are few."""
    begin = 0
    while (remaining := len(rows) - begin) > QUICKER_MAX:
        size = _ROWS_MAX if remaining >= _ROWS_MAX else QUICKER_MAX
        yield rows[begin : begin + size]
        begin += size
    if remaining:
        yield rows[begin:]


@cache
def _statement(into: str, row: str, then: str, rows: int, values: int) -> str:
    """The statement for so many rows of so many values each, numbered from $1."""
    places = [
        row.format(*(f"${number}" for number in range(first, first + values)))
        for first in range(1, rows * values + 1, values)
    ]
    return f"{into} VALUES {', '.join(places)} {then}"
