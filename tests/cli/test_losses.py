"""Nothing is lost without a word: the server's log, and `redrive endpoints`, say what was not delivered and why."""

import re
from collections.abc import Callable

import orjson
import pytest

from tests.cli.telling import POLICY, Command, confirmed, fail
from tests.contracts.aws.sns.client import Sns, Topic, Webhook
from tests.services.server import Server

FUNCTION = "arn:aws:lambda:us-east-1:000000000000:function:f"


def losses(server: Server, topic: Topic) -> list[str]:
    """The warnings of what was not delivered of a topic."""
    name = topic.arn.rpartition(":")[2]
    lines = server.log.read_text().splitlines()
    return [
        line
        for line in lines
        if f"/{name}" in line and re.search(r"delivery\.|subscription\.unconfirmed", line)
    ]


Path = Callable[[Sns, Server, Topic, Webhook], None]


def by_a_webhook(sns: Sns, server: Server, topic: Topic, webhook: Webhook) -> None:
    confirmed(topic, webhook)
    fail(server, webhook.url, 404)


def by_a_missing_queue(sns: Sns, server: Server, topic: Topic, webhook: Webhook) -> None:
    queue = topic.queue()
    sns.sqs.client.delete_queue(QueueUrl=queue.url)


def by_missing_dead_letters(sns: Sns, server: Server, topic: Topic, webhook: Webhook) -> None:
    dead = sns.sqs.queue()
    queue = topic.queue(RedrivePolicy=orjson.dumps({"deadLetterTargetArn": dead.arn}).decode())
    for one in (queue, dead):
        sns.sqs.client.delete_queue(QueueUrl=one.url)


def by_a_function(sns: Sns, server: Server, topic: Topic, webhook: Webhook) -> None:
    topic.subscribe("lambda", FUNCTION)


def by_a_text_message(sns: Sns, server: Server, topic: Topic, webhook: Webhook) -> None:
    topic.subscribe("sms", "+493012345678")


@pytest.mark.parametrize(
    ("path", "said", "state"),
    [
        (
            by_a_webhook,
            "reason=client_error status=404 attempts=1",
            r"failing \(client_error 404, 1 failure in a row\)",
        ),
        (by_a_missing_queue, "reason=missing status=400 attempts=1", r"failing \(missing 400\)"),
        (by_missing_dead_letters, "queue_reason=missing", r"failing \(missing 400\)"),
        (by_a_function, "reason=missing status=404", r"failing \(missing 404, 1 failure in a row\)"),
        (
            by_a_text_message,
            "this server is not set up",
            "not set up: this server has nothing to push sms to",
        ),
    ],
)
def test_lost_deliveries_are_logged_as_warnings_and_shown(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook, path: Path, said: str, state: str
) -> None:
    topic = sns.topic()
    path(sns, server, topic, webhook)
    message_id = topic.publish("m")["MessageId"]
    server.advance(1)
    (line,) = losses(server, topic)
    assert " WARNING " in line
    assert re.search(rf"delivery\.dropped topic=\S+ subscription=\S+ message_id={message_id} ", line)
    assert said in line
    assert re.search(state, redrive("endpoints", "list"))


def test_a_confirmation_that_fails_is_warned_of_and_its_endpoint_is_shown_as_unconfirmed(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic = sns.topic(
        DeliveryPolicy=orjson.dumps(
            {"http": {"defaultHealthyRetryPolicy": POLICY["healthyRetryPolicy"]}}
        ).decode()
    )
    fail(server, webhook.url, 503)
    topic.subscribe("http", webhook.url)
    assert "unconfirmed: it has not agreed to get messages" in redrive("endpoints", "list")
    server.advance(60)
    (line,) = losses(server, topic)
    assert "subscription.unconfirmed" in line
    assert "reason=server_error status=503 attempts=3" in line


def test_an_endpoint_that_is_tried_again_is_failing_until_it_takes_a_message(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic = sns.topic()
    confirmed(topic, webhook, DeliveryPolicy=orjson.dumps(POLICY).decode())
    assert redrive("endpoints", "list") == ""
    fail(server, webhook.url, 503)
    topic.publish("m")
    server.advance(21)
    assert "failing (server_error 503, 2 failures in a row)" in redrive("endpoints", "list")
    fail(server, webhook.url, None)
    server.advance(21)
    assert redrive("endpoints", "list") == ""
    assert losses(server, topic) == []
