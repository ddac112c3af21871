"""Sending: one message to a queue with all that belongs to it, copies of it, or many as JSON lines."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from redrive.aws.wire.errors import AwsError
from redrive.console.commands import aws_command
from redrive.console.typed_messages import (
    BATCH,
    SAMPLES,
    TYPES,
    attribute_rows,
    read_lines,
    sample_text,
    typed_attributes,
    typed_body,
)
from redrive.console.visit import REFUSED, Page, Redirect, Unusable, Visit
from redrive.model.queue import Queue

COPIES_MAX: Final = 100
_PROBLEMS_MAX: Final = 20


async def form(visit: Visit) -> Page:
    """A form for a message."""
    return _form(visit, await visit.queue(), "")


def _form(visit: Visit, queue: Queue, notice: str, status: int = 200) -> Page:
    """The form for a message, filled with what was typed, or with a sample."""
    here = ("queues", queue.name.name, "send")
    values = {
        "queue": queue,
        "notice": notice,
        "body": visit.parameter("body") or sample_text(visit.parameter("sample")),
        "format": visit.parameter("format"),
        "copies": visit.parameter("copies", "1"),
        "copies_max": COPIES_MAX,
        "samples": [(name, visit.link(*here, sample=name)) for name in SAMPLES],
        "rows": attribute_rows(visit),
        "types": TYPES,
        "group": visit.parameter("group"),
        "deduplication": visit.parameter("deduplication"),
        "delay": visit.parameter("delay"),
        "import": visit.link("queues", queue.name.name, "import"),
        "command": aws_command(
            visit, "sqs", "send-message", "--queue-url", visit.url_of(queue), "--message-body", "BODY"
        ),
        "back": visit.link("queues", queue.name.name),
    }
    return Page("send.html", values, status)


async def send(visit: Visit) -> Page | Redirect:
    """Send a message, or copies of it, by the service's own rules."""
    queue = await visit.queue()
    try:
        sentence = await _send_copies(visit, queue, _typed_entry(visit), visit.number("copies", 1))
    except AwsError as error:
        return _form(visit, queue, error.message, REFUSED)
    except Unusable as error:
        return _form(visit, queue, str(error), REFUSED)
    return Redirect(visit.link("queues", queue.name.name, "messages"), sentence=sentence)


async def _send_copies(visit: Visit, queue: Queue, entry: Mapping[str, Any], copies: int) -> str:
    """Send so many copies of a message; return the result in words."""
    if not 1 <= copies <= COPIES_MAX:
        raise Unusable(f"1 to {COPIES_MAX} copies are sent at once.")
    if copies == 1:
        answer = await visit.call("sqs", "SendMessage", {"QueueUrl": visit.url_of(queue), **entry})
        return f"Sent as {answer['MessageId']}"
    if "MessageDeduplicationId" in entry:
        raise Unusable("Copies with one deduplication ID count as one message: send 1.")
    accepted, failures = await _send_each(visit, queue, [entry] * copies)
    if not failures:
        return f"{accepted} of {copies} sent"
    _, text = failures[0]
    return f"{accepted} of {copies} sent: {text}"


def _typed_entry(visit: Visit) -> dict[str, Any]:
    """The parameters of the message in the form."""
    entry: dict[str, Any] = {"MessageBody": typed_body(visit)}
    if attributes := typed_attributes(visit):
        entry["MessageAttributes"] = attributes
    if visit.parameter("group"):
        entry["MessageGroupId"] = visit.parameter("group")
    if visit.parameter("deduplication"):
        entry["MessageDeduplicationId"] = visit.parameter("deduplication")
    if visit.parameter("delay"):
        entry["DelaySeconds"] = visit.number("delay")
    return entry


async def _send_each(
    visit: Visit, queue: Queue, entries: Sequence[Mapping[str, Any]]
) -> tuple[int, list[tuple[int, str]]]:
    """Send messages in batches; the number that were accepted, and the others: index and the service's words for each."""
    accepted, failures = 0, []
    for begin in range(0, len(entries), BATCH):
        batch = [
            {"Id": str(begin + index), **entry} for index, entry in enumerate(entries[begin : begin + BATCH])
        ]
        answer = await visit.call(
            "sqs", "SendMessageBatch", {"QueueUrl": visit.url_of(queue), "Entries": batch}
        )
        accepted += len(answer.get("Successful", ()))
        failures += [(int(each["Id"]), str(each.get("Message", ""))) for each in answer.get("Failed", ())]
    return accepted, failures


async def import_form(visit: Visit) -> Page:
    """A form for messages as JSON lines."""
    return _import_page(visit, await visit.queue())


def _import_page(
    visit: Visit, queue: Queue, notice: str = "", *, lines: Any = None, status: int = 200
) -> Page:
    """The form for JSON lines, with what they would send (`lines`, a `Lines`) once they were read."""
    values = {
        "queue": queue,
        "notice": notice,
        "text": visit.parameter("lines"),
        "lines": lines,
        "problems": [] if lines is None else lines.problems[:_PROBLEMS_MAX],
        "back": visit.link("queues", queue.name.name, "send"),
    }
    return Page("import.html", values, status)


async def import_lines(visit: Visit) -> Page | Redirect:
    """Say what JSON lines would send; or send them, unless a line of them cannot be read."""
    queue = await visit.queue()
    try:
        lines = read_lines(visit.parameter("lines"))
        if visit.parameter("do") != "send" or lines.problems or not lines.entries:
            return _import_page(visit, queue, lines=lines, status=REFUSED if lines.problems else 200)
        accepted, failures = await _send_each(visit, queue, lines.entries)
    except (AwsError, Unusable) as error:
        notice = error.message if isinstance(error, AwsError) else str(error)
        return _import_page(visit, queue, notice, status=REFUSED)
    sentence = f"{accepted:,} of {len(lines.entries):,} sent"
    if failures:
        index, text = failures[0]
        sentence += f"; message {index + 1}: {text}"
    return Redirect(visit.link("queues", queue.name.name, "messages"), sentence=sentence)
