"""Deliveries are claimed: the rows of a queue's line are read, given out by `redrive.model.claiming`, and written."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

import apsw
import orjson

from redrive.engine.ports import BACK_AMONG, REMOVALS_MAX, ClaimRequest
from redrive.model.claiming import (
    ClaimPlan,
    ClaimResult,
    ClaimShare,
    Followers,
    Pace,
    Placed,
    death_reason,
    line_of_due,
    plan_endings,
    plan_fair,
    plan_ordered,
    wants_next_at,
)
from redrive.model.delivery import Delivery, LinePosition, Outcome
from redrive.model.queue import DEDUPLICATION_MS
from redrive.stores.sqlite import arrivals, rows
from redrive.stores.sqlite.transaction import Transaction

_WAITING: Final = (
    f"{rows.SELECT} WHERE queue_id = ? AND {rows.WAITING} AND available_at <= ?"
    " ORDER BY available_at, seq LIMIT ?"
)
# A claim of no duration is due again at once: what carries the order's own token is not looked at twice. Of very many
# that came back those that did so first are taken, in order of arrival.
_BACK: Final = (
    f"SELECT * FROM ({rows.SELECT} WHERE queue_id = ?1 AND {rows.CLAIMED} AND available_at <= ?2 AND token IS NOT ?3"
    f" ORDER BY available_at LIMIT max(?4, {BACK_AMONG})) ORDER BY seq LIMIT ?4"
)
# Named, because SQLite would rather have the queue's deliveries in order than the group's at all.
_BEHIND: Final = (
    f"{rows.SELECT} INDEXED BY deliveries_groups"
    " WHERE queue_id = ? AND group_id = ? AND place = 0 ORDER BY seq LIMIT ?"
)
_ONE: Final = f"{rows.SELECT} WHERE queue_id = ? AND seq = ?"
_CLAIM: Final = (
    "UPDATE deliveries SET available_at = ?, attempts = ?, token = ?, first_claimed_at = ?{place}"
    " WHERE queue_id = ? AND seq = ?"
)
_CLAIM_ORDERED: Final = _CLAIM.format(place="")
_CLAIM_FAIR: Final = _CLAIM.format(place=f", place = {int(LinePosition.READY)}")
_STAMPED: Final = attrgetter("available_at", "attempts", "token", "first_claimed_at", "queue_id", "seq")
_RENEW: Final = "UPDATE deliveries SET available_at = ? WHERE queue_id = ? AND seq = ?"
_REMOVE: Final = "DELETE FROM deliveries WHERE queue_id = ? AND seq = ?"
_ATTEMPT: Final = (
    "SELECT token, available_at, seqs FROM claim_attempts WHERE queue_id = ? AND attempt_id = ? AND until > ?"
)
_REMEMBER_ATTEMPT: Final = (
    "INSERT OR REPLACE INTO claim_attempts (queue_id, attempt_id, token, available_at, seqs, until)"
    " VALUES (?,?,?,?,?,?)"
)
# Of all claims, for one behind a turn may come to have it.
_NEXT_LAPSE: Final = "SELECT min(available_at) FROM deliveries WHERE queue_id = ? AND token IS NOT NULL"
_PACE: Final = "SELECT next_us FROM paces WHERE queue_id = ?"
_HEAD: Final = LinePosition.HEAD.value
_KEEP_PACE: Final = "INSERT OR REPLACE INTO paces (queue_id, next_us) VALUES (?, ?)"


def claim(transaction: Transaction, request: ClaimRequest) -> ClaimResult:
    """Fill an order; see `Store.claim`."""
    cursor = transaction.cursor
    if request.claims_nothing:
        return _send_on(transaction, request)
    if request.attempt_id:
        repeated = _renew_claims_of_attempt(transaction, request)
        if repeated:
            return ClaimResult(repeated)
    elif request.rate_max is None and request.lease_ms:
        share = _defer_order(transaction, request)
        if share is not None:
            return share.claimed
    limit = request.limit
    if request.rate_max is None:
        claimed = _fill(transaction, (ClaimShare(request),))
    else:
        claimed = _fill_at_pace(transaction, request, request.rate_max)
    if request.attempt_id and claimed.deliveries:
        _remember(cursor, request, claimed.deliveries)
    if claimed.next_at is None and wants_next_at(claimed, request, limit):
        claimed.next_at = rows.next_at(cursor, request.queue_id)
    return claimed


def _fill_at_pace(transaction: Transaction, request: ClaimRequest, rate_max: int) -> ClaimResult:
    """Claim no faster than the queue's pace; it is kept with the claim, so it holds for every claimer."""
    row = rows.one(transaction.cursor, _PACE, (request.queue_id,))
    pace = Pace(rate_max, row[0] if row else 0)
    request.limit = min(request.limit, pace.allowance(request.now))
    wait_until = pace.wait_until(request.now)
    if wait_until is not None:
        return ClaimResult(next_at=wait_until)
    claimed = _fill(transaction, (ClaimShare(request),))
    if claimed.deliveries:
        next_us = pace.after(len(claimed.deliveries), request.now)
        transaction.cursor.execute(_KEEP_PACE, (request.queue_id, next_us))
    return claimed


def _defer_order(transaction: Transaction, request: ClaimRequest) -> ClaimShare[ClaimRequest] | None:
    """Let an order wait for the end of its transaction, where those of a queue are filled together.

    The share holds the answer then. None: the orders that wait have other terms, as the queue was changed a moment ago.
    """
    shares = transaction.orders.setdefault(request.queue_id, [])
    if shares:
        first = shares[0].request
        if (first.limits, first.dead_letters_to) != (request.limits, request.dead_letters_to):
            return None
    share = ClaimShare(request)
    shares.append(share)
    return share


def fill_orders(transaction: Transaction) -> None:
    """Fill the claims that were left to the end: those of one queue together, at the moment of the latest."""
    if not transaction.orders:
        return
    orders, transaction.orders = transaction.orders, {}
    for queue_id, shares in orders.items():
        now = max([share.request.now for share in shares])
        for share in shares:
            share.request.now = now
        _fill(transaction, shares)
        for share in shares:
            if share.claimed.next_at is None and share.wants_next_at:
                share.claimed.next_at = rows.next_at(transaction.cursor, queue_id)


def _fill(transaction: Transaction, shares: Sequence[ClaimShare[ClaimRequest]]) -> ClaimResult:
    """Give out the line until the orders are filled or nothing is left; returns what the first order got."""
    request = shares[0].request
    give_out = plan_ordered if request.ordered else plan_fair
    room = sum([share.room for share in shares])
    while room and (line := _line(transaction, request, room)[:room]):
        share_room = max([share.room for share in shares])
        followers, all_followers = _followers(transaction.cursor, request, line, room, share_room)
        plan = give_out(shares, line, followers, request.now)
        _apply(transaction, request, plan)
        if all_followers and not (plan.dead or plan.discarded):
            break
        ended = sum([share.claimed.removed for share in shares])
        room = sum([share.room for share in shares]) if ended < REMOVALS_MAX else 0
    for share in shares:
        if share.claimed.deliveries:
            transaction.lapses.claimed(request.queue_id, request.now + share.request.lease_ms)
    return shares[0].claimed


def _send_on(transaction: Transaction, request: ClaimRequest) -> ClaimResult:
    """Send what a claim would not offer any more where it goes; the rest stays untouched."""
    share = ClaimShare(request)
    line = _line(transaction, request, request.limit)
    _apply(transaction, request, plan_endings(share, line, request.now))
    return share.claimed


def _line(transaction: Transaction, request: ClaimRequest, limit: int) -> Sequence[Placed]:
    """The front of the queue: up to `limit` waiting deliveries, and as many expired claims."""
    due = (request.queue_id, request.now)
    line: list[Any] = transaction.cursor.execute(_WAITING, (*due, limit)).fetchall()
    waiting = [(Delivery(*row[:-1]), row[-1]) for row in line]
    if not transaction.lapses.possible(*due):
        return waiting
    return line_of_due(_back(transaction, request, limit), waiting)


def _back(transaction: Transaction, request: ClaimRequest, limit: int) -> list[Placed]:
    """Deliveries whose claim ran out or was given back."""
    cursor, queue_id = transaction.cursor, request.queue_id
    line = cursor.execute(_BACK, (queue_id, request.now, request.token, limit)).fetchall()
    if not line:
        (next_at,) = rows.one(cursor, _NEXT_LAPSE, (queue_id,))
        transaction.lapses.found_none(queue_id, next_at)
    return [rows.placed(row) for row in line]


def _followers(
    cursor: apsw.Cursor, request: ClaimRequest, line: Sequence[Placed], room: int, share_room: int
) -> tuple[Followers, bool]:
    """The deliveries behind the turns at the front that may be claimed too; whether there are no others.

    An ordered queue gives as much as possible of its first groups, and each of them to one share, which has room for
    `share_room` at most; a fair one a little of each.
    """
    followers: Followers = {}
    if not request.ordered and len(line) >= room:
        return followers, True  # the line alone is enough
    depth_max = share_room if request.ordered else room
    if depth_max == 1:
        return followers, False  # there is room for heads alone
    names = [head.group_id for head, turn in line if turn == _HEAD and head.group_id is not None]
    if not names:
        return followers, True
    group_limit = share_room if request.ordered else room // len(names) + 1
    remaining, all_followers = room, True
    for name in names:
        limit = min(remaining, group_limit)
        rows_behind = cursor.execute(_BEHIND, (request.queue_id, name, limit)).fetchall()
        followers[name] = [rows.delivery_of(row) for row in rows_behind]
        all_followers = all_followers and len(rows_behind) < limit
        if request.ordered:
            remaining -= len(rows_behind)
            if not remaining:
                break
    return followers, all_followers


def _apply(transaction: Transaction, request: ClaimRequest, plan: ClaimPlan) -> None:
    """Carry out a plan: stamp what is claimed, remove what leaves, pass turns on, and send on dead letters."""
    cursor, queue_id = transaction.cursor, request.queue_id
    if plan.claimed:
        update = _CLAIM_ORDERED if request.ordered else _CLAIM_FAIR
        if len(plan.claimed) == 1:  # most claims: for a single row `executemany` takes 0.2 us more
            cursor.execute(update, _STAMPED(plan.claimed[0]))
        else:
            cursor.executemany(update, map(_STAMPED, plan.claimed))
    if plan.dead or plan.discarded:
        cursor.executemany(_REMOVE, [(queue_id, each.seq) for each in plan.removed])
    if plan.turns_used or plan.turns_lost:
        for name in sorted(plan.turns_used):
            rows.hand_on_turn(cursor, queue_id, name, request.now)
        for name in sorted(plan.turns_lost - plan.turns_used):
            rows.pass_group_turn(cursor, queue_id, name)
    if plan.dead and request.dead_letters_to is not None:
        for each in plan.dead:
            target, end = request.dead_letters_to, death_reason(each, request.limits, request.now)
            arrivals.send_on(transaction, each, Outcome.DEAD_LETTERED, target, request.now, failure=end)
            arrivals.copy(transaction, each, target, request.now, end)


def _renew_claims_of_attempt(transaction: Transaction, request: ClaimRequest) -> list[Delivery]:
    """Renew the leases that an earlier request of the same attempt got, if all are as it left them; else none."""
    cursor = transaction.cursor
    remembered = rows.one(cursor, _ATTEMPT, (request.queue_id, request.attempt_id, request.now))
    if not remembered:
        return []
    token, available_at, seqs = remembered
    if available_at <= request.now:
        return []  # the claim ran out: whoever comes now is a new claimer
    deliveries = []
    for seq in orjson.loads(seqs):
        row = rows.one(cursor, _ONE, (request.queue_id, seq))
        delivery = None if row is None else rows.delivery_of(row)
        if delivery is None or (delivery.token, delivery.available_at) != (token, available_at):
            return []
        deliveries.append(delivery)
    until = request.now + request.lease_ms
    transaction.lapses.claimed(request.queue_id, until)
    for delivery in deliveries:
        delivery.available_at = until
        cursor.execute(_RENEW, (until, request.queue_id, delivery.seq))
    _remember(cursor, request, deliveries)
    return deliveries


def _remember(cursor: apsw.Cursor, request: ClaimRequest, deliveries: list[Delivery]) -> None:
    """Keep for five minutes what this attempt got."""
    seqs = orjson.dumps([delivery.seq for delivery in deliveries]).decode()
    first = deliveries[0]
    until = request.now + DEDUPLICATION_MS
    remembered = (request.queue_id, request.attempt_id, first.token, first.available_at, seqs, until)
    cursor.execute(_REMEMBER_ATTEMPT, remembered)
