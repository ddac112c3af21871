"""The retry lab: typed numbers as a retry schedule with an outage, or why they are invalid."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import orjson

from redrive.aws.sns.documents.delivery_policy import RetryPolicy
from redrive.aws.sns.documents.delivery_policy_reader import (
    DELAY_SECONDS_MAX,
    RETRIES_MAX,
    DeliveryPolicyInvalid,
    PolicyPlan,
    read_plan,
)
from redrive.console.visit import Unusable, Visit
from redrive.model.durations import MINUTE_MS, SECOND_MS, read_duration
from redrive.model.outage import FAILURES
from redrive.model.retry import RetryCurve, RetrySchedule
from redrive.model.retry_plans import EVENT_WEBHOOK, FUNCTION_ERROR, PLANS, RetryPlan

POLICY: Final = "http"
EVENT_GRID: Final = "event-grid"
FUNCTION: Final = "function"
SPAN_MAX_MS: Final = 60 * 24 * 60 * MINUTE_MS
_NAMES: Final = {POLICY: "HTTP/S, by a delivery policy", EVENT_GRID: "Event Grid, by a retry policy"}
CHOICES: Final = [(name, _NAMES.get(name, plan.title)) for name, plan in PLANS.items()]
_CURVES: Final = tuple(RetryCurve)
_CURVE: Final = "backoffFunction"
_TEXT_CHARS_MAX: Final = 8192
_DIGITS_MAX: Final = 18
_SPANS: Final = ("outage", "attempt")


@dataclass(frozen=True, slots=True)
class Field:
    """A number that can be typed."""

    name: str  # As the service calls it
    value: str  # As it was typed, or its default
    least: int = 0  # Nothing below is taken
    most: int = 0  # Nothing above is taken
    choices: tuple[str, ...] = ()  # The texts that can be chosen instead of a number


_RETRIES: Final = ("numRetries", "numNoDelayRetries", "numMinDelayRetries", "numMaxDelayRetries")
_DELAYS: Final = ("minDelayTarget", "maxDelayTarget")
_DEFAULTS: Final = RetryPolicy().to_document()
_EVENT_ATTEMPTS: Final = EVENT_WEBHOOK.retries_max + 1
_EVENT_MINUTES: Final = (EVENT_WEBHOOK.expires_after_ms or 0) // MINUTE_MS
_FUNCTION_SECONDS: Final = (FUNCTION_ERROR.expires_after_ms or 0) // SECOND_MS

# Each field's name, default, least and most. Event Grid and Lambda take nothing above their defaults.
_LIMITS: Final[Mapping[str, tuple[tuple[str, int, int, int], ...]]] = {
    POLICY: (
        *((name, _DEFAULTS[name], 0, RETRIES_MAX) for name in _RETRIES),
        *((name, _DEFAULTS[name], 1, DELAY_SECONDS_MAX) for name in _DELAYS),
    ),
    EVENT_GRID: (
        ("maxDeliveryAttempts", _EVENT_ATTEMPTS, 1, _EVENT_ATTEMPTS),
        ("eventTimeToLiveInMinutes", _EVENT_MINUTES, 1, _EVENT_MINUTES),
    ),
    FUNCTION: (
        ("maximumRetryAttempts", FUNCTION_ERROR.retries_max, 0, FUNCTION_ERROR.retries_max),
        ("maximumEventAgeInSeconds", _FUNCTION_SECONDS, 60, _FUNCTION_SECONDS),
    ),
}


@dataclass(frozen=True, slots=True)
class Lab:
    """The state of the lab."""

    kind: str  # One of `CHOICES`
    fields: tuple[Field, ...]  # Form fields
    plan: RetryPlan | None  # The schedule; None: what was typed gives none
    refused: str  # Reason why there is no schedule
    refused_field: str  # Name of the invalid field; empty: none, or several
    outage_ms: int  # How long the endpoint is down
    attempt_ms: int  # How long each attempt takes
    failure: str  # How attempts fail: a name of `FAILURES`


def lab_of(visit: Visit) -> Lab:
    """The lab as a visit asks for it."""
    kind = visit.parameter("plan", POLICY)
    kind = kind if kind in PLANS else POLICY
    failure = visit.parameter("fails", "503")
    plan, refusal, outage_ms, attempt_ms = None, "", 0, 0
    fields = tuple(_fields(visit, kind))
    try:
        outage_ms, attempt_ms = _span(visit, "outage", "40 min"), _span(visit, "attempt", "0 s")
        plan = _plan(visit, kind, fields)
        if visit.parameter("policy").strip() and isinstance(plan, PolicyPlan):
            fields = tuple(_of_policy(plan.policy))
    except (DeliveryPolicyInvalid, Unusable) as error:
        refusal = str(error)
    failure = failure if failure in FAILURES else "503"
    at_fault = _at_fault(visit, fields, refusal) if refusal else ""
    return Lab(kind, fields, plan, refusal, at_fault, outage_ms, attempt_ms, failure)


def lab_parameters(schedule: RetrySchedule, plan: str) -> dict[str, str | int]:
    """The lab's parameters for a schedule of Event Grid or of a function's invocations; else for this plan."""
    to_live_ms, attempts = schedule.expires_after_ms or 0, schedule.retries_max + 1
    if schedule.stages == EVENT_WEBHOOK.stages:
        minutes = to_live_ms // MINUTE_MS
        return {"plan": EVENT_GRID, "maxDeliveryAttempts": attempts, "eventTimeToLiveInMinutes": minutes}
    if schedule.stages == FUNCTION_ERROR.stages:
        seconds = to_live_ms // SECOND_MS
        return {"plan": FUNCTION, "maximumRetryAttempts": attempts - 1, "maximumEventAgeInSeconds": seconds}
    return {"plan": plan}


def _at_fault(visit: Visit, fields: tuple[Field, ...], refused: str) -> str:
    """The field that a refusal names; a pasted policy is one field."""
    if visit.parameter("policy").strip():
        return "policy"
    names = (*(field.name for field in fields), *_SPANS)
    return next((name for name in names if re.search(rf"\b{name}\b", refused)), "")


def _span(visit: Visit, name: str, default: str) -> int:
    """A time (ms) that the form names, 60 days at most; raises Unusable."""
    text = visit.parameter(name, default)[:40].strip() or default
    try:
        span_ms = read_duration(text)
    except ValueError as error:
        raise Unusable(f"{name}: {error}") from None
    if span_ms > SPAN_MAX_MS:
        raise Unusable(f"{name}: {text!r} is longer than 60 days")
    return span_ms


def _fields(visit: Visit, kind: str) -> list[Field]:
    """The fields of a kind of plan, with what was typed into them or their defaults."""
    fields = [
        Field(name, visit.parameter(name, str(default)), least, most)
        for name, default, least, most in _LIMITS.get(kind, ())
    ]
    if kind == POLICY:
        fields.append(Field(_CURVE, visit.parameter(_CURVE, str(_DEFAULTS[_CURVE])), choices=_CURVES))
    return fields


def _of_policy(policy: RetryPolicy) -> list[Field]:
    document = policy.to_document()
    fields = [Field(name, str(document[name]), least, most) for name, _, least, most in _LIMITS[POLICY]]
    return [*fields, Field(_CURVE, str(document[_CURVE]), choices=_CURVES)]


def _plan(visit: Visit, kind: str, fields: tuple[Field, ...]) -> RetryPlan:
    """The plan that the fields, or a pasted delivery policy, describe; raises Unusable."""
    pasted = visit.parameter("policy").strip()
    if kind == POLICY and pasted:
        if len(pasted) > _TEXT_CHARS_MAX:
            raise Unusable("The policy is too long.")
        return read_plan("The pasted policy", pasted)
    if kind == POLICY:
        retry = {field.name: field.value if field.choices else _typed(field) for field in fields}
        return read_plan("HTTP/S by this policy", orjson.dumps({"healthyRetryPolicy": retry}).decode())
    numbers = [_within(field) for field in fields]
    if kind == EVENT_GRID:
        attempts_max, minutes = numbers
        schedule = replace(EVENT_WEBHOOK, attempts_max=attempts_max, expires_after_ms=minutes * MINUTE_MS)
        return RetryPlan("Event Grid by this retry policy", schedule)
    if kind == FUNCTION:
        retries, seconds = numbers
        schedule = replace(FUNCTION_ERROR, attempts_max=1 + retries, expires_after_ms=seconds * SECOND_MS)
        return RetryPlan("A function that fails, invoked asynchronously", schedule)
    return PLANS[kind]


def _typed(field: Field) -> int:
    """A number as it was typed; whether it is one that SNS takes is said in SNS's words."""
    text = field.value.strip()
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > _DIGITS_MAX:
        raise Unusable(f"{field.name}: {text[:40]!r} is no whole number")
    return int(text)


def _within(field: Field) -> int:
    number = _typed(field)
    if not field.least <= number <= field.most:
        raise Unusable(f"{field.name}: {number:,} is not from {field.least:,} to {field.most:,}")
    return number
