"""Claims end: by their own token, or not at all. Retention and purges end deliveries without one."""

from collections.abc import Sequence
from typing import Any

import apsw

from redrive.engine.ports import Settled, Settlement, Swept, Target
from redrive.model.delivery import DeadLetterReason, Outcome, as_handed_over
from redrive.model.queue import DAY_MS
from redrive.stores.sqlite import notes, pacing, rows
from redrive.stores.sqlite.arriving import dead_letter, enqueue
from redrive.stores.sqlite.inserting import Inserts
from redrive.stores.sqlite.rows import NextSeq

_OWN = "queue_id = ?1 AND seq = ?2 AND token = ?3 AND available_at > ?4"
_DELETE = f"DELETE FROM deliveries WHERE {_OWN} RETURNING place, group_id, message_id, attempts"  # noqa: S608 - constants
_TAKE_OUT = f"DELETE FROM deliveries WHERE {_OWN} RETURNING {rows.COLUMNS}, place"  # noqa: S608 - constants
_RETRY = f"UPDATE deliveries SET available_at = ?5, token = NULL WHERE {_OWN} RETURNING message_id"  # noqa: S608 - constants
_EXTEND = f"UPDATE deliveries SET available_at = ?5 WHERE {_OWN} RETURNING 1"  # noqa: S608 - constants
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
NOTES_KEPT_MS = 14 * DAY_MS  # as long as a dead letter may be kept
_SEQ_MAX = 2**63 - 1
_EVER = -1  # every claim runs out later than this: the comparison always holds

_DONE = Settled(done=True)


def settle(
    cursor: apsw.Cursor,
    next_seq: NextSeq,
    inserts: Inserts,
    queue_id: int,
    settlements: Sequence[Settlement],
    now: int,
    *,
    ordered: bool,
) -> list[Settled]:
    """End claims; see `Store.settle`."""
    holds_until = now if ordered else _EVER
    answers = []
    for one in settlements:
        answer = _settle(cursor, next_seq, queue_id, one, now, holds_until)
        if one.follow_ups and answer.done:
            enqueue(cursor, next_seq, inserts, one.follow_ups)
        answers.append(answer)
    return answers


def _settle(
    cursor: apsw.Cursor, next_seq: NextSeq, queue_id: int, one: Settlement, now: int, holds_until: int
) -> Settled:
    own = (queue_id, one.seq, one.token, holds_until)
    if one.outcome is Outcome.RETRY:
        retried = rows.one(cursor, _RETRY, (*own, one.available_at))
        if retried is None:
            return _why_not(cursor, queue_id, one.seq, one.token)
        if one.note is not None:
            notes.write(cursor, queue_id, retried[0], one.note)
        return _DONE
    if one.target is not None:
        return _send_on(cursor, next_seq, own, one, one.target, now)
    row = rows.one(cursor, _DELETE, own)
    if row is None:
        return _why_not(cursor, queue_id, one.seq, one.token)
    place, group_id, message_id, attempts = row
    rows.pass_turn(cursor, queue_id, place, group_id)
    if attempts > 1:  # only a delivery that was tried before has left notes
        notes.forget(cursor, queue_id, message_id)
    return _DONE


def _send_on(
    cursor: apsw.Cursor,
    next_seq: NextSeq,
    own: tuple[int, int, int, int],
    one: Settlement,
    target: Target,
    now: int,
) -> Settled:
    """Let the delivery enter another queue: as a dead letter, or because that queue is where it was pushed to."""
    queue_id = own[0]
    row = rows.one(cursor, _TAKE_OUT, own)
    if row is None:
        return _why_not(cursor, queue_id, one.seq, one.token)
    delivery = rows.delivery_of(row)
    rows.pass_turn(cursor, queue_id, row[-1], delivery.group_id)
    if one.outcome is Outcome.DEAD_LETTERED:
        dead_letter(cursor, next_seq, delivery, target, now, DeadLetterReason.REJECTED, as_new=one.as_new)
        if one.note is not None:
            notes.write(cursor, queue_id, delivery.message_id, one.note)
    else:
        handed = as_handed_over(delivery, target.queue_id, next_seq(), now)
        rows.insert(cursor, handed, ordered=target.ordered)
        notes.forget(cursor, queue_id, delivery.message_id)
    return _DONE


def extend(
    cursor: apsw.Cursor, queue_id: int, claims: Sequence[tuple[int, int, int]], now: int, *, ordered: bool
) -> list[Settled]:
    """Let claims hold longer, or no longer; see `Store.extend`."""
    holds_until = now if ordered else _EVER
    answers = []
    for seq, token, until in claims:
        done = rows.one(cursor, _EXTEND, (queue_id, seq, token, holds_until, until))
        answers.append(_DONE if done else _why_not(cursor, queue_id, seq, token))
    return answers


def _why_not(cursor: apsw.Cursor, queue_id: int, seq: int, token: int) -> Settled:
    row = rows.one(cursor, _STATE, (queue_id, seq))
    if row is None:
        return Settled(done=False, reason="gone")
    return Settled(done=False, reason="lapsed" if row[0] == token else "superseded")


def purge(cursor: apsw.Cursor, queue_id: int, seq_max: int, limit: int) -> int:
    """Remove the `limit` oldest deliveries, claimed or not, that arrived no later than `seq_max`."""
    window = min(seq_max, _seq_at(cursor, queue_id, limit))
    gone = cursor.execute(_PURGE, (queue_id, window)).fetchall()
    return _pass_turns(cursor, queue_id, gone)


def sweep(cursor: apsw.Cursor, queue_id: int, enqueued_before: int, now: int, limit: int) -> Swept:
    """Remove what expired among the `limit` oldest deliveries, and as many memories that ended.

    The oldest by arrival is the oldest by age, but for dead letters, which bring their age along: one of them
    behind the window goes when it comes to the front, or when somebody tries to claim it.
    """
    window = _seq_at(cursor, queue_id, limit)
    gone = cursor.execute(_SWEEP, (queue_id, window, enqueued_before)).fetchall()
    numbers = [_pass_turns(cursor, queue_id, gone)]
    for statement, moment in (
        (_FORGET_KEYS, now),
        (_FORGET_ATTEMPTS, now),
        (_FORGET_NOTES, now - NOTES_KEPT_MS),
    ):
        cursor.execute(statement, (queue_id, moment, limit))
        numbers.append(cursor.connection.changes())
    pacing.forget(cursor, queue_id, now)
    return Swept(len(gone), left=max(numbers) >= limit)


def _seq_at(cursor: apsw.Cursor, queue_id: int, count: int) -> int:
    row = rows.one(cursor, _SEQ_AT, (queue_id, count - 1))
    return row[0] if row else _SEQ_MAX


def _pass_turns(cursor: apsw.Cursor, queue_id: int, gone: list[Any]) -> int:
    for place, group_id in gone:
        rows.pass_turn(cursor, queue_id, place, group_id)
    return len(gone)
