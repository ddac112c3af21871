"""AWS/SQS and AWS/SNS: what is done to queues and topics shows in CloudWatch, under AWS's names."""

from collections.abc import Iterator

import orjson
import pytest

from tests.contracts.aws.cloudwatch.client import Watch, pairs
from tests.contracts.aws.sns.client import Sns, Topic, Webhook, follow
from tests.contracts.aws.sqs.client import Queue, Sqs, entries
from tests.services.server import Server


@pytest.fixture
def watch(server: Server) -> Watch:
    return Watch(server)


@pytest.fixture
def sqs(server: Server) -> Sqs:
    return Sqs(server)


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook().serving() as webhook:
        yield webhook


def of_queue(watch: Watch, queue: Queue, name: str) -> list[float]:
    return watch.sums("AWS/SQS", name, QueueName=queue.name)


def of_topic(watch: Watch, topic: Topic, *names: str) -> dict[str, float]:
    """Return the sums of a topic's metrics, without those that have no points."""
    name = topic.arn.rpartition(":")[2]
    found = {metric: watch.sums("AWS/SNS", metric, TopicName=name) for metric in names}
    return {metric: sum(values) for metric, values in found.items() if values}


# ---- AWS/SQS ---------------------------------------------------------------------------------------------------


def test_sends_receives_and_deletes_are_counted(watch: Watch, sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("hello")
    queue.send_batch(*entries("a", "bb", "ccc"))
    for message in queue.receive():
        queue.delete(message)
    assert queue.receive() == []
    dimensions = pairs({"QueueName": queue.name})
    asked = {"namespace": "AWS/SQS", "Dimensions": dimensions}
    assert watch.statistics("NumberOfMessagesSent", "Sum", "SampleCount", **asked) == [
        {"Sum": 4.0, "SampleCount": 2.0, "Unit": "Count"}
    ]
    assert watch.statistics("SentMessageSize", "Sum", "Maximum", "SampleCount", **asked) == [
        {"Sum": 11.0, "Maximum": 5.0, "SampleCount": 4.0, "Unit": "Bytes"}
    ]
    assert of_queue(watch, queue, "NumberOfMessagesReceived") == [4]
    assert of_queue(watch, queue, "NumberOfMessagesDeleted") == [4]
    assert of_queue(watch, queue, "NumberOfEmptyReceives") == [1]


def test_a_queue_s_nine_metrics_are_listed_once_it_is_sampled(watch: Watch, sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send()
    watch.server.advance(60)
    listed = watch.listed(Namespace="AWS/SQS", Dimensions=[{"Name": "QueueName", "Value": queue.name}])
    assert [line.split()[1] for line in listed] == [
        "ApproximateAgeOfOldestMessage",
        "ApproximateNumberOfMessagesDelayed",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesVisible",
        "NumberOfEmptyReceives",
        "NumberOfMessagesDeleted",
        "NumberOfMessagesReceived",
        "NumberOfMessagesSent",
        "SentMessageSize",
    ]
    assert watch.listed(Namespace="AWS/SQS", MetricName="SentMessageSize") == [
        f"AWS/SQS SentMessageSize QueueName={queue.name}"
    ]


def test_the_depth_of_a_queue_shows_minute_by_minute(watch: Watch, sqs: Sqs) -> None:
    into_the_minute = watch.server.now() % 60
    watch.server.advance(61 - into_the_minute)  # to a second past: samples are taken as each minute ends
    queue = sqs.queue()
    queue.send("later", DelaySeconds=100)
    for body in "abc":
        queue.send(body)
    queue.receive(1, VisibilityTimeout=90)
    watch.server.advance(180)
    assert of_queue(watch, queue, "ApproximateNumberOfMessagesVisible")[-3:] == [2, 4, 4]
    assert of_queue(watch, queue, "ApproximateNumberOfMessagesNotVisible")[-3:] == [1, 0, 0]
    assert of_queue(watch, queue, "ApproximateNumberOfMessagesDelayed")[-3:] == [1, 0, 0]
    ages = of_queue(watch, queue, "ApproximateAgeOfOldestMessage")
    assert ages[-1] - ages[-2] == 60
    assert of_queue(watch, queue, "NumberOfMessagesSent")[-2:] == [0, 0]


def test_a_message_moved_by_a_redrive_policy_was_not_sent(watch: Watch, sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1)
    queue.send()
    queue.receive(VisibilityTimeout=0)
    assert queue.receive() == []
    watch.server.advance(60)
    assert of_queue(watch, dead, "ApproximateNumberOfMessagesVisible")[-1] == 1
    assert sum(of_queue(watch, dead, "NumberOfMessagesSent")) == 0


def test_metrics_are_their_owner_s(watch: Watch, sqs: Sqs, server: Server) -> None:
    other = sqs.elsewhere(account="111111111111").queue()
    other.send()
    assert of_queue(watch, other, "NumberOfMessagesSent") == []
    assert of_queue(Watch(server, account="111111111111"), other, "NumberOfMessagesSent") == [1]


@pytest.mark.parametrize("dimensions", [{}, {"TopicName": "q"}, {"QueueName": "q", "x": "y"}])
def test_other_dimensions_have_no_points(watch: Watch, sqs: Sqs, dimensions: dict[str, str]) -> None:
    sqs.queue().send()
    assert watch.sums("AWS/SQS", "NumberOfMessagesSent", **dimensions) == []
    assert watch.sums("AWS/SQS", "NumberOfApples", QueueName="q") == []


# ---- AWS/SNS ---------------------------------------------------------------------------------------------------

_FILTERED = "NumberOfNotificationsFilteredOut"


def test_deliveries_and_filtered_messages_of_a_topic_are_counted(watch: Watch, sns: Sns) -> None:
    topic = sns.topic()
    topic.queue()
    topic.queue(FilterPolicy='{"colour": ["blue"]}')
    red = {"colour": {"DataType": "String", "StringValue": "red"}}
    topic.publish("hello", MessageAttributes=red)
    topic.publish("hi")
    found = of_topic(
        watch,
        topic,
        "NumberOfMessagesPublished",
        "NumberOfNotificationsDelivered",
        "NumberOfNotificationsFailed",
        _FILTERED,
        f"{_FILTERED}-MessageAttributes",
        f"{_FILTERED}-NoMessageAttributes",
        f"{_FILTERED}-MessageBody",
    )
    assert found == {
        "NumberOfMessagesPublished": 2,
        "NumberOfNotificationsDelivered": 2,
        _FILTERED: 2,
        f"{_FILTERED}-MessageAttributes": 1,
        f"{_FILTERED}-NoMessageAttributes": 1,
    }
    name = topic.arn.rpartition(":")[2]
    (size,) = watch.statistics(
        "PublishSize", "SampleCount", namespace="AWS/SNS", Dimensions=pairs({"TopicName": name})
    )
    assert (size["SampleCount"], size["Unit"]) == (2.0, "Bytes")
    listed = watch.listed(Namespace="AWS/SNS", MetricName=_FILTERED)
    assert listed == [f"AWS/SNS {_FILTERED} TopicName={name}"]


def test_a_batch_counts_its_messages(watch: Watch, sns: Sns) -> None:
    topic = sns.topic()
    wanted = [{"Id": str(number), "Message": "m"} for number in range(3)]
    topic.call("publish_batch", PublishBatchRequestEntries=wanted)
    assert of_topic(watch, topic, "NumberOfMessagesPublished") == {"NumberOfMessagesPublished": 3}


_FATES = (
    "NumberOfNotificationsDelivered",
    "NumberOfNotificationsFailed",
    "NumberOfNotificationsRedrivenToDlq",
    "NumberOfNotificationsFailedToRedriveToDlq",
)


def test_a_queue_that_is_gone_counts_once_and_its_dead_letter_too(watch: Watch, sns: Sns) -> None:
    topic, dead = sns.topic(), sns.sqs.queue()
    gone = topic.queue(RedrivePolicy=orjson.dumps({"deadLetterTargetArn": dead.arn}).decode())
    gone.call("delete_queue")
    topic.publish()
    assert of_topic(watch, topic, *_FATES) == {
        "NumberOfNotificationsFailed": 1,
        "NumberOfNotificationsRedrivenToDlq": 1,
    }
    assert of_queue(watch, dead, "NumberOfMessagesSent") == [1]  # by SNS it is sent, unlike by SQS
    dead.call("delete_queue")
    topic.publish()
    assert of_topic(watch, topic, *_FATES) == {
        "NumberOfNotificationsFailed": 2,
        "NumberOfNotificationsRedrivenToDlq": 1,
        "NumberOfNotificationsFailedToRedriveToDlq": 1,
    }


def test_a_webhooks_dead_letter_is_sent_to_its_queue_too(
    watch: Watch, sns: Sns, server: Server, webhook: Webhook
) -> None:
    """An alarm on the queue's NumberOfMessagesSent is how the guide has dead letters noticed."""
    topic, dead = sns.topic(), sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    topic.subscribe("http", webhook.url, RedrivePolicy=policy)
    follow(webhook.next().document["SubscribeURL"])
    fault = {"endpoint": webhook.url, "status": 404}
    assert server.ask("POST", "/_redrive/faults", orjson.dumps(fault))[0] == 200
    topic.publish()
    server.advance(1)
    assert of_topic(watch, topic, *_FATES) == {
        "NumberOfNotificationsFailed": 1,
        "NumberOfNotificationsRedrivenToDlq": 1,
    }
    assert of_queue(watch, dead, "NumberOfMessagesSent") == [1]


def test_a_queue_that_takes_it_at_a_later_attempt_got_it_all_the_same(
    watch: Watch, sns: Sns, server: Server
) -> None:
    topic = sns.topic()
    queue = topic.queue()
    fault = {"endpoint": queue.arn, "status": 503}
    assert server.ask("POST", "/_redrive/faults", orjson.dumps(fault))[0] == 200
    topic.publish()
    server.ask("POST", "/_redrive/faults", orjson.dumps(fault | {"status": None}))
    server.advance(5)
    assert sum(of_queue(watch, queue, "NumberOfMessagesSent")) == 1


def test_over_http_every_failed_attempt_counts(
    watch: Watch, sns: Sns, server: Server, webhook: Webhook
) -> None:
    topic = sns.topic()
    policy = {"healthyRetryPolicy": {"numRetries": 2, "minDelayTarget": 1, "maxDelayTarget": 1}}
    topic.subscribe("http", webhook.url, DeliveryPolicy=orjson.dumps(policy).decode())
    follow(webhook.next().document["SubscribeURL"])
    fault = {"endpoint": webhook.url, "status": 503}
    assert server.ask("POST", "/_redrive/faults", orjson.dumps(fault))[0] == 200
    topic.publish()
    server.advance(10)
    assert of_topic(watch, topic, *_FATES) == {"NumberOfNotificationsFailed": 3}
    server.ask("POST", "/_redrive/faults", orjson.dumps(fault | {"status": None}))
    topic.publish()
    webhook.next()
    server.advance(0)
    assert of_topic(watch, topic, *_FATES) == {
        "NumberOfNotificationsDelivered": 1,
        "NumberOfNotificationsFailed": 3,
    }
