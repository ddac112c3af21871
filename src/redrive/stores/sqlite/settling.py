"""Claims end: by their own token, or not at all. Retention and purges end deliveries without one."""

from collections.abc import Sequence
from typing import Any

import apsw

from redrive.engine.ports import NOTES_KEPT_MS, Claim, MoveTarget, Settled, Settlement, Swept
from redrive.model.claiming import Pace
from redrive.model.delivery import DeadLetterReason, Outcome
from redrive.stores.sqlite import arrivals, rows
from redrive.stores.sqlite.transaction import Transaction

_OWN = "queue_id = ?1 AND seq = ?2 AND token = ?3 AND available_at > ?4"
# A statement that returns what it changed puts it into a table of its own first: to look before takes a quarter less.
_HELD = f"SELECT place, group_id, message_id, attempts FROM deliveries WHERE {_OWN}"
_HELD_WHOLE = f"{rows.SELECT} WHERE {_OWN}"
_RETRY = "UPDATE deliveries SET available_at = ?, token = NULL WHERE queue_id = ? AND seq = ?"
_EXTEND = f"UPDATE deliveries SET available_at = ?5 WHERE {_OWN}"
# To its place of arrival; a group of an ordered queue goes behind those that waited (recorded).
_GIVE_BACK = (
    "UPDATE deliveries SET available_at = CASE WHEN place = 1 THEN min(enqueued_at, ?5) ELSE ?5 END"
    f" WHERE {_OWN}"
)
_STATE = "SELECT token FROM deliveries WHERE queue_id = ? AND seq = ?"
_SEQ_AT = "SELECT seq FROM deliveries WHERE queue_id = ? ORDER BY seq LIMIT 1 OFFSET ?"
_PURGE = "DELETE FROM deliveries WHERE queue_id = ? AND seq <= ? RETURNING place, group_id"
_SWEEP = (
    "DELETE FROM deliveries WHERE queue_id = ? AND seq <= ? AND enqueued_at <= ? RETURNING place, group_id"
)
_FORGET = (
    "DELETE FROM {table} WHERE queue_id = ?1 AND ({key}) IN"
    " (SELECT {key} FROM {table} WHERE queue_id = ?1 AND {moment} <= ?2 ORDER BY {moment} LIMIT ?3)"
)
_FORGET_KEYS = _FORGET.format(table="deduplication", key="key", moment="until")
_FORGET_ATTEMPTS = _FORGET.format(table="claim_attempts", key="attempt_id", moment="until")
_FORGET_NOTES = _FORGET.format(table="attempts", key="message_id, number", moment="at")
_FORGET_PACE = "DELETE FROM paces WHERE queue_id = ? AND next_us <= ?"
_SEQ_MAX = 2**63 - 1
_EVER = -1  # every claim runs out later than this: the comparison always holds

_DONE = Settled(done=True)


def settle(
    transaction: Transaction,
    queue_id: int,
    settlements: Sequence[Settlement],
    now: int,
    *,
    strict_lease: bool,
) -> list[Settled]:
    """End claims; see `Store.settle`."""
    holds_until = now if strict_lease else _EVER
    answers = []
    for settlement in settlements:
        answer = _settle(transaction, queue_id, settlement, now, holds_until)
        if settlement.follow_ups and answer.done:
            arrivals.enqueue(transaction, settlement.follow_ups)
        answers.append(answer)
    return answers


def _settle(
    transaction: Transaction, queue_id: int, settlement: Settlement, now: int, holds_until: int
) -> Settled:
    """End one claim by its token: retry, send on, or delete."""
    cursor = transaction.cursor
    own = (queue_id, settlement.seq, settlement.token, holds_until)
    is_retry = settlement.outcome is Outcome.RETRY
    if settlement.target is not None and not is_retry:
        return _send_on(transaction, own, settlement, settlement.target, now)
    row = rows.one(cursor, _HELD, own)
    if row is None:
        return _why_not(cursor, queue_id, settlement.seq, settlement.token)
    turn, group_id, message_id, attempts = row
    if is_retry:
        cursor.execute(_RETRY, (settlement.available_at, queue_id, settlement.seq))
        if settlement.note is not None:
            rows.write_note(cursor, queue_id, message_id, settlement.note)
        return _DONE
    rows.remove(cursor, queue_id, settlement.seq, turn, group_id)
    if attempts > 1:  # only a delivery that was tried before has left notes
        rows.forget_notes(cursor, queue_id, message_id)
    return _DONE


def _send_on(
    transaction: Transaction,
    own: tuple[int, int, int, int],
    settlement: Settlement,
    target: MoveTarget,
    now: int,
) -> Settled:
    """Let the delivery enter another queue: as a dead letter, or because that queue is where it was pushed to.

    `own` are the parameters of `_OWN`.
    """
    cursor, queue_id = transaction.cursor, own[0]
    row = rows.one(cursor, _HELD_WHOLE, own)
    if row is None:
        return _why_not(cursor, queue_id, settlement.seq, settlement.token)
    delivery, turn = rows.placed(row)
    rows.remove(cursor, queue_id, delivery.seq, turn, delivery.group_id)
    if settlement.content is not None:
        delivery.body, delivery.headers, delivery.sealed = settlement.content
    arrivals.send_on(
        transaction,
        delivery,
        settlement.outcome,
        target,
        now,
        as_new=settlement.as_new,
        failure=settlement.failure,
    )
    if settlement.outcome is not Outcome.DEAD_LETTERED:
        rows.forget_notes(cursor, queue_id, delivery.message_id)
        return _DONE
    arrivals.copy(transaction, delivery, target, now, DeadLetterReason.REJECTED)
    if settlement.note is not None:
        rows.write_note(cursor, queue_id, delivery.message_id, settlement.note)
    return _DONE


def extend(
    transaction: Transaction, queue_id: int, claims: Sequence[Claim], now: int, *, strict_lease: bool
) -> list[Settled]:
    """Let claims hold longer, or no longer; see `Store.extend`."""
    cursor = transaction.cursor
    holds_until = now if strict_lease else _EVER
    answers = []
    for seq, token, until in claims:
        transaction.lapses.claimed(queue_id, until if until > now else 0)
        statement = _EXTEND if until > now else _GIVE_BACK
        cursor.execute(statement, (queue_id, seq, token, holds_until, until))
        is_done = cursor.connection.changes() > 0
        answers.append(_DONE if is_done else _why_not(cursor, queue_id, seq, token))
    return answers


def _why_not(cursor: apsw.Cursor, queue_id: int, seq: int, token: int) -> Settled:
    row = rows.one(cursor, _STATE, (queue_id, seq))
    if row is None:
        return Settled(done=False, reason="gone")
    return Settled(done=False, reason="lapsed" if row[0] == token else "superseded")


def purge(transaction: Transaction, queue_id: int, seq_max: int, limit: int) -> int:
    """Remove the `limit` oldest deliveries, claimed or not, that arrived no later than `seq_max`."""
    cursor = transaction.cursor
    transaction.lapses.forget_queue(queue_id)  # it may be gone for good
    window = min(seq_max, _seq_at(cursor, queue_id, limit))
    removed = cursor.execute(_PURGE, (queue_id, window)).fetchall()
    return _pass_turns(cursor, queue_id, removed)


def sweep(cursor: apsw.Cursor, queue_id: int, enqueued_before: int, now: int, limit: int) -> Swept:
    """Remove what expired among the `limit` oldest deliveries, and as many memories that ended.

    The oldest by arrival is the oldest by age, but for dead letters, which bring their age along: one of them
    behind the window goes when it comes to the front, or when somebody tries to claim it.
    """
    window = _seq_at(cursor, queue_id, limit)
    removed = cursor.execute(_SWEEP, (queue_id, window, enqueued_before)).fetchall()
    numbers = [_pass_turns(cursor, queue_id, removed)]
    for statement, moment in (
        (_FORGET_KEYS, now),
        (_FORGET_ATTEMPTS, now),
        (_FORGET_NOTES, now - NOTES_KEPT_MS),
    ):
        cursor.execute(statement, (queue_id, moment, limit))
        numbers.append(cursor.connection.changes())
    cursor.execute(_FORGET_PACE, (queue_id, Pace.over_us(now)))
    return Swept(len(removed), has_more=max(numbers) >= limit)


def _seq_at(cursor: apsw.Cursor, queue_id: int, count: int) -> int:
    row = rows.one(cursor, _SEQ_AT, (queue_id, count - 1))
    return row[0] if row else _SEQ_MAX


def _pass_turns(cursor: apsw.Cursor, queue_id: int, removed: list[Any]) -> int:
    for turn, group_id in removed:
        rows.pass_turn(cursor, queue_id, turn, group_id)
    return len(removed)
