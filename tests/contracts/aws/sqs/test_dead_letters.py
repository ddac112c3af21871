import orjson
import pytest

from tests.contracts.aws.sqs.client import DAY, Message, Queue, Sqs, new_name, redrive_policy, refused, text

TRACE = text("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")


def exhaust(queue: Queue, times: int = 1) -> list[Message]:
    """Receive and give back so often; then once more, which moves what is exhausted."""
    received = [queue.receive(VisibilityTimeout=0) for _ in range(times)]
    assert queue.receive() == []
    return received[-1]


# ---- the move ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fifo", [False, True])
@pytest.mark.parametrize("attempts", [1, 3])
def test_a_message_moves_on_the_receive_too_many(sqs: Sqs, attempts: int, *, fifo: bool) -> None:
    queue, dead = sqs.with_dead_letters(attempts, fifo=fifo)
    queue.send_fifo("exhausted") if fifo else queue.send("exhausted")
    for _ in range(attempts):
        assert queue.bodies(VisibilityTimeout=0) == ["exhausted"]
    assert dead.receive() == []
    assert queue.receive() == []
    assert dead.bodies() == ["exhausted"]
    assert queue.counts() == (0, 0, 0)


def test_a_timeout_is_an_attempt_like_any_other(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1)
    queue.send("exhausted")
    queue.one()
    sqs.server.advance(30)
    assert dead.counts() == (0, 0, 0)
    assert queue.receive() == []
    assert dead.bodies() == ["exhausted"]


def test_a_dead_letter_keeps_its_id_body_and_attributes(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1)
    queue.send(
        "body", MessageAttributes={"Foo": text("Bar")}, MessageSystemAttributes={"AWSTraceHeader": TRACE}
    )
    sqs.server.advance(1)
    (before,) = queue.receive(VisibilityTimeout=1)
    sqs.server.advance(9)
    assert queue.receive() == []
    after = dead.one()
    assert after["Attributes"] == before["Attributes"] | {
        "ApproximateReceiveCount": "2",
        "DeadLetterQueueSourceArn": queue.arn,
    }
    for kept in ("MessageId", "Body", "MD5OfBody", "MessageAttributes", "MD5OfMessageAttributes"):
        assert after[kept] == before[kept]
    assert after["ReceiptHandle"] != before["ReceiptHandle"]


def test_a_dead_letter_of_a_fifo_queue_is_known_by_its_id(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1, fifo=True)
    sent = queue.send_fifo("body", group="g", key="d")
    exhaust(queue)
    attributes = dead.one()["Attributes"]
    assert attributes["MessageDeduplicationId"] == sent["MessageId"]
    assert attributes["MessageGroupId"] == "g"
    assert attributes["DeadLetterQueueSourceArn"] == queue.arn
    assert len(attributes["SequenceNumber"]) == 20


def test_equal_dead_letters_do_not_swallow_each_other(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1, fifo=True, DeduplicationScope="messageGroup")
    queue.send_fifo("same", group="a", key="d")
    queue.send_fifo("same", group="b", key="d")
    exhaust(queue)
    assert dead.bodies() == ["same", "same"]


def test_a_group_goes_on_without_its_dead_letters(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(2, fifo=True)
    for body in ("1", "2", "3"):
        queue.send_fifo(body)
    for _ in range(2):
        (first,) = queue.receive(1)
        queue.hide(first, 0)
    assert queue.bodies(1) == ["2"]
    assert dead.bodies() == ["1"]


def test_dead_letters_of_a_group_keep_their_order(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1, fifo=True)
    bodies = [str(number) for number in range(5)]
    for body in bodies:
        queue.send_fifo(body)
    exhaust(queue)
    assert dead.bodies() == bodies


def test_a_dead_letter_may_die_again(sqs: Sqs) -> None:
    last = sqs.queue()
    dead = sqs.queue(RedrivePolicy=redrive_policy(last, 2))
    queue = sqs.queue(RedrivePolicy=redrive_policy(dead, 1))
    queue.send("body")
    exhaust(queue)
    # the count goes on over all queues: one receive there, so one more here
    assert dead.one(VisibilityTimeout=0)["Attributes"]["ApproximateReceiveCount"] == "2"
    assert dead.receive() == []
    attributes = last.one()["Attributes"]
    assert attributes["DeadLetterQueueSourceArn"] == dead.arn
    assert attributes["ApproximateReceiveCount"] == "3"


def test_a_long_poll_at_the_dead_letter_queue_is_woken(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1)
    queue.send("body")
    queue.one()
    poll = dead.begin("receive_message", WaitTimeSeconds=20)
    waiting = queue.begin("receive_message", WaitTimeSeconds=20)
    sqs.server.advance(20)
    assert "Messages" not in poll.answer()
    assert "Messages" not in waiting.answer()
    poll = dead.begin("receive_message", WaitTimeSeconds=20)
    waiting = queue.begin("receive_message", WaitTimeSeconds=20)
    sqs.server.advance(10)
    assert [message["Body"] for message in poll.answer()["Messages"]] == ["body"]
    sqs.server.advance(10)
    assert "Messages" not in waiting.answer()


# ---- retention ---------------------------------------------------------------------------------------------------


def test_a_standard_dead_letter_is_kept_from_when_it_was_sent(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1)
    queue.send("old")
    sqs.server.advance(3 * DAY)
    exhaust(queue)
    sqs.server.advance(DAY - 1)
    assert dead.bodies(VisibilityTimeout=0) == ["old"]
    sqs.server.advance(1)
    assert dead.bodies() == []


def test_a_fifo_dead_letter_is_kept_from_when_it_came(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1, fifo=True)
    queue.send_fifo("old")
    sqs.server.advance(3 * DAY)
    exhaust(queue)
    sqs.server.advance(4 * DAY - 1)
    assert dead.bodies(VisibilityTimeout=0) == ["old"]
    sqs.server.advance(1)
    assert dead.bodies() == []


def test_an_expired_message_is_no_dead_letter(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1, MessageRetentionPeriod="60")
    queue.send("old")
    queue.one(VisibilityTimeout=60)
    sqs.server.advance(60)
    assert queue.receive() == []
    assert dead.receive() == []


# ---- policies ----------------------------------------------------------------------------------------------------


def test_a_policy_is_for_what_is_there_already(sqs: Sqs) -> None:
    queue, dead = sqs.queue(), sqs.queue()
    queue.send("body")
    for _ in range(5):
        assert queue.bodies(VisibilityTimeout=0) == ["body"]
    queue.set(RedrivePolicy=redrive_policy(dead, 5))
    assert queue.receive() == []
    assert dead.bodies() == ["body"]


def test_without_a_policy_a_message_is_received_for_ever(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1)
    queue.set(RedrivePolicy="")
    queue.send("body")
    for count in range(1, 20):
        assert queue.one(VisibilityTimeout=0)["Attributes"]["ApproximateReceiveCount"] == str(count)
    assert dead.receive() == []


def test_without_its_dead_letter_queue_a_message_stays_in_its_queue(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1)
    queue.send("body")
    dead.call("delete_queue")
    for _ in range(3):
        assert queue.bodies(VisibilityTimeout=0) == ["body"]


NOT_ALLOWED = "The dead-letter queue's RedriveAllowPolicy does not allow this source."


def allow(permission: str, *sources: str) -> str:
    policy: dict[str, object] = {"redrivePermission": permission}
    if sources:
        policy["sourceQueueArns"] = sources
    return orjson.dumps(policy).decode()


def test_a_queue_may_refuse_all_dead_letters(sqs: Sqs) -> None:
    dead = sqs.queue(RedriveAllowPolicy=allow("denyAll"))
    policy = redrive_policy(dead, 3)
    refusal = f"Value {policy} for parameter RedrivePolicy is invalid. Reason: {NOT_ALLOWED}"
    with refused("InvalidParameterValue", refusal):
        sqs.queue().set(RedrivePolicy=policy)
    with refused("InvalidParameterValue", refusal):
        sqs.queue(RedrivePolicy=policy)
    for open_again in (allow("allowAll"), ""):
        dead.set(RedriveAllowPolicy=open_again)
        sqs.queue().set(RedrivePolicy=policy)


def test_a_queue_may_name_the_sources_of_its_dead_letters(sqs: Sqs) -> None:
    named, other = sqs.queue(), sqs.queue()
    dead = sqs.queue(RedriveAllowPolicy=allow("byQueue", named.arn))
    assert orjson.loads(dead.attributes()["RedriveAllowPolicy"]) == {
        "redrivePermission": "byQueue",
        "sourceQueueArns": [named.arn],
    }
    named.set(RedrivePolicy=redrive_policy(dead, 3))
    with refused("InvalidParameterValue"):
        other.set(RedrivePolicy=redrive_policy(dead, 3))


@pytest.mark.parametrize(
    "policy",
    [
        "nonsense",
        "[]",
        "{}",
        '{"redrivePermission":"sometimes"}',
        '{"redrivePermission":["allowAll"]}',
        '{"redrivePermission":"byQueue"}',
        '{"redrivePermission":"byQueue","sourceQueueArns":[]}',
        '{"redrivePermission":"byQueue","sourceQueueArns":"arn"}',
        '{"redrivePermission":"byQueue","sourceQueueArns":[1]}',
        '{"redrivePermission":"byQueue","sourceQueueArns":["dummy"]}',
        '{"redrivePermission":"allowAll","sourceQueueArns":["arn:aws:sqs:us-east-1:000000000000:q"]}',
        allow("byQueue", *(f"arn:aws:sqs:us-east-1:000000000000:q{number}" for number in range(11))),
    ],
)
def test_an_invalid_allow_policy_is_refused(sqs: Sqs, policy: str) -> None:
    queue = sqs.queue()
    with refused("InvalidParameterValue"):
        queue.set(RedriveAllowPolicy=policy)
    assert "RedriveAllowPolicy" not in queue.attributes()


# ---- whose dead letters come here --------------------------------------------------------------------------------


def test_the_sources_of_a_dead_letter_queue(sqs: Sqs) -> None:
    dead = sqs.queue()
    assert dead.call("list_dead_letter_source_queues").get("queueUrls", []) == []
    sources = sorted(sqs.queue(RedrivePolicy=redrive_policy(dead, 3)).url for _ in range(5))
    sqs.queue(RedrivePolicy=redrive_policy(sqs.queue(), 3))
    answer = dead.call("list_dead_letter_source_queues")
    assert sorted(answer["queueUrls"]) == sources
    assert "NextToken" not in answer


def test_the_sources_page_by_page(sqs: Sqs) -> None:
    dead = sqs.queue()
    sources = [
        sqs.create(name, {"RedrivePolicy": redrive_policy(dead, 3)}).url
        for name in sorted(new_name() for _ in range(3))
    ]
    first = dead.call("list_dead_letter_source_queues", MaxResults=2)
    second = dead.call("list_dead_letter_source_queues", MaxResults=2, NextToken=first["NextToken"])
    assert first["queueUrls"] + second["queueUrls"] == sources
    assert "NextToken" not in second
    for number in (0, 1001):
        with refused("InvalidParameterValue"):
            dead.call("list_dead_letter_source_queues", MaxResults=number)
