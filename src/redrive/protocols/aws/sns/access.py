"""Which topic or subscription a call means, and whether the caller may do that to it."""

from redrive.access.principals import ANONYMOUS
from redrive.engine.topics import Topics
from redrive.model.topic import Subscription, Topic
from redrive.protocols.aws.call import Call
from redrive.protocols.aws.sns import names, topic_policy
from redrive.protocols.aws.sns.errors import denied, no_such


async def topic_at(call: Call, topics: Topics, arn: str, action: str, parameter: str = "TopicArn") -> Topic:
    """The topic of an ARN, for an action the caller may do there.

    Raises:
        AwsError: The ARN is not one of a topic here, there is no such topic, or the caller may not.
    """
    name = names.topic_in(call, arn, parameter)
    topic = topics.known(name) or await topics.get(name)
    if topic is None:
        raise no_such("Topic")
    check(call, topic, action)
    return topic


def check(call: Call, topic: Topic, action: str) -> None:
    """Refuse what the caller may not do to the topic.

    Raises:
        AwsError: `AuthorizationError`.
    """
    arn = names.arn_of(topic.name)
    # The default policy lets the owner's calls in and nobody else's: so does a topic without a policy.
    if not call.may(f"sns:{action}", arn, topic.name.account, topic.attributes.get(topic_policy.POLICY)):
        raise denied(call.principal.name, action, arn)


def is_unsigned(call: Call) -> bool:
    """Whether nobody signed the call: somebody followed a link out of a message."""
    return call.principal is ANONYMOUS


def check_owner(call: Call, subscription: Subscription, action: str) -> None:
    """Refuse what only the owner of a subscription and the owner of its topic may do.

    Raises:
        AwsError: `AuthorizationError`.
    """
    if call.account not in (subscription.owner, subscription.topic.account):
        raise denied(call.principal.name, action, names.subscription_arn(subscription))
