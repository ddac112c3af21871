"""Deliveries arrive: sent by callers, or dead-lettered."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import orjson

from redrive.engine.ports import (
    Enqueued,
    Moved,
    MovedTo,
    MoveRequest,
    MoveTarget,
    NewDelivery,
    OrderedPublication,
)
from redrive.model.claiming import Placed, line_of_due
from redrive.model.delivery import DeadLetterReason, Delivery, Outcome, as_copy, enter
from redrive.stores.sqlite import rows
from redrive.stores.sqlite.transaction import Transaction

_ORIGINAL = "SELECT message_id, seq FROM deduplication WHERE queue_id = ? AND key = ?"
_LAST_AFTER = (
    "SELECT max(seq) FROM (SELECT seq FROM deliveries WHERE queue_id = ? AND seq > ? ORDER BY seq LIMIT ?)"
)
_DELAY = (
    "UPDATE deliveries SET available_at = enqueued_at + ?"
    " WHERE queue_id = ? AND seq > ? AND seq <= ? AND attempts = 0 AND token IS NULL"
)
# Changes nothing where the key is remembered still: for a message that is no repetition, one statement does.
_REMEMBER = (
    "INSERT INTO deduplication (queue_id, key, message_id, seq, until) VALUES (?1,?2,?3,?4,?5)"
    " ON CONFLICT (queue_id, key) DO UPDATE SET message_id = ?3, seq = ?4, until = ?5 WHERE until <= ?6"
)


def enqueue(transaction: Transaction, new_deliveries: Sequence[NewDelivery]) -> list[Enqueued]:
    """Add deliveries; a repetition within its deduplication period answers the original instead.

    They are inserted at the end of the transaction: until then nobody reads the answers.
    """
    answers: list[Enqueued] = []
    seq = transaction.next_seq(len(new_deliveries))
    for new_delivery in new_deliveries:
        answer = Enqueued(new_delivery.message_id, seq, False)  # noqa: FBT003 - by name it takes longer, for each message
        answers.append(answer)
        if (
            new_delivery.group_id is None
            and new_delivery.deduplication_key is None
            and new_delivery.note is None
        ):
            transaction.append(new_delivery, seq)
        else:
            transaction.grouped.append((new_delivery, answer))
        seq += 1
    return answers


def insert_grouped(transaction: Transaction) -> None:
    """Insert the deliveries that `enqueue` left to the end, except repetitions.

    One statement for all keys and one for all rows: to run both for each message took twice as long.
    """
    if not transaction.grouped:
        return
    cursor = transaction.cursor
    grouped, transaction.grouped = transaction.grouped, []
    keyed = [(new, answer) for new, answer in grouped if new.deduplication_key is not None]
    if keyed:
        memories = [
            (
                new.queue_id,
                new.deduplication_key,
                new.message_id,
                answer.seq,
                new.deduplicate_until,
                new.enqueued_at,
            )
            for new, answer in keyed
        ]
        _deduplicate(cursor, memories, [answer for _, answer in keyed])
    cursor.executemany(
        rows.INSERT_ARRIVAL,
        [
            (
                new.queue_id,
                answer.seq,
                new.available_at,
                new.attempts,
                new.enqueued_at,
                new.message_id,
                new.group_id,
                new.deduplication_id,
                new.origin,
                new.headers,
                new.body,
                None if new.note is None else new.failure,
                new.sealed,
                new.available_at > new.enqueued_at and not new.ordered,
            )
            for new, answer in grouped
            if not answer.repeated
        ],
    )
    for new, answer in grouped:
        if new.note is not None and new.origin is not None and not answer.repeated:
            rows.write_note(cursor, new.origin, new.message_id, new.note)


def _deduplicate(
    cursor: apsw.Cursor, memories: Sequence[tuple[Any, ...]], answers: Sequence[Enqueued]
) -> None:
    """Remember keys, as `_REMEMBER` takes them; the answer to one that is remembered already becomes the original's."""
    changes = cursor.connection.total_changes()
    cursor.executemany(_REMEMBER, memories)
    if cursor.connection.total_changes() - changes == len(memories):
        return  # no repetition among them, as nearly always
    for memory, answer in zip(memories, answers, strict=True):
        own = answer.seq
        answer.message_id, answer.seq = rows.one(cursor, _ORIGINAL, memory[:2])
        answer.repeated = answer.seq != own


def publish(transaction: Transaction, publications: Sequence[OrderedPublication]) -> list[Enqueued]:
    """Let publications through their gates, once each."""
    cursor = transaction.cursor
    answers: list[Enqueued] = []
    for publication in publications:
        answer = Enqueued(publication.message_id, transaction.next_seq(), repeated=False)
        memory = (
            publication.topic_id,
            publication.key,
            publication.message_id,
            answer.seq,
            publication.until,
            publication.now,
        )
        _deduplicate(cursor, [memory], [answer])
        if not answer.repeated:
            enqueue(transaction, publication.deliveries_at(answer.seq))
        answers.append(answer)
    return answers


def delay(queue_id: int, delay_ms: int, after_seq: int, limit: int, transaction: Transaction) -> int | None:
    """Set the delay of unclaimed deliveries, counted from their arrival; see `Store.delay`."""
    cursor = transaction.cursor
    last: int | None = rows.one(cursor, _LAST_AFTER, (queue_id, after_seq, limit))[0]
    if last is not None:
        cursor.execute(_DELAY, (delay_ms, queue_id, after_seq, last))
    return last


def send_on(
    transaction: Transaction,
    delivery: Delivery,
    outcome: Outcome,
    target: MoveTarget,
    now: int,
    *,
    as_new: bool = False,
    failure: str | None = None,
) -> None:
    """Let a delivery that left its queue, having ended like this, enter the one it goes to."""
    seq, ordered = transaction.next_seq(), target.ordered
    entered = enter(
        delivery, outcome, target.queue_id, seq, now, ordered=ordered, as_new=as_new, failure=failure
    )
    _insert(transaction, entered)


def copy(
    transaction: Transaction, delivery: Delivery, target: MoveTarget, now: int, end: DeadLetterReason
) -> None:
    """Let the copy of a dead letter enter the backlog for such, if there is one."""
    if target.copies is not None:
        seq = transaction.next_seq()
        row_of_copy = as_copy(delivery, target.copies.queue_id, seq, now, target.copies.delay_ms, end)
        _insert(transaction, row_of_copy)


def _insert(transaction: Transaction, delivery: Delivery) -> None:
    """Insert a delivery from another queue now, behind those that arrived before it, which may be of its group."""
    insert_grouped(transaction)
    rows.insert(transaction.cursor, delivery)


# Dead letters go on to another queue: back as new messages, or aside as they are.

_DUE = (
    f"{rows.SELECT} WHERE queue_id = ? AND {{}} AND available_at <= ? AND seq <= ? {{}}"
    " ORDER BY available_at LIMIT ?"
)
_OF_ANY_ORIGIN = ""
_OF_ORIGIN = "AND origin IN (SELECT value FROM json_each(?))"
_CHOSEN = (
    f"{rows.SELECT} WHERE queue_id = ? AND available_at <= ? AND seq <= ?"
    " AND seq IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?"
)
# Named: by its order of arrival a queue would be read from its beginning, all of another cause included.
_OF_GROUP = (
    f"{rows.SELECT} INDEXED BY deliveries_failures WHERE queue_id = ? AND available_at <= ? AND seq <= ?"
    " AND origin = ? AND failure = ? AND seq NOT IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?"
)


def move(transaction: Transaction, request: MoveRequest) -> Moved:
    """Send waiting deliveries of a queue onwards, oldest first; see `MoveRequest`."""
    cursor = transaction.cursor
    per_queue: Counter[int] = Counter()
    became: dict[int, MovedTo] = {}
    ids = iter(request.message_ids)
    while room := request.limit - per_queue.total():
        line = _movable(cursor, request, room)
        if not line:
            return Moved(per_queue, has_more=False, became=became)
        for delivery, turn in line:
            target = request.target(delivery.origin)
            rows.remove(cursor, delivery.queue_id, delivery.seq, turn, delivery.group_id)
            entered = request.as_moved(delivery, transaction.next_seq(), next(ids))
            _insert(transaction, entered)
            per_queue[target.queue_id] += 1
            became[delivery.seq] = MovedTo(target.queue_id, entered.seq, entered.message_id)
    return Moved(per_queue, has_more=True, became=became)


def _movable(cursor: apsw.Cursor, request: MoveRequest, room: int) -> Sequence[Placed]:
    """The deliveries that may go next, without those whose origin is unknown: they stay, and hold up only their group."""
    due = (request.queue_id, request.now, request.seq_max)
    if request.seqs is not None:
        candidates = _placed(cursor, _CHOSEN, (*due, _json(request.seqs), room))
        return [each for each in candidates if request.goes_home(each[0].origin)]
    if request.cause is not None:
        if not request.goes_home(request.cause.origin):
            return []
        return _placed(cursor, _OF_GROUP, (*due, *request.cause, _json(request.excepted), room))
    if request.destination is not None:
        return _front(cursor, _OF_ANY_ORIGIN, (*due, room))[:room]
    return _front(cursor, _OF_ORIGIN, (*due, _json(request.origins), room))[:room]


def _front(cursor: apsw.Cursor, which: str, arguments: tuple[object, ...]) -> Sequence[Placed]:
    """The front of the line, of what fulfils a condition."""
    back, waiting = (
        _placed(cursor, _DUE.format(state, which), arguments) for state in (rows.CLAIMED, rows.WAITING)
    )
    return line_of_due(back, waiting)


def _placed(cursor: apsw.Cursor, statement: str, arguments: tuple[object, ...]) -> list[Placed]:
    return [rows.placed(row) for row in cursor.execute(statement, arguments)]


def _json(numbers: Iterable[int]) -> str:
    return orjson.dumps(list(numbers)).decode()
