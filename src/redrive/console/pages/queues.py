"""Queues: listed with their numbers, and one in detail."""

from collections.abc import Callable
from typing import Any, Final

from redrive.aws.sqs import names
from redrive.console.commands import aws_command
from redrive.console.pages.dead_letters import source_text
from redrive.console.sorting import Row, sort_rows
from redrive.console.visit import PAGE_ROWS, Page, Visit
from redrive.model.queue import Queue

COUNTED_MAX: Final = 10_000  # of each kind in each queue: 3 ms
_REFUSED: Final = 400


async def listed(visit: Visit) -> Page:
    """Queues by name, each with its numbers: one read for all of them."""
    place = visit.place
    after = visit.asked("after")
    prefix = visit.asked("prefix")
    queues = await visit.engine.resources.queues.find(
        place._replace(name=prefix), place._replace(name=after).key if after else "", PAGE_ROWS + 1
    )
    page = queues[:PAGE_ROWS]
    counts = await visit.engine.messages.count_each(page, COUNTED_MAX)
    targets = await visit.engine.operations.dead_letter_targets(place.account, place.region)
    rows = [
        {
            "queue": queue,
            "takes_letters": queue.name in targets,
            "counts": counts[queue.id],
            "link": visit.link("queues", queue.name.name),
            "dead": "" if queue.dead_letter is None else queue.dead_letter.queue.name,
            "dead_link": ""
            if queue.dead_letter is None
            else visit.link("dead-letters", queue.dead_letter.queue.name),
        }
        for queue in page
    ]
    columns: dict[str, Callable[[Row], Any]] = {
        "name": lambda row: row["queue"].name.name,
        "waiting": lambda row: row["counts"].available,
        "in-flight": lambda row: row["counts"].claimed,
        "delayed": lambda row: row["counts"].delayed,
    }
    ordered, heads = sort_rows(visit, rows, columns, "queues", prefix=prefix, after=after)
    more = visit.link("queues", prefix=prefix, after=page[-1].name.name) if len(queues) > PAGE_ROWS else ""
    values = {
        "rows": ordered,
        "heads": heads,
        "at_most": COUNTED_MAX,
        "prefix": prefix,
        "next": more,
        "after": after,
    }
    values["start"] = aws_command(visit, "sqs", "create-queue", "--queue-name", "orders")
    return Page("queues.html", values, live_seconds=2)


async def one(visit: Visit) -> Page:
    """A queue: its numbers, its rules, and who sends its dead letters here."""
    queue = await visit.queue()
    counts = await visit.engine.messages.count(queue, COUNTED_MAX)
    counters = visit.engine.operations.counts(queue)
    sources = await visit.engine.operations.sources(queue)
    values = {
        "queue": queue,
        "counts": counts,
        "at_most": COUNTED_MAX,
        "url": f"{visit.host}/{queue.name.account}/{queue.name.name}",
        "arn": names.arn_of(queue.name),
        "rules": _rules(queue),
        "sent": counters.messages_sent,
        "received": counters.messages_received,
        "sources": [source_text(source) for source in sources],
        "dead_link": ""
        if queue.dead_letter is None
        else visit.link("dead-letters", queue.dead_letter.queue.name),
        "workbench": visit.link("dead-letters", queue.name.name),
        "messages": visit.link("queues", queue.name.name, "messages"),
        "send": visit.link("queues", queue.name.name, "send"),
        "back": visit.link("queues"),
    }
    return Page("queue.html", values, live_seconds=2)


def _rules(queue: Queue) -> list[tuple[str, int]]:
    return [
        ("Visibility time-out", queue.lease_ms),
        ("Delay of new messages", queue.delay_ms),
        ("Retention", queue.retention_ms),
        ("Receives wait up to", queue.wait_ms),
    ]
