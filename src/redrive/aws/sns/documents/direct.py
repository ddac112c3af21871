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

_ONE: Final = "direct"  # the id of the only subscription


def only_subscription(topic: ResourceName, protocol: str, endpoint: str) -> Subscription:
    """The one subscription that stands for a destination."""
    return Subscription(_ONE, topic, 0, topic.account, protocol, endpoint)


def unmade(only: Subscription) -> Topic:
    """The topic of a destination before its first message."""
    return Topic(0, only.topic, DIALECT)


async def topic_of(resources: Resources, only: Subscription) -> Topic:
    """The topic of a destination, made if this is its first message."""
    topic = resources.topics.known(only.topic) or await resources.topics.get(only.topic)
    if topic is not None:
        return topic

    async def create(draft: Draft) -> Topic:
        topic = await resources.topics.create_in(draft, unmade(only))
        await resources.subscriptions.create_in(draft, only)
        return topic

    with contextlib.suppress(AlreadyExists):
        return await resources.write(create)
    return await topic_of(resources, only)
