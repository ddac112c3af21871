"""Subscription attributes: SNS's strings on one side, a subscription's fields on the other.

What the engine acts on are fields of `Subscription`; what only this facade acts on stays in
`Subscription.attributes` as SNS spells it. A policy is taken away where it is set to the empty string.
"""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Final

from redrive.aws.kit.attributes import (
    BOOLEAN,
    ROLE_ARN,
    AttributeTable,
    ResourceAttribute,
    ValueReader,
    with_text,
)
from redrive.aws.sns.documents import (
    destinations,
    json_text,
    names,
    replays,
    subscription_state,
    topic_attributes,
    values,
)
from redrive.aws.sns.documents.delivery_policy import SubscriptionDeliveryPolicy, effective_policy
from redrive.aws.sns.documents.delivery_policy_reader import (
    DeliveryPolicyInvalid,
    is_for_raw_delivery_alone,
    read_subscription_policy,
)
from redrive.aws.sns.documents.errors import AttributeRefused
from redrive.model.filtering import FilterPolicyInvalid, NestedPolicyRefused, Scope, read_policy
from redrive.model.memo import remembered
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic

DELIVERY_POLICY: Final = "DeliveryPolicy"
FILTER_POLICY: Final = "FilterPolicy"
FILTER_SCOPE: Final = "FilterPolicyScope"
RAW: Final = "RawMessageDelivery"
REDRIVE_POLICY: Final = "RedrivePolicy"
ROLE: Final = "SubscriptionRoleArn"

# What another attribute's rules look at comes before it.
_ORDER: Final = (RAW, FILTER_SCOPE)


def with_attributes(subscription: Subscription, topic: Topic, attributes: Mapping[str, str]) -> Subscription:
    """The subscription with all attributes of a Subscribe call; raises AttributeRefused if one is missing or wrong."""
    first = [name for name in _ORDER if name in attributes]
    for name in [*first, *(name for name in attributes if name not in _ORDER)]:
        subscription = with_attribute(subscription, topic, name, attributes[name])
    protocol = subscription.protocol
    if destinations.PROTOCOLS[protocol].needs_role and ROLE not in subscription.attributes:
        raise AttributeRefused(f"{ROLE}: required for the {protocol} protocol")  # chosen
    return subscription


def with_attribute(subscription: Subscription, topic: Topic, name: str, value: str) -> Subscription:
    """The subscription with another value of one attribute; raises AttributeRefused."""
    if name == replays.POLICY:
        return with_text(subscription, name, replays.check(topic, value))
    return _TABLE.with_value(subscription, name, value)


# ---- attributes that depend on others ------------------------------------------------------------------------


def _change_raw(subscription: Subscription, value: str) -> Subscription:
    raw = values.read(BOOLEAN, RAW, value)
    if raw and not destinations.PROTOCOLS[subscription.protocol].raw:
        raise AttributeRefused(
            f"Delivery protocol [{subscription.protocol}] does not support raw message delivery."
        )
    return replace(subscription, raw=raw)


def _change_filter(subscription: Subscription, value: str) -> Subscription:
    if not value:
        return replace(subscription, filter_text=None)
    _check_filter(value, body=subscription.filter_body)
    return replace(subscription, filter_text=value)


def _change_scope(subscription: Subscription, value: str) -> Subscription:
    body = values.read(_SCOPE, FILTER_SCOPE, value)
    if subscription.filter_text is not None:
        _check_filter(subscription.filter_text, body=body)
    return replace(subscription, filter_body=body)


def _show_scope(subscription: Subscription) -> str:
    return "MessageBody" if subscription.filter_body else "MessageAttributes"


def _check_filter(text: str, *, body: bool) -> None:
    json_text.read(FILTER_POLICY, text)
    try:
        read_policy(text, Scope.BODY if body else Scope.ATTRIBUTES)
    except NestedPolicyRefused as refusal:
        raise AttributeRefused(str(refusal)) from refusal
    except FilterPolicyInvalid as refusal:
        raise AttributeRefused(f"{FILTER_POLICY}: {refusal}") from refusal


def _change_delivery_policy(subscription: Subscription, value: str) -> Subscription:
    if not value:
        return with_text(subscription, DELIVERY_POLICY, None)
    json_text.read(DELIVERY_POLICY, value)
    try:
        policy = read_subscription_policy(value, raw=subscription.raw)
    except DeliveryPolicyInvalid as refusal:
        raise AttributeRefused(str(refusal)) from refusal
    return with_text(subscription, DELIVERY_POLICY, policy.to_json())


def _change_redrive(subscription: Subscription, value: str) -> Subscription:
    document = json_text.read_object(REDRIVE_POLICY, value, ("deadLetterTargetArn",)) if value else {}
    if not document:
        return replace(with_text(subscription, REDRIVE_POLICY, None), dead_letter=None)
    arn = document["deadLetterTargetArn"]
    queue = names.queue_in(arn) if isinstance(arn, str) else None
    if queue is None:
        raise AttributeRefused(f"{REDRIVE_POLICY}: deadLetterTargetArn is an invalid arn")
    _check_dead_letter_queue(subscription, queue)
    return replace(with_text(subscription, REDRIVE_POLICY, value), dead_letter=queue)


def _check_dead_letter_queue(subscription: Subscription, queue: ResourceName) -> None:
    topic = subscription.topic
    if (queue.account, queue.region) != (subscription.owner, topic.region):
        raise AttributeRefused(  # chosen
            f"{REDRIVE_POLICY}: deadLetterTargetArn must be in the account and region of the subscription"
        )
    ordered = topic.name.endswith(names.FIFO_SUFFIX) and subscription.endpoint.endswith(names.FIFO_SUFFIX)
    if ordered and not queue.name.endswith(names.FIFO_SUFFIX):
        raise AttributeRefused(
            f"{REDRIVE_POLICY}: must use a FIFO queue as DLQ for a FIFO Subscription to a FIFO Topic."
        )
    if not ordered and queue.name.endswith(names.FIFO_SUFFIX):
        raise AttributeRefused(  # chosen, after the other way round
            f"{REDRIVE_POLICY}: must use a standard queue as DLQ for a standard Subscription."
        )


# ---- the table -------------------------------------------------------------------------------------------------

_SCOPE: Final[ValueReader[bool]] = ValueReader(
    {"MessageAttributes": False, "MessageBody": True}.get,
    "Invalid value [{}]. Please use either MessageBody or MessageAttributes",
)
_TABLE: Final[AttributeTable[Subscription]] = AttributeTable(
    (
        ResourceAttribute(RAW, change=_change_raw, show=lambda subscription: str(subscription.raw).lower()),
        ResourceAttribute(FILTER_SCOPE, change=_change_scope, show=_show_scope),
        ResourceAttribute(FILTER_POLICY, change=_change_filter, show=attrgetter("filter_text")),
        ResourceAttribute(DELIVERY_POLICY, change=_change_delivery_policy),
        ResourceAttribute(REDRIVE_POLICY, change=_change_redrive),
        ResourceAttribute(replays.POLICY),
        ResourceAttribute(ROLE, ROLE_ARN, removable=False),
    ),
    unknown=values.unknown_attribute,
    refused=values.invalid_value,
)

# ---- writing ---------------------------------------------------------------------------------------------------


def delivery_policy(subscription: Subscription) -> SubscriptionDeliveryPolicy | None:
    """The subscription's own delivery policy."""
    text = subscription.attributes.get(DELIVERY_POLICY)
    return None if text is None else _read(text)


# Asked for at each attempt of an HTTP/S subscription.
@remembered(entries_max=1024, chars_max=4096)
def _read(text: str) -> SubscriptionDeliveryPolicy:
    # As if raw: a policy stays valid even if raw delivery was switched off after it was set.
    return read_subscription_policy(text, raw=True)


def effective_delivery_policy(topic: Topic, subscription: Subscription) -> SubscriptionDeliveryPolicy:
    """The effective policy of an HTTP/S subscription.

    A content type that only raw messages have does not count while raw delivery is off: the topic's does, or the
    default, as where the policy names none.
    """
    own = delivery_policy(subscription)
    if own and own.content_type and not subscription.raw and is_for_raw_delivery_alone(own.content_type):
        own = replace(own, content_type=None)
    return effective_policy(own, topic_attributes.delivery_policy(topic))


def attribute_texts(topic: Topic, subscription: Subscription) -> dict[str, str]:
    """The attributes that GetSubscriptionAttributes answers.

    An HTTP/S subscription always shows the policy that holds for it; that of one without a policy of its own was
    never recorded.
    """
    settings = _TABLE.values_of(subscription)
    if subscription.filter_text is None:
        del settings[FILTER_SCOPE]
    members = settings | {
        "SubscriptionArn": names.subscription_arn(subscription),
        "TopicArn": names.arn_of(subscription.topic),
        "Protocol": subscription.protocol,
        "Endpoint": subscription.endpoint_shown,
        "Owner": subscription.owner,
        "SubscriptionPrincipal": subscription_state.shown_principal(subscription),
        "PendingConfirmation": str(not subscription.confirmed).lower(),
        "ConfirmationWasAuthenticated": str(subscription_state.was_authenticated(subscription)).lower(),
    }
    if subscription.protocol in destinations.HTTP:
        members["EffectiveDeliveryPolicy"] = effective_delivery_policy(topic, subscription).to_json()
    return members


def differ(existing: Subscription, subscription: Subscription, attributes: Mapping[str, str]) -> bool:
    """Returns whether an attribute given at a repeated Subscribe differs from the subscription's."""
    return _TABLE.difference(existing, subscription, attributes) is not None
