"""Subscription attributes: SNS's strings on one side, a subscription's fields on the other.

What the engine acts on are fields of `Subscription`; what only this facade acts on stays in
`Subscription.attributes` as SNS spells it. A policy is taken away where it is set to the empty string.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from redrive.model.filtering import FilterPolicyInvalid, NestedPolicyRefused, Scope, read_policy
from redrive.model.queue import ResourceName
from redrive.model.topic import Subscription, Topic
from redrive.protocols.aws.sns import (
    destinations,
    json_text,
    names,
    replays,
    standing,
    topic_attributes,
    values,
)
from redrive.protocols.aws.sns.delivery_policy import SubscriptionDeliveryPolicy, effective_policy
from redrive.protocols.aws.sns.delivery_policy_reader import DeliveryPolicyInvalid, read_subscription_policy
from redrive.protocols.aws.sns.errors import AttributeRefused

DELIVERY_POLICY: Final = "DeliveryPolicy"
FILTER_POLICY: Final = "FilterPolicy"
FILTER_SCOPE: Final = "FilterPolicyScope"
RAW: Final = "RawMessageDelivery"
REDRIVE_POLICY: Final = "RedrivePolicy"
ROLE: Final = "SubscriptionRoleArn"

_SCOPES: Final = {"MessageAttributes": False, "MessageBody": True}
_KEPT: Final = (DELIVERY_POLICY, REDRIVE_POLICY, replays.POLICY, ROLE)
# What another attribute's rules look at comes before it.
_ORDER: Final = (RAW, FILTER_SCOPE)


def with_all(subscription: Subscription, topic: Topic, given: Mapping[str, str]) -> Subscription:
    """The subscription with all the attributes that Subscribe gives.

    Raises:
        AttributeRefused: One is unknown or not acceptable, or one is missing.
    """
    first = [name for name in _ORDER if name in given]
    for name in [*first, *(name for name in given if name not in _ORDER)]:
        subscription = changed(subscription, topic, name, given[name])
    if subscription.protocol == "firehose" and ROLE not in subscription.attributes:
        raise AttributeRefused(f"{ROLE}: required for the firehose protocol")  # chosen
    return subscription


def changed(subscription: Subscription, topic: Topic, name: str, value: str) -> Subscription:
    """The subscription with one attribute changed.

    Raises:
        AttributeRefused: The attribute is unknown or not acceptable.
    """
    change = _CHANGES.get(name)
    if change is None:
        raise values.AttributeUnknown
    return change(subscription, topic, value)


def _keep(subscription: Subscription, name: str, value: str | None) -> Subscription:
    attributes = {key: kept for key, kept in subscription.attributes.items() if key != name}
    if value is not None:
        attributes[name] = value
    return replace(subscription, attributes=attributes)


# ---- one function an attribute -------------------------------------------------------------------------------


def _change_raw(subscription: Subscription, _: Topic, value: str) -> Subscription:
    raw = values.boolean(RAW, value)
    if raw and subscription.protocol not in destinations.RAW:
        raise AttributeRefused(
            f"Delivery protocol [{subscription.protocol}] does not support raw message delivery."
        )
    return replace(subscription, raw=raw)


def _change_filter(subscription: Subscription, _: Topic, value: str) -> Subscription:
    if not value:
        return replace(subscription, filter_text=None)
    _check_filter(value, body=subscription.filter_body)
    return replace(subscription, filter_text=value)


def _change_scope(subscription: Subscription, _: Topic, value: str) -> Subscription:
    if value not in _SCOPES:
        raise AttributeRefused(
            f"{FILTER_SCOPE}: Invalid value [{value}]. Please use either MessageBody or MessageAttributes"
        )
    if subscription.filter_text is not None:
        _check_filter(subscription.filter_text, body=_SCOPES[value])
    return replace(subscription, filter_body=_SCOPES[value])


def _check_filter(text: str, *, body: bool) -> None:
    json_text.read(FILTER_POLICY, text)
    try:
        read_policy(text, Scope.BODY if body else Scope.ATTRIBUTES)
    except NestedPolicyRefused as refusal:
        raise AttributeRefused(str(refusal)) from refusal
    except FilterPolicyInvalid as refusal:
        raise AttributeRefused(f"{FILTER_POLICY}: {refusal}") from refusal


def _change_delivery_policy(subscription: Subscription, _: Topic, value: str) -> Subscription:
    if not value:
        return _keep(subscription, DELIVERY_POLICY, None)
    json_text.read(DELIVERY_POLICY, value)
    try:
        policy = read_subscription_policy(value, raw=subscription.raw)
    except DeliveryPolicyInvalid as refusal:
        raise AttributeRefused(str(refusal)) from refusal
    return _keep(subscription, DELIVERY_POLICY, policy.to_json())


def _change_redrive(subscription: Subscription, topic: Topic, value: str) -> Subscription:
    if not value:
        return replace(_keep(subscription, REDRIVE_POLICY, None), dead_letter=None)
    document = json_text.read_object(REDRIVE_POLICY, value)
    if unknown := sorted(document.keys() - {"deadLetterTargetArn"}):
        raise AttributeRefused(f"{REDRIVE_POLICY}: invalid JSON. Attribute {unknown[0]} is unknown.")
    if not document:
        return replace(_keep(subscription, REDRIVE_POLICY, None), dead_letter=None)
    arn = document["deadLetterTargetArn"]
    queue = names.queue_in(arn) if isinstance(arn, str) else None
    if queue is None:
        raise AttributeRefused(f"{REDRIVE_POLICY}: deadLetterTargetArn is an invalid arn")
    _check_dead_letter_queue(subscription, topic, queue)
    return replace(_keep(subscription, REDRIVE_POLICY, value), dead_letter=queue)


def _check_dead_letter_queue(subscription: Subscription, topic: Topic, queue: ResourceName) -> None:
    if (queue.account, queue.region) != (subscription.owner, topic.name.region):
        raise AttributeRefused(  # chosen
            f"{REDRIVE_POLICY}: deadLetterTargetArn must be in the account and region of the subscription"
        )
    ordered = topic.ordered and subscription.endpoint.endswith(names.FIFO_SUFFIX)
    if ordered and not queue.name.endswith(names.FIFO_SUFFIX):
        raise AttributeRefused(
            f"{REDRIVE_POLICY}: must use a FIFO queue as DLQ for a FIFO Subscription to a FIFO Topic."
        )
    if not ordered and queue.name.endswith(names.FIFO_SUFFIX):
        raise AttributeRefused(  # chosen, after the other way round
            f"{REDRIVE_POLICY}: must use a standard queue as DLQ for a standard Subscription."
        )


def _change_replay(subscription: Subscription, topic: Topic, value: str) -> Subscription:
    return _keep(subscription, replays.POLICY, replays.check(topic, value))


def _change_role(subscription: Subscription, _: Topic, value: str) -> Subscription:
    return _keep(subscription, ROLE, values.role_arn(ROLE, value))


_CHANGES: Final[Mapping[str, Callable[[Subscription, Topic, str], Subscription]]] = {
    DELIVERY_POLICY: _change_delivery_policy,
    FILTER_POLICY: _change_filter,
    FILTER_SCOPE: _change_scope,
    RAW: _change_raw,
    REDRIVE_POLICY: _change_redrive,
    replays.POLICY: _change_replay,
    ROLE: _change_role,
}

# ---- writing ---------------------------------------------------------------------------------------------------


def delivery_policy(subscription: Subscription) -> SubscriptionDeliveryPolicy | None:
    """The subscription's own delivery policy."""
    text = subscription.attributes.get(DELIVERY_POLICY)
    return None if text is None else _read(text)


# Asked for at each attempt of an HTTP/S subscription.
@lru_cache(maxsize=1024)
def _read(text: str) -> SubscriptionDeliveryPolicy:
    # As if raw: what was acceptable when it was set still is, whatever has become of raw delivery since.
    return read_subscription_policy(text, raw=True)


def effective_delivery_policy(topic: Topic, subscription: Subscription) -> SubscriptionDeliveryPolicy:
    """What holds for an HTTP/S subscription."""
    return effective_policy(delivery_policy(subscription), topic_attributes.delivery_policy(topic))


def shown(topic: Topic, subscription: Subscription) -> dict[str, str]:
    """The attributes that GetSubscriptionAttributes answers.

    An HTTP/S subscription always shows the policy that holds for it; that of one without a policy of its own was
    never recorded.
    """
    settings = _settings(subscription)
    if subscription.filter_text is None:
        del settings[FILTER_SCOPE]
    shown = settings | {
        "SubscriptionArn": names.subscription_arn(subscription),
        "TopicArn": names.arn_of(subscription.topic),
        "Protocol": subscription.protocol,
        "Endpoint": subscription.endpoint_shown,
        "Owner": subscription.owner,
        "SubscriptionPrincipal": subscription.attributes.get(standing.PRINCIPAL, ""),
        "PendingConfirmation": str(not subscription.confirmed).lower(),
        "ConfirmationWasAuthenticated": str(standing.was_authenticated(subscription)).lower(),
    }
    if subscription.protocol in destinations.HTTP:
        shown["EffectiveDeliveryPolicy"] = effective_delivery_policy(topic, subscription).to_json()
    return shown


def _settings(subscription: Subscription) -> dict[str, str]:
    """What has been or could have been set."""
    settings = {
        RAW: str(subscription.raw).lower(),
        FILTER_SCOPE: "MessageBody" if subscription.filter_body else "MessageAttributes",
    }
    if subscription.filter_text is not None:
        settings[FILTER_POLICY] = subscription.filter_text
    return settings | {
        name: subscription.attributes[name] for name in _KEPT if name in subscription.attributes
    }


def differ(existing: Subscription, wanted: Subscription, given: Mapping[str, str]) -> bool:
    """Whether an attribute given at a repeated Subscribe differs from what stands."""
    stands, asked = _settings(existing), _settings(wanted)
    return any(stands.get(name) != asked.get(name) for name in given)
