"""Queues of a page: out of all of an account's region, sorted by how full they were at the last look of this node.

A look, which is a minute old at most, knows every queue that holds something; those that hold nothing follow by name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from redrive.console.visit import PAGE_ROWS, Visit
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.telemetry.gauges import Level

_SKIPPED_MAX: Final = 200  # of one page by name: queues that were on a page before
_Order: TypeAlias = Callable[[Level], int]
_ORDERS: Final[Mapping[str, _Order]] = {
    "": lambda level: level.counts.available,
    "waiting": lambda level: level.counts.available,
    "in-flight": lambda level: level.counts.claimed,
    "oldest": lambda level: level.age_seconds,
}


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
    chosen = [level.name for level in ordered[begin : begin + PAGE_ROWS]]
    queues = await visit.engine.resources.queues.get_each(chosen)
    if len(ordered) > begin + PAGE_ROWS:
        link = visit.link("queues", prefix=prefix, sort=sort, **{"from": begin + PAGE_ROWS})
        return QueuesOfPage(queues, link, begin > 0)
    rest = await _by_name(visit, {level.name for level in levels}, PAGE_ROWS - len(chosen), "")
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
    last = queues[-1] if len(others) > number and queues else page[-1]
    behind = after if number == 0 else last.name.name
    empty = "yes" if skipped or visit.parameter("empty") else ""
    link = visit.link("queues", prefix=prefix, sort=visit.parameter("sort"), after=behind or " ", empty=empty)
    return QueuesOfPage(queues, link, bool(after))
