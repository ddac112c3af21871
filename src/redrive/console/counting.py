"""Counts beside the rooms of the navigation, from what this node remembers and two reads at most."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from redrive.aws.cloudwatch.alarms.records import ALARM
from redrive.console.hour import last_hour
from redrive.console.navigation import Count, troubled_subscriptions
from redrive.console.needs import (
    FAILED_NAMED_MS,
    alarms_in,
    error_series,
    long_waiting,
    receive_series,
    unattended,
)
from redrive.console.undelivered import LOSSES_MAX, is_in
from redrive.console.visit import Visit
from redrive.console.words import many
from redrive.model.metric import SeriesQuery
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS
from redrive.telemetry.accumulators import LOST, Loss
from redrive.telemetry.gauges import Level

_KEPT_MS: Final = 5_000
_PLACES_MAX: Final = 1_000


class RememberedCounts:
    """The counts of each account and region, counted anew after five seconds: fifty tabs cost as one."""

    def __init__(self, now: Callable[[], int]) -> None:
        """Start without counts; `now` returns milliseconds."""
        self._now = now
        self._known: dict[ResourceName | None, tuple[int, Mapping[str, Count]]] = {}

    async def of(self, visit: Visit, scope: ResourceName | None) -> Mapping[str, Count]:
        """The counts of a scope, as `counts` makes them, from memory for a while."""
        until, counts_by_path = self._known.get(scope, (0, {}))
        if self._now() < until:
            return counts_by_path
        if len(self._known) >= _PLACES_MAX:
            self._known.clear()
        fresh_counts = await counts(visit, scope)
        self._known[scope] = (self._now() + _KEPT_MS, fresh_counts)
        return fresh_counts

    def forget(self) -> None:
        """Count anew after a change."""
        self._known.clear()


async def counts(visit: Visit, scope: ResourceName | None) -> Mapping[str, Count]:
    """The counts of an account and region by the path of their room; rooms that nothing is known of have none."""
    if scope is None:
        return {}
    scopes = [scope]
    targets = await visit.engine.operations.dead_letters.targets(scope.account, scope.region)
    levels = visit.installation.queue_levels()
    dead = [level.counts.available for level in levels if level.name in targets and level.counts.available]
    troubled = await troubled_subscriptions(visit, scopes)
    ringing = sum(each.state.value == ALARM for each in await alarms_in(visit, scopes))
    stacks = sum(is_in(each.name, scopes) for each in await visit.installation.stacks.all())
    running, failed = await _redrives(visit, scope)
    lost = len(await _losing(visit, scopes))
    others = await _neglected(visit, scope, long_waiting(levels, scopes, targets))
    rows = len(dead) + len(troubled) + ringing + stacks + running + failed + lost + others
    by_path = {
        "/": Count(rows, "warn", many(rows, "needs attention", "need attention")),
        "dead-letters": Count(sum(dead), "bad", "waiting"),
        "redrives": Count(running, "info", "under way"),
        "endpoints": Count(len(troubled), "bad", "failing or on hold"),
        "alarms": Count(ringing, "bad", "in alarm"),
        "stacks": Count(stacks, "bad", "failed or rolled back"),
    }
    return {path: count for path, count in by_path.items() if count.number}


async def _redrives(visit: Visit, scope: ResourceName) -> tuple[int, int]:
    """The numbers of redrives that have not ended, and of those that failed in the last day with none after them."""
    last = {
        task.source: task for task in await visit.installation.redrives.all() if is_in(task.source, [scope])
    }
    running = sum(task.state.active for task in last.values())
    failed_since = visit.now - FAILED_NAMED_MS
    failed = [task for task in last.values() if not task.state.active and task.lease_until >= failed_since]
    sources = [await visit.engine.resources.queues.get(task.source) for task in failed]
    return running, sum(queue is not None for queue in sources)


async def _neglected(visit: Visit, scope: ResourceName, waiting: Sequence[Level]) -> int:
    """The number of queues without receivers and of functions with errors in the last hour: one read, or none."""
    errors = await error_series(visit, [scope])
    hour = await last_hour(visit.installation.telemetry, [*errors, *receive_series(waiting)], visit.now)
    return len(unattended(waiting, hour)) + sum(hour.total(each) > 0 for each in errors)


async def _losing(visit: Visit, scopes: Sequence[ResourceName]) -> set[tuple[ResourceName, str]]:
    """The queues and subscriptions that lost messages in the last day."""
    query = SeriesQuery("", "", LOSSES_MAX, namespace=LOST, active_since=visit.now - DAY_MS)
    losses = [Loss.of_series(each) for each in await visit.installation.telemetry.find_series(query)]
    return {(loss.of, loss.subscription) for loss in losses if is_in(loss.of, scopes)}
