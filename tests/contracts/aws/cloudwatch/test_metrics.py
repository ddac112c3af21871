"""The metrics of a server that works, as Prometheus reads them over the wire."""

import orjson
from prometheus_client.parser import text_string_to_metric_families

from tests.contracts.aws.sns.client import Sns, Webhook, follow
from tests.contracts.aws.sqs.client import Sqs
from tests.services.server import Server


class Scrape:
    """One look at a server's metrics."""

    def __init__(self, server: Server) -> None:
        status, body = server.ask("GET", "/_redrive/metrics")
        assert status == 200
        self.samples = [
            sample for family in text_string_to_metric_families(body.decode()) for sample in family.samples
        ]

    def value(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name that have these labels."""
        found = [
            sample.value
            for sample in self.samples
            if sample.name == f"redrive_{name}" and labels.items() <= sample.labels.items()
        ]
        return sum(found)


def test_a_queue_s_depth_and_age_show_once_a_minute(server: Server) -> None:
    queue = Sqs(server).queue()
    for body in "abc":
        queue.send(body)
    queue.send("later", DelaySeconds=600)
    queue.receive(1, VisibilityTimeout=600)
    server.advance(120)
    scrape = Scrape(server)
    shown = {
        name: scrape.value(f"queue_{name}", queue=queue.name)
        for name in ("messages_available", "messages_in_flight", "messages_delayed")
    }
    assert shown == {"messages_available": 2, "messages_in_flight": 1, "messages_delayed": 1}
    assert 60 <= scrape.value("queue_oldest_message_age_seconds", queue=queue.name) <= 120
    queue.call("purge_queue")
    server.advance(120)
    assert not [
        sample for sample in Scrape(server).samples if sample.name == "redrive_queue_messages_available"
    ]


def test_deliveries_under_retry_show_by_topic_and_end_as_dead_letters(server: Server) -> None:
    sns = Sns(server)
    topic, dead = sns.topic(), sns.sqs.queue()
    policy = {"healthyRetryPolicy": {"minDelayTarget": 3600, "maxDelayTarget": 3600, "numRetries": 1}}
    before = Scrape(server)
    with Webhook().serving() as webhook:
        topic.subscribe(
            "http",
            webhook.url,
            DeliveryPolicy=orjson.dumps(policy).decode(),
            RedrivePolicy=orjson.dumps({"deadLetterTargetArn": dead.arn}).decode(),
        )
        follow(webhook.next().document["SubscribeURL"])
        server.ask("POST", "/_redrive/faults", orjson.dumps({"endpoint": webhook.url, "status": 503}))
        topic.publish()
        server.advance(120)
        waiting = Scrape(server)
        server.advance(3600)
        ended = Scrape(server)
        server.ask("POST", "/_redrive/faults", orjson.dumps({"endpoint": webhook.url, "status": None}))
    name = topic.arn.rpartition(":")[2]
    assert waiting.value("topic_deliveries_retrying", topic=name) == 1
    assert 60 <= waiting.value("topic_oldest_delivery_age_seconds", topic=name) <= 120
    assert waiting.value("attempt_duration_seconds_count", protocol="http", outcome="retry") >= 1
    assert ended.value("topic_deliveries_retrying", topic=name) == 0
    reason = {"source": "subscription", "reason": "server_error"}
    assert ended.value("dead_letters_total", **reason) - before.value("dead_letters_total", **reason) == 1


def test_commits_and_the_calls_that_share_them_are_timed(server: Server) -> None:
    before = Scrape(server)
    queue = Sqs(server).queue()
    for number in range(5):
        queue.send(str(number))
    after = Scrape(server)
    for name in ("commit_duration_seconds_count", "commit_duration_seconds_sum", "commit_calls_count"):
        assert after.value(f"store_{name}") > before.value(f"store_{name}")
    assert after.value("store_commit_calls_sum") - before.value("store_commit_calls_sum") >= 5


def test_a_queue_s_dead_letters_have_their_reason(server: Server) -> None:
    queue, _ = Sqs(server).with_dead_letters(1)
    before = Scrape(server).value("dead_letters_total", source="queue", reason="exhausted")
    queue.send()
    queue.receive(VisibilityTimeout=0)
    assert queue.receive() == []
    assert Scrape(server).value("dead_letters_total", source="queue", reason="exhausted") == before + 1
