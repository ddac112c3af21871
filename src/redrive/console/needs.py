"""Needs: what needs a person's attention, in the order of a person on call, as Overview names it.

Losses come first: they cannot be taken back. What is read is bounded, and most of it is remembered: dead letters and
losses are counted at each look, all else is read only after it changed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from redrive.aws.cloudwatch.alarms.records import ALARM, Alarm
from redrive.aws.cloudwatch.metrics.own_metrics import series_of
from redrive.aws.lambda_.invocations.metrics import NAMESPACE as LAMBDA
from redrive.console.alarm_words import condition_words, last_value, metric_of, things_of
from redrive.console.charts import Curve, figure, sparkline
from redrive.console.hour import WAITING, Hour, depth_curve
from redrive.console.navigation import troubled_subscriptions
from redrive.console.pages.metrics import metric_words, statistic_value, sum_by_moment
from redrive.console.undelivered import NEEDS_MAX, Need, dead_letter_needs, is_in, last_day, lost_needs
from redrive.console.visit import Visit
from redrive.console.words import failure_words, many, number, scope_text, why_failed, why_stopped
from redrive.engine.operations import SET_ASIDE, DeadLetterQueue
from redrive.model.circuit import OpenCircuit
from redrive.model.durations import show_duration
from redrive.model.metric import MINUTE_MS, Series
from redrive.model.names import ResourceName
from redrive.model.task import MoveTask, TaskState
from redrive.model.topic import Subscription
from redrive.telemetry.accumulators import Answer, queue_series
from redrive.telemetry.gauges import Level

#: A redrive task that failed is named for a day, or until somebody starts another of its queue. One that stopped itself
#: is named until somebody resumes or cancels it: until then nobody can start another.
FAILED_NAMED_MS: Final = 24 * 60 * MINUTE_MS
WAITED_MINUTES: Final = 10
_TRENDS_MAX: Final = 10  # of each kind: 600 rows
_LOOKED_AT_MAX: Final = 50  # those whose oldest message waits longest
_RECEIVES: Final = ("messages_received", "empty_receives")


@dataclass(frozen=True, slots=True)
class NeedTotals:
    """The needs, and the extent of the question: without it nobody may say that nothing needs attention."""

    needs: Sequence[Need]  # In the order in which they are shown
    lost: int  # Messages lost in the last 24 hours
    alarms: int  # Number of alarms
    queues: int  # Number of dead-letter queues


async def needs(
    visit: Visit,
    scopes: Sequence[ResourceName],
    dead: Sequence[DeadLetterQueue],
    waiting: Sequence[Level],
    hour: Hour,
) -> NeedTotals:
    """The needs of these accounts and regions, and the redrive tasks under way there.

    Args:
        visit: Who asks.
        scopes: The accounts and regions.
        dead: The dead-letter queues there, counted up to `COUNTED_MAX`.
        waiting: Of `long_waiting`.
        hour: With the points of `error_series`, `receive_series` and `trend_series`.
    """
    losses, latest = await last_day(visit, scopes, dead)
    alarms = await alarms_in(visit, scopes)
    tasks = [_task(visit, task) for task in await _tasks(visit) if is_in(task.source, scopes)]
    rows = [
        *await lost_needs(visit, losses),
        *await dead_letter_needs(visit, dead, latest),
        *[_alarm(visit, each, hour) for each in alarms if each.state.value == ALARM][:NEEDS_MAX],
        *await _endpoints(visit, scopes, hour),
        *[_unattended(visit, level, hour) for level in unattended(waiting, hour)],
        *await _functions(visit, scopes, hour),
        *await _stacks(visit, scopes),
        *sorted(tasks, key=lambda need: need.colour == "info")[:NEEDS_MAX],
    ]
    return NeedTotals(rows, sum(map(sum, losses.values())), len(alarms), len(dead))


# ---- endpoints and queues --------------------------------------------------------------------------------------


async def _endpoints(visit: Visit, scopes: Collection[ResourceName], hour: Hour) -> list[Need]:
    """The endpoints that fail, and those whose circuit breakers are open."""
    operations = visit.engine.operations
    circuits, failing = await operations.open_circuits(), operations.failing
    rows = []
    for key in (await troubled_subscriptions(visit, scopes))[:NEEDS_MAX]:
        subscription = await _subscription(visit, key)
        if subscription is None:
            continue
        trend = hour.sparkline("Failed attempts of the last hour", _failures(key))
        if (circuit := circuits.get(key)) is not None:
            rows.append(replace(_on_hold(visit, subscription, circuit), trend=trend))
        else:
            each = failing[key]
            reason = failure_words(f"{each.reason.value} {each.status or ''}".strip())
            detail = f"{reason}, {number(each.failures)} in a row, for topic {subscription.topic.name}"
            title = f"{subscription.redacted_endpoint} fails"
            need = _of_endpoint(visit, subscription, ("failing", "Failing", "bad"), title, detail)
            rows.append(replace(need, trend=trend))
    return sorted(rows, key=lambda need: need.kind == "hold")


async def _subscription(visit: Visit, key: str) -> Subscription | None:
    topic, _, name = key.rpartition("/")
    return await visit.engine.resources.subscriptions.get(ResourceName.from_key(topic), name)


def _on_hold(visit: Visit, subscription: Subscription, circuit: OpenCircuit) -> Need:
    """The row of an endpoint whose circuit is open."""
    reason = failure_words(f"{circuit.reason} {circuit.status or ''}".strip())
    remaining = show_duration(max(0, circuit.until - visit.now) // 1000 * 1000)
    title = f"{subscription.redacted_endpoint} is on hold for another {remaining}"
    detail = f"{reason}, {number(circuit.failures)} in a row, for topic {subscription.topic.name}"
    need = _of_endpoint(visit, subscription, ("hold", "On hold", "hold"), title, detail)
    form = visit.link_in(subscription.topic, "endpoints")
    fields = {"topic": subscription.topic.name, "id": subscription.id}
    return replace(need, action="Resume now", acts=form, fields=fields)


def _of_endpoint(
    visit: Visit, subscription: Subscription, kind: tuple[str, str, str], title: str, detail: str
) -> Need:
    link = visit.link_in(subscription.topic, "topics", subscription.topic.name, subscription.id)
    return Need(*kind, title, detail, link, "Open subscription", scope_text(subscription.topic))


def _unattended(visit: Visit, level: Level, hour: Hour) -> Need:
    """A queue from which nobody receives."""
    link = visit.link_in(level.name, "queues", level.name.name)
    waiting = level.counts.available
    title = (
        f"{number(waiting)} {many(waiting, 'message')} {many(waiting, 'waits', 'wait')} in {level.name.name}"
    )
    detail = f"No receives for {WAITED_MINUTES} minutes; the oldest waits for"
    age = show_duration(level.age_seconds * 1000)
    return Need(
        "unattended",
        "Nobody receives",
        "warn",
        title,
        f"{detail} {age}",
        link,
        action="Open queue",
        scope=scope_text(level.name),
        trend=depth_curve(hour, level.name),
    )


# ---- alarms, functions, stacks, redrives -----------------------------------------------------------------------


async def alarms_in(visit: Visit, scopes: Collection[ResourceName]) -> list[Alarm]:
    """The alarms of these accounts and regions."""
    return [each for each in await visit.installation.alarms.all() if is_in(each.name, scopes)]


def _alarm(visit: Visit, alarm: Alarm, hour: Hour) -> Need:
    """The row of an alarm that is in alarm."""
    name = alarm.name
    link = visit.link_in(name, "alarms", "alarm", name=name.name)
    return Need(
        "alarm",
        "In alarm",
        "bad",
        name.name,
        _alarm_detail(alarm),
        link,
        action="Open alarm",
        scope=scope_text(name),
        since=alarm.state.transitioned_at,
        trend=_alarm_trend(alarm, hour),
    )


def _alarm_series(alarm: Alarm) -> list[Series]:
    """The series of the metric that an alarm watches; none of an alarm on an expression or on others."""
    if not (alarm.given.get("MetricName") and alarm.given.get("Statistic")):
        return []
    return list(series_of(alarm.name.account, alarm.name.region, metric_of(alarm.given)))


def _alarm_trend(alarm: Alarm, hour: Hour) -> Curve | None:
    """The last hour of the metric of an alarm, minute by minute, by the statistic that it compares."""
    minutes = sum_by_moment(bucket for each in _alarm_series(alarm) for bucket in hour.points(each))
    values = {at: statistic_value(each, alarm.given["Statistic"]) for at, each in minutes.items()}
    if not any(values.values()):
        return None
    line = [values.get(at, 0.0) for at in range(hour.since, hour.until, hour.period_ms)]
    words = f"{metric_words(alarm.given['MetricName'])} in the last hour: {figure(max(line))} at most"
    return sparkline(line, words)


def _alarm_detail(alarm: Alarm) -> str:
    """The condition of an alarm on one metric, and the value that set it off; of others CloudWatch's reason."""
    value = last_value(alarm.given, alarm.state.data)
    if not alarm.given.get("MetricName") or not value:
        return alarm.state.reason
    words = condition_words(alarm.given)
    return f"{things_of(alarm.given)}: {words[:1].lower()}{words[1:]}; it was {value}"


async def error_series(visit: Visit, scopes: Collection[ResourceName]) -> list[Series]:
    """The series of the errors of each function in these scopes."""
    functions = await visit.installation.functions.all()
    return [_errors(each.name) for each in functions if is_in(each.name, scopes)]


def _errors(name: ResourceName) -> Series:
    return Series(name.account, name.region, LAMBDA, "Errors", (("FunctionName", name.name),))


async def _functions(visit: Visit, scopes: Collection[ResourceName], hour: Hour) -> list[Need]:
    """The functions with errors in the last hour."""
    rows = []
    for each in await visit.installation.functions.all():
        errors = int(hour.total(_errors(each.name))) if is_in(each.name, scopes) else 0
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
                action="Open function",
                scope=scope_text(each.name),
                trend=hour.sparkline("Errors of the last hour", _errors(each.name), sums=True),
            )
        )
    return rows[:NEEDS_MAX]


async def _stacks(visit: Visit, scopes: Collection[ResourceName]) -> list[Need]:
    """The rows of stacks that failed or were rolled back."""
    rows = []
    for stack in await visit.installation.stacks.all():
        if not is_in(stack.name, scopes):
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
                action="Open stack",
                scope=scope_text(stack.name),
                since=stack.updated_at or stack.created_at,
            )
        )
    return rows[:NEEDS_MAX]


async def _tasks(visit: Visit) -> Sequence[MoveTask]:
    return await visit.engine.operations.redrives.current(visit.now - FAILED_NAMED_MS)


def _task(visit: Visit, task: MoveTask) -> Need:
    """A redrive task, and why it failed or stopped itself, if it did."""
    failed = task.state is TaskState.FAILED
    why = why_failed(task.failure) if failed else why_stopped(task.stopped_why)
    title = f"Redrive of {task.source.name}: {number(task.moved)} of {number(task.to_move)} moved"
    words = {
        TaskState.WAITING: "Starting",
        TaskState.PAUSED: "Stopped by itself" if why else "Paused",
        TaskState.CANCELLING: "Stopping",
        TaskState.FAILED: "Failed",
    }.get(task.state, "Running")
    colour = {TaskState.FAILED: "bad", TaskState.PAUSED: "warn"}.get(task.state, "info")
    link = visit.link_in(task.source, "dead-letters", task.source.name, "tasks", task.id)
    return Need(
        "redrive",
        words,
        colour,
        title,
        why,
        link,
        action="Open redrive",
        scope=scope_text(task.source),
        since=task.started_at,
    )


async def trend_series(
    visit: Visit, scopes: Collection[ResourceName], waiting: Sequence[Level]
) -> list[Series]:
    """The series that trends are drawn from: of the first receivers that fail, queues that wait, and alarms."""
    troubled = (await troubled_subscriptions(visit, scopes))[:_TRENDS_MAX]
    alarms = [each for each in await alarms_in(visit, scopes) if each.state.value == ALARM]
    return [
        *map(_failures, troubled),
        *(queue_series(each.name, WAITING) for each in waiting[:_TRENDS_MAX]),
        *(series for each in alarms[:_TRENDS_MAX] for series in _alarm_series(each)),
    ]


def _failures(key: str) -> Series:
    """The failed attempts of the subscription with that key."""
    topic, _, name = key.rpartition("/")
    return Answer(ResourceName.from_key(topic), name, delivered=False).series


def long_waiting(
    levels: Sequence[Level], scopes: Collection[ResourceName], dead_letter_queues: Collection[ResourceName]
) -> list[Level]:
    """The queues whose oldest message waits for ten minutes, the longest waiting first.

    Args:
        levels: The queues that this node looked at last.
        scopes: Of these accounts and regions.
        dead_letter_queues: Left out, as what was set aside: nobody is expected to receive from them.
    """
    waiting = [
        level
        for level in levels
        if level.counts.available
        and level.age_seconds * 1000 >= WAITED_MINUTES * MINUTE_MS
        and level.name._replace(name="") in scopes
        and level.name not in dead_letter_queues
        and level.name.name != SET_ASIDE
    ]
    return sorted(waiting, key=lambda level: -level.age_seconds)[:_LOOKED_AT_MAX]


def receive_series(levels: Sequence[Level]) -> list[Series]:
    """The series that show whether these queues have receivers."""
    return [queue_series(level.name, counter) for level in levels for counter in _RECEIVES]


def unattended(levels: Sequence[Level], hour: Hour) -> list[Level]:
    """Those of the `long_waiting` queues that nobody asked for messages in the last ten minutes."""
    since = (hour.until - (WAITED_MINUTES + 1) * MINUTE_MS) // hour.period_ms * hour.period_ms
    return [level for level in levels if not any(hour.total(each, since) for each in receive_series([level]))]
