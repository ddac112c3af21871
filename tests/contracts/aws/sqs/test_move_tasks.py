from base64 import b64decode, b64encode
from typing import Any

import orjson
import pytest

from tests.contracts.aws.sqs.client import DAY, Queue, Sqs, entries, redrive_policy, refused
from tests.services.server import Server

Task = dict[str, Any]

NO_FORMAT = (
    "You must use this format to specify the {}:"
    " arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
)


def missing(parameter: str) -> str:
    return f"The resource that you specified for the {parameter} parameter doesn't exist."


def start(source: Queue, destination: Queue | None = None, **params: Any) -> str:
    given = {"DestinationArn": destination.arn} if destination else {}
    answer = source.sqs.client.start_message_move_task(SourceArn=source.arn, **given, **params)
    handle: str = answer["TaskHandle"]
    return handle


def tasks(source: Queue, number: int = 10) -> list[Task]:
    answer = source.sqs.client.list_message_move_tasks(SourceArn=source.arn, MaxResults=number)
    found: list[Task] = answer.get("Results", [])
    return found


def ended(source: Queue) -> Task:
    """The latest task, when it is over."""
    while (task := tasks(source)[0])["Status"] in ("RUNNING", "CANCELLING"):
        source.sqs.server.advance(0)  # lets the server work, and time stand still
    return task


def with_dead(sqs: Sqs, *bodies: str) -> tuple[Queue, Queue]:
    """A queue, and its dead-letter queue with these messages in it."""
    queue, dead = sqs.with_dead_letters(1)
    for begin in range(0, len(bodies), 10):
        queue.send_batch(*entries(*bodies[begin : begin + 10]))
    while queue.receive(VisibilityTimeout=0):
        pass
    assert dead.counts() == (len(bodies), 0, 0)
    return queue, dead


# ---- moving ------------------------------------------------------------------------------------------------------


def test_dead_letters_go_back_where_they_came_from(sqs: Sqs) -> None:
    dead = sqs.queue()
    sources = [sqs.queue(RedrivePolicy=redrive_policy(dead, 1)) for _ in range(2)]
    for number, source in enumerate(sources):
        source.send(f"from {number}")
        source.receive(VisibilityTimeout=0)
        assert source.receive() == []
    start(dead)
    assert ended(dead)["Status"] == "COMPLETED"
    assert [source.bodies() for source in sources] == [["from 0"], ["from 1"]]
    assert dead.counts() == (0, 0, 0)


def test_dead_letters_may_go_elsewhere(sqs: Sqs) -> None:
    queue, dead = with_dead(sqs, "a", "b")
    elsewhere = sqs.queue()
    start(dead, elsewhere)
    task = ended(dead)
    assert sorted(elsewhere.bodies()) == ["a", "b"]
    assert queue.receive() == []
    assert task["DestinationArn"] == elsewhere.arn


def test_an_ended_task_shows_its_counts(sqs: Sqs) -> None:
    _, dead = with_dead(sqs, "a", "b", "c")
    started_at = round(sqs.server.now() * 1000)
    start(dead)
    task = ended(dead)
    assert task == {
        "Status": "COMPLETED",
        "SourceArn": dead.arn,
        "ApproximateNumberOfMessagesMoved": 3,
        "ApproximateNumberOfMessagesToMove": 3,
        "StartedTimestamp": started_at,
    }


def test_a_moved_message_is_a_new_message(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1)
    sent = queue.send("body")
    sqs.server.advance(3 * DAY)
    queue.receive(VisibilityTimeout=0)
    assert queue.receive() == []
    start(dead)
    ended(dead)
    now = str(round(sqs.server.now() * 1000))
    sqs.server.advance(4 * DAY - 1)
    message = queue.one()
    assert message["MessageId"] != sent["MessageId"]
    assert message["Attributes"]["SentTimestamp"] == now
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    assert "DeadLetterQueueSourceArn" not in message["Attributes"]


def test_only_what_is_there_at_the_start_is_moved(sqs: Sqs) -> None:
    queue, dead = with_dead(sqs, *(str(number) for number in range(3)))
    start(dead, MaxNumberOfMessagesPerSecond=1)
    dead.send("came later")
    sqs.server.advance(10)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 3
    assert dead.bodies() == ["came later"]
    assert len(queue.receive()) == 3


def test_a_task_moves_as_fast_as_it_may(sqs: Sqs) -> None:
    queue, dead = with_dead(sqs, *(str(number) for number in range(12)))
    start(dead, MaxNumberOfMessagesPerSecond=2)
    sqs.server.advance(0)
    assert queue.counts() == (2, 0, 0)
    sqs.server.advance(2.5)
    assert queue.counts() == (6, 0, 0)
    (task,) = tasks(dead)
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("RUNNING", 0)  # told of later
    assert task["MaxNumberOfMessagesPerSecond"] == 2
    sqs.server.advance(10)
    assert ended(dead)["Status"] == "COMPLETED"
    assert queue.counts() == (12, 0, 0)


def test_fifo_dead_letters_keep_their_order(sqs: Sqs) -> None:
    queue, dead = sqs.with_dead_letters(1, fifo=True)
    bodies = [str(number) for number in range(8)]
    for body in bodies:
        queue.send_fifo(body)
    queue.receive(VisibilityTimeout=0)
    assert queue.receive() == []
    start(dead)
    ended(dead)
    assert queue.bodies() == bodies


def test_more_than_one_batch_is_moved(sqs: Sqs) -> None:
    queue, dead = with_dead(sqs, *(str(number) for number in range(250)))
    start(dead)
    assert ended(dead)["ApproximateNumberOfMessagesMoved"] == 250
    assert queue.counts() == (250, 0, 0)


# ---- one at a time, and cancelling -------------------------------------------------------------------------------


def test_a_source_has_one_running_task(sqs: Sqs) -> None:
    _, dead = with_dead(sqs, "a", "b", "c")
    handle = start(dead, MaxNumberOfMessagesPerSecond=1)
    assert tasks(dead)[0]["TaskHandle"] == handle
    with refused(
        "InvalidParameterValue",
        "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
    ):
        start(dead)
    sqs.server.advance(5)
    assert "TaskHandle" not in ended(dead)
    start(dead)


def test_a_task_is_cancelled(sqs: Sqs) -> None:
    queue, dead = with_dead(sqs, *(str(number) for number in range(10)))
    handle = start(dead, MaxNumberOfMessagesPerSecond=1)
    sqs.server.advance(2)
    answer = sqs.client.cancel_message_move_task(TaskHandle=handle)
    assert answer["ApproximateNumberOfMessagesMoved"] == 0  # told of later
    assert tasks(dead)[0]["Status"] == "CANCELLING"
    sqs.server.advance(2)
    task = ended(dead)
    assert task["Status"] == "CANCELLED"
    assert "TaskHandle" not in task
    moved = task["ApproximateNumberOfMessagesMoved"]
    sqs.server.advance(60)
    assert queue.counts() == (moved, 0, 0)
    assert dead.counts() == (10 - moved, 0, 0)
    with refused("AWS.SimpleQueueService.UnsupportedOperation"):
        sqs.client.cancel_message_move_task(TaskHandle=handle)


def test_a_handle_says_which_task_and_which_queue(sqs: Sqs) -> None:
    _, dead = with_dead(sqs, "a")
    said = orjson.loads(b64decode(start(dead, MaxNumberOfMessagesPerSecond=1)))
    assert said.keys() == {"taskId", "sourceArn"}
    assert said["sourceArn"] == dead.arn


@pytest.mark.parametrize(
    "handle",
    ["nonsense", "", "bm9uc2Vuc2U=", "e30=", "W10=", "ü", b64encode(b'{"taskId":1,"sourceArn":2}').decode()],
)
def test_an_invalid_handle_is_refused(sqs: Sqs, handle: str) -> None:
    with refused("InvalidParameterValue", "Value for parameter TaskHandle is invalid."):
        sqs.client.cancel_message_move_task(TaskHandle=handle)


def test_a_handle_of_no_task(sqs: Sqs) -> None:
    _, dead = with_dead(sqs)
    handle = b64encode(orjson.dumps({"taskId": "none", "sourceArn": dead.arn})).decode()
    with refused("ResourceNotFoundException", "Task does not exist.", status=404):
        sqs.client.cancel_message_move_task(TaskHandle=handle)
    handle = b64encode(orjson.dumps({"taskId": "none", "sourceArn": dead.arn + "x"})).decode()
    with refused("ResourceNotFoundException", missing("SourceArn"), status=404):
        sqs.client.cancel_message_move_task(TaskHandle=handle)


def test_a_task_fails_where_its_destination_goes(sqs: Sqs) -> None:
    _, dead = with_dead(sqs, "a", "b", "c")
    destination = sqs.queue()
    start(dead, destination, MaxNumberOfMessagesPerSecond=1)
    destination.call("delete_queue")
    sqs.server.advance(2)
    task = ended(dead)
    assert task["Status"] == "FAILED"
    assert task["FailureReason"] == "AWS.SimpleQueueService.NonExistentQueue"


def test_an_account_has_100_running_tasks(server_on_sqlite: Server) -> None:
    sqs = Sqs(server_on_sqlite, account="400000000000")
    for _ in range(100):
        _, dead = with_dead(sqs, "a", "b")
        start(dead, MaxNumberOfMessagesPerSecond=1)
    _, dead = with_dead(sqs, "a")
    with refused("OverLimit", status=403):
        start(dead)
    server_on_sqlite.reset()


# ---- refusals ----------------------------------------------------------------------------------------------------


def test_a_source_must_be_a_dead_letter_queue(sqs: Sqs) -> None:
    with refused("InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue."):
        start(sqs.queue())


def test_queues_of_a_task_exist(sqs: Sqs) -> None:
    _, dead = with_dead(sqs)
    arn = dead.arn + "-not"
    with refused("ResourceNotFoundException", missing("SourceArn"), status=404):
        sqs.client.start_message_move_task(SourceArn=arn)
    with refused("ResourceNotFoundException", missing("DestinationArn"), status=404):
        sqs.client.start_message_move_task(SourceArn=dead.arn, DestinationArn=arn)
    with refused("ResourceNotFoundException", missing("SourceArn"), status=404):
        sqs.client.list_message_move_tasks(SourceArn=arn)


@pytest.mark.parametrize("arn", ["nonsense", "arn:aws:sqs", "arn:aws:sns:us-east-1:000000000000:topic"])
def test_queues_of_a_task_have_an_arn(sqs: Sqs, arn: str) -> None:
    _, dead = with_dead(sqs)
    with refused("InvalidParameterValue", NO_FORMAT.format("SourceArn")):
        sqs.client.start_message_move_task(SourceArn=arn)
    with refused("InvalidParameterValue", NO_FORMAT.format("DestinationArn")):
        sqs.client.start_message_move_task(SourceArn=dead.arn, DestinationArn=arn)
    with refused("InvalidParameterValue", NO_FORMAT.format("SourceArn")):
        sqs.client.list_message_move_tasks(SourceArn=arn)


def test_a_task_stays_with_one_kind_of_queue_and_goes_somewhere(sqs: Sqs) -> None:
    _, dead = with_dead(sqs)
    with refused("InvalidParameterValue"):
        start(dead, sqs.fifo())
    with refused("InvalidParameterValue"):
        start(dead, dead)


@pytest.mark.parametrize("rate", [0, -1, 501])
def test_a_task_moves_1_to_500_a_second(sqs: Sqs, rate: int) -> None:
    _, dead = with_dead(sqs)
    with refused("InvalidParameterValue"):
        start(dead, MaxNumberOfMessagesPerSecond=rate)
    start(dead, MaxNumberOfMessagesPerSecond=500)


# ---- lists -------------------------------------------------------------------------------------------------------


def test_the_latest_tasks_are_listed_first(sqs: Sqs) -> None:
    _, dead = with_dead(sqs)
    assert tasks(dead) == []
    for _ in range(12):
        start(dead)
        ended(dead)
        sqs.server.advance(1)
    times = [task["StartedTimestamp"] for task in tasks(dead)]
    assert len(times) == 10
    assert times == sorted(times, reverse=True)
    assert times[0] == round(sqs.server.now() * 1000) - 1000
    assert len(sqs.client.list_message_move_tasks(SourceArn=dead.arn)["Results"]) == 1
    assert len(tasks(dead, 3)) == 3
    for number in (0, 11):
        with refused("InvalidParameterValue"):
            tasks(dead, number)
