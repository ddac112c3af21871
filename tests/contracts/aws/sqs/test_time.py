import pytest

from tests.contracts.aws.sqs.client import DAY, Sqs, entries, refused

# ---- delays ------------------------------------------------------------------------------------------------------


def test_a_message_may_be_delayed(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("delayed", DelaySeconds=900)
    assert queue.counts() == (0, 0, 1)
    sqs.server.advance(899.999)
    assert queue.bodies() == []
    sqs.server.advance(0.001)
    assert queue.bodies() == ["delayed"]


def test_a_queue_may_delay_its_messages(sqs: Sqs) -> None:
    queue = sqs.queue(DelaySeconds="10")
    queue.send("the queue's")
    queue.send("its own", DelaySeconds=5)
    queue.send("none", DelaySeconds=0)
    assert queue.bodies() == ["none"]
    sqs.server.advance(5)
    assert queue.bodies() == ["its own"]
    sqs.server.advance(5)
    assert queue.bodies() == ["the queue's"]


def test_entries_of_a_batch_are_delayed_one_by_one(sqs: Sqs) -> None:
    queue = sqs.queue()
    later, now = entries("later", "now")
    queue.send_batch({**later, "DelaySeconds": 3}, now)
    assert queue.bodies() == ["now"]
    sqs.server.advance(3)
    assert queue.bodies() == ["later"]


@pytest.mark.parametrize("seconds", [-1, 901])
def test_a_message_is_delayed_15_minutes_at_most(sqs: Sqs, seconds: int) -> None:
    message = (
        f"Value {seconds} for parameter DelaySeconds is invalid."
        " Reason: DelaySeconds must be >= 0 and <= 900."
    )
    with refused("InvalidParameterValue", message):
        sqs.queue().send(DelaySeconds=seconds)


def test_a_changed_delay_is_for_later_messages_of_a_standard_queue(sqs: Sqs) -> None:
    queue = sqs.queue(DelaySeconds="10")
    queue.send("before")
    queue.set(DelaySeconds="0")
    queue.send("after")
    assert queue.bodies() == ["after"]
    sqs.server.advance(10)
    assert queue.bodies() == ["before"]


# ---- retention ---------------------------------------------------------------------------------------------------


def test_a_message_is_kept_for_4_days(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send()
    sqs.server.advance(4 * DAY - 1)
    assert len(queue.receive(VisibilityTimeout=0)) == 1
    sqs.server.advance(1)
    assert queue.receive() == []
    assert queue.counts() == (0, 0, 0)


def test_a_queue_may_keep_messages_for_a_minute(sqs: Sqs) -> None:
    queue = sqs.queue(MessageRetentionPeriod="60")
    queue.send("in flight")
    message = queue.one(VisibilityTimeout=600)
    queue.send("waiting")
    sqs.server.advance(59.999)
    assert queue.counts() == (1, 1, 0)
    sqs.server.advance(0.001)
    assert queue.receive() == []
    queue.delete(message)


def test_an_expired_message_is_no_longer_counted_within_a_minute(sqs: Sqs) -> None:
    queue = sqs.queue(MessageRetentionPeriod="60")
    queue.send_batch(*entries(*"abcdefghij"))
    queue.receive(5, VisibilityTimeout=600)
    sqs.server.advance(120)
    assert queue.counts() == (0, 0, 0)


def test_a_shorter_retention_is_for_what_is_there_already(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send("old")
    sqs.server.advance(100)
    queue.send("young")
    queue.set(MessageRetentionPeriod="60")
    assert queue.bodies(VisibilityTimeout=0) == ["young"]
    sqs.server.advance(59)
    assert queue.bodies(VisibilityTimeout=0) == ["young"]
    sqs.server.advance(1)
    assert queue.bodies() == []


# ---- purging -----------------------------------------------------------------------------------------------------


def test_a_purge_takes_everything(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.send_batch(*entries("a", "b", "c"))
    flying = queue.one(number=1)
    queue.send("delayed", DelaySeconds=5)
    queue.call("purge_queue")
    assert queue.counts() == (0, 0, 0)
    queue.delete(flying)
    sqs.server.advance(60)
    assert queue.receive() == []


def test_a_queue_is_purged_once_in_60_seconds(sqs: Sqs) -> None:
    queue = sqs.queue()
    queue.call("purge_queue")
    queue.send("survives")
    sqs.server.advance(59.999)
    with refused(
        "AWS.SimpleQueueService.PurgeQueueInProgress",
        f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds.",
        status=403,
    ):
        queue.call("purge_queue")
    assert queue.bodies() == ["survives"]
    sqs.server.advance(0.001)
    queue.call("purge_queue")
    assert queue.counts() == (0, 0, 0)


def test_a_purge_frees_the_groups_of_a_fifo_queue(sqs: Sqs) -> None:
    queue = sqs.fifo()
    queue.send_fifo("1")
    queue.send_fifo("2")
    queue.one(number=1)
    queue.call("purge_queue")
    queue.send_fifo("3")
    assert queue.bodies() == ["3"]


def test_a_purge_forgets_deduplication_ids(sqs: Sqs) -> None:
    queue = sqs.fifo()
    queue.send_fifo("1")
    queue.call("purge_queue")
    queue.send_fifo("1")
    assert queue.bodies() == ["1"]  # as recorded at Amazon's: the second message is new
