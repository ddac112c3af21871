"""Asynchronous invocations: retried by their schedule, given up at their age, and where their ends lead."""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from tests.contracts.aws.clients import client as telemetry
from tests.contracts.aws.lambda_.workshop import Workshop, archive
from tests.contracts.aws.sqs.client import Queue, refused
from tests.services.server import serving

#: Answers its event where that has no reason to fail, and keeps count of both in a folder.
_COUNTING = """
import os
import uuid

def handler(event, context):
    open(os.path.join(os.environ["FOLDER"], uuid.uuid4().hex + context.aws_request_id), "w").close()
    if event.get("fail"):
        raise ValueError(event["fail"])
    return {"done": event}
"""

_BUS = "arn:aws:events:us-east-1:000000000000:event-bus/default"


class Counting:
    """A function that leaves a file in a folder for each time that it is called."""

    def __init__(self, workshop: Workshop, **more: Any) -> None:
        self.folder = workshop.server.log.parent / f"calls-{workshop.server.now()}-{id(self)}"
        self.folder.mkdir()
        variables = {"Variables": {"FOLDER": str(self.folder)}}
        self.name = workshop.function(_COUNTING, Environment=variables, **more)

    @property
    def calls(self) -> list[str]:
        """The request ids of its calls."""
        return [path.name[32:] for path in self.folder.iterdir()]


def _letter(queue: Queue) -> tuple[Any, dict[str, tuple[str, str]]]:
    """The only message of a queue: its body, and its attributes."""
    message = queue.one(MessageAttributeNames=["All"])
    attributes = {
        name: (value["DataType"], value["StringValue"])
        for name, value in message.get("MessageAttributes", {}).items()
    }
    return orjson.loads(message["Body"]), attributes


def _sum(workshop: Workshop, name: str, metric: str) -> float:
    now = workshop.server.now()
    points = telemetry(workshop.server.url, "cloudwatch", "json").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName=metric,
        Dimensions=[{"Name": "FunctionName", "Value": name}],
        StartTime=now - 86_400,
        EndTime=now + 60,
        Period=86_460,
        Statistics=["Sum"],
    )["Datapoints"]
    return sum(point["Sum"] for point in points)


def dead_letter_queues(workshop: Workshop) -> dict[str, Any]:
    """The dead-letter queues of the caller, as the control route lists them, by name."""
    place = urlencode({"account": workshop.account, "region": workshop.region})
    _, answer = workshop.server.ask("GET", f"/_redrive/dead-letter-queues?{place}")
    return {queue["queue"]: queue for queue in orjson.loads(answer)["queues"]}


class TestRetries:
    def test_a_failing_function_is_tried_at_0_60_and_180_seconds_and_its_letter_says_why(
        self, workshop: Workshop
    ) -> None:
        letters = workshop.sqs.queue()
        function = Counting(workshop, DeadLetterConfig={"TargetArn": letters.arn})
        request_id = workshop.send(function.name, {"fail": "no such car"})
        for seconds, calls in ((0, 1), (59, 1), (1, 2), (119, 2), (1, 3)):
            workshop.server.advance(seconds)
            assert len(function.calls) == calls
        assert set(function.calls) == {request_id}
        assert _letter(letters) == (
            {"fail": "no such car"},
            {
                "RequestID": ("String", request_id),
                "ErrorCode": ("Number", "200"),
                "ErrorMessage": ("String", "no such car"),
            },
        )
        workshop.server.advance(3600)
        assert len(function.calls) == 3
        counted = {metric: _sum(workshop, function.name, metric) for metric in ("Invocations", "Errors")}
        assert counted == {"Invocations": 3, "Errors": 3}
        assert _sum(workshop, function.name, "AsyncEventsReceived") == 1
        assert _sum(workshop, function.name, "AsyncEventsDropped") == 1

    def test_queues_of_letters_and_of_failures_are_listed_while_they_hold_any(
        self, workshop: Workshop
    ) -> None:
        letters, failures = workshop.sqs.queue(), workshop.sqs.queue()
        function = Counting(workshop, DeadLetterConfig={"TargetArn": letters.arn})
        workshop.client.put_function_event_invoke_config(
            FunctionName=function.name,
            MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": failures.arn}},
        )
        workshop.send(function.name, {"fail": "x"})
        workshop.server.advance(0)
        source = {"service": "lambda", "name": f"{function.name}:$LATEST"}
        listed = dead_letter_queues(workshop)
        assert {name: queue["letters"] for name, queue in listed.items()} == {
            letters.name: 1,
            failures.name: 1,
        }
        assert [queue["from_services"] for queue in listed.values()] == [[source], [source]]
        workshop.client.delete_function(FunctionName=function.name)
        assert dead_letter_queues(workshop).keys() == {letters.name, failures.name}
        for queue in (letters, failures):
            queue.delete(queue.one())
        assert dead_letter_queues(workshop) == {}

    def test_a_successful_event_is_done(self, workshop: Workshop) -> None:
        function = Counting(workshop)
        workshop.send(function.name, {})
        workshop.server.advance(3600)
        assert len(function.calls) == 1

    def test_retries_and_age_are_what_was_asked_for(self, workshop: Workshop) -> None:
        function, letters = Counting(workshop), workshop.sqs.queue()
        workshop.client.put_function_event_invoke_config(
            FunctionName=function.name,
            MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": letters.arn}},
        )
        workshop.send(function.name, {"fail": "x"})
        workshop.server.advance(0)
        assert len(function.calls) == 1
        record, _ = _letter(letters)
        assert record["requestContext"]["condition"] == "RetriesExhausted"
        assert record["requestContext"]["approximateInvokeCount"] == 1

    def test_an_event_that_would_be_too_old_is_given_up_at_once(self, workshop: Workshop) -> None:
        function, letters = Counting(workshop), workshop.sqs.queue()
        workshop.client.put_function_event_invoke_config(
            FunctionName=function.name,
            MaximumEventAgeInSeconds=100,
            DestinationConfig={"OnFailure": {"Destination": letters.arn}},
        )
        workshop.send(function.name, {"fail": "x"})
        workshop.server.advance(60)
        assert len(function.calls) == 2
        record, _ = _letter(letters)
        assert record["requestContext"]["condition"] == "EventAgeExceeded"
        assert record["requestContext"]["approximateInvokeCount"] == 2
        assert record["responseContext"]["functionError"] == "Unhandled"

    def test_a_function_that_may_not_run_is_not_tried(self, workshop: Workshop) -> None:
        letters, records = workshop.sqs.queue(), workshop.sqs.queue()
        function = Counting(workshop, DeadLetterConfig={"TargetArn": letters.arn})
        workshop.client.put_function_event_invoke_config(
            FunctionName=function.name, DestinationConfig={"OnFailure": {"Destination": records.arn}}
        )
        workshop.client.put_function_concurrency(FunctionName=function.name, ReservedConcurrentExecutions=0)
        workshop.send(function.name, {"a": 1})
        workshop.server.advance(0)
        assert function.calls == []
        record, _ = _letter(records)
        assert record["requestContext"]["condition"] == "ZeroReservedConcurrency"
        assert "responseContext" not in record
        assert "responsePayload" not in record
        body, attributes = _letter(letters)
        assert (body, attributes["ErrorCode"]) == ({"a": 1}, ("Number", "429"))

    def test_changes_count_for_what_waits(self, workshop: Workshop) -> None:
        function = Counting(workshop)
        workshop.send(function.name, {"fail": "x"})
        workshop.server.advance(0)
        fixed = archive({"index.py": _COUNTING.replace('event.get("fail")', "False")})
        workshop.client.update_function_code(FunctionName=function.name, ZipFile=fixed)
        workshop.server.advance(3600)
        assert len(function.calls) == 2

    def test_events_owed_to_a_deleted_function_are_dropped(self, workshop: Workshop) -> None:
        function = Counting(workshop)
        workshop.send(function.name, {"fail": "x"})
        workshop.server.advance(0)
        workshop.client.delete_function(FunctionName=function.name)
        workshop.create(function.name, archive({"index.py": _COUNTING}), "index.handler")
        workshop.server.advance(3600)
        assert len(function.calls) == 1


class TestDestinations:
    def test_a_success_has_its_record_as_recorded(self, workshop: Workshop) -> None:
        function, records = Counting(workshop), workshop.sqs.queue()
        workshop.client.put_function_event_invoke_config(
            FunctionName=function.name, DestinationConfig={"OnSuccess": {"Destination": records.arn}}
        )
        request_id = workshop.send(function.name, {"car": 7})
        workshop.server.advance(0)
        record, attributes = _letter(records)
        assert list(record) == [
            *(
                "version",
                "timestamp",
                "requestContext",
                "requestPayload",
                "responseContext",
                "responsePayload",
            ),
        ]
        assert record.pop("timestamp").endswith("Z")
        assert record == {
            "version": "1.0",
            "requestContext": {
                "requestId": request_id,
                "functionArn": f"{workshop.arn(function.name)}:$LATEST",
                "condition": "Success",
                "approximateInvokeCount": 1,
            },
            "requestPayload": {"car": 7},
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST"},
            "responsePayload": {"done": {"car": 7}},
        }
        assert attributes == {}

    def test_a_letter_and_a_record_both_come_and_the_letter_goes_back(self, workshop: Workshop) -> None:
        letters, topic = workshop.sqs.queue(), workshop.sns.topic()
        heard = workshop.sqs.queue()
        topic.subscribe("sqs", heard.arn, RawMessageDelivery="true")
        function = Counting(workshop, DeadLetterConfig={"TargetArn": letters.arn})
        workshop.client.put_function_event_invoke_config(
            FunctionName=function.name,
            MaximumRetryAttempts=1,
            DestinationConfig={"OnFailure": {"Destination": topic.arn}},
        )
        workshop.send(function.name, {"fail": "x"})
        workshop.server.advance(60)
        record, _ = _letter(heard)
        assert record["requestContext"]["condition"] == "RetriesExhausted"
        assert record["responsePayload"]["errorMessage"] == "x"
        status, _ = workshop.server.ask(
            "POST", "/_redrive/dead-letters", orjson.dumps({"queue": letters.name})
        )
        assert status == 202
        workshop.server.advance(60)
        assert len(function.calls) == 4  # all of the queue went back, and came again
        assert _letter(letters)[0] == {"fail": "x"}

    def test_dead_letters_go_to_topics_with_their_attributes(self, workshop: Workshop) -> None:
        topic, heard = workshop.sns.topic(), workshop.sqs.queue()
        topic.subscribe("sqs", heard.arn)
        function = Counting(workshop, DeadLetterConfig={"TargetArn": topic.arn})
        request_id = workshop.send(function.name, {"fail": "x"})
        workshop.server.advance(180)
        notification, _ = _letter(heard)
        assert orjson.loads(notification["Message"]) == {"fail": "x"}
        assert notification["MessageAttributes"]["RequestID"] == {"Type": "String", "Value": request_id}

    def test_a_function_is_a_destination(self, workshop: Workshop) -> None:
        first, second = Counting(workshop), Counting(workshop)
        workshop.client.put_function_event_invoke_config(
            FunctionName=first.name,
            DestinationConfig={"OnSuccess": {"Destination": workshop.arn(second.name)}},
        )
        workshop.send(first.name, {})
        workshop.server.advance(0)
        assert len(second.calls) == 1

    def test_a_failure_is_an_object_in_a_bucket(self, workshop: Workshop) -> None:
        buckets, function = workshop.of("s3"), Counting(workshop)
        bucket = f"failures-{function.name}"
        buckets.create_bucket(Bucket=bucket)
        workshop.client.put_function_event_invoke_config(
            FunctionName=function.name,
            MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": f"arn:aws:s3:::{bucket}"}},
        )
        request_id = workshop.send(function.name, {"fail": "x"})
        workshop.server.advance(0)
        (written,) = buckets.list_objects_v2(Bucket=bucket)["Contents"]
        day, moment = r"\d{4}/\d\d/\d\d", r"\d{4}-\d\d-\d\dT\d\d\.\d\d\.\d\d"
        form = rf"aws/lambda/async/{function.name}/{day}/{moment}-[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}"
        assert re.fullmatch(form, written["Key"])
        found = buckets.get_object(Bucket=bucket, Key=written["Key"])
        record = orjson.loads(found["Body"].read())
        assert found["ContentType"] == "application/json"
        assert record["requestContext"]["requestId"] == request_id
        assert (record["requestPayload"], record["responsePayload"]["errorMessage"]) == ({"fail": "x"}, "x")

    def test_a_bucket_that_is_gone_is_counted(self, workshop: Workshop) -> None:
        function = Counting(workshop)
        workshop.client.put_function_event_invoke_config(
            FunctionName=function.name,
            MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": "arn:aws:s3:::no-such-bucket"}},
        )
        workshop.send(function.name, {"fail": "x"})
        workshop.server.advance(0)
        assert _sum(workshop, function.name, "DestinationDeliveryFailures") == 1

    def test_a_final_refusal_by_a_target_is_counted(self, workshop: Workshop) -> None:
        gone = workshop.sqs.queue()
        function = Counting(workshop, DeadLetterConfig={"TargetArn": gone.arn})
        gone.call("delete_queue")
        workshop.send(function.name, {"fail": "x"})
        workshop.server.advance(180)
        assert _sum(workshop, function.name, "DeadLetterErrors") == 1


class TestSettings:
    def test_they_are_answered_as_recorded_and_belong_to_what_was_named(self, workshop: Workshop) -> None:
        name, queue = workshop.function(Publish=True), workshop.sqs.queue()
        put = workshop.client.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=1)
        assert put["DestinationConfig"] == {"OnSuccess": {}, "OnFailure": {}}
        assert put["FunctionArn"] == f"{workshop.arn(name)}:$LATEST"
        assert abs(put["LastModified"].timestamp() - workshop.server.now()) < 60
        assert "MaximumEventAgeInSeconds" not in put
        merged = workshop.client.update_function_event_invoke_config(
            FunctionName=name, DestinationConfig={"OnFailure": {"Destination": queue.arn}}
        )
        assert merged["MaximumRetryAttempts"] == 1
        assert merged["DestinationConfig"]["OnFailure"] == {"Destination": queue.arn}
        replaced = workshop.client.put_function_event_invoke_config(
            FunctionName=name, MaximumEventAgeInSeconds=60
        )
        assert "MaximumRetryAttempts" not in replaced
        assert replaced["DestinationConfig"]["OnFailure"] == {}
        text = f"The function {workshop.arn(name)}:1 doesn't have an EventInvokeConfig"
        with refused("ResourceNotFoundException", text, 404):
            workshop.client.get_function_event_invoke_config(FunctionName=name, Qualifier="1")
        listed = workshop.client.list_function_event_invoke_configs(FunctionName=name)
        assert [each["MaximumEventAgeInSeconds"] for each in listed["FunctionEventInvokeConfigs"]] == [60]
        workshop.client.delete_function_event_invoke_config(FunctionName=name)
        with refused("ResourceNotFoundException", status=404):
            workshop.client.get_function_event_invoke_config(FunctionName=name)

    @pytest.mark.parametrize(
        ("given", "text"),
        [
            ({}, "You must specify at least one of error handling or destination setting."),
            (
                {
                    "DestinationConfig": {
                        "OnSuccess": {"Destination": "arn:aws:sqs:us-east-1:000000000000:a.fifo"}
                    }
                },
                "The destination ARN arn:aws:sqs:us-east-1:000000000000:a.fifo is invalid.",
            ),
            (
                {"DestinationConfig": {"OnSuccess": {"Destination": "{itself}"}}},
                "You can't specify the function as a destination for itself.",
            ),
            (
                {"DestinationConfig": {"OnSuccess": {"Destination": "arn:aws:s3:::cars"}}},
                (
                    "The provided destination config DestinationConfig(onSuccess=OnSuccess("
                    "destination=arn:aws:s3:::cars), onFailure=null) is invalid."
                ),
            ),
            (
                {"DestinationConfig": {"OnFailure": {"Destination": _BUS}}},
                (
                    f"Redrive has no EventBridge, so {_BUS} cannot be a destination: queues, topics and functions can,"
                    " and for failures buckets."
                ),
            ),
        ],
    )
    def test_settings_that_cannot_be_are_refused(
        self, workshop: Workshop, given: dict[str, Any], text: str
    ) -> None:
        name = workshop.function()
        put = orjson.loads(orjson.dumps(given).replace(b"{itself}", workshop.arn(name).encode()))
        with refused("InvalidParameterValueException", text):
            workshop.client.put_function_event_invoke_config(FunctionName=name, **put)

    def test_an_event_is_json_of_up_to_a_mebibyte(self, workshop: Workshop) -> None:
        name = workshop.function()
        with refused("InvalidRequestContentException"):
            workshop.client.invoke(FunctionName=name, InvocationType="Event", Payload=b"{")
        size = 1024 * 1024
        workshop.send(name, "x" * (size - 2))
        with refused("RequestTooLargeException", status=413):
            workshop.send(name, "x" * (size - 1))


_HANGING = """
import os

def handler(event, context):
    with open(os.environ["PIPE"], "w") as pipe:
        pipe.write(context.aws_request_id)
    os.read(os.pipe()[0], 1)
"""


def test_an_event_outlives_the_server_that_ran_it(tmp_path: Path) -> None:
    """The server is killed while the function runs: the attempt is made again, and counts once."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    flags = ("--clock", "simulated", "--functions", "on")
    with serving(f"sqlite:///{tmp_path}/redrive.db", *flags, directory=tmp_path) as server:
        workshop = Workshop(server)
        letters = workshop.sqs.queue()
        variables = {"Variables": {"PIPE": str(pipe)}}
        name = workshop.function(_HANGING, Environment=variables, DeadLetterConfig={"TargetArn": letters.arn})
        request_id = workshop.send(name, {"car": 1})
        assert pipe.read_text() == request_id
        server.kill()
        server.start()
        workshop = Workshop(server)
        failing = archive({"index.py": "def handler(event, context):\n    raise ValueError('again')\n"})
        workshop.client.update_function_code(FunctionName=name, ZipFile=failing)
        workshop.server.advance(81)  # the lease of an attempt: the function's 20 s, and 60
        assert letters.bodies() == []
        workshop.server.advance(60)
        assert letters.bodies() == []
        workshop.server.advance(120)
        assert _letter(letters)[0] == {"car": 1}
