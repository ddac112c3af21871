"""AWS/SNS's metrics of archives and replays, and Prometheus's of topics, over the wire and on a simulated clock."""

import re
from collections.abc import Mapping

import orjson
import pytest

from tests.contracts.aws.cloudwatch.client import Watch, pairs
from tests.contracts.aws.sns.client import Sns, Topic
from tests.contracts.aws.sqs.client import text
from tests.services.server import Server

HOUR = 3600
_DELIVERED = "NumberOfReplayedNotificationsDelivered"
_FAILED = "NumberOfReplayedNotificationsFailed"


@pytest.fixture
def watch(server: Server) -> Watch:
    return Watch(server)


@pytest.fixture
def topic(server: Server) -> Topic:
    archive = '{"MessageRetentionPeriod":"1"}'
    return Sns(server).topic(fifo=True, ContentBasedDeduplication="true", ArchivePolicy=archive)


def replay() -> str:
    policy = {"PointType": "Timestamp", "StartingPoint": "2020-01-01T00:00:00.000Z"}
    return orjson.dumps(policy).decode()


def sums(watch: Watch, topic: Topic, *names: str) -> dict[str, float]:
    """Return the sum of each metric of a topic; metrics without points are left out."""
    name = topic.arn.rpartition(":")[2]
    found = {metric: watch.sums("AWS/SNS", metric, TopicName=name) for metric in names}
    return {metric: sum(values) for metric, values in found.items() if values}


def prometheus(server: Server, topic: Topic) -> Mapping[str, float]:
    """The counters of a topic, by name and the labels that are not about which topic."""
    status, body = server.ask("GET", "/_redrive/metrics")
    assert status == 200
    labels = f'account="000000000000",region="us-east-1",topic="{topic.arn.rpartition(":")[2]}"'
    pattern = rf"^redrive_topic_(\w+)_total\{{{labels},?(.*)\}} (\S+)$"
    found = re.findall(pattern, body.decode(), re.MULTILINE)
    return {" ".join([name, *([rest] if rest else [])]): float(value) for name, rest, value in found}


def test_an_archived_message_is_counted_and_a_repetition_is_not(watch: Watch, topic: Topic) -> None:
    for _ in range(2):
        topic.publish("hello", MessageGroupId="g", MessageAttributes={"n": text("7", "Number")})
    topic.publish("again", MessageGroupId="g")
    of_archives = ("NumberOfMessagesArchiveProcessing", "NumberOfBytesArchiveProcessing")
    assert sums(watch, topic, "NumberOfMessagesPublished", *of_archives) == {
        "NumberOfMessagesPublished": 3,
        "NumberOfMessagesArchiveProcessing": 2,
        "NumberOfBytesArchiveProcessing": len("hello" + "n" + "Number" + "7") + len("again"),
    }
    assert prometheus(watch.server, topic) == {
        "messages_published": 3,
        "bytes_published": 31,
        "messages_archived": 2,
        "bytes_archived": 18,
    }


def test_a_topic_without_an_archive_has_none_of_its_metrics(watch: Watch, topic: Topic) -> None:
    topic.set("ArchivePolicy", "{}")
    topic.publish("hello", MessageGroupId="g")
    watch.server.advance(HOUR)
    name = topic.arn.rpartition(":")[2]
    listed = watch.listed(Namespace="AWS/SNS", Dimensions=pairs({"TopicName": name}))
    assert [line.split()[1] for line in listed] == ["NumberOfMessagesPublished", "PublishSize"]


def test_replayed_notifications_count_as_such_too(watch: Watch, topic: Topic) -> None:
    queue = topic.queue()
    topic.publish("one", MessageGroupId="g")
    topic.publish("two", MessageGroupId="g")
    delivered = ("NumberOfNotificationsDelivered", "NumberOfNotificationsFailed", _DELIVERED, _FAILED)
    assert sums(watch, topic, *delivered) == {"NumberOfNotificationsDelivered": 2}
    topic.subscribe("sqs", topic.sns.sqs.queue().arn, ReplayPolicy=replay())
    watch.server.advance(0)
    assert sums(watch, topic, *delivered) == {"NumberOfNotificationsDelivered": 4, _DELIVERED: 2}
    assert prometheus(watch.server, topic)["replays_delivered"] == 2
    gone = topic.sns.sqs.queue()
    subscription = topic.subscribe("sqs", gone.arn)
    gone.call("delete_queue")
    topic.sns.client.set_subscription_attributes(
        SubscriptionArn=subscription, AttributeName="ReplayPolicy", AttributeValue=replay()
    )
    watch.server.advance(0)
    assert sums(watch, topic, *delivered) == {
        "NumberOfNotificationsDelivered": 4,
        "NumberOfNotificationsFailed": 2,
        _DELIVERED: 2,
        _FAILED: 2,
    }
    assert prometheus(watch.server, topic)["replays_failed"] == 2
    assert len(queue.receive()) == 2


def test_a_replay_that_had_to_be_tried_again_counts_once(watch: Watch, topic: Topic) -> None:
    topic.publish("one", MessageGroupId="g")
    queue = topic.sns.sqs.queue()
    fault = {"endpoint": queue.arn, "status": 503}
    watch.server.ask("POST", "/_redrive/faults", orjson.dumps(fault))
    topic.subscribe("sqs", queue.arn, ReplayPolicy=replay())
    watch.server.advance(1)
    watch.server.ask("POST", "/_redrive/faults", orjson.dumps(fault | {"status": None}))
    watch.server.advance(60)
    assert len(queue.receive()) == 1
    assert sums(watch, topic, _DELIVERED, _FAILED) == {_DELIVERED: 1}


def test_the_size_of_an_archive_shows_once_an_hour(watch: Watch, topic: Topic) -> None:
    into_the_hour = watch.server.now() % HOUR
    watch.server.advance(HOUR - into_the_hour)
    for body in ("a", "bb", "ccc"):
        topic.publish(body, MessageGroupId="g")
    watch.server.advance(2 * HOUR)
    name = topic.arn.rpartition(":")[2]
    asked = {
        "namespace": "AWS/SNS",
        "period": HOUR,
        "Dimensions": pairs({"TopicName": name}),
        **watch.around(180),
    }
    held = watch.statistics("ApproximateNumberOfMessagesArchived", "Maximum", "SampleCount", **asked)
    assert held[-1] == {"Maximum": 3, "SampleCount": 1, "Unit": "Count"}
    held = watch.statistics("ApproximateNumberOfBytesArchived", "Maximum", "SampleCount", **asked)
    assert held[-1] == {"Maximum": 6, "SampleCount": 1, "Unit": "Bytes"}
    watch.server.advance(25 * HOUR)
    topic.publish("d", MessageGroupId="g")
    watch.server.advance(HOUR)
    held = watch.statistics(
        "ApproximateNumberOfMessagesArchived", "Maximum", "SampleCount", **{**asked, **watch.around(60)}
    )
    assert held[-1] == {"Maximum": 1, "SampleCount": 1, "Unit": "Count"}
