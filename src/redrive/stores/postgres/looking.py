"""Looking without touching."""

from typing import Final

from asyncpg import Connection

from redrive.engine.ports import Counts
from redrive.model.delivery import Delivery
from redrive.stores.postgres import rows
from redrive.stores.postgres.reaching import COLUMNS

_PEEK: Final = f"SELECT {COLUMNS} FROM deliveries WHERE queue_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
_LOCATE: Final = f"""
    SELECT {COLUMNS} FROM (
        SELECT {COLUMNS} FROM deliveries WHERE queue_id = $1 ORDER BY seq LIMIT $4
    ) AS first WHERE message_id = $2 OR position($3 IN headers) > 0
"""
# By the line's index and the groups' alone, but for delayed messages behind others of their group, and for what of
# the later ones is claimed.
_LINE: Final = "SELECT token FROM deliveries WHERE queue_id = $1 AND place > 0 AND available_at {} $2"
_IN_LINE_ORDER: Final = "ORDER BY available_at, seq OFFSET 0"
_BEHIND: Final = "SELECT 1 FROM deliveries WHERE queue_id = $1 AND group_id IS NOT NULL AND place = 0"
_IN_GROUP_ORDER: Final = "ORDER BY group_id, place, seq OFFSET 0"
_COUNT: Final = f"""
    SELECT (SELECT count(*) FROM ({_LINE.format("<=")} {_IN_LINE_ORDER}) AS one) AS due,
        (SELECT count(*) FROM ({_BEHIND} {_IN_GROUP_ORDER}) AS one) AS behind,
        (SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE queue_id = $1 AND place = 0 AND token IS NOT NULL
            AND available_at > $2 ORDER BY available_at OFFSET 0) AS one) AS behind_claimed,
        later.number AS later, later.claimed AS later_claimed
    FROM (SELECT count(*) AS number, count(one.token) AS claimed
        FROM ({_LINE.format(">")} {_IN_LINE_ORDER}) AS one) AS later
"""
_DELAYED_BEHIND: Final = (
    f"SELECT count(*) FROM ({_BEHIND} AND token IS NULL AND available_at > $2 {_IN_GROUP_ORDER}) AS one"
)


async def peek(connection: Connection, queue_id: int, limit: int, after_seq: int) -> list[Delivery]:
    """Deliveries in order of arrival."""
    return [rows.delivery_of(record) for record in await connection.fetch(_PEEK, queue_id, after_seq, limit)]


async def locate(
    connection: Connection, queue_id: int, message_id: bytes, text: bytes, limit: int
) -> list[Delivery]:
    """The first deliveries that have this id, or this text in their headers."""
    found = await connection.fetch(_LOCATE, queue_id, message_id, text, limit)
    return [rows.delivery_of(record) for record in found]


async def count(connection: Connection, queue_id: int, now: int) -> Counts:
    """The numbers of deliveries that may be claimed now, are in flight, and wait for a later moment."""
    one = await connection.fetchrow(_COUNT, queue_id, now)
    behind, claimed = one["behind"], one["later_claimed"] + one["behind_claimed"]
    delayed_behind = await connection.fetchval(_DELAYED_BEHIND, queue_id, now) if behind else 0
    return Counts(
        available=one["due"] + behind - one["behind_claimed"] - delayed_behind,
        claimed=claimed,
        delayed=one["later"] - one["later_claimed"] + delayed_behind,
    )
