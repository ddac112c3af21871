"""Reading delivery policies: the JSON of topics and subscriptions, held to the nine attributes' rules.

What a retry policy leaves out is completed from the published defaults, so that the guide's own example,
`{"healthyRetryPolicy":{"numRetries":5}}`, is whole. Null counts as left out. An unknown name is refused: a
misspelt attribute would otherwise be a default that nobody asked for.

Texts marked "chosen" were never seen on the wire; the others were, or follow the pattern of one that was.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Self, TypeGuard

import orjson

from redrive.model.errors import RedriveError
from redrive.model.retry_curves import Curve
from redrive.protocols.aws.sns.delivery_policy import (
    RETRY_ATTRIBUTES,
    RetryPolicy,
    SubscriptionDeliveryPolicy,
    TopicDeliveryPolicy,
)

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
_COUNTS: Final = ("numNoDelayRetries", "numMinDelayRetries", "numMaxDelayRetries")


class DeliveryPolicyInvalid(RedriveError):  # noqa: N818 - an answer, named as a caller says it
    """The policy breaks a rule; the text begins with `DeliveryPolicy: ` and names the attribute by its path."""


def read_topic_policy(text: str) -> TopicDeliveryPolicy:
    """Read a topic's `DeliveryPolicy`.

    Raises:
        DeliveryPolicyInvalid: The text is no JSON object, or breaks a rule.
    """
    root = _Members.of_json(text, {"http"})
    http = root.member("http", _TOPIC_MEMBERS)
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
    root = _Members.of_json(text, _SUBSCRIPTION_MEMBERS)
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


@dataclass(frozen=True, slots=True)
class _Members:
    """One JSON object of a policy, and the path at which it stands."""

    path: str
    values: Mapping[str, Any]

    @classmethod
    def of_json(cls, text: str, known: AbstractSet[str]) -> Self:
        try:
            values = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise DeliveryPolicyInvalid(f"DeliveryPolicy: failed to parse JSON. {error}") from error
        return cls._of("", values, known)

    @classmethod
    def _of(cls, path: str, values: object, known: AbstractSet[str]) -> Self:
        if not isinstance(values, dict):
            raise DeliveryPolicyInvalid(f"DeliveryPolicy: {path or 'policy'} must be a JSON object")  # chosen
        members = cls(path, {name: value for name, value in values.items() if value is not None})
        if unknown := values.keys() - known:
            members.refuse(f"{min(unknown)} is not a recognized attribute")  # chosen
        return members

    def member(self, name: str, known: AbstractSet[str]) -> Self | None:
        if name not in self.values:
            return None
        return self._of(f"{self.path}.{name}" if self.path else name, self.values[name], known)

    def integer(self, name: str, low: int, high: int | None = None) -> int | None:
        value = self.values.get(name)
        if value is None:
            return None
        if not _is_integer(value):
            self.refuse(f"{name} must be an integer")  # chosen
        if value < low:
            self.refuse(f"{name} must be greater than or equal to {low}")
        if high is not None and value > high:
            self.refuse(f"{name} must be less than or equal to {high}")
        return value

    def flag(self, name: str) -> bool:
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            self.refuse(f"{name} must be either true or false")  # chosen
        return value

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            self.refuse(f"{name} must be a string")  # chosen
        return value

    def refuse_choice(self, name: str, choices: Iterable[str]) -> NoReturn:
        self.refuse(f"{name} must be one of {', '.join(sorted(choices))}")  # chosen

    def refuse(self, rule: str) -> NoReturn:
        raise DeliveryPolicyInvalid(f"DeliveryPolicy: {self.path}{'.' if self.path else ''}{rule}")


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _retry_policy(parent: _Members, name: str) -> RetryPolicy | None:
    members = parent.member(name, RETRY_ATTRIBUTES.keys())
    if members is None:
        return None
    numbers = {
        "minDelayTarget": members.integer("minDelayTarget", 1),
        "maxDelayTarget": members.integer("maxDelayTarget", 0, DELAY_SECONDS_MAX),
        "numRetries": members.integer("numRetries", 0, RETRIES_MAX),
        **{count: members.integer(count, 0) for count in _COUNTS},
    }
    given = {RETRY_ATTRIBUTES[name]: number for name, number in numbers.items() if number is not None}
    policy = RetryPolicy(**given, curve=_curve(members), given=frozenset(members.values))
    _check_together(members, policy)
    return policy


def _curve(members: _Members) -> Curve:
    function = members.text("backoffFunction") or Curve.LINEAR
    if function not in frozenset(Curve):
        members.refuse_choice("backoffFunction", Curve)
    return Curve(function)


def _check_together(members: _Members, policy: RetryPolicy) -> None:
    if policy.delay_seconds_max < policy.delay_seconds_min:
        members.refuse("maxDelayTarget must be greater than or equal to minDelayTarget")
    if policy.backoff_retries < 0:
        members.refuse(
            "numRetries must be greater than or equal to total of numMinDelayRetries, numNoDelayRetries and "
            "numMaxDelayRetries"
        )
    if policy.schedule().total_ms() > TOTAL_SECONDS_MAX * 1000:
        members.refuse(
            f"total retry time must be less than or equal to {TOTAL_SECONDS_MAX} seconds"
        )  # chosen


def _throttle(parent: _Members, name: str) -> int | None:
    members = parent.member(name, frozenset({"maxReceivesPerSecond"}))
    return members.integer("maxReceivesPerSecond", 1) if members else None


def _content_type(parent: _Members, name: str, allowed: AbstractSet[str]) -> str | None:
    members = parent.member(name, frozenset({"headerContentType"}))
    content_type = members.text("headerContentType") if members else None
    # The default itself carries a parameter (charset=UTF-8): the rule is about the type alone.
    if members and content_type is not None and content_type.partition(";")[0].strip() not in allowed:
        members.refuse_choice("headerContentType", allowed)
    return content_type
