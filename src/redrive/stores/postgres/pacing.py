"""A throttle over all nodes: a subscription's next claim may not come before a moment that claims push on.

The pace is kept in the same transaction as the claim, so it holds whoever claims; see the SQLite store's.
"""

from typing import Final

from asyncpg import Connection

from redrive.engine.ports import ClaimOrder

_READ: Final = "SELECT next_us FROM paces WHERE queue_id = $1 FOR UPDATE"
_BEGIN: Final = "INSERT INTO paces (queue_id, next_us) VALUES ($1, 0) ON CONFLICT (queue_id) DO NOTHING"
_WRITE: Final = "UPDATE paces SET next_us = $2 WHERE queue_id = $1"


async def slow_down(connection: Connection, order: ClaimOrder) -> int | None:
    """Make the order fit the pace; the moment (ms) to come back at, when nothing may be claimed now."""
    next_us = await connection.fetchval(_READ, order.queue_id)
    if next_us is None:
        await connection.execute(_BEGIN, order.queue_id)
        next_us = await connection.fetchval(_READ, order.queue_id)
    if next_us > order.now * 1000:
        return -(-int(next_us) // 1000)
    order.limit = 1
    return None


async def count(connection: Connection, order: ClaimOrder, claimed: int) -> None:
    """Push the next claim's moment on by what was claimed."""
    if claimed and order.rate_max:
        await connection.execute(
            _WRITE, order.queue_id, order.now * 1000 + claimed * 1_000_000 // order.rate_max
        )
