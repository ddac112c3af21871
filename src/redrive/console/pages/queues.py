"""Queues: listed with their numbers, and one in detail."""

from collections.abc import Callable
from typing import Any, Final

from redrive.aws.sqs import names
from redrive.console.commands import aws_command
from redrive.console.found_queues import find_queues
from redrive.console.hour import LISTED_MS, last_hour
from redrive.console.pages.dead_letters import source_text
from redrive.console.queue_hour import ALL, depth_chart, flow, flow_chart, flow_series
from redrive.console.sorting import Row, sort_rows
from redrive.console.unattended import WAITED_MINUTES, long_waiting, receive_series, unattended
from redrive.console.visit import Page, Visit
from redrive.model.queue import Queue

COUNTED_MAX: Final = 10_000  # of each kind in each queue: 3 ms
_REFUSED: Final = 400
_NEVER: Final = 1 << 62  # a moment (ms) behind all others


async def listed(visit: Visit) -> Page:
    """Queues, the fullest first, each with its numbers and its last hour: one read for all of them each."""
    scope, prefix = visit.scope, visit.parameter("prefix")
    part = await find_queues(visit)
    page = part.queues
    counts = await visit.engine.messages.count_each(page, COUNTED_MAX)
    targets = await visit.engine.operations.dead_letter_targets(scope.account, scope.region)
    names_shown = {queue.name for queue in page}
    levels = {each.name: each for each in visit.installation.queue_levels() if each.name in names_shown}
    waiting = long_waiting(list(levels.values()), [visit.scope], targets)
    series = [*flow_series(names_shown), *receive_series(waiting)]
    hour = await last_hour(visit.installation.telemetry, series, visit.now, LISTED_MS)
    lonely = {each.name for each in unattended(waiting, hour)}
    rows = [
        {
            "queue": queue,
            "takes_letters": queue.name in targets,
            "unattended": queue.name in lonely,
            "counts": counts[queue.id],
            "oldest_at": levels[queue.name].oldest_at if queue.name in levels else None,
            "flow": flow(hour, queue.name, visit.now),
            "link": visit.link("queues", queue.name.name),
            "dead": "" if queue.dead_letter is None else queue.dead_letter.queue.name,
            "dead_link": ""
            if queue.dead_letter is None
            else visit.link("dead-letters", queue.dead_letter.queue.name),
        }
        for queue in page
    ]
    ordered, heads = sort_rows(visit, rows, _COLUMNS, "queues", prefix=prefix)
    values = {
        "rows": ordered,
        "heads": heads,
        "at_most": COUNTED_MAX,
        "prefix": prefix,
        "form": visit.link("queues"),
        "first": visit.link("queues", prefix=prefix) if part.is_later else "",
        "next": part.next,
    }
    values["start"] = aws_command(visit, "sqs", "create-queue", "--queue-name", "orders")
    return Page("queues.html", values, live_seconds=5)


#: What rows are sorted by.
_COLUMNS: Final[dict[str, Callable[[Row], Any]]] = {
    "name": lambda row: row["queue"].name.name,
    "state": lambda row: (row["takes_letters"] and row["counts"].available > 0, row["unattended"]),
    "waiting": lambda row: row["counts"].available,
    "in-flight": lambda row: row["counts"].claimed,
    "oldest": lambda row: -(row["oldest_at"] or _NEVER),
    "in": lambda row: row["flow"].in_rate,
    "out": lambda row: row["flow"].out_rate,
}


async def one(visit: Visit) -> Page:
    """A queue: is it being emptied? Its numbers, its last hour, its rules, and who sends its dead letters here."""
    queue = await visit.queue()
    counts = await visit.engine.messages.count(queue, COUNTED_MAX)
    sources = await visit.engine.operations.sources(queue)
    level = [each for each in visit.installation.queue_levels() if each.name == queue.name]
    waiting = [] if sources else long_waiting(level, [visit.scope], ())
    series = [*flow_series([queue.name], ALL), *receive_series(waiting)]
    hour = await last_hour(visit.installation.telemetry, series, visit.now)
    values = {
        "queue": queue,
        "counts": counts,
        "at_most": COUNTED_MAX,
        "oldest_at": level[0].oldest_at if level else None,
        "flow": flow(hour, queue.name, visit.now),
        "unattended": unattended(waiting, hour),
        "waited_minutes": WAITED_MINUTES,
        "depths": depth_chart(hour, queue.name),
        "flows": flow_chart(hour, queue.name),
        "url": f"{visit.host}/{queue.name.account}/{queue.name.name}",
        "arn": names.arn_of(queue.name),
        "rules": _rules(queue),
        "sources": [source_text(source) for source in sources],
        "dead_link": ""
        if queue.dead_letter is None
        else visit.link("dead-letters", queue.dead_letter.queue.name),
        "workbench": visit.link("dead-letters", queue.name.name),
        "messages": visit.link("queues", queue.name.name, "messages"),
        "send": visit.link("queues", queue.name.name, "send"),
        "back": visit.link("queues"),
    }
    return Page("queue.html", values, live_seconds=5)


def _rules(queue: Queue) -> list[tuple[str, int]]:
    return [
        ("Visibility time-out", queue.lease_ms),
        ("Delay of new messages", queue.delay_ms),
        ("Retention", queue.retention_ms),
        ("Receives wait up to", queue.wait_ms),
    ]
