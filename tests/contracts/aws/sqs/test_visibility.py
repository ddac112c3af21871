import pytest

from tests.contracts.aws.sqs.client import Sqs, entries, refused


def invalid_handle(handle: str) -> str:
    return f'The input receipt handle "{handle}" is not a valid receipt handle.'


def test_a_received_message_is_hidden_for_30_seconds(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("hidden")
    assert queue.bodies() == ["hidden"]
    sqs.server.advance(29.999)
    assert queue.bodies() == []
    sqs.server.advance(0.001)
    assert queue.bodies() == ["hidden"]


def test_the_queues_timeout_and_the_receivers(sqs: Sqs) -> None:
    queue = sqs.queue(VisibilityTimeout="5")
    queue.send("hidden")
    queue.one()
    sqs.server.advance(5)
    queue.one(VisibilityTimeout=7)
    sqs.server.advance(6.999)
    assert queue.bodies() == []
    sqs.server.advance(0.001)
    assert queue.bodies(VisibilityTimeout=0) == ["hidden"]
    assert queue.bodies() == ["hidden"]


def test_a_message_made_visible_again_comes_before_younger_ones(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("first")
    held = queue.one()
    sqs.server.advance(1)
    queue.send("second")
    queue.hide(held, 0)
    assert queue.bodies() == ["first", "second"]


def test_a_message_whose_timeout_ran_out_comes_before_younger_ones(sqs: Sqs) -> None:
    queue = sqs.queue(VisibilityTimeout="5")
    queue.send("first")
    queue.one()
    sqs.server.advance(1)
    queue.send("second")
    sqs.server.advance(4)
    assert queue.bodies() == ["first", "second"]


def test_a_changed_default_is_for_later_receives(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("hidden")
    queue.one()
    queue.set(VisibilityTimeout="1")
    sqs.server.advance(29)
    assert queue.bodies() == []
    sqs.server.advance(1)
    assert queue.bodies() == ["hidden"]
    sqs.server.advance(1)
    assert queue.bodies() == ["hidden"]


def test_a_message_in_flight_is_hidden_anew_from_the_call_on(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("hidden")
    message = queue.one()
    sqs.server.advance(20)
    queue.hide(message, 20)
    sqs.server.advance(19.999)
    assert queue.bodies() == []
    sqs.server.advance(0.001)
    assert queue.bodies() == ["hidden"]
    sqs.server.advance(30)
    assert queue.bodies() == ["hidden"]  # the queue's own timeout: the changed one is not remembered


def test_a_message_is_given_back_with_0(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("back")
    queue.hide(queue.one(), 0)
    assert queue.one()["Attributes"]["ApproximateReceiveCount"] == "2"


def test_a_message_is_hidden_for_12_hours_in_all(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("hidden")
    message = queue.one()
    sqs.server.advance(10)
    handle = message["ReceiptHandle"]
    with refused(
        "InvalidParameterValue",
        "Value 43191 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message"
        " is beyond the limit [43200 seconds]",
    ):
        queue.hide(message, 43_191)
    queue.hide(message, 43_190)
    with refused("InvalidParameterValue"):
        queue.call("change_message_visibility", ReceiptHandle=handle, VisibilityTimeout=43_201)
    with refused("InvalidParameterValue"):
        queue.call("change_message_visibility", ReceiptHandle=handle, VisibilityTimeout=-1)
    assert queue.counts() == (0, 1, 0)


def test_visibility_can_be_changed_after_the_timeout(sqs: Sqs) -> None:
    queue = sqs.queue(VisibilityTimeout="2")
    queue.send("late")
    message = queue.one()
    sqs.server.advance(3)
    queue.hide(message, 10)
    assert queue.bodies() == []
    sqs.server.advance(10)
    assert queue.bodies() == ["late"]


# ---- deleting ----------------------------------------------------------------------------------------------------


def test_a_deleted_message_does_not_come_again(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send()
    message = queue.one()
    queue.delete(message)
    assert queue.counts() == (0, 0, 0)
    sqs.server.advance(60)
    assert queue.receive() == []


def test_deleting_twice_is_no_error(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send()
    message = queue.one()
    queue.delete(message)
    queue.delete(message)
    with refused("InvalidParameterValue"):
        queue.hide(message, 10)


def test_a_handle_still_deletes_after_its_timeout(sqs: Sqs) -> None:
    queue = sqs.queue(VisibilityTimeout="1")
    queue.send()
    message = queue.one()
    sqs.server.advance(2)
    queue.delete(message)
    assert queue.receive() == []


@pytest.mark.parametrize(
    "handle", ["nonsense", "", "AAAA", "a" * 1024, "ü", "AQAAAAAAAAABAAAAAAAAAAIhPk5eDbR-wQAAAZt22qgA"]
)
def test_an_invalid_handle_is_refused(sqs: Sqs, handle: str) -> None:
    queue = sqs.queue()
    with refused("ReceiptHandleIsInvalid", invalid_handle(handle)):
        queue.call("delete_message", ReceiptHandle=handle)
    with refused("ReceiptHandleIsInvalid", invalid_handle(handle)):
        queue.call("change_message_visibility", ReceiptHandle=handle, VisibilityTimeout=0)


def test_a_handle_is_for_its_own_queue(sqs: Sqs) -> None:
    queue, other = sqs.queue(), sqs.queue()
    queue.send()
    message = queue.one()
    with refused("ReceiptHandleIsInvalid", invalid_handle(message["ReceiptHandle"])):
        other.delete(message)
    assert queue.counts() == (0, 1, 0)


def test_a_handle_does_not_outlive_its_queue(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send()
    message = queue.one()
    queue.call("delete_queue")
    sqs.server.advance(60)
    again = sqs.create(queue.name)
    with refused("ReceiptHandleIsInvalid"):
        again.delete(message)


def test_messages_in_flight_are_counted(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send_batch(*entries("a", "b", "c"))
    queue.send("later", DelaySeconds=10)
    assert queue.counts() == (3, 0, 1)
    queue.receive(2)
    assert queue.counts() == (1, 2, 1)
    sqs.server.advance(10)
    assert queue.counts() == (2, 2, 0)
    sqs.server.advance(20)
    assert queue.counts() == (4, 0, 0)
