"""Every operation once through the AWS CLI, unmodified, as a process of its own."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.contracts.aws.sqs.client import ACCOUNT, Sqs, entries, new_name, redrive_policy
from tests.services.clients import CommandFailedError, cli
from tests.services.server import Server

FRIEND = "200000000000"


# One store: the other contracts try what could differ between stores, and a call costs half a second.
pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


@pytest.fixture
def aws(server: Server, tmp_path: Path) -> Any:
    return cli(server, tmp_path)


def test_the_cli_manages_queues(server: Server, aws: Any) -> None:
    name = new_name()
    url = f"{server.url}/{ACCOUNT}/{name}"
    attributes = "DelaySeconds=5,VisibilityTimeout=7"
    assert aws("create-queue", "--queue-name", name, "--attributes", attributes, "--tags", "a=b") == {
        "QueueUrl": url
    }
    assert aws("get-queue-url", "--queue-name", name) == {"QueueUrl": url}
    assert aws("list-queues", "--queue-name-prefix", name) == {"QueueUrls": [url]}
    aws("set-queue-attributes", "--queue-url", url, "--attributes", '{"DelaySeconds": "0"}')
    shown = aws(
        "get-queue-attributes", "--queue-url", url, "--attribute-names", "DelaySeconds", "VisibilityTimeout"
    )
    assert shown == {"Attributes": {"DelaySeconds": "0", "VisibilityTimeout": "7"}}
    aws("tag-queue", "--queue-url", url, "--tags", "c=d")
    aws("untag-queue", "--queue-url", url, "--tag-keys", "a")
    assert aws("list-queue-tags", "--queue-url", url) == {"Tags": {"c": "d"}}
    aws("delete-queue", "--queue-url", url)
    with pytest.raises(CommandFailedError, match="NonExistentQueue"):
        aws("get-queue-url", "--queue-name", name)


def test_the_cli_sends_and_receives_messages(server: Server, aws: Any) -> None:
    url = Sqs(server).queue().url
    attribute = '{"Foo": {"DataType": "String", "StringValue": "Bar"}}'
    sent = aws("send-message", "--queue-url", url, "--message-body", "msg", "--message-attributes", attribute)
    assert sent["MD5OfMessageBody"] == "6e2baaf3b97dbeef01c0043275f9a0e7"
    assert sent["MD5OfMessageAttributes"] == "ae7155c6026991b6d54b11589678bf9c"
    everything = ("--message-attribute-names", "All", "--attribute-names", "All")
    (message,) = aws("receive-message", "--queue-url", url, *everything)["Messages"]
    assert message["MessageAttributes"] == {"Foo": {"DataType": "String", "StringValue": "Bar"}}
    handle = message["ReceiptHandle"]
    hidden = ("--receipt-handle", handle, "--visibility-timeout", "0")
    aws("change-message-visibility", "--queue-url", url, *hidden)
    (message,) = aws("receive-message", "--queue-url", url)["Messages"]
    aws("delete-message", "--queue-url", url, "--receipt-handle", message["ReceiptHandle"])
    assert aws("receive-message", "--queue-url", url) is None


def test_batches_and_purging(server: Server, aws: Any) -> None:
    url = Sqs(server).queue().url
    three = orjson.dumps([{"Id": id_, "MessageBody": id_} for id_ in "abc"]).decode()
    sent = aws("send-message-batch", "--queue-url", url, "--entries", three)
    assert [one["Id"] for one in sent["Successful"]] == ["a", "b", "c"]
    received = aws("receive-message", "--queue-url", url, "--max-number-of-messages", "3")["Messages"]
    handles = [{"Id": one["Body"], "ReceiptHandle": one["ReceiptHandle"]} for one in received]
    back = orjson.dumps([{**handles[0], "VisibilityTimeout": 0}]).decode()
    assert (
        len(aws("change-message-visibility-batch", "--queue-url", url, "--entries", back)["Successful"]) == 1
    )
    gone = orjson.dumps(handles[1:]).decode()
    assert len(aws("delete-message-batch", "--queue-url", url, "--entries", gone)["Successful"]) == 2
    assert len(aws("receive-message", "--queue-url", url)["Messages"]) == 1
    aws("purge-queue", "--queue-url", url)
    with pytest.raises(CommandFailedError, match="PurgeQueueInProgress"):
        aws("purge-queue", "--queue-url", url)


def test_dead_letters_and_permissions(server: Server, aws: Any) -> None:
    sqs = Sqs(server)
    dead = sqs.queue()
    queue = sqs.queue(RedrivePolicy=redrive_policy(dead, 1))
    assert aws("list-dead-letter-source-queues", "--queue-url", dead.url) == {"queueUrls": [queue.url]}
    queue.send_batch(*entries("a", "b", "c"))
    queue.receive(VisibilityTimeout=0)
    assert queue.receive() == []
    rate = ("--max-number-of-messages-per-second", "1")
    handle = aws("start-message-move-task", "--source-arn", dead.arn, *rate)["TaskHandle"]
    (task,) = aws("list-message-move-tasks", "--source-arn", dead.arn)["Results"]
    assert (task["Status"], task["TaskHandle"]) == ("RUNNING", handle)
    cancelled = aws("cancel-message-move-task", "--task-handle", handle)
    assert cancelled == {
        "ApproximateNumberOfMessagesMoved": 0
    }  # the count of a running task lags, as Amazon's does
    permission = ("--label", "l", "--aws-account-ids", FRIEND, "--actions", "SendMessage")
    aws("add-permission", "--queue-url", queue.url, *permission)
    queue.seen_by(sqs.elsewhere(account=FRIEND)).send()
    aws("remove-permission", "--queue-url", queue.url, "--label", "l")
    assert "Policy" not in queue.attributes()
