"""Schedules: the lab, where numbers of a retry policy are tried before an outage tries them."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from redrive.aws.sns.documents import names
from redrive.aws.sns.documents.delivery_policy_reader import PolicyPlan
from redrive.aws.wire.errors import AwsError
from redrive.console.commands import aws_command
from redrive.console.lab import CHOICES, EVENT_GRID, FUNCTION, POLICY, Lab, lab_of
from redrive.console.schedule_chart import chart_of
from redrive.console.visit import REFUSED, Missing, Page, Redirect, Unusable, Visit
from redrive.model.circuit import USUAL
from redrive.model.durations import show_duration
from redrive.model.names import ResourceName
from redrive.model.outage import FAILURES, BreakerOutage, OutageAnswer, OutageEnd, outage, outage_with_breaker
from redrive.model.retry import RetrySchedule
from redrive.model.retry_plans import PLANS, RetryPlan
from redrive.model.timetable import RUN_SHOWN_WHOLE, Run, TimetableRow, columns_of, runs_of, summary
from redrive.model.topic import Subscription

_ENDS: Final = {
    OutageEnd.DELIVERED: ("delivered", "ok"),
    OutageEnd.SPENT: ("given up", "bad"),
    OutageEnd.EXPIRED: ("expired", "bad"),
}
_FAILS: Final = {
    "503": "answers 503",
    "500": "answers 500",
    "timeout": "does not answer in time",
    "connection": "takes no connection",
}


async def lab(visit: Visit) -> Page:
    """The lab: a policy, its curve and timetable, and what an outage makes of a message."""
    return await _page(visit, "")


async def _page(visit: Visit, notice: str, status: int = 200) -> Page:
    """The lab with the schedule that the form describes, or the reason that there is none."""
    inputs = lab_of(visit)
    subscription = await _subscription(visit)
    values: dict[str, Any] = {
        "lab": inputs,
        "choices": CHOICES,
        "fails": _FAILS,
        "outage": visit.parameter("outage", "40 min"),
        "attempt": visit.parameter("attempt", "0 s"),
        "pasted": "" if inputs.plan else visit.parameter("policy"),
        "form": visit.here.partition("?")[0],
        "notice": notice or inputs.refused,
        "refused_field": inputs.refused_field,
        "result": None,
        "place": visit.scope if "account" in visit.args else None,
        "subscription": subscription,
        "saves": visit.session.writes and subscription is not None and inputs.kind == POLICY,
    }
    if inputs.plan is not None:
        values["result"] = _result(visit, inputs, inputs.plan, subscription)
    # A refusal replaces only the refusal before it: the last curve stays on the screen.
    return Page("schedules.html", values, status, instead_of="#refused" if inputs.plan is None else "")


def _result(visit: Visit, inputs: Lab, plan: RetryPlan, subscription: Subscription | None) -> dict[str, Any]:
    """The parts of the page about a schedule: its chart and rows, and the fate of a message in the outage."""
    schedule = plan.schedule
    answer = outage(schedule, inputs.attempt_ms, inputs.outage_ms)
    runs = runs_of(schedule, inputs.attempt_ms)
    columns = columns_of(runs)
    breaker_outage = outage_with_breaker(
        schedule, USUAL, FAILURES[inputs.failure], inputs.attempt_ms, inputs.outage_ms
    )
    end, state = _ENDS[answer.end]
    return {
        "plan": plan,
        "summary": summary(runs),
        "chart": chart_of(columns, answer if inputs.outage_ms else None) if columns else None,
        "rows": [row for run in runs for row in _rows(run)],
        "end": end,
        "state": state,
        "sentence": _sentence(answer, schedule),
        "with_breaker": _with_breaker(breaker_outage, schedule, inputs),
        "note": _note(inputs, schedule),
        "comparison": [_by_other_plan(name, inputs) for name, _ in CHOICES],
        "json": _policy_json(plan),
        "command": _command(visit, inputs, plan, subscription),
    }


def _rows(run: Run) -> Iterator[tuple[TimetableRow | None, int]]:
    """The rows of a run as the table shows them; None with a number: so many are folded."""
    if run.length <= RUN_SHOWN_WHOLE:
        yield from ((row, 0) for row in run.head)
        return
    yield run.head[0], 0
    yield None, run.length - 2
    yield run.last, 0


def _sentence(answer: OutageAnswer, schedule: RetrySchedule) -> str:
    """The moment that a message's fate in the outage is decided at, and by which attempt."""
    when = f"{show_duration(answer.at_ms)} after publication"
    if answer.end is OutageEnd.DELIVERED:
        return f"by attempt {answer.attempts:,}, {when}"
    if answer.end is OutageEnd.SPENT:
        return f"after attempt {answer.attempts:,}, {when}: the message goes to the dead-letter queue, or is lost"
    lifetime = show_duration(schedule.expires_after_ms or 0)
    return f"{when}: attempt {answer.attempts + 1:,} is due after the time to live of {lifetime}"


def _with_breaker(outcome: BreakerOutage, schedule: RetrySchedule, inputs: Lab) -> str:
    """The course of the same outage where a circuit breaker guards the endpoint, in a sentence."""
    attempts = "attempt fails" if outcome.failures == 1 else "attempts fail"
    served = (
        f"{show_duration(outcome.served_at_ms)} after the outage's beginning, or at once when it is resumed"
    )
    deliveries = "delivery is" if outcome.given_up == 1 else "deliveries are"
    lost = f"at most {outcome.given_up:,} {deliveries}" if outcome.given_up else "no delivery is"
    text = (
        f"{outcome.failures:,} {attempts} in all, whatever waits; {lost} given up,"
        f" delivery of the others begins {served}"
    )
    lifetime_ms = schedule.expires_after_ms
    if lifetime_ms is not None and outcome.served_at_ms > lifetime_ms and inputs.outage_ms:
        text += f"; those that wait longer than their time to live of {show_duration(lifetime_ms)} expire"
    return text


def _note(inputs: Lab, schedule: RetrySchedule) -> tuple[str, str]:
    """A figure that puts the answer into proportion, and what it is."""
    if inputs.kind == POLICY:
        used_text = f"{schedule.total_ms() // 1000:,} of them are used here"
        advice = "For longer outages, switch the circuit breaker on, or redrive."
        return (
            "3,600 s",
            f"is the most that the waits of a delivery policy may add up to; {used_text}. {advice}",
        )
    lifetime_ms = schedule.expires_after_ms
    if lifetime_ms is not None:
        fixed = "is the longest time to live of an event; the waits between attempts are fixed."
        return show_duration(lifetime_ms), fixed
    return show_duration(schedule.total_ms()), "is the sum of all waits; they cannot be configured."


def _by_other_plan(name: str, inputs: Lab) -> dict[str, Any]:
    """The fate of a message by another plan in the same outage."""
    plan = PLANS[name]
    answer = outage(plan.schedule, inputs.attempt_ms, inputs.outage_ms)
    end, state = _ENDS[answer.end]
    return {
        "name": name,
        "title": plan.title,
        "attempts": runs_of(plan.schedule, inputs.attempt_ms)[-1].last.attempt,
        "end": end,
        "state": state,
        "when": show_duration(answer.at_ms),
    }


# ---- keeping it ------------------------------------------------------------------------------------------------------


async def save(visit: Visit) -> Page | Redirect:
    """Set the policy as a subscription's own, by the service's own rules."""
    subscription = await _subscription(visit)
    inputs = lab_of(visit)
    if subscription is None:
        raise Unusable("No subscription is named.")
    if not isinstance(inputs.plan, PolicyPlan):
        return await _page(
            visit, inputs.refused or "Only HTTP/S subscriptions have a delivery policy.", REFUSED
        )
    arn = names.subscription_arn(subscription)
    try:
        answer = await visit.call("sns", "GetSubscriptionAttributes", {"SubscriptionArn": arn})
        before = orjson.loads(answer["Attributes"].get("DeliveryPolicy") or "{}")
        policy = {**before, "healthyRetryPolicy": inputs.plan.policy.to_document()}
        await visit.call(
            "sns",
            "SetSubscriptionAttributes",
            {
                "SubscriptionArn": arn,
                "AttributeName": "DeliveryPolicy",
                "AttributeValue": orjson.dumps(policy).decode(),
            },
        )
    except AwsError as error:
        return await _page(visit, error.message, REFUSED)
    sentence = f"{subscription.redacted_endpoint} is retried by this policy from now on"
    link = visit.link("topics", subscription.topic.name, subscription.id)
    undo = _former(visit, before) if "healthyRetryPolicy" in before else None
    return Redirect(link, sentence=sentence, undo=undo, before=_lines(before), after=_lines(policy))


def _former(visit: Visit, policy: dict[str, Any]) -> tuple[str, dict[str, list[str]]]:
    """The form that saves the policy that was there before."""
    fields = {name: [visit.parameter(name)] for name in ("topic", "subscription")}
    path = visit.link("schedules").removeprefix(visit.base)
    return path, {**fields, "policy": [orjson.dumps(policy).decode()]}


def _lines(policy: dict[str, Any]) -> str:
    return orjson.dumps(policy, option=orjson.OPT_INDENT_2).decode() if policy else ""


async def _subscription(visit: Visit) -> Subscription | None:
    """The subscription that the lab was opened for, if it was for one."""
    if "account" not in visit.args or not visit.parameter("subscription"):
        return None
    topic: ResourceName = visit.scope._replace(name=visit.parameter("topic"))
    subscription = await visit.engine.resources.subscriptions.get(topic, visit.parameter("subscription"))
    if subscription is None:
        raise Missing(
            f"There is no subscription {visit.parameter('subscription')[:80]} of {topic.name[:80]}."
        )
    return subscription


def _policy_json(plan: RetryPlan) -> str:
    """The delivery policy as SNS takes it; empty for plans of other kinds, which have none."""
    if not isinstance(plan, PolicyPlan):
        return ""
    return orjson.dumps(
        {"healthyRetryPolicy": plan.policy.to_document()}, option=orjson.OPT_INDENT_2
    ).decode()


def _command(visit: Visit, inputs: Lab, plan: RetryPlan, subscription: Subscription | None) -> str:
    """The command of the AWS or the Azure CLI, or of this program, that sets or shows the plan."""
    if isinstance(plan, PolicyPlan):
        arn = "ARN" if subscription is None else names.subscription_arn(subscription)
        policy = orjson.dumps({"healthyRetryPolicy": plan.policy.to_document()}).decode()
        words = ("sns", "set-subscription-attributes", "--subscription-arn", arn)
        return aws_command(visit, *words, "--attribute-name", "DeliveryPolicy", "--attribute-value", policy)
    numbers = [field.value for field in inputs.fields]
    if inputs.kind == EVENT_GRID:
        attempts, minutes = numbers
        return (
            "az eventgrid event-subscription update --name NAME --source-resource-id ID"
            f" --max-delivery-attempts {attempts} --event-ttl {minutes}"
        )
    if inputs.kind == FUNCTION:
        retries, seconds = numbers
        words = ("lambda", "put-function-event-invoke-config", "--function-name", "NAME")
        limits = ("--maximum-retry-attempts", retries, "--maximum-event-age-in-seconds", seconds)
        return aws_command(visit, *words, *limits)
    return f"redrive schedule --plan {inputs.kind}"
