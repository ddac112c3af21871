"""FIFO queues: each message once, by its deduplication id, and its number in the queue's sequence."""

import hashlib
import itertools
from typing import Any

import pytest

from tests.contracts.aws.sqs.client import ACCOUNT, Sqs, refused, text

NO_ID = "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"


def test_all_attributes_of_a_fifo_message(sqs: Sqs) -> None:
    queue = sqs.fifo()
    sent = queue.send("message-body-1", MessageGroupId="group-1", MessageDeduplicationId="dedup-1")
    assert sent["MD5OfMessageBody"] == "19c9e282d65f9733bc6b35d50062c7ee"
    sent_at = str(round(sqs.server.now() * 1000))
    for count in ("1", "2"):
        assert queue.one(VisibilityTimeout=0)["Attributes"] == {
            "ApproximateFirstReceiveTimestamp": sent_at,
            "ApproximateReceiveCount": count,
            "MessageDeduplicationId": "dedup-1",
            "MessageGroupId": "group-1",
            "SenderId": ACCOUNT,
            "SentTimestamp": sent_at,
            "SequenceNumber": sent["SequenceNumber"],
        }


# ---- what a sender has to say ------------------------------------------------------------------------------------


def test_a_message_belongs_to_a_group(sqs: Sqs) -> None:
    with refused("MissingParameter", "The request must contain the parameter MessageGroupId."):
        sqs.fifo().send(MessageDeduplicationId="d")


def test_a_message_needs_a_deduplication_id_unless_its_content_is_used(sqs: Sqs) -> None:
    with refused("InvalidParameterValue", NO_ID):
        sqs.fifo().send(MessageGroupId="g")
    sqs.fifo(ContentBasedDeduplication="true").send(MessageGroupId="g")


ALL_SIGNS = "0aZ!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


@pytest.mark.parametrize("parameter", ["MessageGroupId", "MessageDeduplicationId"])
@pytest.mark.parametrize("value", [ALL_SIGNS, "x", "x" * 128])
def test_ids_are_letters_digits_and_signs(sqs: Sqs, parameter: str, value: str) -> None:
    queue = sqs.fifo()
    queue.send(**{"MessageGroupId": "g", "MessageDeduplicationId": "d", parameter: value})
    assert queue.one()["Attributes"][parameter] == value


@pytest.mark.parametrize("parameter", ["MessageGroupId", "MessageDeduplicationId"])
@pytest.mark.parametrize("value", ["", "x" * 129, "a b", "ü", "a\n"])
def test_malformed_ids_are_refused(sqs: Sqs, parameter: str, value: str) -> None:
    message = (
        f"Value {value} for parameter {parameter} is invalid. Reason: {parameter} can only include alphanumeric and"
        " punctuation characters. 1 to 128 in length."
    )
    with refused("InvalidParameterValue", message):
        sqs.fifo().send(**{"MessageGroupId": "g", "MessageDeduplicationId": "d", parameter: value})


# ---- repetitions -------------------------------------------------------------------------------------------------


def test_a_repeated_send_succeeds_and_sends_nothing(sqs: Sqs) -> None:
    queue = sqs.fifo()
    first = queue.send_fifo("first", key="d")
    again = queue.send_fifo("changed", key="d")
    assert again["MessageId"] == first["MessageId"]
    assert again["SequenceNumber"] == first["SequenceNumber"]
    assert queue.bodies() == ["first"]


def test_an_id_is_remembered_for_5_minutes(sqs: Sqs) -> None:
    queue = sqs.fifo()
    first = queue.send_fifo("1")
    sqs.server.advance(299.999)
    assert queue.send_fifo("1")["MessageId"] == first["MessageId"]
    sqs.server.advance(0.001)
    assert queue.send_fifo("1")["MessageId"] != first["MessageId"]
    assert queue.bodies() == ["1", "1"]


def test_an_id_is_remembered_though_its_message_was_received_and_deleted(sqs: Sqs) -> None:
    queue = sqs.fifo()
    queue.send_fifo("1")
    queue.delete(queue.one())
    queue.send_fifo("1")
    assert queue.receive() == []
    sqs.server.advance(300)
    queue.send_fifo("1")
    assert queue.bodies() == ["1"]


def test_an_id_is_remembered_in_the_whole_queue(sqs: Sqs) -> None:
    queue = sqs.fifo()
    queue.send_fifo("first", group="a", key="d")
    queue.send_fifo("second", group="b", key="d")
    assert queue.bodies() == ["first"]


def test_an_id_may_be_remembered_group_by_group(sqs: Sqs) -> None:
    queue = sqs.fifo(DeduplicationScope="messageGroup")
    queue.send_fifo("first", group="a", key="d")
    queue.send_fifo("second", group="b", key="d")
    queue.send_fifo("third", group="a", key="d")
    assert queue.bodies() == ["first", "second"]


def test_the_scope_may_change(sqs: Sqs) -> None:
    queue = sqs.fifo()
    queue.send_fifo("1", group="a", key="d")
    queue.set(DeduplicationScope="messageGroup")
    queue.send_fifo("2", group="b", key="e")
    queue.send_fifo("3", group="c", key="e")
    assert queue.bodies() == ["1", "2", "3"]


def test_a_repetition_within_a_batch(sqs: Sqs) -> None:
    queue = sqs.fifo()
    entry = {"MessageGroupId": "g", "MessageDeduplicationId": "d"}
    answer = queue.send_batch(
        {"Id": "1", "MessageBody": "first", **entry}, {"Id": "2", "MessageBody": "second", **entry}
    )
    first, second = answer["Successful"]
    assert first["MessageId"] == second["MessageId"]
    assert first["SequenceNumber"] == second["SequenceNumber"]
    assert queue.bodies() == ["first"]


def test_queues_remember_each_for_itself(sqs: Sqs) -> None:
    one, other = sqs.fifo(), sqs.fifo()
    one.send_fifo("1")
    other.send_fifo("1")
    assert (one.bodies(), other.bodies()) == (["1"], ["1"])


# ---- content -----------------------------------------------------------------------------------------------------


def test_equal_content_is_sent_once(sqs: Sqs) -> None:
    queue = sqs.fifo(ContentBasedDeduplication="true")
    queue.send("same", MessageGroupId="a")
    queue.send("same", MessageGroupId="b", MessageAttributes={"other": text("attributes")})
    message = queue.one()
    assert message["Attributes"]["MessageDeduplicationId"] == hashlib.sha256(b"same").hexdigest()
    queue.send("another", MessageGroupId="c")
    assert queue.bodies() == ["another"]


def test_an_id_that_is_given_stands_before_the_content(sqs: Sqs) -> None:
    queue = sqs.fifo(ContentBasedDeduplication="true")
    queue.send("same", MessageGroupId="a", MessageDeduplicationId="1")
    queue.send("same", MessageGroupId="a", MessageDeduplicationId="2")
    queue.send("same", MessageGroupId="a")
    shown = [message["Attributes"]["MessageDeduplicationId"] for message in queue.receive()]
    assert shown == ["1", "2", hashlib.sha256(b"same").hexdigest()]


def test_content_may_cease_to_count(sqs: Sqs) -> None:
    queue = sqs.fifo(ContentBasedDeduplication="true")
    queue.send("same", MessageGroupId="a")
    queue.set(ContentBasedDeduplication="false")
    with refused("InvalidParameterValue", NO_ID):
        queue.send("same", MessageGroupId="a")


# ---- sequence numbers --------------------------------------------------------------------------------------------


def test_sequence_numbers_have_20_digits_and_grow_unevenly(sqs: Sqs) -> None:
    queue = sqs.fifo()
    numbers = [queue.send_fifo(str(number), group=f"g{number % 3}")["SequenceNumber"] for number in range(12)]
    assert {len(number) for number in numbers} == {20}
    assert all(number.isdigit() for number in numbers)
    assert numbers == sorted(set(numbers))
    steps = {int(later) - int(sooner) for sooner, later in itertools.pairwise(numbers)}
    assert len(steps) > 1
    assert 1 not in steps
    received = [message["Attributes"]["SequenceNumber"] for message in queue.receive()]
    assert set(received) <= set(numbers)


def test_a_standard_message_has_no_sequence_number(sqs: Sqs) -> None:
    queue = sqs.queue()
    assert "SequenceNumber" not in queue.send()
    assert "SequenceNumber" not in queue.one()["Attributes"]


# ---- groups on standard queues: fair queues ----------------------------------------------------------------------


def test_a_standard_message_may_belong_to_a_group(sqs: Sqs) -> None:
    queue = sqs.queue()
    sent: list[Any] = [queue.send(str(number), MessageGroupId="tenant") for number in range(2)]
    assert sent[0]["MessageId"] != sent[1]["MessageId"]
    first, second = queue.receive(1), queue.receive(1)
    assert [one["Attributes"]["MessageGroupId"] for one in first + second] == ["tenant"] * 2


def test_a_quiet_group_does_not_wait_for_a_noisy_one(sqs: Sqs) -> None:
    queue = sqs.queue()
    for number in range(20):
        queue.send(f"noisy {number}", MessageGroupId="noisy")
    queue.send("quiet", MessageGroupId="quiet")
    sqs.server.advance(0.001)  # who waits longer comes first, and so far all have waited equally long
    assert "quiet" in [queue.bodies(1)[0] for _ in range(3)]
    assert len({body for _ in range(3) for body in queue.bodies()}) == 18


def test_a_delay_is_a_groups_messages_own(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("later", MessageGroupId="g", DelaySeconds=5)
    queue.send("now", MessageGroupId="g")
    assert queue.bodies() == ["now"]
    sqs.server.advance(5)
    assert queue.bodies() == ["later"]


def test_a_standard_queue_deduplicates_nothing(sqs: Sqs) -> None:
    message = (
        "Value d for parameter MessageDeduplicationId is invalid."
        " Reason: The request includes a parameter that is not valid for this queue type."
    )
    with refused("InvalidParameterValue", message):
        sqs.queue().send(MessageDeduplicationId="d")


@pytest.mark.parametrize("value", ["", "x" * 129, "a b"])
def test_a_standard_group_is_named_as_a_fifo_group(sqs: Sqs, value: str) -> None:
    with refused("InvalidParameterValue"):
        sqs.queue().send(MessageGroupId=value)
