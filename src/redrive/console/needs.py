"""Needs: what needs a person's attention, in the order of a person on call, as Overview names it.

Losses come first: they cannot be taken back. What is read is bounded, and most of it is remembered: dead letters and
losses are counted at each look, all else is read only after it changed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from redrive.aws.cloudformation.records import Stack
from redrive.aws.cloudwatch.alarms.records import ALARM, Alarm
from redrive.aws.lambda_.metrics import NAMESPACE as LAMBDA
from redrive.console.arrivals import Burst, bursts
from redrive.console.hour import Hour
from redrive.console.pages.dead_letters import cause_id, origin_text
from redrive.console.unattended import WAITED_MINUTES, unattended
from redrive.console.visit import Visit
from redrive.console.words import counted, failure_words, many, number, place_text, why_failed
from redrive.engine.operations import DeadLetterQueue
from redrive.engine.ports import CauseCount
from redrive.model.circuit import OpenCircuit
from redrive.model.durations import show_duration
from redrive.model.metric import MINUTE_MS, PointQuery, Series, SeriesQuery
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS, Queue
from redrive.model.task import MoveTask, TaskState
from redrive.model.topic import Subscription
from redrive.telemetry.levels import Level
from redrive.telemetry.losses import NAMESPACE as LOST
from redrive.telemetry.losses import Loss

NEEDS_MAX: Final = 50  # of each kind
COUNTED_MAX: Final = 100_000  # of each dead-letter queue: 8 ms
BURSTS_MAX: Final = 10  # of the fullest: 14,000 rows are read where something died in each minute of the day
CAUSES_OF_MAX: Final = 2  # dead-letter queues, the fullest, whose main cause is named: a read each
LOSSES_MAX: Final = 500  # causes of losses in a day, of all accounts
FAILED_IN_A_ROW: Final = 3  # attempts, from which on an endpoint is said to fail
#: A redrive task that failed is named for a day, or until somebody starts another of its queue. One that stopped itself
#: is named until somebody resumes or cancels it: until then nobody can start another.
FAILED_NAMED_MS: Final = 24 * 60 * MINUTE_MS
_STACK_TROUBLE: Final = ("FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_IN_PROGRESS")


@dataclass(frozen=True, slots=True)
class Need:
    """Something that needs attention.

    Attributes:
        kind: `lost`, `dead`, `alarm`, `failing`, `hold`, `unattended`, `function`, `stack` or `redrive`.
        badge: Its state in words.
        colour: Of the badge.
        title: What is wrong, with numbers.
        detail: The cause, in one line.
        link: The page of what it is about.
        action: The words on its button.
        acts: Where the button leads: a plan or a form, or the page itself.
        place: Account and region.
        since: When it began (ms); 0: not known.
    """

    kind: str
    badge: str
    colour: str
    title: str
    detail: str
    link: str
    action: str
    acts: str
    place: str
    since: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of the store and of memory, for the sentence that nothing needs attention.

    Attributes:
        needs: In the order in which they are shown.
        lost: Messages lost in the last 24 hours.
        alarms: How many alarms there are.
        queues: How many dead-letter queues.
    """

    needs: Sequence[Need]
    lost: int
    alarms: int
    queues: int


async def needs(
    visit: Visit,
    places: Sequence[ResourceName],
    dead: Sequence[DeadLetterQueue],
    waiting: Sequence[Level],
    hour: Hour,
) -> Asked:
    """The needs of these accounts and regions, and the redrive tasks under way there.

    Args:
        visit: Who asks.
        places: The accounts and regions.
        dead: The dead-letter queues there, counted up to `COUNTED_MAX`.
        waiting: Of `unattended.long_waiting`.
        hour: With the points of `error_series` and `unattended.receive_series`.
    """
    losses, latest = await _last_day(visit, places, dead)
    alarms = [each for each in await visit.installation.alarms.all() if _is_in(each.name, places)]
    tasks = [_task(visit, task) for task in await _tasks(visit) if _is_in(task.source, places)]
    found = [
        *await _lost(visit, losses),
        *await _dead(visit, dead, latest),
        *[_alarm(visit, each) for each in alarms if each.state.value == ALARM][:NEEDS_MAX],
        *await _endpoints(visit, places),
        *[_unattended(visit, level) for level in unattended(waiting, hour)],
        *await _functions(visit, places, hour),
        *await _stacks(visit, places),
        *sorted(tasks, key=lambda need: need.colour == "info")[:NEEDS_MAX],
    ]
    return Asked(found, sum(losses.values()), len(alarms), len(dead))


def _is_in(name: ResourceName, places: Collection[ResourceName]) -> bool:
    return name._replace(name="") in places


# ---- what is lost and what is dead -----------------------------------------------------------------------------


async def _last_day(
    visit: Visit, places: Collection[ResourceName], dead: Sequence[DeadLetterQueue]
) -> tuple[dict[Loss, int], Mapping[int, Burst]]:
    """What was lost in the last day, by cause, and the latest bursts of the fullest dead-letter queues."""
    telemetry, since = visit.installation.telemetry, visit.now - DAY_MS
    query = SeriesQuery("", "", LOSSES_MAX, namespace=LOST, active_since=since)
    found = [Loss.of_series(series) for series in await telemetry.find_series(query)]
    losses = {loss: loss.series for loss in found if _is_in(loss.of, places)}
    fullest = sorted((each for each in dead if each.letters), key=lambda each: -each.letters)[:BURSTS_MAX]
    points = {}
    if losses:
        minute = visit.now // MINUTE_MS * MINUTE_MS
        span = PointQuery(list(losses.values()), minute - DAY_MS, minute + MINUTE_MS, 2 * DAY_MS)
        points = dict(await telemetry.find_points_each(span))
    latest = await bursts(telemetry, [each.queue for each in fullest], visit.now)
    totals = {
        loss: int(sum(bucket.statistics.total for bucket in points.get(series.id, ())))
        for loss, series in losses.items()
    }
    return {loss: total for loss, total in totals.items() if total}, latest


async def _lost(visit: Visit, losses: Mapping[Loss, int]) -> list[Need]:
    """A row for each subscription or queue that lost messages, by its most frequent cause."""
    of_each: dict[tuple[ResourceName, str], list[tuple[int, str]]] = {}
    for loss, total in losses.items():
        of_each.setdefault((loss.of, loss.subscription), []).append((total, loss.reason))
    ranked = sorted(of_each.items(), key=lambda each: -sum(total for total, _ in each[1]))[:NEEDS_MAX]
    rows = []
    for (name, subscription), causes in ranked:
        total = sum(each for each, _ in causes)
        what = f"{number(total)} {many(total, 'message')} of {name.name or 'direct publications'}"
        reason = failure_words(max(causes)[1])
        rows.append(
            await _loss(visit, name, subscription, f"{what} {many(total, 'was', 'were')} lost", reason)
        )
    return rows


async def _loss(visit: Visit, name: ResourceName, subscription: str, title: str, reason: str) -> Need:
    detail, link = f"{reason}; no dead-letter queue has them", visit.link_in(name, "queues", name.name)
    if subscription:
        found = await visit.engine.resources.subscriptions.get(name, subscription)
        to = f"{found.endpoint_place}: " if found is not None else ""
        detail = f"{to}{detail}"
        parts = ("topics", name.name, subscription) if found is not None else ("topics", name.name)
        link = visit.link_in(name, *parts) if name.name else visit.link_in(name, "tail", only="failures")
    return Need(
        "lost",
        "Lost",
        "bad",
        title,
        f"{detail} · last 24 hours",
        link,
        "Stop the loss…",
        link,
        place_text(name),
    )


async def _dead(visit: Visit, queues: Sequence[DeadLetterQueue], latest: Mapping[int, Burst]) -> list[Need]:
    """The dead-letter queues that are not empty, the fullest first, with the main cause of the first ones."""
    full = sorted((queue for queue in queues if queue.letters), key=lambda queue: -queue.letters)
    rows = []
    for place, each in enumerate(full[:NEEDS_MAX]):
        cause = await _main_cause(visit, each.queue) if place < CAUSES_OF_MAX else None
        rows.append(await _dead_letters(visit, each, latest.get(each.queue.id), cause))
    return rows


async def _main_cause(visit: Visit, queue: Queue) -> CauseCount | None:
    groups = await visit.engine.operations.cause_counts(queue, 50, COUNTED_MAX)
    return groups[0] if groups else None


async def _dead_letters(
    visit: Visit, dead: DeadLetterQueue, burst: Burst | None, cause: CauseCount | None
) -> Need:
    name = dead.queue.name
    link = visit.link_in(name, "dead-letters", name.name)
    letters = counted(dead.letters, dead.at_most or COUNTED_MAX)
    title = f"{letters} dead {many(dead.letters, 'letter')} in {name.name}"
    detail, action, acts = "No reason is known", f"Redrive {letters}…", f"{link}/plan?what=all&cause=all"
    if cause is not None:
        origin = origin_text(*await visit.engine.operations.origin(cause.cause.origin))
        many_of_it = f"{number(cause.number)}{'+' if cause.capped else ''}"
        detail = f"{many_of_it} {failure_words(cause.cause.failure)} from {origin}"
        action = f"Redrive {many_of_it}…"
        acts = visit.link_in(name, "dead-letters", name.name, "plan", what="all", cause=cause_id(cause.cause))
    elif dead.from_queues or dead.from_subscriptions:
        detail = f"From {len(dead.from_queues) + len(dead.from_subscriptions)} {many(2, 'source')}"
    if burst is not None:
        detail += f" · {number(burst.letters)} in the latest burst"
    return Need(
        "dead",
        "Dead letters",
        "bad",
        title,
        detail,
        link,
        action,
        acts,
        place_text(name),
        burst.since if burst else 0,
    )


# ---- endpoints and queues --------------------------------------------------------------------------------------


async def _endpoints(visit: Visit, places: Collection[ResourceName]) -> list[Need]:
    """The endpoints that fail, and those whose circuit breakers are open."""
    operations = visit.engine.operations
    circuits = await operations.open_circuits()
    failing = {key: each for key, each in operations.failing.items() if each.failures >= FAILED_IN_A_ROW}
    rows = []
    for key in [key for key in {**failing, **circuits} if _place_of(key) in places][:NEEDS_MAX]:
        found = await _subscription(visit, key)
        if found is None:
            continue
        if (circuit := circuits.get(key)) is not None:
            rows.append(_on_hold(visit, found, circuit))
        else:
            each = failing[key]
            reason = failure_words(f"{each.reason.value} {each.status or ''}".strip())
            detail = f"{reason}, {number(each.failures)} in a row, for topic {found.topic.name}"
            title = f"{found.endpoint_place} fails"
            rows.append(_of_endpoint(visit, found, ("failing", "Failing", "bad"), title, detail))
    return sorted(rows, key=lambda need: need.kind == "hold")


def _place_of(key: str) -> ResourceName:
    account, region, *_ = [*key.split("/", 2), "", ""]
    return ResourceName(account, region, "")


async def _subscription(visit: Visit, key: str) -> Subscription | None:
    topic, _, name = key.rpartition("/")
    return await visit.engine.resources.subscriptions.get(ResourceName.from_key(topic), name)


def _on_hold(visit: Visit, found: Subscription, circuit: OpenCircuit) -> Need:
    reason = failure_words(f"{circuit.reason} {circuit.status or ''}".strip())
    left = show_duration(max(0, circuit.until - visit.now) // 1000 * 1000)
    title = f"{found.endpoint_place} is on hold for another {left}"
    detail = f"{reason}, {number(circuit.failures)} in a row, for topic {found.topic.name}"
    return _of_endpoint(visit, found, ("hold", "On hold", "hold"), title, detail)


def _of_endpoint(
    visit: Visit, found: Subscription, kind: tuple[str, str, str], title: str, detail: str
) -> Need:
    link = visit.link_in(found.topic, "topics", found.topic.name, found.id)
    return Need(*kind, title, detail, link, "Open subscription", link, place_text(found.topic))


def _unattended(visit: Visit, level: Level) -> Need:
    """A queue from which nobody receives."""
    link = visit.link_in(level.name, "queues", level.name.name)
    waiting = level.counts.available
    title = (
        f"{number(waiting)} {many(waiting, 'message')} {many(waiting, 'waits', 'wait')} in {level.name.name}"
    )
    detail = f"Nobody has received from it for {WAITED_MINUTES} minutes; the oldest waits for"
    age = show_duration(level.age_seconds * 1000)
    return Need(
        "unattended",
        "Nobody receives",
        "warn",
        title,
        f"{detail} {age}",
        link,
        "Open queue",
        link,
        place_text(level.name),
    )


# ---- alarms, functions, stacks, redrives -----------------------------------------------------------------------


def _alarm(visit: Visit, alarm: Alarm) -> Need:
    name = alarm.name
    link = visit.link_in(name, "alarms", "alarm", name=name.name)
    return Need(
        "alarm",
        "In alarm",
        "bad",
        name.name,
        alarm.state.reason,
        link,
        "Open alarm",
        link,
        place_text(name),
        alarm.state.transitioned_at,
    )


async def error_series(visit: Visit, places: Collection[ResourceName]) -> list[Series]:
    """The series of the errors of each function in these places."""
    functions = await visit.installation.functions.all()
    return [_errors(each.name) for each in functions if _is_in(each.name, places)]


def _errors(name: ResourceName) -> Series:
    return Series(name.account, name.region, LAMBDA, "Errors", (("FunctionName", name.name),))


async def _functions(visit: Visit, places: Collection[ResourceName], hour: Hour) -> list[Need]:
    """The functions with errors in the last hour."""
    rows = []
    for each in await visit.installation.functions.all():
        errors = int(hour.total(_errors(each.name))) if _is_in(each.name, places) else 0
        if not errors:
            continue
        link = visit.link_in(each.name, "functions", each.name.name)
        title = f"{number(errors)} {many(errors, 'invocation')} of {each.name.name} failed"
        rows.append(
            Need(
                "function",
                "Errors",
                "bad",
                title,
                "In the last hour",
                link,
                "Open function",
                link,
                place_text(each.name),
            )
        )
    return rows[:NEEDS_MAX]


def stack_in_trouble(stack: Stack) -> bool:
    """True for a stack that failed or was rolled back."""
    return stack.deleted_at is None and stack.status.endswith(_STACK_TROUBLE)


async def _stacks(visit: Visit, places: Collection[ResourceName]) -> list[Need]:
    rows = []
    for stack in await visit.installation.stacks.all():
        if not _is_in(stack.name, places):
            continue
        link = visit.link_in(stack.name, "stacks", stack.name.name)
        words = "Rolled back" if "ROLLBACK" in stack.status else "Failed"
        detail = stack.reason or stack.status
        rows.append(
            Need(
                "stack",
                words,
                "bad",
                f"Stack {stack.name.name}",
                detail,
                link,
                "Open stack",
                link,
                place_text(stack.name),
                stack.updated_at or stack.created_at,
            )
        )
    return rows[:NEEDS_MAX]


async def _tasks(visit: Visit) -> Sequence[MoveTask]:
    return await visit.engine.operations.current_redrive_tasks(visit.now - FAILED_NAMED_MS)


def _task(visit: Visit, task: MoveTask) -> Need:
    """A redrive task, and why it failed or stopped itself, if it did."""
    failed = task.state is TaskState.FAILED
    why = why_failed(task.failure) if failed else task.stopped_why
    title = f"Redrive of {task.source.name}: {number(task.moved)} of {number(task.to_move)} moved"
    words = {
        TaskState.WAITING: "Starting",
        TaskState.PAUSED: "Stopped by itself" if why else "Paused",
        TaskState.CANCELLING: "Stopping",
        TaskState.FAILED: "Failed",
    }.get(task.state, "Running")
    colour = "bad" if failed else "warn" if task.state is TaskState.PAUSED else "info"
    link = visit.link_in(task.source, "dead-letters", task.source.name, "tasks", task.id)
    return Need(
        "redrive",
        words,
        colour,
        title,
        why,
        link,
        "Open redrive",
        link,
        place_text(task.source),
        task.started_at,
    )
