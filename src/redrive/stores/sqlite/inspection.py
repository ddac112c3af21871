"""Looking without touching: these run on the connections that only read."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import apsw
import orjson

from redrive.engine.ports import (
    COUNTED_TOGETHER_MAX,
    NOTES_KEPT_MS,
    OLDEST_AMONG,
    Cause,
    CauseCount,
    Counts,
    LookRequest,
    Occupied,
    fair_share,
    merge_occupied,
)
from redrive.model.claiming import Pace
from redrive.model.delivery import Delivery
from redrive.stores.sqlite import rows

_PEEK = f"{rows.SELECT} WHERE queue_id = ? AND seq > ? ORDER BY seq LIMIT ?"
_PAGE = f"{rows.SELECT} {{index}} WHERE queue_id = ? AND seq > ? AND seq < ? {{group}} ORDER BY seq {{order}} LIMIT ?"
_AT_PLACES = (
    f"{rows.SELECT} WHERE queue_id = ? AND seq IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?"
)
_OF_GROUP = "AND origin = ? AND failure = ?"
_BY_GROUP = "INDEXED BY deliveries_failures"  # else a queue is read from its beginning, for causes that are at its end
# By leaps along the index: compared as a pair, (origin, failure), SQLite reads all of it (123 ms of a million, not 0.7).
_NEXT_ORIGIN = (
    "SELECT origin FROM deliveries INDEXED BY deliveries_failures"
    " WHERE queue_id = ? AND failure IS NOT NULL AND origin > ? ORDER BY origin LIMIT 1"
)
_NEXT_FAILURE = (
    "SELECT failure FROM deliveries INDEXED BY deliveries_failures"
    " WHERE queue_id = ? AND origin = ? AND failure > ? ORDER BY failure LIMIT 1"
)
_IN_GROUP = (
    "FROM deliveries INDEXED BY deliveries_failures WHERE queue_id = ?1 AND origin = ?2 AND failure = ?3"
)
_GROUP = (
    f"SELECT (SELECT count(*) FROM (SELECT 1 {_IN_GROUP} LIMIT ?4)),"
    f" (SELECT seq {_IN_GROUP} ORDER BY seq LIMIT 1), (SELECT seq {_IN_GROUP} ORDER BY seq DESC LIMIT 1)"
)
# The condition reads a row as far as its headers; the bodies of those left out stay unread.
_TWO_SEQS = "SELECT seq FROM deliveries WHERE queue_id = ? ORDER BY seq LIMIT 2 OFFSET ?"
_LOCATE = (
    f"{rows.SELECT} WHERE queue_id = ? AND seq <= ? AND (message_id = ? OR instr(headers, ?) > 0)"
    " ORDER BY seq"
)
_HAS_ANY = "SELECT 1 FROM deliveries WHERE queue_id = ? LIMIT 1"
_SEQ_MAX = 2**63 - 1
_WAITING_DUE = f"SELECT count(*) FROM deliveries WHERE queue_id = ? AND {rows.WAITING} AND available_at <= ?"
_WAITING_LATER = f"SELECT count(*) FROM deliveries WHERE queue_id = ? AND {rows.WAITING} AND available_at > ?"
_BACK = f"SELECT count(*) FROM deliveries WHERE queue_id = ? AND {rows.CLAIMED} AND available_at <= ?"
_BEHIND = "SELECT count(*) FROM deliveries WHERE queue_id = ? AND group_id IS NOT NULL AND place = 0"
_CLAIMS = "SELECT place FROM deliveries WHERE queue_id = ? AND token IS NOT NULL AND available_at > ?"
_CLAIMED = "SELECT count(*), coalesce(sum(place = 0), 0) FROM {claims}"
_DELAYED_BEHIND = (
    "SELECT count(*) FROM deliveries"
    " WHERE queue_id = ? AND group_id IS NOT NULL AND place = 0 AND token IS NULL AND available_at > ?"
)


def peek(cursor: apsw.Cursor, queue_id: int, limit: int, after_seq: int = 0) -> list[Delivery]:
    """Deliveries in order of arrival."""
    return [rows.delivery_of(row) for row in cursor.execute(_PEEK, (queue_id, after_seq, limit))]


def look(cursor: apsw.Cursor, request: LookRequest) -> list[Delivery]:
    """A page of a queue or of one cause's dead letters, or the deliveries at some places; see `QueueStore.look`."""
    if request.seqs is not None:
        seqs = orjson.dumps(list(request.seqs)).decode()
        records = cursor.execute(_AT_PLACES, (request.queue_id, seqs, request.limit))
        return [rows.delivery_of(row) for row in records]
    before = _SEQ_MAX if request.before_seq is None else request.before_seq
    statement = _PAGE.format(
        index="" if request.cause is None else _BY_GROUP,
        group="" if request.cause is None else _OF_GROUP,
        order="DESC" if request.newest_first else "",
    )
    group = request.cause or ()
    arguments = (request.queue_id, request.after_seq, before, *group, request.limit)
    return [rows.delivery_of(row) for row in cursor.execute(statement, arguments)]


def first_of_each(cursor: apsw.Cursor, queue_ids: Sequence[int]) -> dict[int, Delivery]:
    """See `Store.first_of_each`: an empty queue is passed in 5 µs."""
    records = ((queue_id, rows.one(cursor, _PEEK, (queue_id, 0, 1))) for queue_id in queue_ids)
    return {queue_id: rows.delivery_of(row) for queue_id, row in records if row is not None}


def causes(
    cursor: apsw.Cursor,
    queue_id: int,
    limit: int,
    count_max: int,
    together_max: int = COUNTED_TOGETHER_MAX,
    cause: Cause | None = None,
) -> list[CauseCount]:
    """The causes of a queue's dead letters, each with its number up to its fair share; see `QueueStore.causes`."""
    keys = [cause] if cause is not None else list(islice(_all_causes(cursor, queue_id), limit))
    counts: list[CauseCount] = []
    remaining = together_max
    for index, key in enumerate(keys):
        number_max = fair_share(remaining, len(keys) - index, count_max)
        number, first, last = rows.one(cursor, _GROUP, (queue_id, *key, number_max + 1))
        if number:  # else there is nothing of a cause that was asked for
            counts.append(CauseCount(key, min(number, number_max), number > number_max, first, last))
        remaining -= min(number, number_max)
    return counts


def _all_causes(cursor: apsw.Cursor, queue_id: int) -> Iterator[Cause]:
    """The causes in order, by a look into the index for each."""
    origin = -1
    while (row := rows.one(cursor, _NEXT_ORIGIN, (queue_id, origin))) is not None:
        (origin,) = row
        failure = ""
        while (row := rows.one(cursor, _NEXT_FAILURE, (queue_id, origin, failure))) is not None:
            (failure,) = row
            yield Cause(origin, failure)


def locate(
    cursor: apsw.Cursor, queue_ids: Sequence[int], message_id: bytes, text: bytes, limit: int
) -> tuple[list[Delivery], bool]:
    """The deliveries of a message, and whether some may be missing: 10,000 are searched in 40 ms, no queue in 5 µs."""
    deliveries: list[Delivery] = []
    partial = False  # whether some queue has more than `limit`
    for queue_id in queue_ids:
        if rows.one(cursor, _HAS_ANY, (queue_id,)) is None:
            continue
        # Of the last delivery that is searched, and of the one behind it, as far as there are so many.
        seqs = cursor.execute(_TWO_SEQS, (queue_id, limit - 1)).fetchall()
        partial = partial or len(seqs) > 1
        last = seqs[0][0] if seqs else _SEQ_MAX
        arguments = (queue_id, last, message_id, text)
        deliveries += [rows.delivery_of(row) for row in cursor.execute(_LOCATE, arguments)]
    return deliveries, partial


def count(cursor: apsw.Cursor, queue_id: int, now: int, at_most: int | None) -> Counts:
    """Counts by indexes alone (a million in 50 ms), but for delayed messages behind others of their group."""
    if at_most is not None:
        return _count_some(cursor, queue_id, now, at_most)

    def number(statement: str, *arguments: int) -> int:
        return int(rows.one(cursor, statement, (queue_id, *arguments))[0])

    due, behind = number(_WAITING_DUE, now) + number(_BACK, now), number(_BEHIND)
    claimed, claimed_behind = rows.one(cursor, _CLAIMED.format(claims=f"({_CLAIMS})"), (queue_id, now))
    delayed_behind = number(_DELAYED_BEHIND, now) if behind else 0
    return Counts(
        available=due + behind - claimed_behind - delayed_behind,
        claimed=claimed,
        delayed=number(_WAITING_LATER, now) + delayed_behind,
    )


def count_each(cursor: apsw.Cursor, queue_ids: Sequence[int], now: int, at_most: int) -> dict[int, Counts]:
    """See `Store.count_each`."""
    return {queue_id: _count_some(cursor, queue_id, now, at_most) for queue_id in queue_ids}


def _count_some(cursor: apsw.Cursor, queue_id: int, now: int, at_most: int) -> Counts:
    """As `count`, each kind up to `at_most`: what is due may be counted behind others that are not."""

    def number(statement: str, *arguments: int) -> int:
        capped = f"SELECT count(*) FROM ({statement.replace('count(*)', '1')} LIMIT {at_most})"
        return int(rows.one(cursor, capped, (queue_id, *arguments))[0])

    due, behind = number(_WAITING_DUE, now) + number(_BACK, now), number(_BEHIND)
    delayed_behind = number(_DELAYED_BEHIND, now) if behind else 0
    some_claimed = _CLAIMED.format(claims=f"({_CLAIMS} LIMIT {at_most})")
    claimed, claimed_behind = rows.one(cursor, some_claimed, (queue_id, now))
    return Counts(
        available=min(max(due + behind - claimed_behind - delayed_behind, 0), at_most),
        claimed=claimed,
        delayed=min(number(_WAITING_LATER, now) + delayed_behind, at_most),
    )


# Numbers of queues under which anything is kept, found in each table by leaps along its index from number to number.

_NUMBERS: Final = """
    WITH RECURSIVE held (id) AS (
        SELECT min(queue_id) FROM {table} WHERE queue_id > ?1
        UNION ALL
        SELECT (SELECT min(queue_id) FROM {table} WHERE queue_id > held.id) FROM held WHERE held.id IS NOT NULL LIMIT ?2
    )
    SELECT id, (SELECT min(moment) FROM (
        SELECT {moment} AS moment FROM {table} WHERE queue_id = held.id ORDER BY {order} LIMIT {among}
    )) FROM held WHERE id IS NOT NULL
"""
_OLDEST: Final = _NUMBERS.format(table="deliveries", moment="enqueued_at", order="seq", among=OLDEST_AMONG)


def _first(table: str, moment: str) -> str:
    return _NUMBERS.format(table=table, moment=moment, order=moment, among=1)


_MEMORIES: Final[Sequence[tuple[str, Callable[[int], int]]]] = (
    (_first("deduplication", "until"), lambda until: until),
    (_first("claim_attempts", "until"), lambda until: until),
    (_first("attempts", "at"), lambda at: at + NOTES_KEPT_MS),
    (_first("paces", "next_us"), Pace.ends_at),
)


def occupied(cursor: apsw.Cursor, after: int, limit: int) -> list[Occupied]:
    """The numbers that have deliveries or memories, behind `after`, in their order: see `QueueStore.occupied`."""

    def first_of(statement: str) -> list[tuple[int, int]]:
        return [(int(number), int(moment)) for number, moment in cursor.execute(statement, (after, limit))]

    memories = [[(number, ends(at)) for number, at in first_of(sql)] for sql, ends in _MEMORIES]
    return merge_occupied(first_of(_OLDEST), memories, limit)


# A connection that only reads, in its own thread.

T = TypeVar("T")
P = ParamSpec("P")


class ReadingThread:
    """Reads one after the other; SQLite's log lets it see what was committed when it begins."""

    def __init__(self, path: Path, name: str) -> None:
        """Open a connection to a file; the thread begins with the first look."""
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.set_busy_timeout(5000)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, look: Callable[[apsw.Cursor], T]) -> T:
        """Look, after those who asked before."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: look(self._connection.cursor()))

    def close(self) -> None:
        """Finish what was asked for, and close the connection."""
        self._thread.shutdown()
        self._connection.close()


def as_read(
    look: Callable[Concatenate[apsw.Cursor, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method of the store that looks on the connection on which the engine reads what it needs to go on."""

    async def verb(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._read(lambda cursor: look(cursor, *args, **kwargs))
        return result

    return verb


def as_look(
    look: Callable[Concatenate[apsw.Cursor, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method of the store that looks on the connection on which it reads what a person asked for."""

    async def verb(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._look(lambda cursor: look(cursor, *args, **kwargs))
        return result

    return verb
