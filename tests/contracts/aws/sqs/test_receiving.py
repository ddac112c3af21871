from typing import Any

import pytest

from tests.contracts.aws.sqs.client import ACCOUNT, Sqs, entries, refused, text


def test_an_empty_queue_answers_without_messages(sqs: Sqs) -> None:
    queue = sqs.queue()
    assert "Messages" not in queue.call("receive_message")
    assert "Messages" not in queue.call("receive_message", MaxNumberOfMessages=10)


def test_one_message_is_received_unless_more_are_asked_for(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send_batch(*entries(*map(str, range(10))))
    queue.send("10")
    assert len(queue.call("receive_message")["Messages"]) == 1
    assert len(queue.call("receive_message", MaxNumberOfMessages=10)["Messages"]) == 10
    assert "Messages" not in queue.call("receive_message", MaxNumberOfMessages=10)


@pytest.mark.parametrize("number", [0, -1, 11, 2**31 - 1])
def test_1_to_10_messages_may_be_asked_for(sqs: Sqs, number: int) -> None:
    message = (
        f"Value {number} for parameter MaxNumberOfMessages is invalid."
        " Reason: Must be between 1 and 10, if provided."
    )
    with refused("InvalidParameterValue", message):
        sqs.queue().receive(number)


@pytest.mark.parametrize("seconds", [-1, 21])
def test_a_receiver_waits_0_to_20_seconds(sqs: Sqs, seconds: int) -> None:
    reason = "Must be >= 0 and <= 20, if provided."
    message = f"Value {seconds} for parameter WaitTimeSeconds is invalid. Reason: {reason}"
    with refused("InvalidParameterValue", message):
        sqs.queue().receive(WaitTimeSeconds=seconds)


@pytest.mark.parametrize("seconds", [-1, 43_201])
def test_a_received_message_is_hidden_for_12_hours_at_most(sqs: Sqs, seconds: int) -> None:
    with refused("InvalidParameterValue"):
        sqs.queue().receive(VisibilityTimeout=seconds)


# ---- message attributes ------------------------------------------------------------------------------------------

GREETING = {"Help.Me": text("Me"), "Hello": text("There"), "General": text("Kenobi")}


@pytest.mark.parametrize(
    ("asked", "shown", "digest"),
    [
        (["All"], {"Help.Me", "Hello", "General"}, "4c360f3fdafd970e05fae2f149d997f5"),
        (["*"], {"Help.Me", "Hello", "General"}, "4c360f3fdafd970e05fae2f149d997f5"),
        ([".*"], {"Help.Me", "Hello", "General"}, "4c360f3fdafd970e05fae2f149d997f5"),
        (["Hello", "General"], {"Hello", "General"}, "fca026605781cb4126a1e9044df24232"),
        (["Foo", "Hello"], {"Hello"}, "a311262e065454b75da111d535b8dacd"),
        (["Hel.*"], {"Hello", "Help.Me"}, "83fee93c1bcd8b9a5a923ffacdc636c7"),
        (["Help.*"], {"Help.Me"}, None),
        (["Foo", "Help"], set(), None),
        (["hello", "Hel*", "Hel."], set(), None),
        (["AWS."], set(), None),
        (["..foo"], set(), None),
        ([], set(), None),
    ],
)
def test_attributes_are_shown_where_they_are_asked_for(
    sqs: Sqs, asked: list[str], shown: set[str], digest: str | None
) -> None:
    queue = sqs.queue()
    queue.send("msg", MessageAttributes=GREETING)
    message = queue.one(MessageAttributeNames=asked)
    assert message.get("MessageAttributes", {}) == {name: GREETING[name] for name in shown}
    assert ("MD5OfMessageAttributes" in message) == bool(shown)
    if digest is not None:
        assert message["MD5OfMessageAttributes"] == digest


# ---- system attributes -------------------------------------------------------------------------------------------


def test_all_system_attributes(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send()
    sent_at = round(sqs.server.now() * 1000)
    sqs.server.advance(2)
    expected = {
        "SenderId": ACCOUNT,
        "SentTimestamp": str(sent_at),
        "ApproximateFirstReceiveTimestamp": str(sent_at + 2000),
        "ApproximateReceiveCount": "1",
    }
    assert queue.one(VisibilityTimeout=0)["Attributes"] == expected
    sqs.server.advance(3)
    assert queue.one()["Attributes"] == {**expected, "ApproximateReceiveCount": "2"}


@pytest.mark.parametrize("parameter", ["AttributeNames", "MessageSystemAttributeNames"])
def test_system_attributes_are_shown_where_they_are_asked_for(sqs: Sqs, parameter: str) -> None:
    queue = sqs.queue()
    queue.send()

    def shown(*names: str) -> set[str]:
        answer = queue.call("receive_message", VisibilityTimeout=0, **{parameter: list(names)})
        attributes: dict[str, str] = answer["Messages"][0].get("Attributes", {})
        return set(attributes)

    assert shown("SenderId") == {"SenderId"}
    assert shown("SenderId", "SequenceNumber", "AWSTraceHeader") == {"SenderId"}
    assert shown("SentTimestamp", "ApproximateReceiveCount") == {"SentTimestamp", "ApproximateReceiveCount"}
    assert shown() == set()


def test_the_two_lists_of_names_add_up(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send()
    answer = queue.call(
        "receive_message", AttributeNames=["SenderId"], MessageSystemAttributeNames=["SentTimestamp"]
    )
    assert answer["Messages"][0]["Attributes"].keys() == {"SenderId", "SentTimestamp"}


def test_an_unknown_system_attribute_is_refused(sqs: Sqs) -> None:
    with refused("InvalidAttributeName", "Unknown Attribute Colour."):
        sqs.queue().receive(AttributeNames=["Colour"])


def test_the_sender_is_who_sent_it(sqs: Sqs) -> None:
    queue = sqs.queue()
    everyone = (
        '{"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}]}'
    )
    queue.set(Policy=everyone)
    queue.seen_by(sqs.elsewhere(account="200000000000")).send()
    assert queue.one()["Attributes"]["SenderId"] == "200000000000"


def test_every_receive_has_a_handle_of_its_own(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send()
    handles = {queue.one(VisibilityTimeout=0)["ReceiptHandle"] for _ in range(5)}
    assert len(handles) == 5
    assert all(1 <= len(handle) <= 1024 for handle in handles)


def test_attempt_ids_are_for_fifo_queues(sqs: Sqs) -> None:
    with refused("InvalidParameterValue"):
        sqs.queue().receive(ReceiveRequestAttemptId="again")


# ---- long polls --------------------------------------------------------------------------------------------------


def received(answer: Any) -> list[str]:
    return [message["Body"] for message in answer.get("Messages", [])]


def test_a_long_poll_ends_with_the_first_message(sqs: Sqs) -> None:
    queue = sqs.queue()
    poll = queue.begin("receive_message", WaitTimeSeconds=20, MaxNumberOfMessages=10)
    sqs.server.advance(5)
    assert not poll.is_answered
    queue.send("news")
    assert received(poll.answer()) == ["news"]


def test_a_long_poll_ends_empty_when_its_time_is_up(sqs: Sqs) -> None:
    queue = sqs.queue()
    began = sqs.server.now()
    poll = queue.begin("receive_message", WaitTimeSeconds=20)
    sqs.server.advance(19.999)
    assert not poll.is_answered
    sqs.server.advance(0.001)
    assert received(poll.answer()) == []
    assert sqs.server.now() == pytest.approx(began + 20, abs=0.001)


def test_a_queue_may_make_every_poll_a_long_one(sqs: Sqs) -> None:
    queue = sqs.queue(ReceiveMessageWaitTimeSeconds="10")
    poll = queue.begin("receive_message")
    sqs.server.advance(9)
    assert not poll.is_answered
    sqs.server.advance(1)
    assert received(poll.answer()) == []
    assert queue.receive(WaitTimeSeconds=0) == []


def test_a_long_poll_sees_what_becomes_visible(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("delayed", DelaySeconds=5)
    poll = queue.begin("receive_message", WaitTimeSeconds=20)
    sqs.server.advance(5)
    assert received(poll.answer()) == ["delayed"]
    poll = queue.begin("receive_message", WaitTimeSeconds=20, VisibilityTimeout=100)
    sqs.server.advance(15)
    assert not poll.is_answered
    sqs.server.advance(5)
    assert received(poll.answer()) == []
    late = queue.begin("receive_message", WaitTimeSeconds=20)
    sqs.server.advance(10)
    assert received(late.answer()) == ["delayed"]


def test_a_long_poll_sees_what_is_given_back(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("given back")
    message = queue.one()
    poll = queue.begin("receive_message", WaitTimeSeconds=20)
    queue.hide(message, 0)
    assert received(poll.answer()) == ["given back"]


def test_one_message_ends_one_of_several_long_polls(sqs: Sqs) -> None:
    queue = sqs.queue()
    polls = [queue.begin("receive_message", WaitTimeSeconds=20) for _ in range(3)]
    queue.send("only one")
    sqs.server.advance(20)
    assert sorted(received(poll.answer()) for poll in polls) == [[], [], ["only one"]]


def test_a_batch_ends_as_many_long_polls(sqs: Sqs) -> None:
    queue = sqs.queue()
    polls = [queue.begin("receive_message", WaitTimeSeconds=20) for _ in range(3)]
    queue.send_batch(*entries("a", "b", "c"))
    assert sorted(received(poll.answer()) for poll in polls) == [["a"], ["b"], ["c"]]
