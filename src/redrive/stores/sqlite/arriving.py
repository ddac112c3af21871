"""Deliveries arrive: sent by callers, dead-lettered, or redriven from another queue."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import apsw
import orjson

from redrive.engine.ports import Arrival, Enqueued, Gate, Moved, MoveOrder, Target
from redrive.model.delivery import Delivery, End, as_copy, as_dead_letter, as_redriven, as_sent_letter
from redrive.stores.sqlite import notes, rows
from redrive.stores.sqlite.inserting import Inserts, Row
from redrive.stores.sqlite.rows import NextSeq

_ORIGINAL = "SELECT message_id, seq FROM deduplication WHERE queue_id = ? AND key = ? AND until > ?"
_REMEMBER = "INSERT OR REPLACE INTO deduplication (queue_id, key, message_id, seq, until) VALUES (?,?,?,?,?)"
_DUE = f"{rows.SELECT} WHERE queue_id = ? AND place > 0 AND available_at <= ? AND seq <= ?"
_MOVABLE = f"{_DUE} ORDER BY available_at, seq LIMIT ?"
_OF_ORIGIN = "AND origin IN (SELECT value FROM json_each(?))"
_CHOSEN = (
    f"{rows.SELECT} WHERE queue_id = ? AND available_at <= ? AND seq <= ?"  # noqa: S608 - constants
    " AND seq IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?"
)
_MOVABLE_HOME = f"{_DUE} {_OF_ORIGIN} ORDER BY available_at, seq LIMIT ?"


def enqueue(
    cursor: apsw.Cursor, next_seq: NextSeq, inserts: Inserts, arrivals: Sequence[Arrival]
) -> list[Enqueued]:
    """Add deliveries; a repetition within its deduplication period answers the original instead."""
    answers: list[Enqueued] = []
    for arrival in arrivals:
        key = arrival.deduplication_key
        if key is not None:
            original = _original(cursor, arrival)
            if original:
                answers.append(original)
                continue
        seq = next_seq()
        if arrival.group_id is None:
            inserts.add(arrival, seq)
        else:  # at once: the next arrival may be of the same group
            cursor.execute(rows.INSERT, _row_of(arrival, seq, _place_of(cursor, arrival)))
        if key is not None:
            until = arrival.deduplicate_until
            cursor.execute(_REMEMBER, (arrival.queue_id, key, arrival.message_id, seq, until))
        if arrival.note is not None and arrival.origin is not None:
            notes.write(cursor, arrival.origin, arrival.message_id, arrival.note)
        answers.append(Enqueued(arrival.message_id, seq, repeated=False))
    return answers


def publish(
    cursor: apsw.Cursor, next_seq: NextSeq, inserts: Inserts, gates: Sequence[Gate]
) -> list[Enqueued]:
    """Let publications through their gates, once each."""
    answers: list[Enqueued] = []
    for gate in gates:
        original = rows.one(cursor, _ORIGINAL, (gate.topic_id, gate.key, gate.now))
        if original is not None:
            answers.append(Enqueued(original[0], original[1], repeated=True))
            continue
        seq = next_seq()
        cursor.execute(_REMEMBER, (gate.topic_id, gate.key, gate.message_id, seq, gate.until))
        enqueue(cursor, next_seq, inserts, gate.opened(seq))
        answers.append(Enqueued(gate.message_id, seq, repeated=False))
    return answers


def _row_of(arrival: Arrival, seq: int, place: int) -> Row:
    return (
        arrival.queue_id,
        seq,
        arrival.available_at,
        arrival.attempts,
        None,
        arrival.enqueued_at,
        arrival.enqueued_at,
        None,
        arrival.message_id,
        arrival.group_id,
        arrival.deduplication_id,
        arrival.origin,
        arrival.headers,
        arrival.body,
        place,
    )


def _place_of(cursor: apsw.Cursor, arrival: Arrival) -> int:
    delayed = arrival.available_at > arrival.enqueued_at
    return rows.free_place(
        cursor, arrival.queue_id, arrival.group_id, delayed=delayed, ordered=arrival.ordered
    )


def _original(cursor: apsw.Cursor, arrival: Arrival) -> Enqueued | None:
    row = rows.one(cursor, _ORIGINAL, (arrival.queue_id, arrival.deduplication_key, arrival.enqueued_at))
    return Enqueued(row[0], row[1], repeated=True) if row else None


def dead_letter(
    cursor: apsw.Cursor,
    next_seq: NextSeq,
    delivery: Delivery,
    target: Target,
    now: int,
    end: End,
    *,
    anew: bool = False,
) -> None:
    """Let a delivery that left its queue enter the dead-letter queue, and its copy the backlog for such."""
    seq = next_seq()
    if anew:
        moved = as_sent_letter(delivery, target.queue_id, seq, now)
    else:
        moved = as_dead_letter(delivery, target.queue_id, seq, now, ordered=target.ordered)
    rows.insert(cursor, moved, ordered=target.ordered)
    if target.copies is not None:
        copy = as_copy(delivery, target.copies.queue_id, next_seq(), now, target.copies.delay_ms, end)
        rows.insert(cursor, copy, ordered=False)


def move(cursor: apsw.Cursor, next_seq: NextSeq, order: MoveOrder) -> Moved:
    """Send waiting deliveries of a queue onwards as new messages, oldest first."""
    per_queue: Counter[int] = Counter()
    ids = iter(order.message_ids)
    while room := order.limit - per_queue.total():
        line = _movable(cursor, order, room)
        if not line:
            return Moved(per_queue, left=False)
        for row in line:
            delivery, place = rows.delivery_of(row), row[-1]
            target = order.destination or order.origins[delivery.origin or 0]
            rows.remove(cursor, delivery.queue_id, delivery.seq, place, delivery.group_id)
            fresh = as_redriven(delivery, target.queue_id, next_seq(), order.now, next(ids))
            rows.insert(cursor, fresh, ordered=target.ordered)
            per_queue[target.queue_id] += 1
    return Moved(per_queue, left=True)


def _movable(cursor: apsw.Cursor, order: MoveOrder, room: int) -> list[Any]:
    """The front of the line, without those whose origin is unknown: they stay, and hold up only their group."""
    due = (order.queue_id, order.now, order.seq_max)
    if order.seqs is not None:
        chosen = cursor.execute(_CHOSEN, (*due, orjson.dumps(list(order.seqs)).decode(), room)).fetchall()
        return [row for row in chosen if order.destination or (row[11] or 0) in order.origins]
    if order.destination is not None:
        return cursor.execute(_MOVABLE, (*due, room)).fetchall()
    known = orjson.dumps(list(order.origins)).decode()
    return cursor.execute(_MOVABLE_HOME, (*due, known, room)).fetchall()
