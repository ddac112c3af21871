"""Checks of a planned redrive: will what goes back be taken, and what is to be known before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from redrive.console.health import Health, answer_series, health
from redrive.console.hour import LISTED_MS, last_hour
from redrive.console.schedule_chart import draw_schedule
from redrive.console.visit import Visit
from redrive.console.words import clock_time, failure_words, many, number, span
from redrive.engine.operations import EndpointCondition, EndpointState, RedrivePlan
from redrive.model.queue import Queue
from redrive.model.retry import RetrySchedule
from redrive.model.task import MoveTask
from redrive.model.topic import Subscription

ENDPOINTS_MAX: Final = 20  # of a queue's subscriptions, whose conditions are looked at: three reads for all
FAILURES_MIN: Final = 3  # in a row, for an endpoint to be called failing for good; 0: it refuses unasked


@dataclass(frozen=True, slots=True)
class SafetyCheck:
    """One thing that was looked at."""

    colour: str  # `ok`, `warn`, `bad` or `info`
    word: str  # Before the sentence
    text: str  # The sentence
    link: str = ""  # Where to see more; empty: nowhere
    link_text: str = ""


class SafetyVerdict(NamedTuple):
    """All checks in two or three words."""

    colour: str
    text: str


async def checks_of(
    visit: Visit,
    queue: Queue,
    plan: RedrivePlan,
    receivers: Sequence[Subscription],
    running: MoveTask | None,
    *,
    origin_known: bool,
) -> list[SafetyCheck]:
    """The checks of a plan, the worst first.

    Args:
        visit: Who plans.
        queue: The dead-letter queue.
        plan: What would move.
        receivers: The subscriptions that messages would go back to.
        running: Another redrive of the queue.
        origin_known: Whether the origin of the chosen cause stands.
    """
    endpoints = receivers[:ENDPOINTS_MAX]
    conditions = await visit.engine.operations.conditions.of_each(endpoints) if endpoints else []
    await visit.installation.settle()
    hour = await last_hour(visit.installation.telemetry, answer_series(endpoints), visit.now, LISTED_MS)
    checks = [
        _endpoint(visit, each, condition, health(hour, each))
        for each, condition in zip(endpoints, conditions, strict=True)
    ]
    checks += _queue(visit, queue, plan, running, origin_known=origin_known)
    if len(receivers) == 1:
        checks.append(await _again(visit, queue, receivers[0]))
    order = {"bad": 0, "warn": 1, "ok": 2}
    return sorted(checks, key=lambda check: order.get(check.colour, 3))


async def _again(visit: Visit, queue: Queue, receiver: Subscription) -> SafetyCheck:
    """The fate of messages that fail again: their attempts, and then this queue."""
    schedule = await visit.engine.operations.conditions.schedule_of(receiver)
    tries = ""
    if isinstance(schedule, RetrySchedule):
        _, sentence = draw_schedule(schedule)
        tries = f"has {sentence.replace('publication', 'it is sent')}, and then "
    text = f"A message that fails again {tries}becomes a dead letter in {queue.name.name} again."
    return SafetyCheck("info", "If it fails", text)


def verdict_of(checks: Sequence[SafetyCheck]) -> SafetyVerdict:
    """The verdict: the worst check decides."""
    colours = {check.colour for check in checks}
    if "bad" in colours:
        return SafetyVerdict("bad", "Will fail")
    return SafetyVerdict("warn", "Look at this") if "warn" in colours else SafetyVerdict("ok", "Looks safe")


def _endpoint(
    visit: Visit, subscription: Subscription, condition: EndpointCondition, answers: Health
) -> SafetyCheck:
    """The check of an endpoint: on hold, failing, healthy by its last hour, or not set up."""
    address = subscription.redacted_endpoint
    link = visit.link_in(subscription.topic, "topics", subscription.topic.name, subscription.id)
    more = (link, "Open subscription")
    if condition.circuit is not None:
        reason = failure_words(f"{condition.circuit.reason} {condition.circuit.status or ''}".strip())
        until = clock_time(condition.circuit.until)
        text = f"{address} is on hold until {until}: {reason}.{_of_hour(answers)}"
        return SafetyCheck("bad", "On hold", text, *more)
    if condition.failing is not None:
        failing = condition.failing
        reason = failure_words(f"{failing.reason.value} {failing.status or ''}".strip())
        text = f"{address} failed {number(failing.failures)} {many(failing.failures, 'attempt')} in a row: {reason}."
        colour = "warn" if 0 < failing.failures < FAILURES_MIN else "bad"
        return SafetyCheck(colour, "Failing", text + _of_hour(answers), *more)
    if answers.attempts >= FAILURES_MIN and not answers.delivered:
        return SafetyCheck("bad", "Failing", f"All attempts at {address} failed.{_of_hour(answers)}", *more)
    if condition.condition is EndpointState.SERVED:
        latest = "accepted the last attempt" if answers.attempts else "has not failed"
        text = f"{address} {latest}.{_of_hour(answers)}"
        return SafetyCheck("ok", "Healthy", text, *more)
    return SafetyCheck("warn", "Not ready", f"{address} is not set up or not confirmed.", *more)


def _of_hour(answers: Health) -> str:
    """The answers of the last hour as a sentence; empty: there were none."""
    if answers.mean_ms is None:
        return ""
    text = f"{number(answers.delivered)} of {number(answers.attempts)} {many(answers.attempts, 'attempt')}"
    return f" In the last hour it accepted {text}, responding in {span(answers.mean_ms)} on average."


def _queue(
    visit: Visit, queue: Queue, plan: RedrivePlan, running: MoveTask | None, *, origin_known: bool
) -> list[SafetyCheck]:
    """The checks of the queue and the messages: unknown origins, another redrive, order, those in flight."""
    checks = []
    if not origin_known:
        text = "Their origin is unknown or was deleted: they stay, unless you name a queue."
        checks.append(SafetyCheck("bad", "No origin", text))
    if plan.without_origin:
        left = plan.without_origin
        stay, its = many(left, "stays", "stay"), many(left, "its", "their")
        text = f"{number(left)} of them {stay}, unless you name a queue: {its} origin is unknown, or was deleted."
        checks.append(SafetyCheck("warn", "No origin", text))
    if running is not None:
        link = visit.link("dead-letters", queue.name.name, "tasks", running.id)
        text = f"Another redrive of this queue is {running.state}."
        checks.append(SafetyCheck("bad", "Redrive", text, link, "Open the redrive"))
    else:
        checks.append(SafetyCheck("ok", "Free", "No other redrive of this queue is under way."))
    if queue.ordered:
        checks.append(SafetyCheck("warn", "FIFO", "The queue is FIFO: they go to the end of their groups."))
    if plan.in_flight:
        messages, stay = many(plan.in_flight, "message"), many(plan.in_flight, "stays", "stay")
        text = f"{number(plan.in_flight)} {messages} in flight {stay}."
        checks.append(SafetyCheck("info", "In flight", text))
    return checks
