"""Topic attributes: SNS's strings on one side, a topic's fields on the other.

What the engine acts on are fields of `Topic`; what only this facade acts on (policies, feedback roles) stays in
`Topic.attributes` as SNS spells it. `SetTopicAttributes` takes the value away where it is set to the empty string.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import product
from typing import Final

from redrive.model.queue import DAY_MS, ResourceName
from redrive.model.topic import Topic
from redrive.protocols.aws.sns import json_text, names, topic_policy, values
from redrive.protocols.aws.sns.delivery_policy import TopicDeliveryPolicy
from redrive.protocols.aws.sns.delivery_policy_reader import DeliveryPolicyInvalid, read_topic_policy
from redrive.protocols.aws.sns.errors import AttributeRefused

DIALECT: Final = "sns"
DISPLAY_NAME_CHARS_MAX: Final = 100
ARCHIVE_DAYS_MAX: Final = 365

DELIVERY_POLICY: Final = "DeliveryPolicy"
DATA_PROTECTION_POLICY: Final = "DataProtectionPolicy"  # has operations of its own and is not shown
DELETED: Final = "SubscriptionsDeleted"  # counted here, and shown
_ARCHIVED_SINCE: Final = "BeginningArchiveTime"  # kept as milliseconds
_FIFO: Final = "FifoTopic"
_CONTENT_DEDUPLICATION: Final = "ContentBasedDeduplication"
_ARCHIVE_POLICY: Final = "ArchivePolicy"

_SCOPES: Final = {"Topic": False, "MessageGroup": True}
# The protocols whose deliveries can be logged; HTTP stands for HTTPS too.
_FEEDBACK_PROTOCOLS: Final = ("HTTP", "Firehose", "Lambda", "Application", "SQS")
_FEEDBACK_ROLE: Final = re.compile(rf"({'|'.join(_FEEDBACK_PROTOCOLS)})(Success|Failure)FeedbackRoleArn")
_FEEDBACK_RATE: Final = re.compile(rf"({'|'.join(_FEEDBACK_PROTOCOLS)})SuccessFeedbackSampleRate")
_KEPT: Final = (
    "KmsMasterKeyId",
    "SignatureVersion",
    "TracingConfig",
    "FifoThroughputScope",
    _ARCHIVE_POLICY,
    *(f"{protocol}SuccessFeedbackSampleRate" for protocol in _FEEDBACK_PROTOCOLS),
    *(
        f"{protocol}{outcome}FeedbackRoleArn"
        for protocol, outcome in product(_FEEDBACK_PROTOCOLS, ("Success", "Failure"))
    ),
)


def new_topic(name: ResourceName, given: Mapping[str, str], tags: Mapping[str, str], now: int) -> Topic:
    """The topic that CreateTopic asks for, not stored yet.

    Raises:
        AwsError: No topic may have the name.
        AttributeRefused: An attribute is not acceptable.
    """
    fifo = values.boolean(_FIFO, given.get(_FIFO, "false"))
    names.check_topic_name(name.name, fifo=fifo)
    topic = Topic(0, name, DIALECT, ordered=fifo, tags=dict(tags))
    for key, value in given.items():
        if key != _FIFO:
            topic = _with(topic, key, value, now)
    return topic


def _with(topic: Topic, name: str, value: str, now: int) -> Topic:
    try:
        return changed(topic, name, value, now)
    except values.AttributeUnknown:  # recorded in a region that had no FIFO topics yet, of `FifoTopic`
        raise AttributeRefused(f"Unknown attribute {name}") from None


def changed(topic: Topic, name: str, value: str, now: int) -> Topic:
    """The topic with one attribute changed.

    Raises:
        AttributeRefused: The attribute is unknown, of the other kind of topic, or not acceptable.
    """
    if _FEEDBACK_ROLE.fullmatch(name):
        return _keep(topic, name, values.role_arn(name, value) if value else None)
    if _FEEDBACK_RATE.fullmatch(name):
        return _keep(topic, name, values.percentage(name, value))
    if name == _ARCHIVE_POLICY:
        return _change_archive(topic, value, now)
    change = _CHANGES.get(name)
    if change is None:
        raise values.AttributeUnknown
    return change(topic, value)


def _keep(topic: Topic, name: str, value: str | None) -> Topic:
    attributes = {key: kept for key, kept in topic.attributes.items() if key != name}
    if value is not None:
        attributes[name] = value
    return replace(topic, attributes=attributes)


# ---- one function an attribute -------------------------------------------------------------------------------


def _change_display_name(topic: Topic, value: str) -> Topic:
    if len(value) > DISPLAY_NAME_CHARS_MAX:
        raise AttributeRefused(f"DisplayName: must be at most {DISPLAY_NAME_CHARS_MAX} characters")  # chosen
    return _keep(topic, "DisplayName", value or None)


def _change_policy(topic: Topic, value: str) -> Topic:
    if value:
        topic_policy.check(value)
    return _keep(topic, topic_policy.POLICY, value or None)


def _change_delivery_policy(topic: Topic, value: str) -> Topic:
    if not value:
        return _keep(topic, DELIVERY_POLICY, None)
    json_text.read(DELIVERY_POLICY, value)
    try:
        policy = read_topic_policy(value)
    except DeliveryPolicyInvalid as refusal:
        raise AttributeRefused(str(refusal)) from refusal
    return _keep(topic, DELIVERY_POLICY, policy.to_json())


def _change_key(topic: Topic, value: str) -> Topic:
    return _keep(topic, "KmsMasterKeyId", value or None)


def _change_signature_version(topic: Topic, value: str) -> Topic:
    return _keep(topic, "SignatureVersion", values.one_of("SignatureVersion", value, ("1", "2")))


def _change_tracing(topic: Topic, value: str) -> Topic:
    return _keep(topic, "TracingConfig", values.one_of("TracingConfig", value, ("PassThrough", "Active")))


def _only_fifo(topic: Topic) -> None:
    if not topic.ordered:
        raise values.AttributeUnknown


def _change_content_deduplication(topic: Topic, value: str) -> Topic:
    _only_fifo(topic)
    return replace(topic, deduplicates_content=values.boolean(_CONTENT_DEDUPLICATION, value))


def _change_throughput_scope(topic: Topic, value: str) -> Topic:
    _only_fifo(topic)
    scope = values.one_of("FifoThroughputScope", value, tuple(_SCOPES))
    return replace(_keep(topic, "FifoThroughputScope", scope), deduplicates_per_group=_SCOPES[scope])


def _change_archive(topic: Topic, value: str, now: int) -> Topic:
    """Archive from now on, for another time, or no more; `{}` is how a policy is taken away."""
    _only_fifo(topic)
    days = _archive_days(value) if value else None
    if days is None:
        return replace(_keep(_keep(topic, _ARCHIVE_POLICY, None), _ARCHIVED_SINCE, None), archive_ms=0)
    since = topic.attributes.get(_ARCHIVED_SINCE, str(now))
    archiving = _keep(_keep(topic, _ARCHIVE_POLICY, value), _ARCHIVED_SINCE, since)
    return replace(archiving, archive_ms=days * DAY_MS)


def _archive_days(value: str) -> int | None:
    document = json_text.read_object(_ARCHIVE_POLICY, value)
    if not document:
        return None
    days = str(document.get("MessageRetentionPeriod"))
    known = set(document) == {"MessageRetentionPeriod"}
    if not (known and days.isascii() and days.isdigit() and 1 <= int(days[:9]) <= ARCHIVE_DAYS_MAX):
        raise AttributeRefused(f"{_ARCHIVE_POLICY}: MessageRetentionPeriod value is invalid")
    return int(days)


_CHANGES: Final[Mapping[str, Callable[[Topic, str], Topic]]] = {
    _CONTENT_DEDUPLICATION: _change_content_deduplication,
    DELIVERY_POLICY: _change_delivery_policy,
    "DisplayName": _change_display_name,
    "FifoThroughputScope": _change_throughput_scope,
    "KmsMasterKeyId": _change_key,
    topic_policy.POLICY: _change_policy,
    "SignatureVersion": _change_signature_version,
    "TracingConfig": _change_tracing,
}

# ---- writing ---------------------------------------------------------------------------------------------------


def delivery_policy(topic: Topic) -> TopicDeliveryPolicy:
    """The topic's delivery policy, without members where it has none."""
    text = topic.attributes.get(DELIVERY_POLICY)
    return TopicDeliveryPolicy() if text is None else _read(text)


# Asked for at each attempt of an HTTP/S subscription.
_read = lru_cache(maxsize=1024)(read_topic_policy)


def shown(topic: Topic, confirmed: int, pending: int, now: int) -> dict[str, str]:
    """The attributes that GetTopicAttributes answers.

    Args:
        topic: Whose.
        confirmed: How many of its subscriptions are.
        pending: How many wait for confirmation.
        now: ms.
    """
    shown = _set(topic) | {
        "Owner": topic.name.account,
        "TopicArn": names.arn_of(topic.name),
        "EffectiveDeliveryPolicy": delivery_policy(topic).effective_json(),
        "SubscriptionsConfirmed": str(confirmed),
        "SubscriptionsPending": str(pending),
        DELETED: topic.attributes.get(DELETED, "0"),
    }
    if since := topic.attributes.get(_ARCHIVED_SINCE):
        shown[_ARCHIVED_SINCE] = _iso(max(int(since), now - topic.archive_ms))
    return shown


def _set(topic: Topic) -> dict[str, str]:
    """What has been or could have been set."""
    attributes = {
        topic_policy.POLICY: topic_policy.text_of(topic),
        "DisplayName": topic.attributes.get("DisplayName", ""),
    }
    if DELIVERY_POLICY in topic.attributes:
        attributes[DELIVERY_POLICY] = topic.attributes[DELIVERY_POLICY]
    attributes |= {name: topic.attributes[name] for name in _KEPT if name in topic.attributes}
    if topic.ordered:
        attributes[_FIFO] = "true"
        attributes[_CONTENT_DEDUPLICATION] = str(topic.deduplicates_content).lower()
    return attributes


def _iso(moment_ms: int) -> str:
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def differ(existing: Topic, wanted: Topic, given: Iterable[str]) -> bool:
    """Whether an attribute given at a repeated creation differs from what stands; `FifoTopic=false` never does."""
    stands, asked = _set(existing), _set(wanted)
    return any(stands.get(name) != asked.get(name) for name in given)
