"""Destinations that are published to without a topic: a device, or a telephone.

Each gets its own topic with one subscription, made at its first message and seen by nobody: what is published to
it is a delivery like any other, with attempts, retries and a log. Where the server has not been set up to push to
telephones, or cannot push to devices of a platform, each attempt says so.
"""

import contextlib
from typing import Final

from redrive.aws.sns.documents.topic_attributes import DIALECT
from redrive.engine.resources import Draft, Resources
from redrive.model.errors import AlreadyExists
from redrive.model.names import ResourceName
from redrive.model.topic import Subscription, Topic

_ONLY_ID: Final = "direct"  # the id of the only subscription


def only_subscription(topic: ResourceName, protocol: str, endpoint: str) -> Subscription:
    """The subscription that stands for a destination, the only one of its topic; it need not be stored yet."""
    return Subscription(_ONLY_ID, topic, 0, topic.account, protocol, endpoint)


def new_topic_of(subscription: Subscription) -> Topic:
    """The topic of a destination before its first message."""
    return Topic(0, subscription.topic, DIALECT)


async def topic_of(resources: Resources, subscription: Subscription) -> Topic:
    """The topic of a destination, made if this is its first message."""
    topic = resources.topics.known(subscription.topic) or await resources.topics.get(subscription.topic)
    if topic is not None:
        return topic

    async def create(draft: Draft) -> Topic:
        topic = await resources.topics.create_in(draft, new_topic_of(subscription))
        await resources.subscriptions.create_in(draft, subscription)
        return topic

    with contextlib.suppress(AlreadyExists):
        return await resources.write(create)
    return await topic_of(resources, subscription)  # another call has created it
