"""Deliveries are claimed: who is next in a queue's line, and under which token.

Where the front of the line is ordinary (nobody there has a group's turn, is expired or exhausted), one statement
claims for all who ask at once. All else is claimed in a transaction that decides delivery by delivery (`claim_passes`).
"""

from collections.abc import Sequence
from typing import Final

from asyncpg import Connection

from redrive.engine.ports import BACK_AMONG, ClaimRequest, ClaimResult
from redrive.model.claiming import wants_next_at
from redrive.stores.postgres import alone, rows
from redrive.stores.postgres.access_paths import key_of, of
from redrive.stores.postgres.call_lanes import CallLanes
from redrive.stores.postgres.claim_passes import ClaimPasses, ClaimPassResult
from redrive.stores.postgres.connections import Connections

# `redrive.model.claiming` in SQL: `offer`, of which $4 is the latest `enqueued_at` that is out of its retention period
# and $5 the count of attempts at which a delivery is dead, and `stamp`; a test holds it against the model. All or
# nothing: a delivery among them that is not ordinary, and all are left alone.
_ORDINARY: Final = "place = 1 AND enqueued_at > $4 AND attempts < $5"
_CLAIM_ORDINARY: Final = f"""
    WITH back AS MATERIALIZED (
        SELECT seq, {rows.ORDER_OF_BACK} AS moment, {_ORDINARY} AS ordinary
        FROM deliveries WHERE queue_id = $1 AND {rows.CLAIMED} AND available_at <= $2
        ORDER BY available_at, seq LIMIT greatest($3, {BACK_AMONG}) FOR UPDATE SKIP LOCKED
    ), waiting AS MATERIALIZED (
        SELECT seq, available_at AS moment, {_ORDINARY} AS ordinary
        FROM deliveries WHERE queue_id = $1 AND {rows.WAITING} AND available_at <= $2
        ORDER BY available_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED
    ), front AS MATERIALIZED (
        SELECT * FROM (SELECT * FROM back UNION ALL SELECT * FROM waiting) AS due ORDER BY moment, seq LIMIT $3
    ), numbered AS MATERIALIZED (
        SELECT seq, row_number() OVER (ORDER BY moment, seq) AS number
        FROM front WHERE (SELECT bool_and(ordinary) FROM front)
    ), own AS MATERIALIZED (
        SELECT seq, number, ($6::bigint[])[number] AS token, ($7::bigint[])[number] AS until,
            ($8::bigint[])[number] AS now
        FROM numbered
    )
    UPDATE deliveries d SET token = own.token, available_at = own.until,
        first_claimed_at = coalesce(d.first_claimed_at, own.now),
        attempts = d.attempts + CASE WHEN $9 AND d.token IS NOT NULL THEN 0 ELSE 1 END
    FROM own WHERE {key_of("d")}
    RETURNING {of("d")}, own.number
"""
_NEVER: Final = -1  # before every `enqueued_at`
_REMEMBERED_MAX: Final = 10_000  # queues; forgetting them all costs each one statement
_ENDLESS: Final = 2**31 - 1


class Claimer:
    """Fills orders, those of one queue together."""

    def __init__(self, connections: Connections) -> None:
        """Claim on these connections; of each queue one claim is under way, so that they do not meet in its line."""
        self._ordinary = CallLanes(connections, _claim_ordinary, 1, key=_alike)
        self._others = CallLanes(connections, _fill_others, 1, key=_shared_terms)
        self._not_ordinary: set[int] = set()  # queues whose line was not, the last time

    async def claim(self, request: ClaimRequest) -> ClaimResult:
        """Fill an order; see `Store.claim`.

        One statement fills it in an ordinary queue; other queues are remembered, until they are found ordinary again.
        """
        if request.ordered or request.attempt_id or request.rate_max is not None or request.claims_nothing:
            return (await self._others.submit(request)).claimed
        if request.queue_id not in self._not_ordinary:
            claimed = await self._ordinary.submit(request)
            if claimed is not None:
                return claimed
            if len(self._not_ordinary) >= _REMEMBERED_MAX:
                self._not_ordinary.clear()
            self._not_ordinary.add(request.queue_id)
        answer = await self._others.submit(request)
        if answer.was_ordinary:
            self._not_ordinary.discard(request.queue_id)
        return answer.claimed

    async def idle(self) -> None:
        """Return when all orders are filled."""
        await self._ordinary.idle()
        await self._others.idle()


def _alike(request: ClaimRequest) -> object:
    """The properties that requests must share to be filled by one statement."""
    return request.queue_id, request.limits, request.resumes


def _shared_terms(request: ClaimRequest) -> object:
    """The properties that requests must share to be filled by one transaction."""
    special = bool(request.attempt_id) or request.rate_max is not None or request.claims_nothing
    return (
        request.queue_id,
        request.ordered,
        request.limits,
        request.resumes,
        request.dead_letters_to,
        special,
    )


async def _claim_ordinary(
    connection: Connection, requests: Sequence[ClaimRequest]
) -> list[ClaimResult | None]:
    """Fill orders that are alike; None for one that must be filled in the other way.

    They were made within moments of each other: what is due for the latest of them is due for all.
    """
    first, now = requests[0], max(request.now for request in requests)
    limits = first.limits
    shares = [
        (request.token, request.now + request.lease_ms, request.now)
        for request in requests
        for _ in range(request.limit)
    ]
    tokens, until, moments = zip(*shares, strict=True)
    records = await connection.fetch(
        _CLAIM_ORDINARY,
        first.queue_id,
        now,
        len(shares),
        _NEVER if limits.retention_ms is None else now - limits.retention_ms,
        limits.attempts_max if limits.ends_exhausted else _ENDLESS,
        tokens,
        until,
        moments,
        first.resumes,
    )
    answers = {request.token: ClaimResult() for request in requests}
    for record in sorted(records, key=lambda record: record["number"]):
        delivery = rows.delivery_of(record)
        answers[delivery.token or 0].deliveries.append(delivery)
    pairs = list(zip(requests, answers.values(), strict=True))
    if not any(wants_next_at(claimed, request, request.limit) for request, claimed in pairs):
        return list(answers.values())
    next_at = await connection.fetchval(rows.NEXT_AT, first.queue_id)
    for request, claimed in pairs:
        if claimed.deliveries and wants_next_at(claimed, request, request.limit):
            claimed.next_at = next_at
    return [claimed if claimed.deliveries else _nothing(next_at, now) for claimed in answers.values()]


def _nothing(next_at: int | None, now: int) -> ClaimResult | None:
    """Nothing was taken; if something is due all the same, it is not ordinary, or another node holds it."""
    return ClaimResult(next_at=next_at) if next_at is None or next_at > now else None


async def _fill_others(connection: Connection, requests: Sequence[ClaimRequest]) -> list[ClaimPassResult]:
    """Fill orders that are alike in all, those for attempts and from paced queues one by one, in one transaction."""
    first = requests[0]
    async with rows.GroupLocks(connection) as locks:
        if first.claims_nothing:
            return [
                ClaimPassResult(await _send_on(connection, request, locks), was_ordinary=False)
                for request in requests
            ]
        if first.attempt_id or first.rate_max is not None:
            return [
                ClaimPassResult(await alone.fill(connection, request, locks), was_ordinary=False)
                for request in requests
            ]
        passes = ClaimPasses(connection, requests, locks)
        await passes.fill()
        return [ClaimPassResult(share.claimed, passes.ordinary) for share in passes.shares]


async def _send_on(connection: Connection, request: ClaimRequest, locks: rows.GroupLocks) -> ClaimResult:
    passes = ClaimPasses(connection, [request], locks)
    await passes.send_on()
    return passes.shares[0].claimed
