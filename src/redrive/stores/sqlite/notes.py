"""Notes of failed attempts, kept so that a dead letter can show its history."""

from collections.abc import Sequence

import apsw

from redrive.engine.ports import NOTES_FIRST, NOTES_LAST, AttemptNote

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


def write(cursor: apsw.Cursor, queue_id: int, message_id: bytes, note: AttemptNote) -> None:
    """Remember an attempt, and let go of one in the middle of many."""
    cursor.execute(_WRITE, (queue_id, message_id, *note))
    if note.number > NOTES_FIRST + NOTES_LAST:
        cursor.execute(_THIN, (queue_id, message_id, note.number - NOTES_LAST))


def forget(cursor: apsw.Cursor, queue_id: int, message_id: bytes) -> None:
    """Forget a delivery that is through."""
    cursor.execute(_FORGET, (queue_id, message_id))


def read(queue_id: int, message_id: bytes, cursor: apsw.Cursor) -> list[AttemptNote]:
    """The attempts remembered, in their order."""
    return [AttemptNote(*row) for row in cursor.execute(_READ, (queue_id, message_id)).fetchall()]  # type: ignore[arg-type]  # SQLite's columns are of the declared types: the table is STRICT


def read_each(
    messages: Sequence[tuple[int, bytes]], cursor: apsw.Cursor
) -> dict[tuple[int, bytes], list[AttemptNote]]:
    """See `Store.notes_of_each`: one look-up a message, all in one turn of the reading thread."""
    notes = {message: read(*message, cursor) for message in messages}
    return {message: of_message for message, of_message in notes.items() if of_message}
