"""`redrive queues`, `topics` and `trace` against a running server."""

import json
import re

import orjson
import pytest

from redrive.cli.main import main
from tests.cli.telling import POLICY, Command, confirmed, fail
from tests.contracts.aws.sns.client import Sns, Webhook
from tests.services.server import Server


def test_queues_are_listed_with_their_counts(sns: Sns, redrive: Command) -> None:
    source, dead = sns.sqs.with_dead_letters(3)
    for text in ("one", "two", "three"):
        source.send(text)
    source.send("later", DelaySeconds=60)
    source.receive(1)
    lines = redrive("queues").splitlines()
    assert lines[0].split() == ["queue", "available", "in", "flight", "delayed", "dead", "letters", "to"]
    counts = {line.split()[0]: line.split()[1:] for line in lines[1:]}
    assert counts == {source.name: ["2", "1", "1", dead.name, "after", "3"], dead.name: ["0", "0", "0", "-"]}
    assert redrive("queues", source.name).splitlines()[1:] == [lines[1 if source.name < dead.name else 2]]
    queues = json.loads(redrive("queues", "--json"))["queues"]
    (shown,) = [queue for queue in queues if queue["queue"] == source.name]
    assert (shown["available"], shown["receives_max"], shown["fifo"]) == (2, 3, False)


def test_topics_are_listed_with_the_deliveries_that_their_subscriptions_wait_for(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic, dead = sns.topic(), sns.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    subscription = confirmed(
        topic, webhook, RedrivePolicy=policy, DeliveryPolicy=orjson.dumps(POLICY).decode()
    )
    topic.subscribe("http", f"{webhook.url}/unconfirmed")
    fail(server, webhook.url, 503)
    topic.publish("one")
    server.advance(1)
    name = topic.arn.rpartition(":")[2]
    first, *others = redrive("topics").splitlines()
    assert first.split() == [name, "2", "subscriptions"]
    line = f"    {subscription}  http  {webhook.url}  1 waiting  dead letters to {dead.name}"
    assert line in others
    assert any(other.endswith("/unconfirmed  not confirmed") for other in others)
    (shown,) = json.loads(redrive("topics", "--json"))["topics"]
    assert sorted(each["confirmed"] for each in shown["subscriptions"]) == [False, True]


@pytest.mark.parametrize("what", ["queues", "topics"])
def test_an_empty_list_of_queues_or_topics_is_explained(
    what: str, sns: Sns, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([what, "--url", server.url]) == 0
    assert capsys.readouterr() == ("", f"redrive: there are no {what}\n")
    assert main([what, "a", "--url", server.url]) == 0
    assert capsys.readouterr() == ("", f"redrive: there are no {what} whose names begin with a\n")


def test_a_listing_goes_on_after_a_name(sns: Sns, redrive: Command) -> None:
    for name in ("a1", "a2", "b1"):
        sns.sqs.create(name)
        sns.client.create_topic(Name=name)
    for what in ("queues", "topics"):
        after_a1 = re.findall(r"^[ab]\d", redrive(what, "--after", "a1"), re.MULTILINE)
        assert after_a1 == ["a2", "b1"]
        assert re.findall(r"^[ab]\d", redrive(what, "a", "--after", "a1"), re.MULTILINE) == ["a2"]


# ---- trace -------------------------------------------------------------------------------------------------------


def test_a_publication_is_traced_to_all_its_deliveries(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    topic, dead = sns.topic(), sns.sqs.queue()
    queue = topic.queue(RawMessageDelivery="true")
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    gone = topic.queue(RedrivePolicy=policy)
    gone.sqs.client.delete_queue(QueueUrl=gone.url)
    subscription = confirmed(topic, webhook, DeliveryPolicy=orjson.dumps(POLICY).decode())
    fail(server, webhook.url, 503)
    published = topic.publish("one")["MessageId"]
    topic.publish("another")
    server.advance(1)
    name = topic.arn.rpartition(":")[2]
    said = redrive("trace", published)
    assert f"queue {queue.name}: waits, 0 receives\n" in said
    assert re.search(rf"{name} to {webhook.url} \({subscription}\): waits until \S+ \S+Z, 1 attempt\n", said)
    assert re.search(r"\n +1  \S+ \S+Z  server_error      503 ", said)
    assert re.search(rf"dead letter \d+ in {dead.name}, from {name} to {gone.arn}: 1 attempt\n", said)
    assert len(re.findall(r"^\S", said, re.MULTILINE)) == 3
    traced = json.loads(redrive("trace", published, "--json"))
    assert [each["state"] for each in traced["deliveries"]].count("delayed") == 1
    assert not traced["partial"]


def test_a_message_of_a_queue_is_traced_by_its_own_id(sns: Sns, redrive: Command) -> None:
    source = sns.sqs.queue()
    sent = source.send("one")
    assert redrive("trace", sent["MessageId"]) == f"queue {source.name}: waits, 0 receives\n"
    source.receive(VisibilityTimeout=30)
    assert re.match(
        rf"queue {source.name}: in flight until .*, 1 receive\n", redrive("trace", sent["MessageId"])
    )


def test_a_trace_shows_the_messages_lines_of_the_delivery_log(
    sns: Sns, server: Server, redrive: Command, webhook: Webhook
) -> None:
    role = "arn:aws:iam::000000000000:role/logs"
    topic = sns.topic(HTTPSuccessFeedbackRoleArn=role, HTTPSuccessFeedbackSampleRate="100")
    confirmed(topic, webhook)
    published = topic.publish("one")["MessageId"]
    webhook.next()
    server.advance(10)
    (line,) = redrive("trace", published).splitlines()
    assert re.fullmatch(rf"logged 2026-\S+ \S+Z  SUCCESS  {webhook.url}  200", line)


def test_a_message_that_left_nothing_behind(
    sns: Sns, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    sns.sqs.queue().send("another")
    assert main(["trace", "6f1c", "--url", server.url]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("redrive: no delivery of 6f1c is waiting, in flight or a dead letter")
