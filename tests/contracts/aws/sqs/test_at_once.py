"""Many clients at the same moment: what holds for one after the other holds side by side."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest
from botocore.exceptions import ClientError

from tests.contracts.aws.sqs.client import Sqs, entries, new_name

CLIENTS = 8


@pytest.fixture
def at_once() -> Any:
    """Makes calls side by side and returns their answers in order; a boto3 client is for any number of threads."""
    with ThreadPoolExecutor(CLIENTS) as threads:

        def call(function: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
            return list(threads.map(function, arguments))

        yield call


def test_a_queue_is_created_once(sqs: Sqs, at_once: Any) -> None:
    name = new_name()
    urls = at_once(lambda _: sqs.create(name, {"DelaySeconds": "3"}).url, range(CLIENTS))
    assert len(set(urls)) == 1
    queue = sqs.create(name)
    queue.send(DelaySeconds=0)
    assert len(queue.receive()) == 1


def test_of_two_different_queues_one_is_created(sqs: Sqs, at_once: Any) -> None:
    name = new_name()

    def create(seconds: int) -> str:
        try:
            sqs.create(name, {"DelaySeconds": str(seconds)})
        except ClientError as error:
            code: str = error.response["Error"]["Code"]
            return code
        return str(seconds)

    answers = at_once(create, range(CLIENTS))
    assert answers.count("QueueAlreadyExists") == CLIENTS - 1
    (created,) = {*answers} - {"QueueAlreadyExists"}
    assert sqs.create(name).attributes("DelaySeconds") == {"DelaySeconds": created}


def test_a_message_is_received_once(sqs: Sqs, at_once: Any) -> None:
    queue = sqs.queue()
    sent = [f"{batch}-{number}" for batch in range(8) for number in range(10)]
    at_once(lambda at: queue.send_batch(*entries(*sent[at : at + 10])), range(0, 80, 10))
    received = at_once(lambda _: queue.bodies(5), range(24))
    assert sorted(body for bodies in received for body in bodies) == sorted(sent)


def test_a_group_is_received_by_one(sqs: Sqs, at_once: Any) -> None:
    queue = sqs.fifo()
    for number in range(20):
        queue.send_fifo(str(number))
    received = at_once(lambda _: queue.bodies(3), range(CLIENTS))
    assert sorted(filter(None, received)) == [["0", "1", "2"]]


def test_an_id_is_sent_once(sqs: Sqs, at_once: Any) -> None:
    queue = sqs.fifo()
    sent = at_once(lambda body: queue.send_fifo(body, key="same"), map(str, range(CLIENTS)))
    assert len({(one["MessageId"], one["SequenceNumber"]) for one in sent}) == 1
    assert len(queue.receive()) == 1


def test_no_change_swallows_another(sqs: Sqs, at_once: Any) -> None:
    queue = sqs.queue()

    def change(number: int) -> None:
        queue.call("add_permission", Label=f"l{number}", AWSAccountIds=["2" * 12], Actions=["SendMessage"])
        queue.call("tag_queue", Tags={f"t{number}": ""})

    at_once(change, range(CLIENTS))
    policy = orjson.loads(queue.attributes()["Policy"])
    assert {one["Sid"] for one in policy["Statement"]} == {f"l{number}" for number in range(CLIENTS)}
    assert queue.call("list_queue_tags")["Tags"].keys() == {f"t{number}" for number in range(CLIENTS)}


def test_a_source_gets_no_second_task(sqs: Sqs, at_once: Any) -> None:
    queue, dead = sqs.with_dead_letters(1)
    queue.send_batch(*entries(*map(str, range(10))))
    queue.receive(VisibilityTimeout=0)
    assert queue.receive() == []

    def start(_: int) -> bool:
        try:
            sqs.client.start_message_move_task(SourceArn=dead.arn, MaxNumberOfMessagesPerSecond=1)
        except ClientError:
            return False
        return True

    assert sum(at_once(start, range(CLIENTS))) or start(0)  # each may have been in another's way
    assert not start(0)
    (task,) = sqs.client.list_message_move_tasks(SourceArn=dead.arn, MaxResults=10)["Results"]
    assert task["ApproximateNumberOfMessagesToMove"] == 10
    sqs.server.advance(20)
    assert queue.counts() == (10, 0, 0)


def test_a_queue_is_purged_once(sqs: Sqs, at_once: Any) -> None:
    queue = sqs.queue()
    queue.send_batch(*entries(*map(str, range(10))))

    def purge(_: int) -> bool:
        try:
            queue.call("purge_queue")
        except ClientError:
            return False
        return True

    assert sum(at_once(purge, range(CLIENTS))) == 1
    assert queue.counts() == (0, 0, 0)


def test_deleting_a_queue_ends_whatever_is_asked_of_it(sqs: Sqs, at_once: Any) -> None:
    queue = sqs.queue()

    def use(number: int) -> str:
        try:
            queue.call("delete_queue") if number == 5 else queue.send(str(number))
        except ClientError as error:
            code: str = error.response["Error"]["Code"]
            return code
        return "done"

    answers = set(at_once(use, range(40)))
    assert answers <= {"done", "AWS.SimpleQueueService.NonExistentQueue"}
    sqs.server.advance(60)
    assert sqs.create(queue.name).receive() == []
