"""Access to topics and subscriptions: those that a call names, and the permission of its caller."""

from collections.abc import Mapping
from typing import Final

from redrive.access.patterns import Values
from redrive.access.principals import ANONYMOUS
from redrive.aws.kit.call import Call
from redrive.aws.sns.documents import names, topic_policy
from redrive.aws.sns.documents.errors import denied, no_such
from redrive.engine.resources import Topics
from redrive.model.topic import Subscription, Topic

_NO_KEYS: Final[Mapping[str, Values]] = {}


async def topic_at(
    call: Call,
    topics: Topics,
    arn: str,
    action: str,
    parameter: str = "TopicArn",
    *,
    keys: Mapping[str, Values] = _NO_KEYS,
) -> Topic:
    """The topic of an ARN, for an action the caller may do there.

    Args:
        call: The call.
        topics: The topics that there are.
        arn: The topic's.
        action: The action, without the service.
        parameter: The parameter that has the ARN.
        keys: The condition keys that the operation has of its own.

    Raises:
        AwsError: The ARN is not one of a topic here, there is no such topic, or the caller may not.
    """
    name = names.topic_in(call, arn, parameter)
    topic = topics.known(name) or await topics.get(name)
    if topic is None:
        raise no_such("Topic")
    check(call, topic, action, keys)
    return topic


def check(call: Call, topic: Topic, action: str, keys: Mapping[str, Values] = _NO_KEYS) -> None:
    """Refuse an action on a topic that the caller has no permission for.

    Raises:
        AwsError: `AuthorizationError`.
    """
    owner = topic.name.account
    # The default policy lets the owner's calls in and nobody else's: so does a topic without a policy.
    policy = topic.attributes.get(topic_policy.POLICY)
    if call.is_open(owner, policy):
        return
    arn = names.arn_of(topic.name)
    decision = call.decide(f"sns:{action}", arn, owner, policy, keys)
    if not decision.allowed:
        raise denied(call.principal.name, action, arn, decision)


def is_unsigned(call: Call) -> bool:
    """Returns whether the call is unsigned: a link in a message was followed."""
    return call.principal is ANONYMOUS


def check_owner(call: Call, subscription: Subscription, action: str) -> None:
    """Refuse an action that is for the owners of a subscription and of its topic alone.

    Raises:
        AwsError: `AuthorizationError`.
    """
    if call.account not in (subscription.owner, subscription.topic.account):
        raise denied(call.principal.name, action, names.subscription_arn(subscription))
