"""A throttle over all nodes: a subscription's next claim may not come before a moment that claims push on.

The pace is kept in the same transaction as the claim, so it holds whoever claims. There is no burst: `rate_max`
deliveries a second are one every 1,000 / rate_max ms, also after a rest.
"""

import apsw

from redrive.engine.ports import ClaimOrder
from redrive.stores.sqlite import rows

# Timers have milliseconds: a faster pace claims several at a time.
CLAIMS_PER_SECOND_MAX = 1000

_READ = "SELECT next_us FROM paces WHERE queue_id = ?"
_WRITE = "INSERT OR REPLACE INTO paces (queue_id, next_us) VALUES (?, ?)"


def slow_down(cursor: apsw.Cursor, order: ClaimOrder) -> int | None:
    """Make the order fit the pace; the moment (ms) to come back at, when nothing may be claimed now."""
    row = rows.one(cursor, _READ, (order.queue_id,))
    if row is not None and row[0] > order.now * 1000:
        return -(-int(row[0]) // 1000)
    order.limit = min(order.limit, max(1, (order.rate_max or 0) // CLAIMS_PER_SECOND_MAX))
    return None


def count(cursor: apsw.Cursor, order: ClaimOrder, claimed: int) -> None:
    """Push the next claim's moment on by what was claimed."""
    if claimed and order.rate_max:
        cursor.execute(_WRITE, (order.queue_id, order.now * 1000 + claimed * 1_000_000 // order.rate_max))
