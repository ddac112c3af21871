"""Deliveries arrive: sent by callers, dead-lettered, or redriven from another queue."""

from collections import Counter
from collections.abc import Sequence

import apsw
import orjson

from redrive.engine.ports import Enqueued, Moved, MoveRequest, NewDelivery, OrderedPublication, Target
from redrive.model.claiming import Placed
from redrive.model.delivery import DeadLetterReason, Delivery, Outcome
from redrive.model.entering import as_copy, as_redriven, enter
from redrive.stores.sqlite import notes, rows
from redrive.stores.sqlite.transaction import Transaction

_ORIGINAL = "SELECT message_id, seq FROM deduplication WHERE queue_id = ? AND key = ? AND until > ?"
_REMEMBER = "INSERT OR REPLACE INTO deduplication (queue_id, key, message_id, seq, until) VALUES (?,?,?,?,?)"
_DUE = f"{rows.SELECT} WHERE queue_id = ? AND place > 0 AND available_at <= ? AND seq <= ?"
_MOVABLE = f"{_DUE} ORDER BY available_at, seq LIMIT ?"
_OF_ORIGIN = "AND origin IN (SELECT value FROM json_each(?))"
_CHOSEN = (
    f"{rows.SELECT} WHERE queue_id = ? AND available_at <= ? AND seq <= ?"
    " AND seq IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?"
)
_MOVABLE_HOME = f"{_DUE} {_OF_ORIGIN} ORDER BY available_at, seq LIMIT ?"


def enqueue(transaction: Transaction, new_deliveries: Sequence[NewDelivery]) -> list[Enqueued]:
    """Add deliveries; a repetition within its deduplication period answers the original instead."""
    cursor, next_seq = transaction.cursor, transaction.next_seq
    answers: list[Enqueued] = []
    for new_delivery in new_deliveries:
        key = new_delivery.deduplication_key
        if key is not None:
            original = _original(cursor, new_delivery)
            if original:
                answers.append(original)
                continue
        seq = next_seq()
        if new_delivery.group_id is None:
            transaction.insert_at_end(new_delivery, seq)
        else:  # at once: the next arrival may be of the same group
            cursor.execute(rows.INSERT, (*new_delivery.row(seq), _place_of(cursor, new_delivery)))
        if key is not None:
            until = new_delivery.deduplicate_until
            cursor.execute(_REMEMBER, (new_delivery.queue_id, key, new_delivery.message_id, seq, until))
        if new_delivery.note is not None and new_delivery.origin is not None:
            notes.write(cursor, new_delivery.origin, new_delivery.message_id, new_delivery.note)
        answers.append(Enqueued(new_delivery.message_id, seq, repeated=False))
    return answers


def publish(transaction: Transaction, publications: Sequence[OrderedPublication]) -> list[Enqueued]:
    """Let publications through their gates, once each."""
    cursor = transaction.cursor
    answers: list[Enqueued] = []
    for publication in publications:
        original = rows.one(cursor, _ORIGINAL, (publication.topic_id, publication.key, publication.now))
        if original is not None:
            answers.append(Enqueued(original[0], original[1], repeated=True))
            continue
        seq = transaction.next_seq()
        cursor.execute(
            _REMEMBER, (publication.topic_id, publication.key, publication.message_id, seq, publication.until)
        )
        enqueue(transaction, publication.opened(seq))
        answers.append(Enqueued(publication.message_id, seq, repeated=False))
    return answers


def _place_of(cursor: apsw.Cursor, new_delivery: NewDelivery) -> int:
    delayed = new_delivery.available_at > new_delivery.enqueued_at
    return rows.free_place(
        cursor, new_delivery.queue_id, new_delivery.group_id, delayed=delayed, ordered=new_delivery.ordered
    )


def _original(cursor: apsw.Cursor, new_delivery: NewDelivery) -> Enqueued | None:
    row = rows.one(
        cursor, _ORIGINAL, (new_delivery.queue_id, new_delivery.deduplication_key, new_delivery.enqueued_at)
    )
    return Enqueued(row[0], row[1], repeated=True) if row else None


def send_on(
    transaction: Transaction,
    delivery: Delivery,
    outcome: Outcome,
    target: Target,
    now: int,
    *,
    as_new: bool = False,
) -> None:
    """Let a delivery that left its queue, having ended like this, enter the one it goes to."""
    seq, ordered = transaction.next_seq(), target.ordered
    entered = enter(delivery, outcome, target.queue_id, seq, now, ordered=ordered, as_new=as_new)
    rows.insert(transaction.cursor, entered, ordered=ordered)


def copy(
    transaction: Transaction, delivery: Delivery, target: Target, now: int, end: DeadLetterReason
) -> None:
    """Let the copy of a dead letter enter the backlog for such, if there is one."""
    if target.copies is not None:
        seq = transaction.next_seq()
        made = as_copy(delivery, target.copies.queue_id, seq, now, target.copies.delay_ms, end)
        rows.insert(transaction.cursor, made, ordered=False)


def move(transaction: Transaction, request: MoveRequest) -> Moved:
    """Send waiting deliveries of a queue onwards as new messages, oldest first."""
    cursor = transaction.cursor
    per_queue: Counter[int] = Counter()
    ids = iter(request.message_ids)
    while room := request.limit - per_queue.total():
        line = _movable(cursor, request, room)
        if not line:
            return Moved(per_queue, left=False)
        for delivery, place in line:
            target = request.destination or request.origins[delivery.origin or 0]
            rows.remove(cursor, delivery.queue_id, delivery.seq, place, delivery.group_id)
            fresh = as_redriven(delivery, target.queue_id, transaction.next_seq(), request.now, next(ids))
            rows.insert(cursor, fresh, ordered=target.ordered)
            per_queue[target.queue_id] += 1
    return Moved(per_queue, left=True)


def _movable(cursor: apsw.Cursor, request: MoveRequest, room: int) -> list[Placed]:
    """The front of the line, without those whose origin is unknown: they stay, and hold up only their group."""
    due = (request.queue_id, request.now, request.seq_max)
    if request.seqs is not None:
        seqs = orjson.dumps(list(request.seqs)).decode()
        chosen = [rows.placed(row) for row in cursor.execute(_CHOSEN, (*due, seqs, room))]
        return [each for each in chosen if request.destination or (each[0].origin or 0) in request.origins]
    if request.destination is not None:
        return [rows.placed(row) for row in cursor.execute(_MOVABLE, (*due, room))]
    known = orjson.dumps(list(request.origins)).decode()
    return [rows.placed(row) for row in cursor.execute(_MOVABLE_HOME, (*due, known, room))]
