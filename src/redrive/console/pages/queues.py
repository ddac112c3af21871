"""Queues: listed with their numbers, and one in detail.

A list begins with the queues that were fullest at the last look of this node, which is a minute old at most; those that
held nothing then follow by name.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from redrive.aws.sqs import names
from redrive.aws.wire.errors import AwsError
from redrive.console.charts import Curve, TimeChart, time_chart
from redrive.console.commands import aws_command
from redrive.console.hour import LISTED_MS, SENT, WAITING, Hour, depth_curve, last_hour
from redrive.console.needs import WAITED_MINUTES, long_waiting, receive_series, unattended
from redrive.console.pages.dead_letters import source_text
from redrive.console.pages.event_sources import mappings_of
from redrive.console.sorting import Row, sort_rows
from redrive.console.visit import PAGE_ROWS, REFUSED, Page, Redirect, Visit
from redrive.model.metric import Series
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.telemetry.accumulators import queue_series
from redrive.telemetry.gauges import Level

COUNTED_MAX: Final = 10_000  # of each kind in each queue: 3 ms
_CONSUMERS_MAX: Final = 10
_NEVER: Final = 1 << 62  # a moment (ms) behind all others
_RECEIVED: Final = "messages_received"
_DELETED: Final = "messages_deleted"
_IN_FLIGHT: Final = "messages_claimed"
_STEP_MS: Final = 5_000
_COME_AND_GONE: Final = (SENT, _RECEIVED)
ALL: Final = (*_COME_AND_GONE, WAITING, _DELETED, _IN_FLIGHT)
_SKIPPED_MAX: Final = 200  # of one page by name: queues that were on a page before
_Order: TypeAlias = Callable[[Level], int]
_ORDERS: Final[Mapping[str, _Order]] = {
    "": lambda level: level.counts.available,
    "waiting": lambda level: level.counts.available,
    "in-flight": lambda level: level.counts.claimed,
    "oldest": lambda level: level.age_seconds,
}


async def listing(visit: Visit) -> Page:
    """Queues, the fullest first, each with its numbers and its last hour. Each number is one read for all of them."""
    scope, prefix = visit.scope, visit.parameter("prefix")
    search = await find_queues(visit)
    queues = search.queues
    counts = await visit.engine.messages.count_each(queues, COUNTED_MAX)
    targets = await visit.engine.operations.dead_letters.targets(scope.account, scope.region)
    names_shown = {queue.name for queue in queues}
    levels = {each.name: each for each in visit.installation.queue_levels() if each.name in names_shown}
    waiting = long_waiting(list(levels.values()), [visit.scope], targets)
    hour = await _list_hour(visit, names_shown, waiting)
    unattended_names = {level.name for level in unattended(waiting, hour)}
    rows = [
        {
            "queue": queue,
            "takes_letters": queue.name in targets,
            "unattended": queue.name in unattended_names,
            "counts": counts[queue.id],
            "oldest_at": levels[queue.name].oldest_at if queue.name in levels else None,
            "flow": flow(hour, queue.name, visit.now),
            "link": visit.link("queues", queue.name.name),
            "dead": "" if queue.dead_letter is None else queue.dead_letter.queue.name,
            "dead_link": ""
            if queue.dead_letter is None
            else visit.link("dead-letters", queue.dead_letter.queue.name),
        }
        for queue in queues
    ]
    ordered, heads = sort_rows(visit, rows, _COLUMNS, "queues", prefix=prefix)
    values = {
        "rows": ordered,
        "heads": heads,
        "at_most": COUNTED_MAX,
        "prefix": prefix,
        "form": visit.link("queues"),
        "first": visit.link("queues", prefix=prefix) if search.is_later else "",
        "next": search.next,
    }
    values["start"] = aws_command(visit, "sqs", "create-queue", "--queue-name", "orders")
    return Page("queues.html", values, live_seconds=5)


async def _list_hour(visit: Visit, queues: Collection[ResourceName], waiting: Sequence[Level]) -> Hour:
    """The points that a list of queues is drawn and judged by.

    How many waited covers the last hour, which is drawn; what came and went, and the receives of those whose messages
    wait long, only the last ten minutes, since the store adds up 9,000 points of fifty queues in 11 ms.
    """
    telemetry = visit.installation.telemetry
    counters = [*flow_series(queues, _COME_AND_GONE), *receive_series(waiting)]
    recent = await last_hour(telemetry, counters, visit.now, LISTED_MS, minutes=WAITED_MINUTES)
    depths = await last_hour(telemetry, flow_series(queues, (WAITING,)), visit.now, LISTED_MS)
    return depths._replace(by_series={**depths.by_series, **recent.by_series})


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
    sources = await visit.engine.operations.dead_letters.sources(queue)
    level = [each for each in visit.installation.queue_levels() if each.name == queue.name]
    targets = await visit.engine.operations.dead_letters.targets(queue.name.account, queue.name.region)
    waiting = long_waiting(level, [visit.scope], targets)
    own_receives = receive_series([Level(queue.name, counts, 0)])
    series = {*flow_series([queue.name], ALL), *receive_series(waiting), *own_receives}
    hour = await last_hour(visit.installation.telemetry, series, visit.now)
    consumers = visit.installation.consumers.of(queue.id)
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
        "consumers": consumers[:_CONSUMERS_MAX],
        "more_consumers": max(0, len(consumers) - _CONSUMERS_MAX),
        "functions": [
            (each.function.name, visit.link("functions", each.function.name), each.enabled)
            for each in await mappings_of(visit)
            if each.queue == queue.name
        ],
        "received_at": max(
            (each.at for series in own_receives for each in hour.points(series) if each.statistics.total),
            default=None,
        ),
        "purge": visit.link("queues", queue.name.name, "purge"),
        "url": visit.url_of(queue),
        "arn": names.arn_of(queue.name),
        "rules": _rules(queue),
        "sources": [source_text(source) for source in sources],
        "dead_link": ""
        if queue.dead_letter is None
        else visit.link("dead-letters", queue.dead_letter.queue.name),
        "dead_form": visit.link("dead-letter-queue", queue=queue.name.name),
        "workbench": visit.link("dead-letters", queue.name.name),
        "messages": visit.link("queues", queue.name.name, "messages"),
        "send": visit.link("queues", queue.name.name, "send"),
        "back": visit.link("queues"),
    }
    return Page("queue.html", values, live_seconds=5)


async def purge_form(visit: Visit) -> Page:
    """The messages that a purge would destroy: asked before it is done."""
    return await _purge_page(visit, "")


async def purge(visit: Visit) -> Page | Redirect:
    """Purge a queue whose name was typed, by the rules of SQS."""
    queue = await visit.queue()
    if visit.parameter("typed").strip() != queue.name.name:
        return await _purge_page(visit, "Type the queue's name: nothing was done.", REFUSED)
    try:
        await visit.call("sqs", "PurgeQueue", {"QueueUrl": visit.url_of(queue)})
    except AwsError as error:
        return await _purge_page(visit, error.message, REFUSED)
    return Redirect(visit.link("queues", queue.name.name), sentence=f"{queue.name.name} is purged")


async def _purge_page(visit: Visit, notice: str, status: int = 200) -> Page:
    """The page that asks for a queue's name before it is purged, with the reason that it was not (`notice`)."""
    queue = await visit.queue()
    counts = await visit.engine.messages.count(queue, COUNTED_MAX)
    sources = await visit.engine.operations.dead_letters.sources(queue)
    values = {
        "queue": queue,
        "counts": counts,
        "total": sum(counts),
        "at_most": COUNTED_MAX,
        "sources": [source_text(source) for source in sources],
        "notice": notice,
        "back": visit.link("queues", queue.name.name),
    }
    return Page("purge.html", values, status)


def _rules(queue: Queue) -> list[tuple[str, int]]:
    """The times of a queue (ms), with their labels."""
    return [
        ("Visibility time-out", queue.lease_ms),
        ("Delay of new messages", queue.delay_ms),
        ("Retention", queue.retention_ms),
        ("Receives wait up to", queue.wait_ms),
    ]


class Flow(NamedTuple):
    """The messages that go through a queue."""

    in_rate: float  # How many came in a second, on average of the last whole period and the current one
    out_rate: float  # How many receivers got in a second, likewise
    curve: Curve | None  # How many waited in each period of the hour; None: it was not counted


def flow_series(queues: Iterable[ResourceName], names: Sequence[str]) -> list[Series]:
    """These series of each queue: with `ALL` all that `flow`, `flow_chart` and `depth_chart` are read from."""
    return [queue_series(queue, name) for queue in queues for name in names]


def flow(hour: Hour, queue: ResourceName, now: int) -> Flow:
    """The flow through a queue, by the points that `hour` has of its `flow_series`."""
    since = hour.until - 2 * hour.period_ms
    # in whole steps, so that the rates change no more often than the counters do
    seconds = ((now - since) // _STEP_MS + 1) * _STEP_MS / 1000
    in_rate, out_rate = (hour.total(queue_series(queue, name), since) / seconds for name in (SENT, _RECEIVED))
    return Flow(in_rate, out_rate, depth_curve(hour, queue))


def depth_chart(hour: Hour, queue: ResourceName) -> TimeChart | None:
    """The messages that waited and that were in flight at each minute; None: it was not counted."""
    lines = {
        label: [(bucket.at, bucket.statistics.average) for bucket in hour.points(queue_series(queue, gauge))]
        for label, gauge in (("Waiting", WAITING), ("In flight", _IN_FLIGHT))
    }
    if not any(lines.values()):
        return None
    return time_chart(lines, hour.since, hour.until - hour.period_ms, hour.period_ms)


def flow_chart(hour: Hour, queue: ResourceName) -> TimeChart | None:
    """The messages that were sent, received and deleted in each whole minute; None: nobody counted."""
    lines = (("Sent", SENT), ("Received", _RECEIVED), ("Deleted", _DELETED))
    return hour.line_chart({label: [queue_series(queue, counter)] for label, counter in lines}, sums=True)


class QueuesOfPage(NamedTuple):
    """The queues of a page."""

    queues: Sequence[Queue]  # In their order
    next: str  # The link to the next page; empty: this is the last
    is_later: bool  # Whether there are pages before


async def find_queues(visit: Visit) -> QueuesOfPage:
    """The queues that an address asks for: from the fullest on, or by name."""
    sort, prefix = visit.parameter("sort"), visit.parameter("prefix")
    levels = _levels(visit, prefix)
    if visit.parameter("after") or sort not in _ORDERS:
        skipped = {level.name for level in levels} if visit.parameter("empty") else set()
        return await _by_name(visit, skipped, PAGE_ROWS, visit.parameter("after"))
    begin = visit.number("from")
    ordered = sorted(levels, key=lambda level: (-_ORDERS[sort](level), level.name))
    names = [level.name for level in ordered[begin : begin + PAGE_ROWS]]
    queues = await visit.engine.resources.queues.get_each(names)
    if len(ordered) > begin + PAGE_ROWS:
        link = visit.link("queues", prefix=prefix, sort=sort, **{"from": begin + PAGE_ROWS})
        return QueuesOfPage(queues, link, begin > 0)
    rest = await _by_name(visit, {level.name for level in levels}, PAGE_ROWS - len(names), "")
    return QueuesOfPage([*queues, *rest.queues], rest.next, begin > 0)


def _levels(visit: Visit, prefix: str) -> list[Level]:
    """The queues of the scope that held something at the last look."""
    owner = visit.scope
    return [
        level
        for level in visit.installation.queue_levels()
        if level.name._replace(name="") == owner and level.name.name.startswith(prefix)
    ]


async def _by_name(visit: Visit, skipped: set[ResourceName], number: int, after: str) -> QueuesOfPage:
    """So many queues by name, but for those that other pages have."""
    owner, prefix = visit.scope, visit.parameter("prefix")
    limit = number + min(len(skipped), _SKIPPED_MAX) + 1
    page = await visit.engine.resources.queues.find(
        owner._replace(name=prefix), owner._replace(name=after).key if after else "", limit
    )
    others = [queue for queue in page if queue.name not in skipped]
    queues = others[:number]
    if len(others) <= number and len(page) < limit:
        return QueuesOfPage(queues, "", bool(after))
    # the next page begins behind the last queue shown, or behind the last looked at where all others are shown
    last = queues[-1] if len(others) > number and queues else page[-1]
    behind = after if number == 0 else last.name.name
    empty = "yes" if skipped or visit.parameter("empty") else ""
    # A blank: behind no name, and yet by name.
    link = visit.link("queues", prefix=prefix, sort=visit.parameter("sort"), after=behind or " ", empty=empty)
    return QueuesOfPage(queues, link, bool(after))
