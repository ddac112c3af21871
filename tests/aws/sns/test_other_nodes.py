"""Operations of SNS on a node that has not heard of what another one did."""

import random

from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.model.names import ResourceName
from redrive.model.topic import Topic
from tests.aws.sns.stage import ACCOUNT, REGION, Stage

NAME = ResourceName(ACCOUNT, REGION, "orders")


def other_node(stage: Stage) -> Engine:
    """A second node on the store of the stage, which hears nothing of it."""
    return Engine(stage.store, Runtime(stage.clock, random.Random(8), "b"))


async def deleted(node: Engine) -> None:
    topic = await node.resources.topics.get_stored(NAME)
    assert topic is not None
    await node.resources.topics.delete(topic)


async def test_a_topic_that_another_node_deleted_is_created(stage: Stage) -> None:
    other = other_node(stage)
    arn = await stage.topic("orders")
    await deleted(other)
    assert await stage.topic("orders") == arn
    assert await other.resources.topics.get(NAME) is not None


async def test_a_topic_that_another_node_made_again_is_deleted(stage: Stage) -> None:
    other = other_node(stage)
    arn = await stage.topic("orders")
    await deleted(other)
    await other.resources.topics.create(Topic(0, NAME, "sns"))
    await stage.call("DeleteTopic", TopicArn=arn)
    assert await other.resources.topics.get_stored(NAME) is None
