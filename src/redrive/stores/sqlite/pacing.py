"""A throttle over all nodes: a subscription's next claim may not come before a moment that claims push on.

The pace is kept in the same transaction as the claim, so it holds whoever claims.
"""

import apsw

from redrive.engine.ports import ClaimRequest
from redrive.model.pace import Pace
from redrive.stores.sqlite import rows

# Timers have milliseconds: a faster pace claims several at a time.
CLAIMS_PER_SECOND_MAX = 1000

_READ = "SELECT next_us FROM paces WHERE queue_id = ?"
_FORGET = "DELETE FROM paces WHERE queue_id = ? AND next_us <= ?"
_WRITE = "INSERT OR REPLACE INTO paces (queue_id, next_us) VALUES (?, ?)"


def slow_down(cursor: apsw.Cursor, request: ClaimRequest, rate_max: int) -> Pace:
    """The queue's pace; the order is made to fit it."""
    row = rows.one(cursor, _READ, (request.queue_id,))
    pace = Pace(rate_max, row[0] if row else 0)
    request.limit = min(request.limit, pace.allowed(request.now))
    return pace


def count(cursor: apsw.Cursor, request: ClaimRequest, pace: Pace, claimed: int) -> None:
    """Push the next claim's moment on by what was claimed."""
    if claimed:
        cursor.execute(_WRITE, (request.queue_id, pace.after(claimed, request.now)))


def forget(cursor: apsw.Cursor, queue_id: int, now: int) -> None:
    """Forget a pace that is over."""
    cursor.execute(_FORGET, (queue_id, Pace.over_us(now)))
