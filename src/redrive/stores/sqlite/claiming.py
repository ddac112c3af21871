"""Deliveries are claimed: who is next in a queue's line, and under which token."""

from typing import Any

import apsw
import orjson

from redrive.engine.ports import Claimed, ClaimRequest
from redrive.model.delivery import Delivery, LinePosition, Outcome, end_of, offer
from redrive.model.queue import DEDUPLICATION_MS
from redrive.stores.sqlite import pacing, rows
from redrive.stores.sqlite.arriving import dead_letter
from redrive.stores.sqlite.rows import NextSeq

# A claim of no duration is due again at once: what carries the order's own token is not looked at twice.
_LINE = (
    f"{rows.SELECT} WHERE queue_id = ? AND place > 0 AND available_at <= ? AND token IS NOT ?"
    " ORDER BY available_at, seq LIMIT ?"
)
# Named, because SQLite would rather have the queue's deliveries in order than the group's at all.
_BEHIND = (
    f"{rows.SELECT} INDEXED BY deliveries_groups"
    " WHERE queue_id = ? AND group_id = ? AND place = 0 ORDER BY seq LIMIT ?"
)
_ONE = f"{rows.SELECT} WHERE queue_id = ? AND seq = ?"
_CLAIM = (
    "UPDATE deliveries SET available_at = ?, attempts = ?, token = ?, first_claimed_at = ?, place = ?"
    " WHERE queue_id = ? AND seq = ?"
)
_NEXT_AT = (
    "SELECT available_at FROM deliveries WHERE queue_id = ? AND place > 0 ORDER BY available_at LIMIT 1"
)
_ATTEMPT = (
    "SELECT token, available_at, seqs FROM claim_attempts WHERE queue_id = ? AND attempt_id = ? AND until > ?"
)
_REMEMBER_ATTEMPT = (
    "INSERT OR REPLACE INTO claim_attempts (queue_id, attempt_id, token, available_at, seqs, until)"
    " VALUES (?,?,?,?,?,?)"
)

# One claim removes no more expired and exhausted deliveries than this on its way (about 10 ms): whoever asked is
# told to come again at once, and in between the other callers have their turn.
REMOVALS_MAX = 1000


def claim(cursor: apsw.Cursor, next_seq: NextSeq, request: ClaimRequest) -> Claimed:
    """Fill an order; see `Store.claim`."""
    if request.claims_nothing:
        return _Claiming(cursor, next_seq, request).send_on()
    if request.attempt_id:
        repeated = _repeat(cursor, request)
        if repeated:
            return Claimed(repeated)
    limit = request.limit
    if request.rate_max is None:
        claimed = _Claiming(cursor, next_seq, request).fill()
    else:
        claimed = _claim_paced(cursor, next_seq, request, request.rate_max)
    if request.attempt_id and claimed.deliveries:
        _remember(cursor, request, claimed.deliveries)
    looks = request.looks_ahead and len(claimed.deliveries) < limit
    if claimed.next_at is None and (looks or not claimed.deliveries):
        first = rows.one(cursor, _NEXT_AT, (request.queue_id,))
        claimed.next_at = first[0] if first else None
    return claimed


def _claim_paced(cursor: apsw.Cursor, next_seq: NextSeq, request: ClaimRequest, rate_max: int) -> Claimed:
    pace = pacing.slow_down(cursor, request, rate_max)
    wait_until = pace.wait_until(request.now)
    if wait_until is not None:
        return Claimed(next_at=wait_until)
    claimed = _Claiming(cursor, next_seq, request).fill()
    pacing.count(cursor, request, pace, len(claimed.deliveries))
    return claimed


class _Claiming:
    """One order being filled."""

    __slots__ = ("claimed", "cursor", "line_moved", "next_seq", "request")

    def __init__(self, cursor: apsw.Cursor, next_seq: NextSeq, request: ClaimRequest) -> None:
        self.cursor = cursor
        self.next_seq = next_seq
        self.request = request
        self.claimed = Claimed()
        self.line_moved = True

    def fill(self) -> Claimed:
        """Pass along the line until the order is filled, or a pass changed nothing at its front."""
        request = self.request
        while self.line_moved and (room := request.limit - len(self.claimed.deliveries)):
            if self._removed >= REMOVALS_MAX:
                break
            self.line_moved = False
            line = self.cursor.execute(_LINE, (request.queue_id, request.now, request.token, room)).fetchall()
            for row in line:
                if request.ordered:
                    self._take_group(row)
                else:
                    self._take(row)
        return self.claimed

    @property
    def _removed(self) -> int:
        return self.claimed.expired + self.claimed.dead_lettered + self.claimed.dropped

    def send_on(self) -> Claimed:
        """Send what a claim would not offer any more where it goes; the rest stays untouched."""
        request = self.request
        line: list[Any] = self.cursor.execute(
            _LINE, (request.queue_id, request.now, request.token, request.limit)
        ).fetchall()
        for row in line:
            delivery = rows.delivery_of(row)
            outcome = offer(delivery, request.limits, request.now)
            if outcome is not Outcome.RETRY:
                self._remove(delivery, row[-1], outcome)
        return self.claimed

    def _take(self, row: tuple[Any, ...]) -> bool:
        """Claim a due delivery, or send it where its retention and its count of attempts say."""
        delivery, place = rows.delivery_of(row), row[-1]
        outcome = offer(delivery, self.request.limits, self.request.now)
        if outcome is Outcome.RETRY:
            self._claim(delivery, place)
            return True
        self._remove(delivery, place, outcome)
        return False

    def _remove(self, delivery: Delivery, place: int, outcome: Outcome) -> None:
        rows.remove(self.cursor, delivery.queue_id, delivery.seq, place, delivery.group_id)
        self.line_moved = True
        if outcome is Outcome.EXPIRED:
            self.claimed.expired += 1
        elif outcome is Outcome.DROPPED:
            self.claimed.dropped += 1
        elif self.request.dead_letters_to is not None:
            end = end_of(delivery, self.request.limits, self.request.now)
            dead_letter(
                self.cursor, self.next_seq, delivery, self.request.dead_letters_to, self.request.now, end
            )
            self.claimed.dead_lettered += 1

    def _claim(self, delivery: Delivery, place: int) -> None:
        request = self.request
        if not (request.resumes and delivery.token is not None):
            delivery.attempts += 1
        delivery.token = request.token
        delivery.available_at = request.now + request.lease_ms
        if delivery.first_claimed_at is None:
            delivery.first_claimed_at = request.now
        passes_turn = place == LinePosition.HEAD and not request.ordered
        self.cursor.execute(
            _CLAIM,
            (
                delivery.available_at,
                delivery.attempts,
                request.token,
                delivery.first_claimed_at,
                LinePosition.READY if passes_turn else place,
                delivery.queue_id,
                delivery.seq,
            ),
        )
        if passes_turn and delivery.group_id is not None:
            rows.hand_on_turn(self.cursor, delivery.queue_id, delivery.group_id, request.now)
            self.line_moved = True
        self.claimed.deliveries.append(delivery)

    def _take_group(self, head: tuple[Any, ...]) -> None:
        """Claim as many of a group as possible: from its oldest on, up to the first that is not due."""
        request = self.request
        room = request.limit - len(self.claimed.deliveries)
        if room <= 0 or not self._take(head):
            return  # a head that left the queue gave its turn to the next, which the next pass will meet
        if room == 1:
            return
        behind: list[Any] = self.cursor.execute(_BEHIND, (request.queue_id, head[9], room - 1)).fetchall()
        for row in behind:
            if row[2] > request.now:
                return
            self._take(row)


def _repeat(cursor: apsw.Cursor, request: ClaimRequest) -> list[Delivery]:
    """The deliveries an earlier claim of the same attempt got, if all are as it left them."""
    remembered = rows.one(cursor, _ATTEMPT, (request.queue_id, request.attempt_id, request.now))
    if not remembered:
        return []
    token, available_at, seqs = remembered
    if available_at <= request.now:
        return []  # the claim ran out: whoever comes now is a new claimer
    deliveries = []
    for seq in orjson.loads(seqs):
        row = rows.one(cursor, _ONE, (request.queue_id, seq))
        if row is None or row[4] != token or row[2] != available_at:
            return []
        deliveries.append(rows.delivery_of(row))
    until = request.now + request.lease_ms
    for delivery in deliveries:
        delivery.available_at = until
        cursor.execute(
            "UPDATE deliveries SET available_at = ? WHERE queue_id = ? AND seq = ?",
            (until, request.queue_id, delivery.seq),
        )
    _remember(cursor, request, deliveries)
    return deliveries


def _remember(cursor: apsw.Cursor, request: ClaimRequest, deliveries: list[Delivery]) -> None:
    seqs = orjson.dumps([delivery.seq for delivery in deliveries]).decode()
    first = deliveries[0]
    cursor.execute(
        _REMEMBER_ATTEMPT,
        (
            request.queue_id,
            request.attempt_id,
            first.token,
            first.available_at,
            seqs,
            request.now + DEDUPLICATION_MS,
        ),
    )
