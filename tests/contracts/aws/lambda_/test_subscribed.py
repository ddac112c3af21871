"""Functions as subscribers of topics, on the server that has both."""

import orjson

from tests.contracts.aws.lambda_.test_events import Counting
from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.aws.sns.client import Topic
from tests.contracts.aws.sqs.client import Queue

_KEEPING = """
import json, os

def handler(event, context):
    with open(os.environ["FILE"], "a") as kept:
        kept.write(json.dumps(event) + "\\n")
"""


def _subscribed(workshop: Workshop, arn: str) -> tuple[Topic, Queue]:
    topic, dead = workshop.sns.topic(), workshop.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()
    topic.subscribe("lambda", arn, RedrivePolicy=policy)
    return topic, dead


def test_a_topic_invokes_a_function_with_its_record(workshop: Workshop) -> None:
    file = workshop.server.log.parent / f"events-{workshop.server.now()}"
    name = workshop.function(_KEEPING, Environment={"Variables": {"FILE": str(file)}})
    topic, dead = _subscribed(workshop, workshop.arn(name))
    topic.publish("hello", Subject="s")
    workshop.server.advance(1)
    (event,) = [orjson.loads(line) for line in file.read_text().splitlines()]
    (record,) = event["Records"]
    assert (record["EventSource"], record["Sns"]["Message"], record["Sns"]["Subject"]) == (
        "aws:sns",
        "hello",
        "s",
    )
    assert dead.bodies() == []


def test_the_topic_has_delivered_when_the_event_is_taken(workshop: Workshop) -> None:
    letters = workshop.sqs.queue()
    function = Counting(workshop, DeadLetterConfig={"TargetArn": letters.arn}, handler="index.missing")
    topic, dead = _subscribed(workshop, workshop.arn(function.name))
    topic.publish("hello")
    workshop.server.advance(180)
    assert dead.bodies() == []
    (letter,) = letters.bodies()
    assert orjson.loads(letter)["Records"][0]["Sns"]["Message"] == "hello"


def test_a_function_that_is_gone_is_a_client_error(workshop: Workshop) -> None:
    name = workshop.function()
    topic, dead = _subscribed(workshop, workshop.arn(name))
    workshop.client.delete_function(FunctionName=name)
    topic.publish("nowhere to go")
    workshop.server.advance(1)
    assert orjson.loads(dead.one()["Body"])["Message"] == "nowhere to go"


def test_a_policy_that_lets_others_in_keeps_the_topic_out(workshop: Workshop) -> None:
    function = Counting(workshop)
    topic, dead = _subscribed(workshop, workshop.arn(function.name))
    allow = {
        "FunctionName": function.name,
        "Action": "lambda:InvokeFunction",
        "Principal": "sns.amazonaws.com",
    }
    arn = topic.arn
    workshop.client.add_permission(**allow, StatementId="other", SourceArn=f"{arn}-other")
    topic.publish("kept out")
    workshop.server.advance(1)
    assert orjson.loads(dead.one()["Body"])["Message"] == "kept out"
    workshop.client.add_permission(**allow, StatementId="mine", SourceArn=arn)
    topic.publish("let in")
    workshop.server.advance(1)
    assert len(function.calls) == 1
