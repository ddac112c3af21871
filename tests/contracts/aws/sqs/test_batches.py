from typing import Any

import pytest

from tests.contracts.aws.sqs.client import Queue, Sqs, entries, refused, text

BATCHES = ["send_message_batch", "delete_message_batch", "change_message_visibility_batch"]
ENTRY: dict[str, dict[str, Any]] = {
    "send_message_batch": {"MessageBody": "b"},
    "delete_message_batch": {"ReceiptHandle": "h"},
    "change_message_visibility_batch": {"ReceiptHandle": "h", "VisibilityTimeout": 0},
}
PREFIX = "AWS.SimpleQueueService"


def batch(queue: Queue, operation: str, *ids: str) -> Any:
    return queue.call(operation, Entries=[{"Id": one, **ENTRY[operation]} for one in ids])


# ---- the batch as a whole ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", BATCHES)
def test_a_batch_has_at_most_10_entries(sqs: Sqs, operation: str) -> None:
    message = "Maximum number of entries per request are 10. You have sent 20."
    with refused(f"{PREFIX}.TooManyEntriesInBatchRequest", message):
        batch(sqs.queue(), operation, *map(str, range(20)))


@pytest.mark.parametrize("operation", BATCHES)
@pytest.mark.parametrize("id_", ["", "testLongId" * 10, "invalid:id", "a b", "ü", "a\n"])
def test_ids_no_entry_may_have(sqs: Sqs, operation: str, id_: str) -> None:
    message = (
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores."
        " It can be at most 80 letters long."
    )
    with refused(f"{PREFIX}.InvalidBatchEntryId", message):
        batch(sqs.queue(), operation, "fine", id_)


@pytest.mark.parametrize("operation", BATCHES)
def test_ids_are_distinct(sqs: Sqs, operation: str) -> None:
    with refused(f"{PREFIX}.BatchEntryIdsNotDistinct", "Id twice repeated."):
        batch(sqs.queue(), operation, "once", "twice", "twice")


@pytest.mark.parametrize("operation", BATCHES)
def test_a_batch_has_entries(sqs: Sqs, operation: str) -> None:
    name = {
        "send_message_batch": "SendMessageBatchRequestEntry",
        "delete_message_batch": "DeleteMessageBatchRequestEntry",
        "change_message_visibility_batch": "ChangeMessageVisibilityBatchRequestEntry",
    }[operation]
    with refused(f"{PREFIX}.EmptyBatchRequest", f"There should be at least one {name} in the request."):
        batch(sqs.queue(), operation)


def test_ids_of_every_letter(sqs: Sqs) -> None:
    queue = sqs.queue()
    ids = ["A-z_09", "x" * 80, "-"]
    assert [one["Id"] for one in batch(queue, "send_message_batch", *ids)["Successful"]] == ids


def test_a_batch_has_at_most_1_mib(sqs: Sqs) -> None:
    queue = sqs.queue()
    half = 524_288
    queue.send_batch(*entries("x" * half, "y" * half))
    message = "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."
    with refused(f"{PREFIX}.BatchRequestTooLong", message):
        queue.send_batch(*entries("x" * half, "y" * (half + 1)))
    with refused(f"{PREFIX}.BatchRequestTooLong", message):
        queue.send_batch(*entries("x" * half, "y" * (half - 13), MessageAttributes={"a": text("", "String")}))
    assert queue.counts() == (2, 0, 0)


def test_1_mib_is_the_limit_of_a_batch_to_a_queue_that_takes_less(sqs: Sqs) -> None:
    queue = sqs.queue(MaximumMessageSize="1024")
    too_long = "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."
    answer = queue.send_batch(*entries("x" * 1024, "y" * 2048, "z"))
    assert [one["Id"] for one in answer["Successful"]] == ["0", "2"]
    assert answer["Failed"] == [
        {"Id": "1", "SenderFault": True, "Code": "InvalidParameterValue", "Message": too_long}
    ]
    with refused(f"{PREFIX}.BatchRequestTooLong"):
        queue.send_batch(*entries("x" * 1_048_577))


# ---- entries -----------------------------------------------------------------------------------------------------


def test_each_sent_entry_has_its_answer(sqs: Sqs) -> None:
    queue = sqs.queue()
    answer = queue.send_batch(
        {"Id": "plain", "MessageBody": "msg"},
        {"Id": "with", "MessageBody": "msg", "MessageAttributes": {"Foo": text("Bar")}},
    )
    assert "Failed" not in answer
    plain, with_attributes = answer["Successful"]
    assert plain.keys() == {"Id", "MessageId", "MD5OfMessageBody"}
    assert plain["MD5OfMessageBody"] == "6e2baaf3b97dbeef01c0043275f9a0e7"
    assert with_attributes["MD5OfMessageAttributes"] == "ae7155c6026991b6d54b11589678bf9c"
    received = {message["MessageId"] for message in queue.receive()}
    assert received == {plain["MessageId"], with_attributes["MessageId"]}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"MessageBody": "\0"}, "InvalidMessageContents"),
        ({"MessageAttributes": {"X": text("")}}, "InvalidParameterValue"),
        ({"DelaySeconds": 901}, "InvalidParameterValue"),
    ],
)
def test_a_wrong_entry_fails_alone(sqs: Sqs, wrong: dict[str, Any], code: str) -> None:
    queue = sqs.queue()
    answer = queue.send_batch(
        {"Id": "right", "MessageBody": "right"}, {"Id": "wrong", "MessageBody": "b", **wrong}
    )
    assert [one["Id"] for one in answer["Successful"]] == ["right"]
    (failed,) = answer["Failed"]
    assert (failed["Id"], failed["Code"], failed["SenderFault"]) == ("wrong", code, True)
    assert queue.bodies() == ["right"]


def test_a_batch_of_nothing_but_wrong_entries(sqs: Sqs) -> None:
    answer = sqs.queue().send_batch({"Id": "1", "MessageBody": "\0"})
    assert "Successful" not in answer
    assert len(answer["Failed"]) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"MessageDeduplicationId": "d"}, "The request must contain the parameter MessageGroupId."),
        (
            {"MessageGroupId": "g"},
            (
                "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId"
                " provided explicitly"
            ),
        ),
    ],
)
def test_a_fifo_entry_without_its_ids_fails_the_whole_batch(
    sqs: Sqs, wrong: dict[str, str], message: str
) -> None:
    queue = sqs.fifo()
    right = {"Id": "1", "MessageBody": "b", "MessageGroupId": "g", "MessageDeduplicationId": "1"}
    with refused("InvalidParameterValue", message):
        queue.send_batch(right, {"Id": "2", "MessageBody": "b", **wrong})
    assert queue.counts() == (0, 0, 0)


def test_deleting_in_a_batch(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send_batch(*entries("a", "b", "c"))
    a, b, c = queue.receive(3)
    answer = queue.call(
        "delete_message_batch",
        Entries=[
            {"Id": "a", "ReceiptHandle": a["ReceiptHandle"]},
            {"Id": "nonsense", "ReceiptHandle": "nonsense"},
            {"Id": "b", "ReceiptHandle": b["ReceiptHandle"]},
        ],
    )
    assert [one["Id"] for one in answer["Successful"]] == ["a", "b"]
    assert answer["Failed"] == [
        {
            "Id": "nonsense",
            "SenderFault": True,
            "Code": "ReceiptHandleIsInvalid",
            "Message": 'The input receipt handle "nonsense" is not a valid receipt handle.',
        }
    ]
    sqs.server.advance(30)
    assert [message["MessageId"] for message in queue.receive()] == [c["MessageId"]]


def test_changing_visibility_in_a_batch(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send_batch(*entries("a", "b", "c"))
    a, b, c = queue.receive(3)
    answer = queue.call(
        "change_message_visibility_batch",
        Entries=[
            {"Id": "now", "ReceiptHandle": a["ReceiptHandle"], "VisibilityTimeout": 0},
            {"Id": "later", "ReceiptHandle": b["ReceiptHandle"], "VisibilityTimeout": 60},
            {"Id": "never", "ReceiptHandle": c["ReceiptHandle"], "VisibilityTimeout": 43_201},
        ],
    )
    assert [one["Id"] for one in answer["Successful"]] == ["now", "later"]
    assert [(one["Id"], one["Code"]) for one in answer["Failed"]] == [("never", "InvalidParameterValue")]
    assert queue.bodies(VisibilityTimeout=120) == [a["Body"]]
    sqs.server.advance(30)
    assert queue.bodies(VisibilityTimeout=120) == [c["Body"]]
    sqs.server.advance(30)
    assert queue.bodies() == [b["Body"]]
