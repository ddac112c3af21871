"""A claim whose answer got lost is asked for again: the same attempt id gets the same deliveries."""

from collections.abc import Sequence
from typing import Final

from asyncpg import Connection

from redrive.engine.ports import ClaimRequest
from redrive.model.delivery import Delivery
from redrive.model.queue import DEDUPLICATION_MS
from redrive.stores.postgres import rows
from redrive.stores.postgres.reaching import COLUMNS, each, of, own

_ATTEMPT: Final = (
    "SELECT token, available_at, seqs FROM claim_attempts"
    " WHERE queue_id = $1 AND attempt_id >= $2 AND attempt_id <= $2 AND until > $3 AND available_at > $3"
    " ORDER BY attempt_id LIMIT 1"
)
_UNCHANGED: Final = (
    f"SELECT {of('found')} FROM unnest($2::bigint[]) WITH ORDINALITY AS one (seq, number)"  # noqa: S608 - constants
    f" {each(COLUMNS, 'AND token = $3 AND available_at = $4 FOR UPDATE')} ORDER BY one.number"
)
_RENEW: Final = (
    f"WITH {own('$2::bigint[]', 'seq')}"  # noqa: S608 - constants
    " UPDATE deliveries d SET available_at = $3 FROM own WHERE d.ctid = own.at"
)
_REMEMBER: Final = (
    "INSERT INTO claim_attempts (queue_id, attempt_id, token, available_at, seqs, until)"
    " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (queue_id, attempt_id) DO UPDATE SET token = excluded.token,"
    " available_at = excluded.available_at, seqs = excluded.seqs, until = excluded.until"
)


async def repeat(connection: Connection, request: ClaimRequest, *, may_wait: bool) -> list[Delivery]:
    """The deliveries an earlier claim of the same attempt got, its lease begun anew, if all are as it left them."""
    remembered = await connection.fetchrow(_ATTEMPT, request.queue_id, request.attempt_id, request.now)
    if remembered is None:
        return []
    token, available_at, seqs = remembered
    groups = {(request.queue_id, name) for name in await rows.groups_of(connection, request.queue_id, seqs)}
    if may_wait:
        await rows.lock_groups(connection, groups)
    elif groups != await rows.try_groups(connection, groups):
        return []
    found = await connection.fetch(_UNCHANGED, request.queue_id, seqs, token, available_at)
    if len(found) != len(seqs):
        return []
    deliveries = [rows.delivery_of(record) for record in found]
    until = request.now + request.lease_ms
    for delivery in deliveries:
        delivery.available_at = until
    await connection.execute(_RENEW, request.queue_id, seqs, until)
    await remember(connection, request, deliveries)
    return deliveries


async def remember(connection: Connection, request: ClaimRequest, deliveries: Sequence[Delivery]) -> None:
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
