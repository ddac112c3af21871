"""Failures of the rental-car stack at its function: how often it is tried, where the order ends, what is told."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.contracts.aws.clients import client as telemetry
from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.aws.sns.client import Topic
from tests.contracts.aws.sqs.client import ACCOUNT, REGION, Queue
from tests.services.server import Server

HOUR = 3600
ROLE = f"arn:aws:iam::{ACCOUNT}:role/feedback"

_BILLING = """
import os, time

def raises(event, context):
    raise OSError("the billing system is away")

def exits(event, context):
    os._exit(3)

def hangs(event, context):
    os.read(os.pipe()[0], 1)

def waits(event, context):
    if event["holds"]:
        with open(os.environ["PIPE"]) as pipe:
            pipe.read()
"""


class Stack:
    """A topic of orders with a function that bills them, each with its dead-letter queue."""

    def __init__(self, server: Server) -> None:
        self.workshop = Workshop(server)
        self.letters = self.workshop.sqs.queue()
        self.fanout = self.workshop.sqs.queue()
        logged = {f"Lambda{kind}FeedbackRoleArn": ROLE for kind in ("Success", "Failure")}
        self.topic: Topic = self.workshop.sns.topic(**logged, LambdaSuccessFeedbackSampleRate="100")

    def billing(self, handler: str, **more: Any) -> str:
        """The function, subscribed; its name."""
        dead = {"TargetArn": self.letters.arn}
        name = self.workshop.function(_BILLING, f"index.{handler}", DeadLetterConfig=dead, **more)
        policy = orjson.dumps({"deadLetterTargetArn": self.fanout.arn}).decode()
        self.topic.subscribe("lambda", self.workshop.arn(name), RedrivePolicy=policy)
        return name

    def total(self, name: str, metric: str) -> float:
        return self._sum("AWS/Lambda", metric, {"Name": "FunctionName", "Value": name})

    def of_topic(self, metric: str) -> float:
        name = {"Name": "TopicName", "Value": self.topic.arn.rpartition(":")[2]}
        return self._sum("AWS/SNS", metric, name)

    def _sum(self, namespace: str, metric: str, dimension: dict[str, str]) -> float:
        now = self.workshop.server.now()
        points = telemetry(self.workshop.server.url, "cloudwatch", "json").get_metric_statistics(
            Namespace=namespace,
            MetricName=metric,
            Dimensions=[dimension],
            StartTime=now - 86_400,
            EndTime=now + 60,
            Period=86_460,
            Statistics=["Sum"],
        )["Datapoints"]
        return sum(point["Sum"] for point in points)

    def logged(self, suffix: str = "") -> list[dict[str, Any]]:
        """The entries of the topic's delivery log."""
        group = f"sns/{REGION}/{ACCOUNT}/{self.topic.arn.rpartition(':')[2]}{suffix}"
        logs = telemetry(self.workshop.server.url, "logs", "json")
        try:
            found = logs.filter_log_events(logGroupName=group)["events"]
        except logs.exceptions.ResourceNotFoundException:
            return []
        return [orjson.loads(event["message"]) for event in found]


@pytest.fixture
def stack(functions_on_sqlite: Server) -> Iterator[Stack]:
    yield Stack(functions_on_sqlite)
    functions_on_sqlite.reset()


def _letter(queue: Queue) -> tuple[Any, dict[str, str]]:
    message = queue.one(MessageAttributeNames=["All"])
    attributes = message.get("MessageAttributes", {})
    return orjson.loads(message["Body"]), {name: value["StringValue"] for name, value in attributes.items()}


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        ("raises", "the billing system is away"),
        ("exits", "Error: Runtime exited with error: exit status 3"),
        ("hangs", "Error: Task timed out after 1.00 seconds"),
    ],
)
def test_a_function_that_fails_is_tried_three_times_and_has_the_letter(
    stack: Stack, handler: str, told: str
) -> None:
    name = stack.billing(handler, Timeout=1)
    stack.topic.publish("an order")
    for seconds, invocations in ((1, 1), (58, 1), (1, 2), (119, 2), (1, 3)):
        stack.workshop.server.advance(seconds)
        assert stack.total(name, "Invocations") == invocations
    event, attributes = _letter(stack.letters)
    assert event["Records"][0]["Sns"]["Message"] == "an order"
    assert attributes.pop("RequestID")
    assert attributes.pop("ErrorMessage").endswith(told)
    assert attributes == {"ErrorCode": "200"}
    assert (stack.total(name, "Errors"), stack.total(name, "AsyncEventsDropped")) == (3, 1)
    assert stack.fanout.bodies() == []
    (entry,) = stack.logged()
    assert (entry["status"], entry["delivery"]["statusCode"]) == ("SUCCESS", 202)
    assert stack.logged("/Failure") == []


@pytest.mark.parametrize("is_gone", [True, False], ids=["deleted", "permission removed"])
def test_a_function_that_cannot_be_invoked_is_a_client_error(stack: Stack, *, is_gone: bool) -> None:
    name = stack.billing("raises")
    if is_gone:
        stack.workshop.client.delete_function(FunctionName=name)
    else:
        stack.workshop.client.add_permission(
            FunctionName=name,
            StatementId="other",
            Action="lambda:InvokeFunction",
            Principal="sns.amazonaws.com",
            SourceArn=f"{stack.topic.arn}-other",
        )
    stack.topic.publish("an order")
    stack.workshop.server.advance(HOUR)
    assert _letter(stack.fanout)[0]["Message"] == "an order"
    assert stack.letters.bodies() == []
    (entry,) = stack.logged("/Failure")
    delivery = entry["delivery"]
    told = orjson.loads(delivery["providerResponse"])["ErrorCode"]
    expected = (404, "ResourceNotFoundException") if is_gone else (403, "AccessDeniedException")
    assert (delivery["statusCode"], told) == expected
    assert stack.of_topic("NumberOfNotificationsFailed") == 1
    assert stack.of_topic("NumberOfNotificationsRedrivenToDlq") == 1


def test_without_the_queue_of_fan_out_failures_the_loss_is_counted(stack: Stack) -> None:
    name = stack.billing("raises")
    stack.workshop.client.delete_function(FunctionName=name)
    stack.fanout.call("delete_queue")
    stack.topic.publish("an order")
    stack.workshop.server.advance(HOUR)
    assert stack.of_topic("NumberOfNotificationsFailedToRedriveToDlq") == 1


def test_a_function_that_is_switched_off_is_not_tried(stack: Stack) -> None:
    name = stack.billing("raises")
    stack.workshop.client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    stack.topic.publish("an order")
    stack.workshop.server.advance(1)
    event, attributes = _letter(stack.letters)
    assert event["Records"][0]["Sns"]["Message"] == "an order"
    assert attributes["ErrorCode"] == "429"
    assert (stack.total(name, "Invocations"), stack.total(name, "AsyncEventsDropped")) == (0, 1)


def test_a_function_that_is_busy_for_hours_is_tried_by_the_table_until_the_event_is_too_old(
    stack: Stack, tmp_path: Path
) -> None:
    """At once, after 1, 2, 4 … 256 s, and every 300 s from then on; the 81st attempt would come after six hours."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    name = stack.billing("waits", Timeout=900, Environment={"Variables": {"PIPE": str(pipe)}})
    stack.workshop.client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=1)
    holder = threading.Thread(target=Workshop(stack.workshop.server).call, args=(name, {"holds": True}))
    holder.start()
    with pipe.open("w"):  # opens when the function reads
        stack.workshop.send(name, {"holds": False})
        moments = [2**power - 1 for power in range(10)] + [511 + 300 * more for more in range(1, 71)]
        now = 0
        for attempts, moment in list(enumerate(moments, 1))[:12]:
            stack.workshop.server.advance(moment - now)
            now = moment
            assert stack.total(name, "Throttles") == attempts
        stack.workshop.server.advance(moments[-1] - now - 1)
        assert (stack.total(name, "Throttles"), stack.letters.bodies()) == (len(moments) - 1, [])
        stack.workshop.server.advance(1)
        event, attributes = _letter(stack.letters)
        assert (event, attributes["ErrorCode"]) == ({"holds": False}, "429")
        stack.workshop.server.advance(HOUR)
    holder.join(30)
    assert stack.total(name, "Throttles") == len(moments) == 80
    assert (stack.total(name, "Invocations"), stack.total(name, "Errors")) == (1, 0)
