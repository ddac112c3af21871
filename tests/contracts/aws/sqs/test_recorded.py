"""Answers of Amazon's SQS that were recorded, where one would not expect them."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.contracts.aws.sqs.client import ACCOUNT, Queue, Sqs, new_name, refused, text
from tests.services.postgres import DatabaseMaker
from tests.services.server import Server, serving

# ---- queue URLs --------------------------------------------------------------------------------------------------


def get(url: str, **headers: str) -> tuple[int, str]:
    """Ask as a browser does, unsigned."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


def test_a_queue_url_may_be_a_name(sqs: Sqs) -> None:
    queue = sqs.queue()
    by_name = Queue(sqs, queue.name)
    by_name.send("by name")
    message = by_name.one()
    assert message["Body"] == "by name"
    by_name.delete(message)
    assert by_name.attributes("QueueArn") == {"QueueArn": queue.arn}
    with refused("AWS.SimpleQueueService.NonExistentQueue"):
        Queue(sqs, new_name()).send()


def test_an_empty_receive_by_query_is_one_element(sqs: Sqs) -> None:
    status, answer = get(f"{sqs.queue().url}?Action=ReceiveMessage")
    assert status == 200
    assert "<ReceiveMessageResult/>" in answer


@pytest.mark.parametrize("action", ["CreateQueue", "ListQueues"])
def test_the_url_of_a_queue_neither_creates_nor_lists(sqs: Sqs, action: str) -> None:
    status, answer = get(f"{sqs.queue().url}?Action={action}&QueueName={new_name()}")
    assert status == 400
    assert "<Code>InvalidAction</Code>" in answer
    assert f"<Message>The action {action} is not valid for this endpoint.</Message>" in answer


@pytest.fixture(params=["path", "host"])
def naming(request: pytest.FixtureRequest, tmp_path: Path, database_maker: DatabaseMaker) -> Iterator[Server]:
    """A server whose queue URLs name their region; one way on each store."""
    flags = ("--queue-urls", request.param)
    if request.param == "path":
        with serving("sqlite://:memory:", *flags, directory=tmp_path) as server:
            yield server
    else:
        with database_maker.database() as url, serving(url, *flags) as server:
            server.url = server.url.replace("127.0.0.1", "localhost")  # before an address stands no name
            yield server


def test_queues_of_one_name_in_two_regions_have_urls_of_their_own(naming: Server) -> None:
    name = new_name()
    here = Sqs(naming)
    there = here.elsewhere(region="eu-central-1")
    queues = [here.create(name), there.create(name)]
    assert ["us-east-1" in queue.url for queue in queues] == [True, False]
    assert ["eu-central-1" in queue.url for queue in queues] == [False, True]
    assert [here.urls(), there.urls()] == [[queue.url] for queue in queues]
    assert there.client.get_queue_url(QueueName=name)["QueueUrl"] == queues[1].url
    # Whoever has the URL means that queue, whichever region the caller is in.
    queues[1].seen_by(here).send("there")
    assert (queues[0].bodies(), queues[1].bodies()) == ([], ["there"])


def test_a_url_without_a_region_is_the_callers(naming: Server) -> None:
    sqs = Sqs(naming)
    queue = sqs.queue()
    Queue(sqs, f"{naming.url}/{ACCOUNT}/{queue.url.rpartition('/')[2]}").send("plain")
    assert queue.bodies() == ["plain"]


# ---- receipt handles -----------------------------------------------------------------------------------------------


def received_twice(queue: Queue) -> tuple[Any, Any]:
    """A message as its first receiver got it, whose timeout has ended, and as its second has it."""
    first = queue.one(VisibilityTimeout=2)
    queue.sqs.server.advance(2)
    return first, queue.one(VisibilityTimeout=60)


def test_an_earlier_handle_still_deletes(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send()
    first, _ = received_twice(queue)
    queue.delete(first)
    assert queue.counts() == (0, 0, 0)


def test_earlier_handles_still_delete_in_a_batch(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("received twice")
    first, _ = received_twice(queue)
    queue.send("received once")
    once = queue.one()
    entries = [
        {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
        for number, message in enumerate((first, once))
    ]
    answer = queue.call("delete_message_batch", Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["0", "1"]
    assert queue.counts() == (0, 0, 0)


def test_an_earlier_handle_still_changes_visibility(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("again")
    first, second = received_twice(queue)
    queue.hide(first, 0)
    third = queue.one(VisibilityTimeout=60)
    assert third["MessageId"] == second["MessageId"]
    answer = queue.call(
        "change_message_visibility_batch",
        Entries=[{"Id": "a", "ReceiptHandle": second["ReceiptHandle"], "VisibilityTimeout": 0}],
    )
    assert answer["Successful"] == [{"Id": "a"}]
    assert queue.bodies() == ["again"]


def test_an_earlier_handle_of_a_fifo_queue_is_refused(sqs: Sqs) -> None:
    queue = sqs.fifo()
    queue.send_fifo("ordered")
    first, second = received_twice(queue)
    handle = first["ReceiptHandle"]
    expired = (
        f"Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
    )
    with refused("InvalidParameterValue", expired):
        queue.delete(first)
    answer = queue.call("delete_message_batch", Entries=[{"Id": "a", "ReceiptHandle": handle}])
    assert [(entry["Code"], entry["Message"]) for entry in answer["Failed"]] == [
        ("InvalidParameterValue", expired)
    ]
    with refused("InvalidParameterValue"):
        queue.hide(first, 0)
    assert queue.counts() == (0, 1, 0)
    queue.delete(second)
    assert queue.counts() == (0, 0, 0)


# ---- purging -------------------------------------------------------------------------------------------------------


def test_a_purge_forgets_what_was_sent_once(sqs: Sqs) -> None:
    queue = sqs.fifo()
    first = queue.send_fifo("before", key="same")
    queue.call("purge_queue")
    second = queue.send_fifo("after", key="same")
    assert first["MessageId"] != second["MessageId"]
    assert queue.send_fifo("repeated", key="same")["MessageId"] == second["MessageId"]
    assert queue.bodies() == ["after"]


@pytest.fixture(params=["sqlite", "postgres"])
def hasty(request: pytest.FixtureRequest, tmp_path: Path, database_maker: DatabaseMaker) -> Iterator[Server]:
    """A server that waits for nothing between deletions or purges."""
    if request.param == "sqlite":
        with serving("sqlite://:memory:", "--skip-queue-waits", directory=tmp_path) as server:
            yield server
    else:
        with database_maker.database() as url, serving(url, "--skip-queue-waits") as server:
            yield server


def test_a_switch_lets_queues_be_purged_and_made_again_at_once(hasty: Server) -> None:
    queue = Sqs(hasty).fifo()
    for number in range(3):
        queue.send_fifo(f"before {number}", key="same")
        queue.call("purge_queue")
    assert queue.counts() == (0, 0, 0)
    queue.call("delete_queue")
    again = queue.sqs.create(queue.name, {"FifoQueue": "true"})
    again.send_fifo("after", key="same")
    assert again.bodies() == ["after"]
    assert "WARNING" in (log := hasty.log.read_text())
    assert "skip_queue_waits is on" in log


# ---- attributes and tags -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attr.1øßä", "名前", "é"])
def test_the_name_of_an_attribute_may_have_any_letters(sqs: Sqs, name: str) -> None:
    queue = sqs.queue()
    sent = queue.send(MessageAttributes={name: text("value")})
    message = queue.one()
    assert message["MessageAttributes"] == {name: text("value")}
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]


@pytest.mark.parametrize("name", ["a b", "a\u00a0b", "a/b", "a\U0001f600", "a\u2028", "a\u0000b"])
def test_the_name_of_an_attribute_has_nothing_but_letters_digits_and_three_signs(sqs: Sqs, name: str) -> None:
    with refused("InvalidParameterValue"):
        sqs.queue().send(MessageAttributes={name: text("value")})


def test_a_control_character_in_an_attribute_is_an_invalid_value(sqs: Sqs) -> None:
    with refused("InvalidParameterValue"):
        sqs.queue().send(MessageAttributes={"a": text("a\u0001b")})


@pytest.mark.parametrize(
    "policy",
    [
        '"text"',
        "1",
        "[]",
        "{}",
        "null",
        '{"deadLetterTargetArn":"ARN"}',
        '{"maxReceiveCount":"42"}',
        '{"deadLetterTargetArn":"","maxReceiveCount":3}',
        '{"deadLetterTargetArn":null,"maxReceiveCount":3}',
        '{"deadLetterTargetArn":"ARN","maxReceiveCount":null}',
        '{"deadLetterTargetArn":"ARN","maxReceiveCount":0}',
        '{"deadLetterTargetArn":"ARN","maxReceiveCount":1001}',
        '{"deadLetterTargetArn":"ARN","maxReceiveCount":"x"}',
    ],
)
def test_a_redrive_policy_of_another_shape_is_an_invalid_value(sqs: Sqs, policy: str) -> None:
    queue, dead = sqs.queue(), sqs.queue()
    given = policy.replace("ARN", dead.arn)
    with refused("InvalidParameterValue"):
        queue.set(RedrivePolicy=given)
    with refused("InvalidParameterValue"):
        sqs.queue(RedrivePolicy=given)
    assert "RedrivePolicy" not in queue.attributes()


def test_the_value_of_a_tag_is_not_null(server: Server) -> None:
    queue = Sqs(server).queue()
    for target, members in (
        ("TagQueue", {"QueueUrl": queue.url, "Tags": {"a": None}}),
        ("CreateQueue", {"QueueName": new_name(), "tags": {"a": None}}),
    ):
        headers = {"X-Amz-Target": f"AmazonSQS.{target}", "Content-Type": "application/x-amz-json-1.0"}
        status, answer = server.ask("POST", "/", orjson.dumps(members), headers)
        assert status == 400
        assert "InvalidParameterValue" in answer.decode()
    assert "Tags" not in queue.call("list_queue_tags")


# ---- move tasks ----------------------------------------------------------------------------------------------------


def test_the_count_of_a_running_task_lags_and_that_of_an_ended_one_is_exact(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1)
    for number in range(60):
        queue.send(str(number))
    while queue.receive(VisibilityTimeout=0):
        pass
    handle = sqs.client.start_message_move_task(SourceArn=dead.arn, MaxNumberOfMessagesPerSecond=1)

    def told() -> tuple[str, int]:
        (task,) = sqs.client.list_message_move_tasks(SourceArn=dead.arn)["Results"]
        return task["Status"], task["ApproximateNumberOfMessagesMoved"]

    sqs.server.advance(3)
    assert told() == ("RUNNING", 0)
    sqs.server.advance(30)
    status, moved = told()
    assert status == "RUNNING"
    assert 20 <= moved < 34
    cancelled = sqs.client.cancel_message_move_task(TaskHandle=handle["TaskHandle"])
    assert cancelled["ApproximateNumberOfMessagesMoved"] == moved
    sqs.server.advance(5)
    assert told() == ("CANCELLED", queue.counts()[0])
