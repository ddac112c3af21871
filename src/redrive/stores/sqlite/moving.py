"""Dead letters go on to another queue: back as new messages, or aside as they are."""

from collections import Counter
from collections.abc import Iterable, Sequence

import apsw
import orjson

from redrive.engine.ports import Moved, MovedTo, MoveRequest
from redrive.model.claiming import Placed, line_of_due
from redrive.stores.sqlite import rows
from redrive.stores.sqlite.transaction import Transaction

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
            return Moved(per_queue, left=False, became=became)
        for delivery, place in line:
            target = request.target(delivery.origin)
            rows.remove(cursor, delivery.queue_id, delivery.seq, place, delivery.group_id)
            entered = request.moved(delivery, transaction.next_seq(), next(ids))
            rows.insert(cursor, entered, ordered=target.ordered)
            per_queue[target.queue_id] += 1
            became[delivery.seq] = MovedTo(target.queue_id, entered.seq, entered.message_id)
    return Moved(per_queue, left=True, became=became)


def _movable(cursor: apsw.Cursor, request: MoveRequest, room: int) -> Sequence[Placed]:
    """The deliveries that may go next, without those whose origin is unknown: they stay, and hold up only their group."""
    due = (request.queue_id, request.now, request.seq_max)
    if request.seqs is not None:
        chosen = _placed(cursor, _CHOSEN, (*due, _json(request.seqs), room))
        return [each for each in chosen if request.goes_home(each[0].origin)]
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
