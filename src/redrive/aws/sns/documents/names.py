"""Names of SNS: the ARNs of topics, subscriptions, platform applications and platform endpoints."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from redrive.aws.kit.call import Call
from redrive.aws.sns.documents.errors import invalid
from redrive.aws.wire.arn import Arn, parse_arn, read_arn
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription

FIFO_SUFFIX: Final = ".fifo"
_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
_TOPIC_NAME_CHARS_MAX: Final = 256
_SUBSCRIPTION_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def arn_of(topic: ResourceName) -> str:
    """The topic's ARN."""
    return f"arn:aws:sns:{topic.region}:{topic.account}:{topic.name}"


def subscription_arn(subscription: Subscription) -> str:
    """The subscription's ARN."""
    return subscription_arn_in(subscription.topic, subscription.id)


def subscription_arn_in(topic: ResourceName, subscription_id: str) -> str:
    """The ARN of a subscription of that id."""
    return f"{arn_of(topic)}:{subscription_id}"


def check_topic_name(name: str, *, fifo: bool) -> None:
    """Refuse a name that no topic may have; raises AwsError (`InvalidParameter`)."""
    stem = name.removesuffix(FIFO_SUFFIX) if fifo else name
    if fifo != name.endswith(FIFO_SUFFIX) or len(name) > _TOPIC_NAME_CHARS_MAX:
        raise invalid("Topic Name")
    if not _TOPIC_NAME.fullmatch(stem):
        raise invalid("Topic Name")


def topic_in(call: Call, arn: str, parameter: str = "TopicArn") -> ResourceName:
    """The topic that an ARN means; the caller's region must be its own.

    Raises:
        AwsError: `InvalidParameter`: it is not a topic's ARN, or another region's.
    """
    parsed = sns_arn(arn, parameter)
    if parsed.region != call.region or not parsed.resource or ":" in parsed.resource:
        raise invalid(parameter)
    return ResourceName(parsed.account, parsed.region, parsed.resource)


class SubscriptionName(NamedTuple):
    """The parts of a subscription's ARN: its topic, and its id within the topic."""

    topic: ResourceName
    id: str


def subscription_in(arn: str) -> SubscriptionName:
    """The subscription that an ARN means, of any region: the links in messages are calls without a region.

    Raises:
        AwsError: `InvalidParameter`: it is not a subscription's ARN.
    """
    parsed = sns_arn(arn, "SubscriptionArn")
    topic, _, subscription_id = parsed.resource.partition(":")
    if not topic or not _SUBSCRIPTION_ID.fullmatch(subscription_id):
        raise invalid("SubscriptionId")
    return SubscriptionName(ResourceName(parsed.account, parsed.region, topic), subscription_id)


def sns_arn(arn: str, parameter: str) -> Arn:
    """An ARN of this service, without a slash in any part that names a topic.

    Raises:
        AwsError: `InvalidParameter`, naming the parameter.
    """
    parsed = any_arn(arn, parameter)
    if parsed.service != "sns" or "/" in parsed.account + parsed.region + parsed.resource:
        raise invalid(parameter)
    return parsed


def any_arn(arn: str, parameter: str) -> Arn:
    """An ARN of any service; raises AwsError (`InvalidParameter`, naming the parameter and what is wrong)."""
    try:
        return parse_arn(arn)
    except ValueError as fault:
        raise invalid(f"{parameter} Reason: {fault}") from None


# Called at every delivery, for endpoints that Subscribe has accepted: `destinations` bounds their length.
@lru_cache(maxsize=4096)
def queue_in(arn: str) -> ResourceName | None:
    """The queue that an ARN means, or None if it is not a queue's."""
    parsed = read_arn(arn)
    if parsed is None or parsed.service != "sqs" or not (parsed.region and parsed.account):
        return None
    if "/" in arn or ":" in parsed.resource:
        return None
    return ResourceName(parsed.account, parsed.region, parsed.resource)
