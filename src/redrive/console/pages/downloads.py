"""Downloads: dead letters of a choice as JSON lines or CSV, a bounded part at a time."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from redrive.console.pages.dead_letters import origin_text, read_cause
from redrive.console.visit import File, Unusable, Visit, searched
from redrive.console.words import moment, printable
from redrive.engine.operations import DeadLetter
from redrive.engine.ports import LookRequest
from redrive.model.names import id_text
from redrive.model.search import asks_attempts

CSV: Final = "text/csv; charset=utf-8"
LETTERS_MAX: Final = 5_000
BYTES_MAX: Final = 32 * 1024 * 1024
_SLICE: Final = 500  # read at once: other people's looks come between
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_COLUMNS: Final = ("id", "message", "sent", "attempts", "failure", "from", "body")


async def download(visit: Visit) -> File:
    """The dead letters of a choice, the newest 5,000 of them or 32 MiB, as a file.

    Raises:
        Unusable: Bodies are hidden here, or there is no such format.
    """
    queue = await visit.queue()
    if not visit.bodies_shown:
        raise Unusable("Bodies are hidden here, so they cannot be downloaded.")
    kind = visit.parameter("format", "jsonl")
    if kind not in _WRITERS:
        raise Unusable("There are two formats: jsonl and csv.")
    rows = [_row(visit, letter) for letter in await _selected_letters(visit, queue.id)]
    content_type, write = _WRITERS[kind]
    return File(f"{queue.name.name}.{kind}", content_type, write(rows))


async def _selected_letters(visit: Visit, queue_id: int) -> list[DeadLetter]:
    """The dead letters of the cause and the search that the link names."""
    cause = visit.parameter("cause", "all")
    key = None if cause == "all" else read_cause(cause)
    text = visit.parameter("q").strip()
    holds = searched(visit, text)
    result: list[DeadLetter] = []
    before: int | None = None
    looked = length = 0
    while looked < LETTERS_MAX and length < BYTES_MAX:
        request = LookRequest(queue_id, _SLICE, 0, before, newest_first=True, cause=key)
        page = await visit.engine.operations.dead_letters.peek(request, with_attempts=asks_attempts(text))
        letters = await visit.engine.operations.dead_letters.of([each for each in page if holds(each)])
        result += letters
        looked += len(page)
        length += sum(len(letter.delivery.body) for letter in letters)
        if len(page) < _SLICE:
            break
        before = page[-1].seq
    return result


def _row(visit: Visit, letter: DeadLetter) -> dict[str, Any]:
    """The line of a dead letter in a download; the body is None where bodies are hidden."""
    delivery = letter.delivery
    body = visit.body_of(delivery)
    return {
        "id": delivery.seq,
        "message": id_text(delivery.message_id),
        "sent": moment(delivery.sent_at),
        "attempts": letter.attempts,
        "failure": delivery.failure,
        "from": origin_text(letter.from_queue, letter.from_subscription),
        "body": None if body is None else printable(body),
    }


def _as_lines(rows: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> bytes:
    """A table with a head; what a spreadsheet would compute begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns)
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue().encode()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


_WRITERS: Final[dict[str, tuple[str, Callable[[Sequence[dict[str, Any]]], bytes]]]] = {
    "jsonl": ("application/x-ndjson", _as_lines),
    "csv": (CSV, lambda rows: as_csv(_COLUMNS, rows)),
}
