"""A throttle over all nodes: a subscription's next claim may not come before a moment that claims push on.

The pace is kept in the same transaction as the claim, so it holds whoever claims; see the SQLite store's.
"""

from typing import Final

from asyncpg import Connection

from redrive.engine.ports import ClaimRequest
from redrive.model.pace import Pace

_READ: Final = "SELECT next_us FROM paces WHERE queue_id = $1 FOR UPDATE"
_BEGIN: Final = "INSERT INTO paces (queue_id, next_us) VALUES ($1, 0) ON CONFLICT (queue_id) DO NOTHING"
_WRITE: Final = "UPDATE paces SET next_us = $2 WHERE queue_id = $1"


async def slow_down(connection: Connection, request: ClaimRequest, rate_max: int) -> Pace:
    """The queue's pace, kept for this transaction; the order is made to fit it."""
    next_us = await connection.fetchval(_READ, request.queue_id)
    if next_us is None:
        await connection.execute(_BEGIN, request.queue_id)
        next_us = await connection.fetchval(_READ, request.queue_id)
    pace = Pace(rate_max, next_us)
    request.limit = min(request.limit, pace.allowed(request.now))
    return pace


async def count(connection: Connection, request: ClaimRequest, pace: Pace, claimed: int) -> None:
    """Push the next claim's moment on by what was claimed."""
    if claimed:
        await connection.execute(_WRITE, request.queue_id, pace.after(claimed, request.now))
