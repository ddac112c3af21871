"""Event source mappings: queues that feed functions."""

from collections import Counter
from typing import Any

import orjson
import pytest

from tests.contracts.aws.lambda_.draining import Draining
from tests.contracts.aws.lambda_.workshop import Workshop
from tests.contracts.aws.sqs.client import Queue, refused, text

#: Keeps its events in a file, and fails with what it is told to.
_KEEPING = """
import json
import os

def handler(event, context):
    with open(os.environ["FILE"], "a") as kept:
        kept.write(json.dumps(event) + "\\n")
    bodies = {record["messageId"]: record["body"] for record in event["Records"]}
    if "raise" in bodies.values():
        raise ValueError("told to")
    failed = [name for name, body in bodies.items() if body.startswith("bad")]
    return {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}
"""
_LEASE = {"VisibilityTimeout": "30"}


class Keeping:
    """A function that keeps the events that it gets."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self.file = workshop.server.log.parent / f"batches-{workshop.server.now()}-{id(self)}"
        variables = {"Variables": {"FILE": str(self.file)}}
        self.name = workshop.function(_KEEPING, Environment=variables)

    @property
    def batches(self) -> list[list[dict[str, Any]]]:
        """The records of each event."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [orjson.loads(line)["Records"] for line in lines]

    @property
    def bodies(self) -> list[str]:
        return [record["body"] for batch in self.batches for record in batch]

    def fed_by(self, queue: Queue, **more: Any) -> dict[str, Any]:
        created: dict[str, Any] = self.workshop.client.create_event_source_mapping(
            EventSourceArn=queue.arn, FunctionName=self.name, **more
        )
        return created


def _send(queue: Queue, *bodies: str, **more: Any) -> None:
    for body in bodies:
        queue.call("send_message", MessageBody=body, **more)


def test_messages_become_events_as_recorded_and_are_deleted(workshop: Workshop) -> None:
    queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
    created = function.fed_by(queue)
    assert created.pop("ResponseMetadata")["HTTPStatusCode"] == 202
    identity = created.pop("UUID")
    assert abs(created.pop("LastModified").timestamp() - workshop.server.now()) < 60
    assert created == {
        "BatchSize": 10,
        "EventSourceArn": queue.arn,
        "EventSourceMappingArn": f"arn:aws:lambda:us-east-1:000000000000:event-source-mapping:{identity}",
        "FunctionArn": workshop.arn(function.name),
        "FunctionResponseTypes": [],
        "MaximumBatchingWindowInSeconds": 0,
        "State": "Creating",
        "StateTransitionReason": "USER_INITIATED",
    }
    assert workshop.client.get_event_source_mapping(UUID=identity)["State"] == "Enabled"
    sent = queue.call("send_message", MessageBody="hello", MessageAttributes={"n": text("1", "Number")})
    workshop.server.advance(1)
    ((record,),) = function.batches
    assert record.pop("receiptHandle")
    attributes = record.pop("attributes")
    assert set(attributes) == {
        *("ApproximateReceiveCount", "SentTimestamp", "SenderId", "ApproximateFirstReceiveTimestamp"),
    }
    assert record == {
        "messageId": sent["MessageId"],
        "body": "hello",
        "messageAttributes": {
            "n": {"stringValue": "1", "stringListValues": [], "binaryListValues": [], "dataType": "Number"}
        },
        "md5OfMessageAttributes": sent["MD5OfMessageAttributes"],
        "md5OfBody": sent["MD5OfMessageBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue.arn,
        "awsRegion": "us-east-1",
    }
    workshop.server.advance(3600)
    assert len(function.batches) == 1
    assert queue.bodies() == []


def test_failed_messages_come_back_by_the_queue_s_own_rules(workshop: Workshop) -> None:
    dead = workshop.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 2}).decode()
    queue, function = workshop.sqs.queue(**_LEASE, RedrivePolicy=policy), Keeping(workshop)
    function.fed_by(queue)
    _send(queue, "raise")
    for seconds, calls in ((0, 1), (29, 1), (1, 2), (29, 2)):
        workshop.server.advance(seconds)
        assert len(function.batches) == calls
    assert dead.bodies() == []
    workshop.server.advance(2)
    assert (dead.bodies(), len(function.batches)) == (["raise"], 2)


def test_of_a_batch_only_failed_messages_come_back(workshop: Workshop) -> None:
    queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
    _send(queue, "good 1", "bad", "good 2")
    function.fed_by(queue, FunctionResponseTypes=["ReportBatchItemFailures"])
    workshop.server.advance(1)
    assert sorted(function.bodies) == ["bad", "good 1", "good 2"]
    workshop.server.advance(30)
    assert Counter(function.bodies) == {"bad": 2, "good 1": 1, "good 2": 1}


def test_without_the_flag_an_answer_is_a_success(workshop: Workshop) -> None:
    queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
    function.fed_by(queue)
    _send(queue, "bad")
    workshop.server.advance(60)
    assert function.bodies == ["bad"]


def test_messages_are_gathered_for_as_long_as_asked(workshop: Workshop) -> None:
    queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
    function.fed_by(queue, BatchSize=100, MaximumBatchingWindowInSeconds=5)
    _send(queue, "1", "2")
    workshop.server.advance(4)
    assert function.batches == []
    _send(queue, "3")
    workshop.server.advance(1)
    assert sorted(function.bodies) == ["1", "2", "3"]
    assert len(function.batches) == 1


def test_messages_that_no_pattern_wants_are_deleted(workshop: Workshop) -> None:
    queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
    pattern = orjson.dumps({"body": {"status": ["confirmed"], "price": [{"numeric": [">", 10]}]}}).decode()
    function.fed_by(queue, FilterCriteria={"Filters": [{"Pattern": pattern}]})
    wanted = '{"status":"confirmed","price":11}'
    _send(queue, wanted, '{"status":"draft","price":11}', "no JSON")
    workshop.server.advance(60)
    assert function.bodies == [wanted]
    assert queue.bodies() == []


def test_a_mapping_rests_and_goes_on(workshop: Workshop) -> None:
    queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
    identity = function.fed_by(queue, Enabled=False)["UUID"]
    _send(queue, "1")
    workshop.server.advance(1)
    assert function.batches == []
    assert workshop.client.get_event_source_mapping(UUID=identity)["State"] == "Disabled"
    answer = workshop.client.update_event_source_mapping(UUID=identity, Enabled=True, BatchSize=1)
    assert (answer["State"], answer["BatchSize"]) == ("Enabling", 1)
    workshop.server.advance(1)
    assert function.bodies == ["1"]
    assert workshop.client.delete_event_source_mapping(UUID=identity)["State"] == "Deleting"
    _send(queue, "2")
    workshop.server.advance(1)
    assert function.bodies == ["1"]
    with refused("ResourceNotFoundException", "The resource you requested does not exist.", 404):
        workshop.client.get_event_source_mapping(UUID=identity)


def test_groups_keep_their_order(workshop: Workshop) -> None:
    queue, function = workshop.sqs.fifo(**_LEASE), Keeping(workshop)
    for number in range(6):
        group = "ab"[number % 2]
        _send(queue, f"{group}{number}", MessageGroupId=group, MessageDeduplicationId=str(number))
    function.fed_by(queue, BatchSize=2)
    workshop.server.advance(60)
    assert [body for body in function.bodies if body.startswith("a")] == ["a0", "a2", "a4"]
    assert [body for body in function.bodies if body.startswith("b")] == ["b1", "b3", "b5"]
    first = function.batches[0][0]["attributes"]
    assert {"SequenceNumber", "MessageGroupId", "MessageDeduplicationId"} <= first.keys()


def test_a_function_that_is_switched_off_costs_no_message_a_receive(workshop: Workshop) -> None:
    dead = workshop.sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1}).decode()
    queue, function = workshop.sqs.queue(**_LEASE, RedrivePolicy=policy), Keeping(workshop)
    workshop.client.put_function_concurrency(FunctionName=function.name, ReservedConcurrentExecutions=0)
    function.fed_by(queue)
    _send(queue, "patience")
    workshop.server.advance(300)
    workshop.client.delete_function_concurrency(FunctionName=function.name)
    workshop.server.advance(30)
    assert (function.bodies, dead.bodies()) == (["patience"], [])


def test_a_function_that_is_switched_off_while_a_message_is_waited_for_gets_it_later(
    workshop: Workshop,
) -> None:
    queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
    function.fed_by(queue)
    workshop.server.advance(1)
    workshop.client.put_function_concurrency(FunctionName=function.name, ReservedConcurrentExecutions=0)
    _send(queue, "patience")
    workshop.server.advance(30)
    assert function.bodies == []
    workshop.client.delete_function_concurrency(FunctionName=function.name)
    workshop.server.advance(30)
    assert function.bodies == ["patience"]


@pytest.mark.parametrize("ordered", [False, True], ids=["standard", "fifo"])
def test_each_message_of_a_drained_queue_is_processed_or_a_dead_letter(
    workshop: Workshop, *, ordered: bool
) -> None:
    """The same with 10,000: `python -m benchmarks mapping`."""
    draining = Draining(workshop, 100, ordered=ordered)
    draining.begin()
    draining.end()


class TestRefusals:
    def test_the_queue_and_the_function_have_to_be_there_and_to_fit(self, workshop: Workshop) -> None:
        queue, function = workshop.sqs.queue(VisibilityTimeout="10"), Keeping(workshop)
        text = "Queue visibility timeout: 10 seconds is less than Function timeout: 20 seconds"
        with refused("InvalidParameterValueException", text):
            function.fed_by(queue)
        create = workshop.client.create_event_source_mapping
        with refused("InvalidParameterValueException", "Unrecognized event source."):
            create(EventSourceArn="arn:aws:s3:::bucket", FunctionName=function.name)
        with refused("InvalidParameterValueException", "Function does not exist"):
            create(EventSourceArn=queue.arn, FunctionName="nobody")
        with refused("InvalidParameterValueException") as error:
            create(EventSourceArn=f"{queue.arn}-gone", FunctionName=function.name)
        assert "AWS.SimpleQueueService.NonExistentQueue" in error["Message"]

    def test_a_queue_of_somebody_else_is_not_drained(self, workshop: Workshop) -> None:
        queue = workshop.sqs.queue(**_LEASE)
        stranger = Workshop(workshop.server, account="210987654321")
        name = stranger.function()
        text = "The provided execution role does not have permissions to call ReceiveMessage on SQS"
        with refused("InvalidParameterValueException", text):
            stranger.client.create_event_source_mapping(EventSourceArn=queue.arn, FunctionName=name)

    def test_there_is_one_for_a_queue_and_a_function(self, workshop: Workshop) -> None:
        queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
        identity = function.fed_by(queue)["UUID"]
        text = (
            f'An event source mapping with SQS arn (" {queue.arn} ") and function (" {function.name} ") already exists.'
            f" Please update or delete the existing mapping with UUID {identity}"
        )
        with refused("ResourceConflictException", text, 409):
            function.fed_by(queue)
        listed = workshop.client.list_event_source_mappings(FunctionName=function.name)
        assert [mapping["UUID"] for mapping in listed["EventSourceMappings"]] == [identity]
        assert (
            workshop.client.list_event_source_mappings(EventSourceArn=f"{queue.arn}-2")["EventSourceMappings"]
            == []
        )

    @pytest.mark.parametrize(
        ("given", "text"),
        [
            (
                {"BatchSize": 11},
                "Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10",
            ),
            (
                {"DestinationConfig": {"OnFailure": {"Destination": "arn:aws:sqs:us-east-1:000000000000:q"}}},
                "Unsupported DestinationConfig parameter for given event source mapping type.",
            ),
            ({"FilterCriteria": {"Filters": [{"Pattern": "no"}]}}, "Invalid filter pattern definition."),
            ({"ParallelizationFactor": 2}, "Redrive does not offer the parameter ParallelizationFactor."),
        ],
    )
    def test_settings_that_a_queue_does_not_have_are_refused(
        self, workshop: Workshop, given: dict[str, Any], text: str
    ) -> None:
        queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
        with refused("InvalidParameterValueException", text):
            function.fed_by(queue, **given)


def test_messages_are_counted_where_the_mapping_asks_for_it(workshop: Workshop) -> None:
    queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
    created = function.fed_by(
        queue,
        MetricsConfig={"Metrics": ["EventCount"]},
        FilterCriteria={"Filters": [{"Pattern": '{"body": {"car": [{"exists": true}]}}'}]},
    )
    assert created["MetricsConfig"] == {"Metrics": ["EventCount"]}
    _send(queue, '{"car": 1}', '{"truck": 1}', '{"car": 2}')
    workshop.server.advance(0)

    def total(metric: str) -> float:
        return workshop.total(f"{metric}EventCount", EventSourceMappingUUID=created["UUID"])

    counted = {metric: total(metric) for metric in ("Polled", "FilteredOut", "Invoked", "Deleted")}
    assert counted == {"Polled": 3, "FilteredOut": 1, "Invoked": 2, "Deleted": 3}
    assert total("FailedInvoke") == 0


def test_a_mapping_has_tags(workshop: Workshop) -> None:
    queue, function = workshop.sqs.queue(**_LEASE), Keeping(workshop)
    arn = function.fed_by(queue, Tags={"team": "billing"})["EventSourceMappingArn"]
    workshop.client.tag_resource(Resource=arn, Tags={"car": "1"})
    assert workshop.client.list_tags(Resource=arn)["Tags"] == {"team": "billing", "car": "1"}
    workshop.client.untag_resource(Resource=arn, TagKeys=["team"])
    assert workshop.client.list_tags(Resource=arn)["Tags"] == {"car": "1"}
    with refused("AccessDeniedException", status=403):
        Workshop(workshop.server, account="210987654321").client.list_tags(Resource=arn)
    absent = arn[:-4] + "0000"
    with refused("ResourceNotFoundException", f"Event source mapping not found: {absent}", 404):
        workshop.client.list_tags(Resource=absent)


def test_messages_of_an_encrypted_queue_feed_a_function_as_long_as_their_key_can_be_used(
    workshop: Workshop,
) -> None:
    kms, function = workshop.of("kms"), Keeping(workshop)
    key = kms.create_key()["KeyMetadata"]["Arn"]
    queue = workshop.sqs.queue(KmsMasterKeyId=key, KmsDataKeyReusePeriodSeconds="60", **_LEASE)
    _send(queue, "hidden")
    kms.disable_key(KeyId=key)
    workshop.server.advance(301)
    function.fed_by(queue)
    workshop.server.advance(120)
    assert function.batches == []
    kms.enable_key(KeyId=key)
    workshop.server.advance(120)
    ((record,),) = function.batches
    assert (record["body"], record["attributes"]["ApproximateReceiveCount"]) == ("hidden", "1")
