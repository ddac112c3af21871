"""Retry schedules by name, and the one that a delivery policy asks for."""

from dataclasses import dataclass
from typing import Final

import orjson

from redrive.model.retry import RetrySchedule
from redrive.model.retry_plans import (
    CUSTOMER_ENDPOINT,
    EVENT_WEBHOOK,
    FUNCTION_ERROR,
    HTTP_DEFAULT,
    MANAGED_ENDPOINT,
)
from redrive.protocols.aws.sns.delivery_policy import RetryPolicy, effective_policy
from redrive.protocols.aws.sns.delivery_policy_reader import read_subscription_policy, read_topic_policy


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule, and what it is the schedule of.

    Attributes:
        title: For people.
        schedule: When failed deliveries are tried again.
        receives_per_second_max: The policy's throttle; None for none.
        policy: The retry policy of HTTP/S that the schedule comes from; None: none can be given.
    """

    title: str
    schedule: RetrySchedule
    receives_per_second_max: int | None = None
    policy: RetryPolicy | None = None


#: The schedules that nobody configures.
PLANS: Final = {
    "managed": Plan("Queues, functions and delivery streams", MANAGED_ENDPOINT),
    "customer": Plan("Mail, text messages and mobile push", CUSTOMER_ENDPOINT),
    "http": Plan("HTTP/S without a delivery policy", HTTP_DEFAULT, policy=RetryPolicy()),
    "event-grid": Plan("Event Grid without a retry policy", EVENT_WEBHOOK),
    "function": Plan("A function that fails, invoked asynchronously", FUNCTION_ERROR),
}
PLAN_OF_PROTOCOL: Final = {
    **dict.fromkeys(("firehose", "lambda", "sqs"), "managed"),
    **dict.fromkeys(("application", "email", "email-json", "sms"), "customer"),
}


def read_plan(title: str, text: str) -> Plan:
    """The plan that a delivery policy asks for; a topic's has the member `http`, a subscription's has not.

    Raises:
        DeliveryPolicyInvalid: The text is no JSON object, or breaks a rule.
    """
    if _is_a_topics(text):
        policy = effective_policy(None, read_topic_policy(text))
    else:
        policy = effective_policy(read_subscription_policy(text, raw=True), None)
    retry = policy.retry or RetryPolicy()
    return Plan(title, retry.schedule(), policy.receives_per_second_max, retry)


def _is_a_topics(text: str) -> bool:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False  # the reader says what is wrong with it
    return isinstance(document, dict) and "http" in document
