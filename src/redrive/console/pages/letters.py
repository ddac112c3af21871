"""One dead letter: its attempts, its body, and a copy of it with another body."""

import difflib
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from redrive.console import json_text, links
from redrive.console.as_delivered import request_of
from redrive.console.letter_blobs import folder_of
from redrive.console.pages.dead_letters import azure_reason, origin_text
from redrive.console.visit import Missing, Page, Redirect, Unusable, Visit, whole
from redrive.engine.operations import DeadLetter
from redrive.engine.ports import LookRequest
from redrive.model.names import id_text
from redrive.model.queue import Queue
from redrive.model.search import published_id
from redrive.model.topic import Attribute

BODY_BYTES_MAX: Final = 1024 * 1024
_DIFFED_LINES_MAX: Final = 2000
_NUMBERED_LINES_MAX: Final = 400  # a longer body scrolls within its field
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)")
_LINE: Final = re.compile(r"line (\d+)")
_CONFLICT: Final = 409
_TYPED: Final = 2  # an attribute's type and its text


async def letter(visit: Visit) -> Page:
    """A dead letter with everything that is known of it."""
    queue = await visit.queue()
    dead = await _dead_letter(visit, queue)
    delivery = dead.delivery
    body = visit.body_of(delivery)
    look = visit.engine.operations.dead_letters.peek
    older = await look(LookRequest(queue.id, 1, before_seq=delivery.seq, newest_first=True))
    newer = await look(LookRequest(queue.id, 1, after_seq=delivery.seq))
    values = {
        "queue": queue,
        "letter": dead,
        "delivery": delivery,
        "message_id": published_id(delivery),
        "own_id": id_text(delivery.message_id),
        "origin": origin_text(dead.from_queue, dead.from_subscription),
        "azure_reason": azure_reason(dead),
        "copy_in": folder_of(dead.from_subscription),
        "body": body,
        "pretty": None if body is None else json_text.pretty(body),
        "attributes": attributes_of(delivery.headers) if visit.bodies_shown else [],
        "timeline": timeline(dead),
        "request": await request_of(visit, dead),
        "older": _link(visit, queue, older[0].seq) if older else "",
        "newer": _link(visit, queue, newer[0].seq) if newer else "",
        "back": visit.link("dead-letters", queue.name.name, cause=visit.parameter("cause")),
        "plan": visit.link("dead-letters", queue.name.name, "plan", what="picked", id=delivery.seq),
        "edit": visit.link("dead-letters", queue.name.name, str(delivery.seq), "edit"),
        "life": links.trace(visit, queue.name.name, delivery),
    }
    return Page("letter.html", values)


async def edit(visit: Visit) -> Page:
    """A form with the body of a dead letter."""
    queue = await visit.queue()
    dead = await _dead_letter(visit, queue)
    body = visit.body_of(dead.delivery)
    if body is None:
        raise Unusable("The body is not shown here, so it cannot be edited.")
    return _edit_page(visit, queue, dead, json_text.pretty(body) or body)


async def replace_body(visit: Visit) -> Page | Redirect:
    """Show what would change; or send the letter back with its new body, in place of the old one."""
    queue = await visit.queue()
    dead = await _dead_letter(visit, queue)
    if visit.body_of(dead.delivery) is None:
        raise Unusable("The body is not shown here, so it cannot be edited.")
    body = visit.parameter("body").replace("\r\n", "\n")
    if not body or len(body.encode("utf-8", "surrogatepass")) > BODY_BYTES_MAX:
        return _edit_page(visit, queue, dead, body, notice="A body has 1 byte to 1 MiB.")
    if visit.parameter("do") != "replace":
        return _edit_page(visit, queue, dead, body, checked=True)
    if not visit.parameter("anyway") and _problem(dead, body):
        return _edit_page(visit, queue, dead, body, checked=True)
    seq = dead.delivery.seq
    moved = await visit.engine.operations.moves.move(queue, [seq], None, {seq: body})
    if not moved.total:
        sentence = "Nothing was sent: the message is in flight now, or its origin was deleted."
        return _edit_page(visit, queue, dead, body, notice=sentence, status=_CONFLICT)
    sentence = f"{seq} was sent with its new body to {origin_text(dead.from_queue, dead.from_subscription)}"
    return Redirect(visit.link("dead-letters", queue.name.name), sentence=sentence)


def _edit_page(
    visit: Visit,
    queue: Queue,
    dead: DeadLetter,
    body: str,
    *,
    notice: str = "",
    checked: bool = False,
    status: int = 200,
) -> Page:
    """The editor with a changed body, its difference from the stored one, and what is wrong with it."""
    was = dead.delivery.body
    problem, lines = _problem(dead, body), body.count("\n") + 1
    line = _LINE.search(problem)
    values = {
        "queue": queue,
        "delivery": dead.delivery,
        "origin": origin_text(dead.from_queue, dead.from_subscription),
        "body": body,
        "lines": lines if lines <= _NUMBERED_LINES_MAX else 0,
        "problem": problem,
        "problem_line": int(line[1]) if line else 0,
        "attributes": attributes_of(dead.delivery.headers),
        "notice": notice,
        "checked": checked,
        "diff": _diff(json_text.pretty(was) or was, json_text.pretty(body) or body) if checked else [],
        "back": visit.link("dead-letters", queue.name.name, str(dead.delivery.seq)),
    }
    return Page("edit.html", values, status)


def _problem(dead: DeadLetter, body: str) -> str:
    """The place where a body stops being JSON, in a sentence; empty: it does not, or it never was."""
    if dead.delivery.body[:1] not in ("{", "["):
        return ""
    try:
        json_text.check(body)
    except json_text.NotJsonError as error:
        return f"The body is no longer JSON: {error}."
    return ""


#: Pieces of a line of a comparison, each with whether it differs.
Pieces = Sequence[tuple[str, bool]]


class DiffLine(NamedTuple):
    """A line of a comparison."""

    sign: str  # `-`, `+` or a blank
    number: int  # Of the line, in the old text where it stands there alone
    pieces: Pieces

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(piece for piece, _ in self.pieces)


def _diff(was: str, now: str) -> list[DiffLine]:
    """The lines that differ with those around them; where one line takes the place of one other, their characters."""
    lines = (was.splitlines()[:_DIFFED_LINES_MAX], now.splitlines()[:_DIFFED_LINES_MAX])
    rows: list[DiffLine] = []
    old = new = 0
    for line in difflib.unified_diff(*lines, n=2, lineterm=""):
        if (hunk := _HUNK.match(line)) is not None:
            old, new = int(hunk[1]), int(hunk[2])
        elif not line.startswith(("---", "+++")):
            sign = line[:1]
            rows.append(DiffLine(sign, old if sign == "-" else new, [(line[1:], False)]))
            old, new = old + (sign != "+"), new + (sign != "-")
    signs = "".join(row.sign for row in rows)
    for match in re.finditer(r"(?<!-)-\+(?!\+)", signs):  # one line taken out, and one put in for it
        first, second = rows[match.start() : match.end()]
        pieces = _pieces(first.text, second.text)
        rows[match.start() : match.end()] = [
            row._replace(pieces=each) for row, each in zip((first, second), pieces, strict=True)
        ]
    return rows


def _pieces(before: str, after: str) -> list[Pieces]:
    """A line and the one in its place, each as the beginning they share, what differs, and the end they share."""
    head = _shared_chars(before, after)
    tail = _shared_chars(before[head:][::-1], after[head:][::-1])
    return [
        [(line[:head], False), (line[head : len(line) - tail], True), (line[len(line) - tail :], False)]
        for line in (before, after)
    ]


def _shared_chars(one: str, other: str) -> int:
    """The number of characters with which both texts begin."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


async def _dead_letter(visit: Visit, queue: Queue) -> DeadLetter:
    """The dead letter that the address names; raises Missing if it left the queue."""
    seq = whole(visit.args["seq"])
    letters = await visit.engine.operations.dead_letters.look(LookRequest(queue.id, 1, seqs=[seq]))
    if not letters:
        raise Missing(
            f"There is no message {seq} in {queue.name.name} (any more): it was redriven or received."
        )
    return letters[0]


def _link(visit: Visit, queue: Queue, seq: int) -> str:
    return visit.link("dead-letters", queue.name.name, str(seq), cause=visit.parameter("cause"))


def attributes_of(headers: bytes | None) -> list[tuple[str, str]]:
    """The members that the facade keeps beside the body, a row a member."""
    return [(name, orjson.dumps(value).decode()) for name, value in json_text.document(headers).items()]


def sent_attributes(headers: bytes | None) -> dict[str, Attribute]:
    """The attributes that a message was published with, as a filter looks at them."""
    attributes = json_text.document(headers).get("attributes")
    typed = attributes.items() if isinstance(attributes, dict) else ()
    return {
        name: Attribute(*value) for name, value in typed if isinstance(value, list) and len(value) == _TYPED
    }


def timeline(dead: DeadLetter) -> dict[str, Any]:
    """The attempts on a line from the first to the last, in hundredths of its length."""
    notes = dead.notes
    if not notes:
        return {"marks": [], "span": 0}
    begin = min(dead.delivery.sent_at, notes[0].at)
    whole_ms = max(1, notes[-1].at - begin)
    marks = [{"x": 1 + 97 * (note.at - begin) // whole_ms, "note": note} for note in notes]
    return {"marks": marks, "span": notes[-1].at - begin}
