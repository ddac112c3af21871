"""Reading delivery policies: the JSON of topics and subscriptions, held to the nine attributes' rules.

What a retry policy leaves out is completed from the published defaults, so that the guide's own example,
`{"healthyRetryPolicy":{"numRetries":5}}`, is whole. Null counts as left out. An unknown name is refused: a
misspelt attribute would otherwise silently be a default.

Texts marked "chosen" were never seen on the wire, nor those of `JsonCursor` but the two about a number's range; the
others were, or follow the pattern of one that was.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, NoReturn

import orjson

from redrive.aws.kit.json_cursor import FaultTexts, JsonCursor, read_object
from redrive.aws.sns.documents.delivery_policy import (
    RETRY_ATTRIBUTES,
    RetryPolicy,
    SubscriptionDeliveryPolicy,
    TopicDeliveryPolicy,
    effective_policy,
)
from redrive.model.errors import RedriveError
from redrive.model.retry import RetryCurve
from redrive.model.retry_plans import RetryPlan

RETRIES_MAX: Final = 100
DELAY_SECONDS_MAX: Final = 3600
TOTAL_SECONDS_MAX: Final = 3600  # "cannot be increased"; the published waits, without the attempts' own time
CONTENT_TYPES: Final = frozenset({"application/json", "text/plain"})
RAW_CONTENT_TYPES: Final = CONTENT_TYPES | {
    "text/css",
    "text/csv",
    "text/html",
    "text/xml",
    "application/atom+xml",
    "application/octet-stream",
    "application/soap+xml",
    "application/x-www-form-urlencoded",
    "application/xhtml+xml",
    "application/xml",
}
_OPENING: Final = "DeliveryPolicy: "
_FAULT_TEXTS: Final = FaultTexts()
_COUNTS: Final = ("numNoDelayRetries", "numMinDelayRetries", "numMaxDelayRetries")


class DeliveryPolicyInvalid(RedriveError):  # noqa: N818 - an answer, named as a caller says it
    """The policy breaks a rule; the text begins with `DeliveryPolicy: ` and names the attribute by its path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPlan(RetryPlan):
    """The plan that a delivery policy asks for."""

    policy: RetryPolicy  # Its retry policy, completed


def read_plan(title: str, text: str) -> PolicyPlan:
    """The plan that a delivery policy asks for; a topic's has the member `http`, a subscription's has not.

    Raises:
        DeliveryPolicyInvalid: The text is no JSON object, or breaks a rule.
    """
    if _is_of_topic(text):
        policy = effective_policy(None, read_topic_policy(text))
    else:
        policy = effective_policy(read_subscription_policy(text, raw=True), None)
    retry = policy.retry or RetryPolicy()
    return PolicyPlan(title, retry.schedule(), policy.receives_per_second_max, policy=retry)


def _is_of_topic(text: str) -> bool:
    """True if a delivery policy is a topic's: it has the member `http`."""
    return "http" in (read_object(text) or {})


def read_topic_policy(text: str) -> TopicDeliveryPolicy:
    """Read a topic's `DeliveryPolicy`; raises DeliveryPolicyInvalid if it breaks a rule."""
    http = _member(_read_root(text, {"http"}), "http", _TOPIC_MEMBERS)
    if http is None:
        return TopicDeliveryPolicy()
    _retry_policy(http, "defaultSicklyRetryPolicy")  # deprecated: held to the rules, then forgotten
    return TopicDeliveryPolicy(
        retry=_retry_policy(http, "defaultHealthyRetryPolicy"),
        receives_per_second_max=_throttle(http, "defaultThrottlePolicy"),
        content_type=_content_type(http, "defaultRequestPolicy", CONTENT_TYPES),
        disables_overrides=http.flag("disableSubscriptionOverrides"),
    )


def read_subscription_policy(text: str, *, raw: bool) -> SubscriptionDeliveryPolicy:
    """Read a subscription's `DeliveryPolicy`.

    Args:
        text: The JSON.
        raw: Whether the subscription delivers raw messages, which may have ten content types more.

    Raises:
        DeliveryPolicyInvalid: The text is no JSON object, or breaks a rule.
    """
    root = _read_root(text, _SUBSCRIPTION_MEMBERS)
    return SubscriptionDeliveryPolicy(
        retry=_retry_policy(root, "healthyRetryPolicy"),
        receives_per_second_max=_throttle(root, "throttlePolicy"),
        content_type=_content_type(root, "requestPolicy", RAW_CONTENT_TYPES if raw else CONTENT_TYPES),
        sickly_retry=_retry_policy(root, "sicklyRetryPolicy"),
        guaranteed=root.flag("guaranteed"),
    )


_TOPIC_MEMBERS: Final = frozenset(
    {
        "defaultHealthyRetryPolicy",
        "defaultSicklyRetryPolicy",
        "defaultThrottlePolicy",
        "defaultRequestPolicy",
        "disableSubscriptionOverrides",
    }
)
_SUBSCRIPTION_MEMBERS: Final = frozenset(
    {"healthyRetryPolicy", "sicklyRetryPolicy", "throttlePolicy", "requestPolicy", "guaranteed"}
)


def _read_root(text: str, allowed_names: AbstractSet[str]) -> JsonCursor:
    try:
        values = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _invalid(f"failed to parse JSON. {error}") from error
    if not isinstance(values, dict):
        raise _invalid(f"policy {_FAULT_TEXTS.not_object}")  # chosen
    return _members(JsonCursor(values, _invalid, _FAULT_TEXTS), allowed_names)


def _members(members: JsonCursor, allowed_names: AbstractSet[str]) -> JsonCursor:
    members.only(allowed_names)
    return replace(
        members, members={name: value for name, value in members.members.items() if value is not None}
    )


def _member(parent: JsonCursor, name: str, allowed_names: AbstractSet[str]) -> JsonCursor | None:
    return _members(parent.object(name), allowed_names) if name in parent.members else None


def _invalid(text: str) -> DeliveryPolicyInvalid:
    return DeliveryPolicyInvalid(f"{_OPENING}{text}")


def _retry_policy(parent: JsonCursor, name: str) -> RetryPolicy | None:
    members = _member(parent, name, RETRY_ATTRIBUTES.keys())
    if members is None:
        return None
    numbers = {
        "minDelayTarget": members.integer("minDelayTarget", 1),
        "maxDelayTarget": members.integer("maxDelayTarget", 0, DELAY_SECONDS_MAX),
        "numRetries": members.integer("numRetries", 0, RETRIES_MAX),
        **{count: members.integer(count, 0) for count in _COUNTS},
    }
    fields = {RETRY_ATTRIBUTES[member]: number for member, number in numbers.items() if number is not None}
    policy = RetryPolicy(**fields, curve=_retry_curve(members), members=frozenset(members.members))
    _check_combination(members, policy)
    return policy


def _retry_curve(members: JsonCursor) -> RetryCurve:
    if "backoffFunction" not in members.members:
        return RetryCurve.LINEAR
    # The guide's table writes capitals.
    function = members.text("backoffFunction").lower() or RetryCurve.LINEAR
    if function not in frozenset(RetryCurve):
        _refuse_choice(members, "backoffFunction", RetryCurve)
    return RetryCurve(function)


def _refuse_choice(members: JsonCursor, name: str, choices: Iterable[str]) -> NoReturn:
    members.refuse(name, f"must be one of {', '.join(sorted(choices))}")  # chosen


def _check_combination(members: JsonCursor, policy: RetryPolicy) -> None:
    if policy.delay_seconds_max < policy.delay_seconds_min:
        members.refuse("maxDelayTarget", "must be greater than or equal to minDelayTarget")
    if policy.backoff_retries < 0:
        members.refuse(
            "numRetries",
            "must be greater than or equal to total of numMinDelayRetries, numNoDelayRetries and numMaxDelayRetries",
        )
    if policy.schedule().total_ms() > TOTAL_SECONDS_MAX * 1000:
        rule = f"must be less than or equal to {TOTAL_SECONDS_MAX} seconds"
        members.refuse("total retry time", rule)  # chosen


def _throttle(parent: JsonCursor, name: str) -> int | None:
    members = _member(parent, name, frozenset({"maxReceivesPerSecond"}))
    return members.integer("maxReceivesPerSecond", 1) if members else None


def _content_type(parent: JsonCursor, name: str, allowed: AbstractSet[str]) -> str | None:
    members = _member(parent, name, frozenset({"headerContentType"}))
    if members is None or "headerContentType" not in members.members:
        return None
    content_type = members.text("headerContentType")
    if not _is_allowed(content_type, allowed):
        _refuse_choice(members, "headerContentType", allowed)
    return content_type


def is_for_raw_delivery_alone(content_type: str) -> bool:
    """Returns whether notifications cannot have a content type that raw messages can."""
    return not _is_allowed(content_type, CONTENT_TYPES)


def _is_allowed(content_type: str, allowed: AbstractSet[str]) -> bool:
    # The default itself carries a parameter (charset=UTF-8): the rule is about the type alone.
    return content_type.partition(";")[0].strip() in allowed
