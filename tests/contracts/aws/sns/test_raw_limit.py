"""Raw deliveries with more attributes than a queue takes are client errors, whichever way they come."""

from typing import Any

import orjson
import pytest

from tests.contracts.aws.sns.client import Sns, Topic
from tests.contracts.aws.sqs.client import Queue, text
from tests.services.server import Server

CROWD = {f"a{number}": text("x") for number in range(11)}


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


def subscribed(topic: Topic, *, fifo: bool = False, **attributes: str) -> tuple[Queue, Queue]:
    """A queue that gets the text alone, and the queue of its dead letters."""
    dead = topic.sns.sqs.fifo() if fifo else topic.sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    return topic.queue(fifo=fifo, RawMessageDelivery="true", RedrivePolicy=policy, **attributes), dead


def reasons(server: Server, dead: Queue) -> list[str]:
    status, body = server.ask("GET", f"/_redrive/dead-letters?queue={dead.name}")
    assert status == 200
    letters: list[dict[str, Any]] = orjson.loads(body)["letters"]
    return [letter["reason"] for letter in letters]


def test_raw_messages_with_too_many_attributes_are_dead_lettered_when_published(
    sns: Sns, server: Server
) -> None:
    topic = sns.topic()
    queue, dead = subscribed(topic)
    topic.publish("crowded", MessageAttributes=CROWD)
    topic.publish("fits", MessageAttributes=dict(list(CROWD.items())[:10]))
    server.advance(0)
    assert queue.bodies() == ["fits"]
    assert reasons(server, dead) == ["too_large"]


def test_raw_messages_with_too_many_attributes_are_dead_lettered_when_redriven(
    sns: Sns, server: Server
) -> None:
    topic = sns.topic()
    queue, dead = subscribed(topic)
    topic.publish("crowded", MessageAttributes=CROWD)
    status, _ = server.ask("POST", "/_redrive/dead-letters", orjson.dumps({"queue": dead.name}))
    assert status == 202
    server.advance(60)
    assert queue.bodies() == []
    assert reasons(server, dead) == ["too_large"]


def test_raw_messages_with_too_many_attributes_are_dead_lettered_after_a_replay(
    sns: Sns, server: Server
) -> None:
    archive = '{"MessageRetentionPeriod":"1"}'
    topic = sns.topic(fifo=True, ContentBasedDeduplication="true", ArchivePolicy=archive)
    topic.publish("early", MessageGroupId="g", MessageAttributes=CROWD)
    policy = {"PointType": "Timestamp", "StartingPoint": "2020-01-01T00:00:00Z"}
    queue, dead = subscribed(topic, fifo=True, ReplayPolicy=orjson.dumps(policy).decode())
    topic.publish("meanwhile", MessageGroupId="g", MessageAttributes=CROWD)
    topic.publish("fits", MessageGroupId="g")
    server.advance(60)
    assert queue.bodies() == ["fits"]
    assert reasons(server, dead) == ["too_large", "too_large"]
