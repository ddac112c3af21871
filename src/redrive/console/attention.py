"""Attention: the counts beside the rooms of the navigation, from memory but for one read of what was lost."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from redrive.aws.cloudwatch.alarms.records import ALARM
from redrive.console.undelivered import LOSSES_MAX, is_in
from redrive.console.visit import Visit
from redrive.model.metric import SeriesQuery
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS
from redrive.telemetry.traffic import LOST, Loss

FAILED_IN_A_ROW: Final = 3  # attempts, from which on an endpoint is said to fail
_KEPT_MS: Final = 5_000
_PLACES_MAX: Final = 1_000


class Count(NamedTuple):
    """A number beside a room."""

    number: int  # Count
    colour: str  # `bad`, `warn` or `info` if it needs attention; empty: a total
    words: str  # After the number, for who does not see the colour


class RememberedCounts:
    """The counts of each account and region, counted anew after five seconds: fifty tabs cost as one."""

    def __init__(self, now: Callable[[], int]) -> None:
        """Start without counts; `now` returns milliseconds."""
        self._now = now
        self._known: dict[ResourceName | None, tuple[int, Mapping[str, Count]]] = {}

    async def of(self, visit: Visit, scope: ResourceName | None) -> Mapping[str, Count]:
        """The counts of a scope (`counts`)."""
        until, known = self._known.get(scope, (0, {}))
        if self._now() < until:
            return known
        if len(self._known) >= _PLACES_MAX:
            self._known.clear()
        counted = await counts(visit, scope)
        self._known[scope] = (self._now() + _KEPT_MS, counted)
        return counted

    def forget(self) -> None:
        """Count anew after a change."""
        self._known.clear()


async def counts(visit: Visit, scope: ResourceName | None) -> Mapping[str, Count]:
    """The counts of an account and region by the path of their room; rooms that nothing is known of have none."""
    if scope is None:
        return {}
    scopes = [scope]
    dead = await _dead_letters(visit, scope)
    troubled = await troubled_subscriptions(visit, scopes)
    alarms = [each for each in await visit.installation.alarms.all() if is_in(each.name, scopes)]
    ringing = sum(each.state.value == ALARM for each in alarms)
    stacks = sum(is_in(each.name, scopes) for each in await visit.installation.stacks.all())
    running = sum(is_in(each.source, scopes) for each in await visit.installation.redrives.all())
    lost = len(await _losing(visit, scopes))
    by_path = {
        "/": Count(bool(dead) + len(troubled) + ringing + stacks + running + lost, "warn", "need attention"),
        "dead-letters": Count(dead, "bad", "waiting"),
        "redrives": Count(running, "info", "under way"),
        "endpoints": Count(len(troubled), "bad", "failing or on hold"),
        "alarms": Count(ringing, "bad", "in alarm"),
        "stacks": Count(stacks, "bad", "failed or rolled back"),
    }
    return {path: count for path, count in by_path.items() if count.number}


async def troubled_subscriptions(visit: Visit, scopes: Collection[ResourceName]) -> list[str]:
    """The keys of the subscriptions whose endpoints fail, as far as this node has seen, or are on hold."""
    operations = visit.engine.operations
    failing = (key for key, each in operations.failing.items() if each.failures >= FAILED_IN_A_ROW)
    keys = dict.fromkeys([*failing, *await operations.open_circuits()])
    return [key for key in keys if _scope_of(key) in scopes]


def _scope_of(key: str) -> ResourceName:
    account, region, *_ = [*key.split("/", 2), "", ""]
    return ResourceName(account, region, "")


async def _dead_letters(visit: Visit, scope: ResourceName) -> int:
    """The dead letters of a scope, as full as its queues were at the last look, a minute ago at most."""
    targets = await visit.engine.operations.dead_letter_targets(scope.account, scope.region)
    return sum(level.counts.available for level in visit.installation.queue_levels() if level.name in targets)


async def _losing(visit: Visit, scopes: Sequence[ResourceName]) -> set[tuple[ResourceName, str]]:
    """The queues and subscriptions that lost messages in the last day."""
    query = SeriesQuery("", "", LOSSES_MAX, namespace=LOST, active_since=visit.now - DAY_MS)
    losses = [Loss.of_series(each) for each in await visit.installation.telemetry.find_series(query)]
    return {(loss.of, loss.subscription) for loss in losses if is_in(loss.of, scopes)}
