"""The deliveries' table: its columns in the order of `Delivery`, and how a turn is given, passed and taken along.

A group's turn is kept by three rules: a newcomer takes it when nobody of the group has it (`INSERT`), a claimed
delivery of a fair queue hands it on (`hand_on_turn`), and whoever leaves with it passes it to the oldest behind
(`remove`).
"""

from collections.abc import Sequence
from typing import Any

import apsw

from redrive.engine.ports import NOTES_FIRST, NOTES_LAST, AttemptNote
from redrive.model.claiming import Placed
from redrive.model.delivery import Delivery, LinePosition

COLUMNS = (
    "queue_id, seq, available_at, attempts, token, enqueued_at, sent_at, first_claimed_at, message_id, group_id,"
    " deduplication_id, origin, headers, body, failure, sealed"
)
# A newcomer stands in the line by itself where it is of no group, or comes by its own time before others of its group;
# else it takes its group's turn, or waits behind whoever has that.
_PLACE = (
    "CASE WHEN {group} IS NULL OR {alone} THEN 1 WHEN EXISTS"
    " (SELECT 1 FROM deliveries WHERE queue_id = ?1 AND group_id = {group} AND place = 2) THEN 0 ELSE 2 END"
)
INSERT = (
    f"INSERT INTO deliveries ({COLUMNS}, place)"
    f" VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,{_PLACE.format(group='?10', alone='FALSE')})"
)
# Of what nobody has claimed yet: its age is that of its sending.
INSERT_ARRIVAL = (
    "INSERT INTO deliveries (queue_id, seq, available_at, attempts, enqueued_at, sent_at, message_id, group_id,"
    " deduplication_id, origin, headers, body, failure, sealed, place)"
    f" VALUES (?1,?2,?3,?4,?5,?5,?6,?7,?8,?9,?10,?11,?12,?13,{_PLACE.format(group='?7', alone='?14')})"
)
SELECT = f"SELECT {COLUMNS}, place FROM deliveries"

# The line is what a claim looks at: what waits for one, and what one had, whose claim ran out or was given back.
WAITING = "place > 0 AND token IS NULL"
CLAIMED = "token IS NOT NULL AND place > 0"
_FIRST = "SELECT available_at FROM deliveries WHERE queue_id = ?1 AND {} ORDER BY available_at LIMIT 1"
_NEXT_AT = f"SELECT ({_FIRST.format(WAITING)}), ({_FIRST.format(CLAIMED)})"

_NEXT_BEHIND = (
    "(SELECT seq FROM deliveries WHERE queue_id = ?1 AND group_id = ?2 AND place = 0 ORDER BY seq LIMIT 1)"
)
_PASS_TURN = f"UPDATE deliveries SET place = 2 WHERE queue_id = ?1 AND seq = {_NEXT_BEHIND}"
_HAND_ON_TURN = (
    "UPDATE deliveries SET place = 2, available_at = max(available_at, ?3)"
    f" WHERE queue_id = ?1 AND seq = {_NEXT_BEHIND}"
)


def one(cursor: apsw.Cursor, statement: str, arguments: tuple[Any, ...]) -> Any:
    """The statement's first row, or None; run to its end, since an unfinished statement forbids COMMIT."""
    rows = cursor.execute(statement, arguments).fetchall()
    return rows[0] if rows else None


def next_at(cursor: apsw.Cursor, queue_id: int) -> int | None:
    """The moment (ms) at which the first of a queue's line falls due, or fell due."""
    moments: tuple[int | None, int | None] = one(cursor, _NEXT_AT, (queue_id,))
    return min((moment for moment in moments if moment is not None), default=None)


def delivery_of(row: tuple[Any, ...]) -> Delivery:
    """The delivery of a row selected by `SELECT`."""
    return Delivery(*row[:-1])


def placed(row: tuple[Any, ...]) -> Placed:
    """The delivery of a row selected by `SELECT`, and its place."""
    return Delivery(*row[:-1]), row[-1]


def insert(cursor: apsw.Cursor, delivery: Delivery) -> None:
    """Put a delivery that came from another queue into its new one."""
    cursor.execute(
        INSERT,
        (
            delivery.queue_id,
            delivery.seq,
            delivery.available_at,
            delivery.attempts,
            delivery.token,
            delivery.enqueued_at,
            delivery.sent_at,
            delivery.first_claimed_at,
            delivery.message_id,
            delivery.group_id,
            delivery.deduplication_id,
            delivery.origin,
            delivery.headers,
            delivery.body,
            delivery.failure,
            delivery.sealed,
        ),
    )


def hand_on_turn(cursor: apsw.Cursor, queue_id: int, group_id: str, now: int) -> None:
    """Let the next of a fair group stand in the line, at its end: whoever waits there already comes first."""
    cursor.execute(_HAND_ON_TURN, (queue_id, group_id, now))


def remove(cursor: apsw.Cursor, queue_id: int, seq: int, turn: int, group_id: str | None) -> None:
    """Take a delivery out of its queue; the turn it held goes to the oldest behind it."""
    cursor.execute("DELETE FROM deliveries WHERE queue_id = ? AND seq = ?", (queue_id, seq))
    pass_turn(cursor, queue_id, turn, group_id)


def pass_turn(cursor: apsw.Cursor, queue_id: int, turn: int, group_id: str | None) -> None:
    """Give the turn that a removed delivery held to the oldest behind it."""
    if turn == LinePosition.HEAD:
        pass_group_turn(cursor, queue_id, group_id)


def pass_group_turn(cursor: apsw.Cursor, queue_id: int, group_id: str | None) -> None:
    """Give a group's turn, which nobody holds, to the oldest behind it."""
    cursor.execute(_PASS_TURN, (queue_id, group_id))


# Notes of failed attempts, kept so that a dead letter can show its history.

_WRITE = (
    "INSERT OR REPLACE INTO attempts (queue_id, message_id, number, at, duration_ms, reason, status, response)"
    " VALUES (?,?,?,?,?,?,?,?)"
)
_THIN = "DELETE FROM attempts WHERE queue_id = ? AND message_id = ? AND number = ?"
_FORGET = "DELETE FROM attempts WHERE queue_id = ? AND message_id = ?"
_READ = (
    "SELECT number, at, duration_ms, reason, status, response FROM attempts"
    " WHERE queue_id = ? AND message_id = ? ORDER BY number"
)


def write_note(cursor: apsw.Cursor, queue_id: int, message_id: bytes, note: AttemptNote) -> None:
    """Remember an attempt, and let go of one in the middle of many."""
    cursor.execute(_WRITE, (queue_id, message_id, *note))
    if note.number > NOTES_FIRST + NOTES_LAST:
        cursor.execute(_THIN, (queue_id, message_id, note.number - NOTES_LAST))


def forget_notes(cursor: apsw.Cursor, queue_id: int, message_id: bytes) -> None:
    """Forget a delivery that is through."""
    cursor.execute(_FORGET, (queue_id, message_id))


def notes_of(cursor: apsw.Cursor, queue_id: int, message_id: bytes) -> list[AttemptNote]:
    """The attempts remembered, in their order."""
    return [AttemptNote(*row) for row in cursor.execute(_READ, (queue_id, message_id)).fetchall()]  # type: ignore[arg-type]  # SQLite's columns are of the declared types: the table is STRICT


def notes_of_each(
    cursor: apsw.Cursor, messages: Sequence[tuple[int, bytes]]
) -> dict[tuple[int, bytes], list[AttemptNote]]:
    """See `Store.notes_of_each`: one look-up a message, all in one turn of the reading thread."""
    notes = {message: notes_of(cursor, *message) for message in messages}
    return {message: of_message for message, of_message in notes.items() if of_message}
