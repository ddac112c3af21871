"""Log groups that functions subscribe to."""

import gzip
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from redrive.aws.gateway.rounds import ROUNDS_MAX
from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.aws.sqs.client import refused

GROUP = "/app/orders"
_KEEPING = """
import json, os

def handler(event, context):
    print("ERROR in here as well")
    with open(os.environ["FILE"], "a") as kept:
        kept.write(json.dumps(event) + "\\n")
"""
DENIED = (
    "InvalidParameterException",
    (
        "Could not execute the lambda function. Make sure you have given CloudWatch Logs permission to execute your"
        " function."
    ),
)


@dataclass
class Subscriber:
    """A log group, and a function that keeps the events that it gets."""

    workshop: Workshop
    name: str
    file: Path

    @property
    def logs(self) -> Any:
        return self.workshop.of("logs")

    @property
    def arn(self) -> str:
        return self.workshop.arn(self.name)

    def subscribe(self, name: str = "errors", group: str = GROUP, **params: Any) -> None:
        wanted = {"filterPattern": "ERROR", "destinationArn": self.arn, **params}
        self.logs.put_subscription_filter(logGroupName=group, filterName=name, **wanted)

    def log(self, *messages: str) -> int:
        """Write messages down, and let them arrive; their moment (ms)."""
        now = round(self.workshop.server.now() * 1000)
        events = [{"timestamp": now, "message": message} for message in messages]
        self.logs.put_log_events(logGroupName=GROUP, logStreamName="s", logEvents=events)
        self.workshop.server.advance(1)
        return now

    def kept(self) -> list[dict[str, Any]]:
        events = self.file.read_text().splitlines() if self.file.exists() else []
        return [
            orjson.loads(gzip.decompress(b64decode(orjson.loads(event)["awslogs"]["data"])))
            for event in events
        ]


@pytest.fixture
def subscriber(workshop: Workshop, tmp_path: Path) -> Subscriber:
    file = tmp_path / "kept"
    name = workshop.function(_KEEPING, Environment={"Variables": {"FILE": str(file)}})
    logs = workshop.of("logs")
    logs.create_log_group(logGroupName=GROUP)
    logs.create_log_stream(logGroupName=GROUP, logStreamName="s")
    return Subscriber(workshop, name, file)


def test_matching_events_come_to_the_function(subscriber: Subscriber) -> None:
    subscriber.subscribe()
    at = subscriber.log("ERROR one", "fine", "ERROR two")
    (told,) = subscriber.kept()
    ids = [event.pop("id") for event in told["logEvents"]]
    assert told == {
        "messageType": "DATA_MESSAGE",
        "owner": subscriber.workshop.account,
        "logGroup": GROUP,
        "logStream": "s",
        "subscriptionFilters": ["errors"],
        "logEvents": [{"timestamp": at, "message": text} for text in ("ERROR one", "ERROR two")],
    }
    assert len(set(ids)) == 2
    assert {len(each) for each in ids} == {56}
    subscriber.log("fine")
    subscriber.logs.delete_subscription_filter(logGroupName=GROUP, filterName="errors")
    subscriber.log("ERROR three")
    assert len(subscriber.kept()) == 1


def test_the_policy_of_the_function_decides(subscriber: Subscriber) -> None:
    arn = f"arn:aws:logs:{subscriber.workshop.region}:{subscriber.workshop.account}:log-group:{GROUP}"
    permission = {"FunctionName": subscriber.name, "Action": "lambda:InvokeFunction"}

    def permit(statement: str, source: str) -> None:
        subscriber.workshop.client.add_permission(
            **permission, StatementId=statement, Principal="logs.amazonaws.com", SourceArn=source
        )

    permit("other", f"{arn}x:*")
    with refused(*DENIED):
        subscriber.subscribe()
    permit("own", f"{arn}:*")
    subscriber.subscribe()
    subscriber.log("ERROR")
    assert len(subscriber.kept()) == 1
    subscriber.workshop.client.remove_permission(FunctionName=subscriber.name, StatementId="own")
    subscriber.log("ERROR")
    assert len(subscriber.kept()) == 1


def test_a_function_does_not_read_what_it_writes(subscriber: Subscriber) -> None:
    reserved = (
        "InvalidParameterException",
        "The log group provided is reserved for the function log output of the destination function.",
    )
    own = f"/aws/lambda/{subscriber.name}"
    subscriber.logs.create_log_group(logGroupName=own)
    with refused(*reserved):
        subscriber.subscribe(group=own)
    subscriber.subscribe()
    client = subscriber.workshop.client
    client.update_function_configuration(FunctionName=subscriber.name, LoggingConfig={"LogGroup": GROUP})
    subscriber.log("ERROR")
    assert subscriber.kept() == []


def test_two_functions_that_read_each_others_lines_come_to_an_end(workshop: Workshop, tmp_path: Path) -> None:
    logs, file = workshop.of("logs"), tmp_path / "runs"
    variables = {"Variables": {"FILE": str(file)}}
    names = [workshop.function(_KEEPING, Environment=variables) for _ in range(2)]
    for own, other in (names, names[::-1]):
        group = f"/aws/lambda/{own}"
        logs.create_log_group(logGroupName=group)
        filtered = {"filterPattern": "ERROR", "destinationArn": workshop.arn(other)}
        logs.put_subscription_filter(logGroupName=group, filterName="f", **filtered)
    workshop.client.invoke(FunctionName=names[0], Payload=b"{}")
    for _ in range(ROUNDS_MAX + 4):
        workshop.server.advance(1)
    assert len(file.read_text().splitlines()) == 1 + ROUNDS_MAX
    assert "log_subscription.circle" in workshop.server.log.read_text()


def test_filters_are_described_and_refused(subscriber: Subscriber) -> None:
    for name in ("b", "a"):
        subscriber.subscribe(name)
    subscriber.subscribe("b", filterPattern="")
    described = subscriber.logs.describe_subscription_filters(logGroupName=GROUP)["subscriptionFilters"]
    assert [(each["filterName"], each["filterPattern"]) for each in described] == [("a", "ERROR"), ("b", "")]
    assert described[0] | {"creationTime": 0} == {
        "filterName": "a",
        "logGroupName": GROUP,
        "filterPattern": "ERROR",
        "destinationArn": subscriber.arn,
        "distribution": "ByLogStream",
        "applyOnTransformedLogs": False,
        "creationTime": 0,
    }
    with refused("LimitExceededException", "Resource limit exceeded."):
        subscriber.subscribe("c")
    with refused("ResourceNotFoundException", "The specified log group does not exist."):
        subscriber.subscribe(group="absent")
    with refused("ResourceNotFoundException", "The specified subscription filter does not exist."):
        subscriber.logs.delete_subscription_filter(logGroupName=GROUP, filterName="c")
    with refused(*DENIED):
        subscriber.subscribe(destinationArn=f"{subscriber.arn}x")
    stream, role = "arn:aws:kinesis:us-east-1:000000000000:stream/s", "arn:aws:iam::000000000000:role/r"
    for arn, text in (
        (stream, "destinationArn for vendor kinesis cannot be used without roleArn"),
        (
            "arn:aws:firehose:us-east-1:000000000000:deliverystream/s",
            "destinationArn for vendor firehose cannot be used without roleArn",
        ),
        (
            subscriber.arn.replace("us-east-1", "eu-west-1"),
            "destinationArn must be of the log group's account and region.",
        ),
        ("nothing", "Invalid ARN: nothing"),
    ):
        with refused("InvalidParameterException", text):
            subscriber.subscribe(destinationArn=arn)
    with refused("InvalidParameterException", "destinationArn for vendor lambda cannot be used with roleArn"):
        subscriber.subscribe(roleArn=role)
    text = "Destinations of kinesis are not available: functions and Firehose delivery streams are."
    with refused("InvalidParameterException", text):
        subscriber.subscribe(destinationArn=stream, roleArn=role)
    subscriber.logs.delete_log_group(logGroupName=GROUP)
    subscriber.logs.create_log_group(logGroupName=GROUP)
    assert subscriber.logs.describe_subscription_filters(logGroupName=GROUP)["subscriptionFilters"] == []
