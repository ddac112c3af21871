"""FIFO queues: what is received, in which order, and when (the FIFO document, section by section)."""

from collections import defaultdict

import pytest

from tests.contracts.aws.sqs.client import Queue, Sqs, refused


def send(queue: Queue, *bodies: str) -> None:
    """Send messages whose group is their first letter."""
    for body in bodies:
        queue.send_fifo(body, group=body[0])


# ---- order -------------------------------------------------------------------------------------------------------


def test_a_group_is_received_in_the_order_it_was_sent(sqs: Sqs) -> None:
    queue = sqs.fifo()
    sent = [f"a{number}" for number in range(25)]
    send(queue, *sent)
    received: list[str] = []
    while messages := queue.receive(7):
        received += [message["Body"] for message in messages]
        for message in messages:
            queue.delete(message)
    assert received == sent


def test_a_batch_keeps_its_order(sqs: Sqs) -> None:
    queue = sqs.fifo()
    ids = [str(number) for number in range(10)]
    answer = queue.send_batch(
        *(
            {"Id": id_, "MessageBody": id_, "MessageGroupId": "g", "MessageDeduplicationId": id_}
            for id_ in ids
        )
    )
    numbers = [one["SequenceNumber"] for one in answer["Successful"]]
    assert numbers == sorted(numbers)
    assert queue.bodies() == ids


def test_groups_are_received_in_order_each_for_itself(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "b1", "c1", "a2", "b2", "a3", "c2", "b3")
    received = defaultdict(list)
    while messages := queue.receive(3):
        for message in messages:
            received[message["Body"][0]].append(message["Body"])
            queue.delete(message)
    assert received == {"a": ["a1", "a2", "a3"], "b": ["b1", "b2", "b3"], "c": ["c1", "c2"]}


def test_a_receive_takes_as_many_of_one_group_as_it_can(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "b1", "a2", "b2", "a3")
    assert queue.bodies(3) == ["a1", "a2", "a3"]
    assert queue.bodies(3) == ["b1", "b2"]


def test_a_receive_goes_on_to_other_groups_where_one_has_too_few(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "b1", "a2", "b2", "c1")
    assert queue.bodies(10) == ["a1", "a2", "b1", "b2", "c1"]


def test_a_receive_holds_10_messages_of_one_group(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, *(f"a{number:02}" for number in range(12)))
    assert queue.bodies(10) == [f"a{number:02}" for number in range(10)]
    assert queue.bodies(10) == []


# ---- the lock of a group -----------------------------------------------------------------------------------------


def test_a_group_is_blocked_while_one_of_its_messages_is_in_flight(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "a2", "b1")
    (first,) = queue.receive(1)
    assert queue.bodies() == ["b1"]
    assert queue.bodies() == []
    queue.delete(first)
    assert queue.bodies() == ["a2"]


def test_a_group_is_blocked_until_the_last_in_flight_is_deleted(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "a2", "a3")
    first, second = queue.receive(2)
    queue.delete(second)
    assert queue.bodies() == []
    queue.delete(first)
    assert queue.bodies() == ["a3"]


def test_a_group_goes_on_in_order_when_its_timeout_is_over(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "a2", "a3")
    assert queue.bodies(2) == ["a1", "a2"]
    sqs.server.advance(29.999)
    assert queue.bodies() == []
    sqs.server.advance(0.001)
    assert queue.bodies() == ["a1", "a2", "a3"]


def test_a_message_given_back_is_received_before_those_behind_it(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "a2")
    (first,) = queue.receive(1)
    queue.hide(first, 0)
    assert queue.bodies() == ["a1", "a2"]


def test_a_group_that_is_free_again_comes_after_those_that_waited(sqs: Sqs) -> None:
    """Recorded."""
    queue = sqs.fifo()
    send(queue, "a1", "a2", "b1")
    first, _ = queue.receive(2)
    sqs.server.advance(0.001)
    queue.hide(first, 0)
    assert queue.bodies(3) == ["b1", "a1"]


def test_a_message_given_back_waits_for_those_before_it(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "a2", "a3")
    first, second = queue.receive(2)
    queue.hide(second, 0)
    assert queue.bodies() == []
    queue.delete(first)
    assert queue.bodies() == ["a2", "a3"]


def test_an_extended_message_holds_up_those_behind_it_alone(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "a2", "a3")
    _, second, _ = queue.receive()
    queue.hide(second, 60)
    sqs.server.advance(30)
    (first,) = queue.receive()
    assert first["Body"] == "a1"
    queue.delete(first)
    assert queue.bodies() == []
    sqs.server.advance(30)
    assert queue.bodies() == ["a2", "a3"]


def test_an_extended_lease_blocks_the_group_longer(sqs: Sqs) -> None:
    queue = sqs.fifo(VisibilityTimeout="10")
    send(queue, "a1", "a2")
    (first,) = queue.receive(1)
    sqs.server.advance(9)
    queue.hide(first, 20)
    sqs.server.advance(19)
    assert queue.bodies() == []
    queue.delete(first)
    assert queue.bodies() == ["a2"]


def test_a_late_sender_does_not_break_the_lock(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1")
    queue.one()
    send(queue, "a2", "b1")
    assert queue.bodies() == ["b1"]


def test_a_long_poll_ends_when_the_group_is_free(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "a2")
    (first,) = queue.receive(1)
    poll = queue.begin("receive_message", WaitTimeSeconds=20)
    sqs.server.advance(5)
    assert not poll.is_answered
    queue.delete(first)
    assert [message["Body"] for message in poll.answer()["Messages"]] == ["a2"]


# ---- handles -----------------------------------------------------------------------------------------------------


def test_a_handle_does_not_outlive_its_timeout(sqs: Sqs) -> None:
    queue = sqs.fifo(VisibilityTimeout="2")
    send(queue, "g1")
    message = queue.one()
    sqs.server.advance(2)
    handle = message["ReceiptHandle"]
    with refused(
        "InvalidParameterValue",
        f"Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.",
    ):
        queue.delete(message)
    with refused("AWS.SimpleQueueService.MessageNotInflight"):
        queue.hide(message, 10)
    assert queue.bodies() == ["g1"]


def test_a_handle_lives_as_long_as_its_message_is_hidden(sqs: Sqs) -> None:
    queue = sqs.fifo(VisibilityTimeout="2")
    send(queue, "g1")
    message = queue.one()
    queue.hide(message, 10)
    sqs.server.advance(9)
    queue.delete(message)
    sqs.server.advance(10)
    assert queue.bodies() == []


def test_deleting_a_deleted_message_is_no_error(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "a2")
    (first,) = queue.receive(1)
    queue.delete(first)
    queue.delete(first)
    assert queue.bodies() == ["a2"]


# ---- attempt ids -------------------------------------------------------------------------------------------------


def test_a_receive_is_repeated_by_its_attempt_id(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "a2", "b1")
    first = queue.receive(2, ReceiveRequestAttemptId="try")
    again = queue.receive(2, ReceiveRequestAttemptId="try")
    assert [message["Body"] for message in first] == ["a1", "a2"]
    assert [(one["MessageId"], one["ReceiptHandle"]) for one in again] == [
        (one["MessageId"], one["ReceiptHandle"]) for one in first
    ]
    assert queue.bodies(ReceiveRequestAttemptId="other") == ["b1"]
    queue.delete(again[0])


def test_a_repeated_receive_hides_anew(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1")
    queue.one(ReceiveRequestAttemptId="try")
    sqs.server.advance(20)
    queue.one(ReceiveRequestAttemptId="try")
    sqs.server.advance(20)
    assert queue.bodies() == []
    sqs.server.advance(10)
    assert queue.bodies() == ["a1"]


def test_a_receive_is_not_repeated_when_something_changed(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "b1")
    first, second = queue.receive(ReceiveRequestAttemptId="deleted")
    queue.delete(first)
    assert queue.bodies(ReceiveRequestAttemptId="deleted") == []
    queue.hide(second, 0)
    (second,) = queue.receive(ReceiveRequestAttemptId="changed")
    queue.hide(second, 10)
    assert queue.bodies(ReceiveRequestAttemptId="changed") == []


def test_a_receive_is_not_repeated_when_its_timeout_is_over(sqs: Sqs) -> None:
    queue = sqs.fifo()
    send(queue, "a1", "a2")
    (first,) = queue.receive(1, ReceiveRequestAttemptId="try")
    sqs.server.advance(30)
    (again,) = queue.receive(1, ReceiveRequestAttemptId="try")
    assert again["Body"] == first["Body"]
    assert again["ReceiptHandle"] != first["ReceiptHandle"]


def test_an_attempt_is_remembered_for_5_minutes(sqs: Sqs) -> None:
    queue = sqs.fifo(VisibilityTimeout="1000")
    send(queue, "a1")
    queue.one(ReceiveRequestAttemptId="try")
    sqs.server.advance(300)
    assert queue.bodies(ReceiveRequestAttemptId="try") == []


@pytest.mark.parametrize("attempt_id", ["x" * 129, "", "a b", "ü"])
def test_malformed_attempt_ids_are_refused(sqs: Sqs, attempt_id: str) -> None:
    with refused("InvalidParameterValue"):
        sqs.fifo().receive(ReceiveRequestAttemptId=attempt_id)


# ---- delays ------------------------------------------------------------------------------------------------------


def test_a_message_has_no_delay_of_its_own(sqs: Sqs) -> None:
    queue = sqs.fifo()
    message = (
        "Value 2 for parameter DelaySeconds is invalid."
        " Reason: The request include parameter that is not valid for this queue type."
    )
    with refused("InvalidParameterValue", message):
        queue.send_fifo("1", DelaySeconds=2)
    answer = queue.send_batch(
        {
            "Id": "1",
            "MessageBody": "1",
            "MessageGroupId": "g",
            "MessageDeduplicationId": "1",
            "DelaySeconds": 2,
        }
    )
    assert [(one["Code"], one["Message"]) for one in answer["Failed"]] == [("InvalidParameterValue", message)]
    assert queue.counts() == (0, 0, 0)


def test_the_queues_delay_is_for_all_messages(sqs: Sqs) -> None:
    queue = sqs.fifo(DelaySeconds="5")
    queue.send_fifo("a1", group="a")
    queue.send_fifo("b1", group="b", DelaySeconds=0)
    sqs.server.advance(4.999)
    assert queue.bodies() == []
    sqs.server.advance(0.001)
    assert queue.bodies() == ["a1", "b1"]


def test_a_delayed_message_is_not_overtaken_by_its_group(sqs: Sqs) -> None:
    queue = sqs.fifo(DelaySeconds="5")
    send(queue, "a1")
    sqs.server.advance(3)
    send(queue, "a2", "b1")
    sqs.server.advance(2)
    message = queue.one()
    assert message["Body"] == "a1"
    sqs.server.advance(3)
    assert queue.bodies() == ["b1"]
    queue.delete(message)
    assert queue.bodies() == ["a2"]


def test_a_changed_delay_is_for_messages_that_are_there(sqs: Sqs) -> None:
    queue, plain = sqs.fifo(), sqs.queue()
    send(queue, "a1", "b1")
    plain.send("a1")
    assert queue.bodies(1) == ["a1"]
    for each in (queue, plain):
        each.set(DelaySeconds="60")
    send(queue, "a2", "b2")
    assert (queue.counts(), plain.counts()) == ((0, 1, 3), (1, 0, 0))
    sqs.server.advance(59.999)
    assert queue.bodies() == ["a1"]  # what somebody has received before waits no longer than its claim
    queue.set(DelaySeconds="59")
    assert queue.bodies() == ["b1", "b2"]
