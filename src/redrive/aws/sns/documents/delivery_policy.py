"""HTTP/S delivery policies as values: those of topics and subscriptions, and the effective one.

A policy has three members: retry, throttle and request. A subscription's member stands over the topic's, the
topic's over the published default, each as a whole. `delivery_policy_reader` reads the JSON; this file writes
it, in the recorded order of its keys.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from redrive.model.retry import Phase, RetryCurve, RetrySchedule, Stage
from redrive.model.retry_plans import HTTP_DEFAULT

CONTENT_TYPE_DEFAULT: Final = "text/plain; charset=UTF-8"
_SECOND_MS: Final = 1000
(_DEFAULT,) = HTTP_DEFAULT.stages

# Each attribute's name on the wire and its field, in the order in which the service writes them.
RETRY_ATTRIBUTES: Final = {
    "minDelayTarget": "delay_seconds_min",
    "maxDelayTarget": "delay_seconds_max",
    "numRetries": "retries",
    "numMaxDelayRetries": "max_delay_retries",
    "numNoDelayRetries": "no_delay_retries",
    "numMinDelayRetries": "min_delay_retries",
    "backoffFunction": "curve",
}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The seven attributes of a retry policy, completed with the published defaults."""

    # minDelayTarget: the pre-backoff's delay and the backoff's first.
    delay_seconds_min: int = _DEFAULT.first_ms // _SECOND_MS
    # maxDelayTarget: the backoff's last delay and the post-backoff's.
    delay_seconds_max: int = _DEFAULT.last_ms // _SECOND_MS
    retries: int = _DEFAULT.retries  # numRetries: retries of all phases; what no phase claims is the backoff
    max_delay_retries: int = 0  # numMaxDelayRetries: the post-backoff
    no_delay_retries: int = 0  # numNoDelayRetries: the immediate retries
    min_delay_retries: int = 0  # numMinDelayRetries: the pre-backoff
    curve: RetryCurve = _DEFAULT.curve  # backoffFunction
    # The attributes that the policy named itself, by their names on the wire.
    members: frozenset[str] = frozenset()

    @property
    def backoff_retries(self) -> int:
        """The retries of the backoff; negative where the phases claim more than there are."""
        return self.retries - self.no_delay_retries - self.min_delay_retries - self.max_delay_retries

    def schedule(self) -> RetrySchedule:
        """The schedule that the engine retries by."""
        first_ms, last_ms = self.delay_seconds_min * _SECOND_MS, self.delay_seconds_max * _SECOND_MS
        stages = (
            Stage(Phase.IMMEDIATE, self.no_delay_retries, 0, 0),
            Stage(Phase.PRE_BACKOFF, self.min_delay_retries, first_ms, first_ms),
            Stage(Phase.BACKOFF, self.backoff_retries, first_ms, last_ms, self.curve),
            Stage(Phase.POST_BACKOFF, self.max_delay_retries, last_ms, last_ms),
        )
        return RetrySchedule(tuple(stage for stage in stages if stage.retries))

    def to_document(self) -> dict[str, Any]:
        """All seven attributes by their names on the wire."""
        return {name: getattr(self, field) for name, field in RETRY_ATTRIBUTES.items()}

    def explicit_document(self) -> dict[str, Any]:
        """Only the attributes that the policy named itself."""
        return {name: value for name, value in self.to_document().items() if name in self.members}


@dataclass(frozen=True, slots=True)
class TopicDeliveryPolicy:
    """The delivery policy of a topic for HTTP/S; None for a member that it leaves out."""

    retry: RetryPolicy | None = None  # defaultHealthyRetryPolicy
    receives_per_second_max: int | None = None  # From `defaultThrottlePolicy`, for each subscription
    content_type: str | None = None  # From `defaultRequestPolicy`
    # disableSubscriptionOverrides: the subscriptions' own policies do not count.
    disables_overrides: bool = False

    def to_json(self) -> str:
        """The topic's `DeliveryPolicy` attribute: what was given, and always disableSubscriptionOverrides."""
        return _topic_json(self, self.retry.explicit_document() if self.retry else None)

    def effective_json(self) -> str:
        """The topic's `EffectiveDeliveryPolicy`: completed; a throttle appears only where one was set."""
        effective_policy = replace(self, content_type=self.content_type or CONTENT_TYPE_DEFAULT)
        return _topic_json(effective_policy, (self.retry or RetryPolicy()).to_document())


@dataclass(frozen=True, slots=True)
class SubscriptionDeliveryPolicy:
    """The delivery policy of an HTTP/S subscription, its own or the effective one; None for a member left out."""

    retry: RetryPolicy | None = None  # healthyRetryPolicy
    receives_per_second_max: int | None = None  # From `throttlePolicy`
    content_type: str | None = None  # From `requestPolicy`
    # sicklyRetryPolicy: written back, otherwise without effect; deprecated.
    sickly_retry: RetryPolicy | None = None
    guaranteed: bool = False  # Written back, otherwise without effect; deprecated

    def to_json(self) -> str:
        """The subscription's (Effective)DeliveryPolicy attribute: every member, null or whole."""
        return _dump(
            {
                "healthyRetryPolicy": self.retry.to_document() if self.retry else None,
                "sicklyRetryPolicy": self.sickly_retry.to_document() if self.sickly_retry else None,
                "throttlePolicy": _throttle_document(self.receives_per_second_max),
                "requestPolicy": _request_document(self.content_type),
                "guaranteed": self.guaranteed,
            }
        )


def effective_policy(
    subscription: SubscriptionDeliveryPolicy | None, topic: TopicDeliveryPolicy | None
) -> SubscriptionDeliveryPolicy:
    """The effective policy of an HTTP/S subscription: its own members over the topic's over the published defaults.

    Where the topic disables overrides, the subscription's policy is as good as absent. That case was never seen
    on the wire; it is what the attribute's name promises. Retry and request policy are always there.
    """
    own = SubscriptionDeliveryPolicy() if subscription is None else subscription
    shared = TopicDeliveryPolicy() if topic is None else topic
    if shared.disables_overrides:
        own = SubscriptionDeliveryPolicy()
    return replace(
        own,
        retry=own.retry or shared.retry or RetryPolicy(),
        receives_per_second_max=own.receives_per_second_max or shared.receives_per_second_max,
        content_type=own.content_type or shared.content_type or CONTENT_TYPE_DEFAULT,
    )


def _topic_json(policy: TopicDeliveryPolicy, retry: dict[str, Any] | None) -> str:
    """A topic's delivery policy in JSON, with `retry` for its retry policy; what is None is left out."""
    members = {
        "defaultHealthyRetryPolicy": retry,
        "disableSubscriptionOverrides": policy.disables_overrides,
        "defaultThrottlePolicy": _throttle_document(policy.receives_per_second_max),
        "defaultRequestPolicy": _request_document(policy.content_type),
    }
    return _dump({"http": {name: member for name, member in members.items() if member is not None}})


def _throttle_document(receives_per_second_max: int | None) -> dict[str, int] | None:
    return {"maxReceivesPerSecond": receives_per_second_max} if receives_per_second_max else None


def _request_document(content_type: str | None) -> dict[str, str] | None:
    return {"headerContentType": content_type} if content_type else None


def _dump(document: dict[str, Any]) -> str:
    return orjson.dumps(document).decode()
