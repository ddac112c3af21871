"""Orders that are filled one by one: for a repeated attempt, or from a queue with a pace.

A claim whose answer got lost is asked for again: the same attempt id gets the same deliveries. A pace is a throttle over
all nodes: a subscription's next claim may not come before a moment that claims push on. It is kept in the transaction of
the claim, so it holds whoever claims.
"""

from collections.abc import Sequence
from typing import Final

from asyncpg import Connection

from redrive.engine.ports import ClaimRequest, ClaimResult
from redrive.model.claiming import Pace
from redrive.model.delivery import Delivery
from redrive.model.queue import DEDUPLICATION_MS
from redrive.stores.postgres import rows
from redrive.stores.postgres.access_paths import COLUMNS, each, key_of, of
from redrive.stores.postgres.claim_passes import ClaimPasses

_ATTEMPT: Final = (
    "SELECT token, available_at, seqs FROM claim_attempts"
    " WHERE queue_id = $1 AND attempt_id >= $2 AND attempt_id <= $2 AND until > $3 AND available_at > $3"
    " ORDER BY attempt_id LIMIT 1"
)
_UNCHANGED: Final = (
    f"SELECT {of('found')} FROM unnest($2::bigint[]) WITH ORDINALITY AS one (seq, number)"
    f" {each(COLUMNS, 'AND token = $3 AND available_at = $4 FOR UPDATE')} ORDER BY one.number"
)
_RENEW: Final = (
    f"UPDATE deliveries d SET available_at = $3 FROM unnest($2::bigint[]) AS own (seq) WHERE {key_of('d')}"
)
_REMEMBER: Final = (
    "INSERT INTO claim_attempts (queue_id, attempt_id, token, available_at, seqs, until)"
    " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (queue_id, attempt_id) DO UPDATE SET token = excluded.token,"
    " available_at = excluded.available_at, seqs = excluded.seqs, until = excluded.until"
)
_PACE: Final = "SELECT next_us FROM paces WHERE queue_id = $1 FOR UPDATE"
_BEGIN_PACE: Final = "INSERT INTO paces (queue_id, next_us) VALUES ($1, 0) ON CONFLICT (queue_id) DO NOTHING"
_KEEP_PACE: Final = "UPDATE paces SET next_us = $2 WHERE queue_id = $1"


async def fill(connection: Connection, request: ClaimRequest, locks: rows.GroupLocks) -> ClaimResult:
    """Fill one order in the transaction that begins with these locks."""
    if request.attempt_id:
        repeated = await _repeat(connection, request, locks)
        if repeated:
            return ClaimResult(repeated)
    claimed = await _fill_at_pace(connection, request, locks)
    if request.attempt_id and claimed.deliveries:
        await _remember(connection, request, claimed.deliveries)
    return claimed


async def _fill_at_pace(connection: Connection, request: ClaimRequest, locks: rows.GroupLocks) -> ClaimResult:
    """Claim no faster than the queue's pace, if it has one: its row is locked after the groups, as all rows are."""
    if request.rate_max is None:
        return await _fill(connection, request, locks)
    await ClaimPasses(connection, [request], locks).lock_front()
    pace = Pace(request.rate_max, await _locked_pace(connection, request.queue_id))
    request.limit = min(request.limit, pace.allowance(request.now))
    wait_until = pace.wait_until(request.now)
    if wait_until is not None:
        return ClaimResult(next_at=wait_until)
    claimed = await _fill(connection, request, locks)
    if claimed.deliveries:
        await connection.execute(
            _KEEP_PACE, request.queue_id, pace.after(len(claimed.deliveries), request.now)
        )
    return claimed


async def _locked_pace(connection: Connection, queue_id: int) -> int:
    """The time (µs) of a queue's next delivery, locked until the transaction ends; 0: at once."""
    next_us: int | None = await connection.fetchval(_PACE, queue_id)
    if next_us is None:
        await connection.execute(_BEGIN_PACE, queue_id)
        next_us = await connection.fetchval(_PACE, queue_id)
    return next_us or 0


async def _fill(connection: Connection, request: ClaimRequest, locks: rows.GroupLocks) -> ClaimResult:
    passes = ClaimPasses(connection, [request], locks)
    await passes.fill()
    return passes.shares[0].claimed


async def _repeat(connection: Connection, request: ClaimRequest, locks: rows.GroupLocks) -> list[Delivery]:
    """The deliveries an earlier claim of the same attempt got, its lease begun anew, if all are as it left them."""
    remembered = await connection.fetchrow(_ATTEMPT, request.queue_id, request.attempt_id, request.now)
    if remembered is None:
        return []
    token, available_at, seqs = remembered
    groups = {(request.queue_id, name) for name in await rows.groups_of(connection, request.queue_id, seqs)}
    if not await locks.lock({seqs[0]: groups}):
        return []
    records = await connection.fetch(_UNCHANGED, request.queue_id, seqs, token, available_at)
    if len(records) != len(seqs):
        return []
    deliveries = [rows.delivery_of(record) for record in records]
    until = request.now + request.lease_ms
    for delivery in deliveries:
        delivery.available_at = until
    await connection.execute(_RENEW, request.queue_id, seqs, until)
    await _remember(connection, request, deliveries)
    return deliveries


async def _remember(connection: Connection, request: ClaimRequest, deliveries: Sequence[Delivery]) -> None:
    """Keep for five minutes what this attempt got."""
    first = deliveries[0]
    await connection.execute(
        _REMEMBER,
        request.queue_id,
        request.attempt_id,
        first.token,
        first.available_at,
        [delivery.seq for delivery in deliveries],
        request.now + DEDUPLICATION_MS,
    )
