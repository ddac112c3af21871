"""Topic attributes: SNS's strings on one side, a topic's fields on the other.

What the engine acts on are fields of `Topic`; what only this facade acts on (policies, feedback roles) stays in
`Topic.attributes` as SNS spells it. `SetTopicAttributes` takes the value away where it is set to the empty string.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from redrive.aws.kit.attributes import (
    BOOLEAN,
    PERCENTAGE,
    ROLE_ARN,
    AttributeTable,
    ResourceAttribute,
    ValueReader,
    choice,
    whole_number,
    with_text,
)
from redrive.aws.sns.documents import json_text, names, topic_policy, values
from redrive.aws.sns.documents.delivery_policy import TopicDeliveryPolicy
from redrive.aws.sns.documents.delivery_policy_reader import DeliveryPolicyInvalid, read_topic_policy
from redrive.aws.sns.documents.destinations import PROTOCOLS
from redrive.aws.sns.documents.errors import AttributeRefused
from redrive.aws.sns.documents.message import MAXIMUM_SIZE
from redrive.model.memo import remembered
from redrive.model.names import ResourceName
from redrive.model.queue import DAY_MS
from redrive.model.topic import Topic

DIALECT: Final = "sns"
DISPLAY_NAME_CHARS_MAX: Final = 100
ARCHIVE_DAYS_MAX: Final = 365

DELIVERY_POLICY: Final = "DeliveryPolicy"
DATA_PROTECTION_POLICY: Final = "DataProtectionPolicy"  # has its own operations and is not shown
DELETED: Final = "SubscriptionsDeleted"  # counted here, and shown
_ARCHIVED_SINCE: Final = "BeginningArchiveTime"  # kept as milliseconds
_SIZES: Final = whole_number(1024, 1_048_576)
_FIFO: Final = "FifoTopic"
_ARCHIVE_POLICY: Final = "ArchivePolicy"

_THROUGHPUT_SCOPE: Final = "FifoThroughputScope"
_SCOPES: Final = {"Topic": False, "MessageGroup": True}


def new_topic(name: ResourceName, attributes: Mapping[str, str], tags: Mapping[str, str], now: int) -> Topic:
    """The topic that CreateTopic asks for, not stored yet.

    Raises:
        AwsError: No topic may have the name.
        AttributeRefused: An attribute is not acceptable.
    """
    fifo = values.read(BOOLEAN, _FIFO, attributes.get(_FIFO, "false"))
    names.check_topic_name(name.name, fifo=fifo)
    topic = Topic(0, name, DIALECT, ordered=fifo, tags=dict(tags))
    for key, value in attributes.items():
        if key != _FIFO:
            topic = _with_initial_attribute(topic, key, value, now)
    return topic


def _with_initial_attribute(topic: Topic, name: str, value: str, now: int) -> Topic:
    try:
        return with_attribute(topic, name, value, now)
    except values.AttributeUnknown:  # recorded in a region that had no FIFO topics yet, of `FifoTopic`
        raise AttributeRefused(f"Unknown attribute {name}") from None


def with_attribute(topic: Topic, name: str, value: str, now: int) -> Topic:
    """The topic with another value of one attribute.

    Raises:
        AttributeRefused: The attribute is unknown, of the other kind of topic, or not acceptable.
    """
    if name == _ARCHIVE_POLICY:
        return _change_archive(topic, value, now)
    return _TABLE.with_value(topic, name, value)


# ---- attributes that are more than a value -------------------------------------------------------------------


def _checked_policy(value: str) -> str:
    topic_policy.check(value)
    return value


def _normalized_delivery_policy(value: str) -> str:
    json_text.read(DELIVERY_POLICY, value)
    try:
        return read_topic_policy(value).to_json()
    except DeliveryPolicyInvalid as refusal:
        raise AttributeRefused(str(refusal)) from refusal


def _change_throughput_scope(topic: Topic, value: str) -> Topic:
    scope = values.read(choice(*_SCOPES), _THROUGHPUT_SCOPE, value)
    return replace(with_text(topic, _THROUGHPUT_SCOPE, scope), deduplicates_per_group=_SCOPES[scope])


def _change_archive(topic: Topic, value: str, now: int) -> Topic:
    """Begin to archive, archive for another time, or end it; the value `{}` ends it."""
    if not topic.ordered:
        raise values.AttributeUnknown
    days = _archive_days(value) if value else None
    if days is None:
        return replace(
            with_text(with_text(topic, _ARCHIVE_POLICY, None), _ARCHIVED_SINCE, None), archive_ms=0
        )
    since = topic.attributes.get(_ARCHIVED_SINCE, str(now))
    archiving = with_text(with_text(topic, _ARCHIVE_POLICY, value), _ARCHIVED_SINCE, since)
    return replace(archiving, archive_ms=days * DAY_MS)


def _archive_days(value: str) -> int | None:
    document = json_text.read_object(_ARCHIVE_POLICY, value)
    if not document:
        return None
    days = whole_number(1, ARCHIVE_DAYS_MAX).parse(str(document.get("MessageRetentionPeriod")))
    if days is None or set(document) != {"MessageRetentionPeriod"}:
        raise AttributeRefused(f"{_ARCHIVE_POLICY}: MessageRetentionPeriod value is invalid")
    return days


# ---- the table -------------------------------------------------------------------------------------------------


#: Stored as text: SNS returns the attribute only if it was set.
_size: Final = ValueReader(lambda value: None if _SIZES.parse(value) is None else value, _SIZES.complaint)


def _is_fifo(topic: Topic) -> bool:
    return topic.ordered


_FEEDBACKS: Final = dict.fromkeys(protocol.feedback for protocol in PROTOCOLS.values() if protocol.feedback)


def _feedback_attributes(protocol: str) -> Iterator[ResourceAttribute[Topic]]:
    """The attributes by which deliveries over a protocol are logged; HTTP stands for HTTPS too."""
    for result in ("Success", "Failure"):
        yield ResourceAttribute(f"{protocol}{result}FeedbackRoleArn", ROLE_ARN)
    yield ResourceAttribute(f"{protocol}SuccessFeedbackSampleRate", PERCENTAGE, removable=False)


_TABLE: Final[AttributeTable[Topic]] = AttributeTable(
    (
        ResourceAttribute(topic_policy.POLICY, ValueReader(_checked_policy), show=topic_policy.text_of),
        ResourceAttribute(
            "DisplayName",
            ValueReader(
                lambda value: value if len(value) <= DISPLAY_NAME_CHARS_MAX else None,
                f"must be at most {DISPLAY_NAME_CHARS_MAX} characters",  # chosen
            ),
            default="",
        ),
        ResourceAttribute(DELIVERY_POLICY, ValueReader(_normalized_delivery_policy)),
        ResourceAttribute("KmsMasterKeyId"),
        ResourceAttribute(MAXIMUM_SIZE, _size),
        ResourceAttribute("SignatureVersion", choice("1", "2"), removable=False),
        ResourceAttribute("TracingConfig", choice("PassThrough", "Active"), removable=False),
        ResourceAttribute(_THROUGHPUT_SCOPE, applies=_is_fifo, change=_change_throughput_scope),
        ResourceAttribute(_ARCHIVE_POLICY),
        *chain.from_iterable(map(_feedback_attributes, _FEEDBACKS)),
        ResourceAttribute(
            "ContentBasedDeduplication",
            BOOLEAN,
            "deduplicates_content",
            write=lambda value: str(value).lower(),
            applies=_is_fifo,
        ),
    ),
    unknown=values.unknown_attribute,
    refused=values.invalid_value,
)

# ---- writing ---------------------------------------------------------------------------------------------------


def delivery_policy(topic: Topic) -> TopicDeliveryPolicy:
    """The topic's delivery policy, without members where it has none."""
    text = topic.attributes.get(DELIVERY_POLICY)
    return TopicDeliveryPolicy() if text is None else _read(text)


# Asked for at each attempt of an HTTP/S subscription.
_read = remembered(entries_max=1024, chars_max=4096)(read_topic_policy)


def attribute_texts(topic: Topic, confirmed: int, pending: int, now: int) -> dict[str, str]:
    """The attributes that GetTopicAttributes answers.

    Args:
        topic: The topic.
        confirmed: How many of its subscriptions are confirmed.
        pending: How many wait for their confirmation.
        now: ms.
    """
    members = _TABLE.values_of(topic) | {
        "Owner": topic.name.account,
        "TopicArn": names.arn_of(topic.name),
        "EffectiveDeliveryPolicy": delivery_policy(topic).effective_json(),
        "SubscriptionsConfirmed": str(confirmed),
        "SubscriptionsPending": str(pending),
        DELETED: topic.attributes.get(DELETED, "0"),
    }
    if topic.ordered:
        members[_FIFO] = "true"
    if since := topic.attributes.get(_ARCHIVED_SINCE):  # older messages than `archive_ms` are gone
        members[_ARCHIVED_SINCE] = _iso(max(int(since), now - topic.archive_ms))
    return members


def _iso(moment_ms: int) -> str:
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def differ(existing: Topic, topic: Topic, names_to_compare: Iterable[str]) -> bool:
    """Returns whether an attribute given at a repeated creation is not the topic's; `FifoTopic=false` always is."""
    return _TABLE.difference(existing, topic, names_to_compare) is not None
