from typing import Any

import orjson
import pytest

from tests.contracts.aws.sqs.client import ACCOUNT, Queue, Sqs, new_name, redrive_policy, refused

NUMBERS = {  # attribute: (least, most, default), section 4.2 of the facts
    "DelaySeconds": (0, 900, 0),
    "MaximumMessageSize": (1024, 1_048_576, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600, 345_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20, 0),
    "VisibilityTimeout": (0, 43_200, 30),
}
POLICY = (
    '{"Version": "2012-10-17",   "Statement": '
    '[{"Effect": "Deny", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}]}'
)
KEY_REUSE = "KmsDataKeyReusePeriodSeconds"


def test_a_new_standard_queue_shows_its_defaults(sqs: Sqs) -> None:
    queue = sqs.queue()
    now = str(int(sqs.server.now()))
    assert queue.attributes() == {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "CreatedTimestamp": now,
        "DelaySeconds": "0",
        "LastModifiedTimestamp": now,
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "QueueArn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:{queue.name}",
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
        "VisibilityTimeout": "30",
    }


def test_a_new_fifo_queue_shows_four_attributes_more(sqs: Sqs) -> None:
    standard, fifo = sqs.queue().attributes(), sqs.fifo().attributes()
    assert {name: fifo[name] for name in fifo.keys() - standard.keys()} == {
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoQueue": "true",
        "FifoThroughputLimit": "perQueue",
    }


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_may_be_anything_within_its_range(sqs: Sqs, name: str) -> None:
    least, most, default = NUMBERS[name]
    queue = sqs.queue()
    assert queue.attributes(name) == {name: str(default)}
    for value in (least, most, least + 7):
        queue.set(**{name: str(value)})
        assert queue.attributes(name) == {name: str(value)}
    assert sqs.queue(**{name: str(least)}).attributes(name) == {name: str(least)}


@pytest.mark.parametrize("name", [*NUMBERS, KEY_REUSE])
@pytest.mark.parametrize("value", ["below", "above", "", " 60", "6e1", "٦٠", "60.0", "1" * 400, "nonsense"])
def test_numbers_outside_their_range_are_refused(sqs: Sqs, name: str, value: str) -> None:
    least, most, _ = NUMBERS.get(name, (60, 86_400, 300))
    given = {"below": str(least - 1), "above": str(most + 1)}.get(value, value)
    with refused("InvalidAttributeValue", f"Invalid value for the parameter {name}."):
        sqs.queue(**{name: given})
    queue = sqs.queue()
    before = queue.attributes()
    with refused("InvalidAttributeValue", f"Invalid value for the parameter {name}."):
        queue.set(**{name: given})
    assert queue.attributes() == before


def test_of_several_attributes_all_change_or_none(sqs: Sqs) -> None:
    queue = sqs.queue()
    with refused("InvalidAttributeValue"):
        queue.set(DelaySeconds="1", VisibilityTimeout="-1")
    with refused("InvalidAttributeName", "Unknown Attribute Colour."):
        queue.set(DelaySeconds="1", Colour="red")
    assert queue.attributes("DelaySeconds") == {"DelaySeconds": "0"}


@pytest.mark.parametrize(
    "name", ["Colour", "QueueArn", "CreatedTimestamp", "ApproximateNumberOfMessages", "All"]
)
def test_attributes_that_cannot_be_set_are_refused(sqs: Sqs, name: str) -> None:
    with refused("InvalidAttributeName", f"Unknown Attribute {name}."):
        sqs.queue().set(**{name: "1"})
    with refused("InvalidAttributeName", f"Unknown Attribute {name}."):
        sqs.queue(**{name: "1"})


def test_only_what_is_asked_for_is_shown(sqs: Sqs) -> None:
    queue = sqs.queue()
    assert queue.attributes("DelaySeconds", "VisibilityTimeout").keys() == {
        "DelaySeconds",
        "VisibilityTimeout",
    }
    assert "Attributes" not in queue.call("get_queue_attributes")
    assert "Attributes" not in queue.call("get_queue_attributes", AttributeNames=[])
    assert "Attributes" not in queue.call("get_queue_attributes", AttributeNames=["Policy", "RedrivePolicy"])
    with refused("InvalidAttributeName", "Unknown Attribute Colour."):
        queue.attributes("DelaySeconds", "Colour")


def test_setting_an_attribute_is_a_modification(sqs: Sqs) -> None:
    queue = sqs.queue()
    created = queue.attributes("CreatedTimestamp", "LastModifiedTimestamp")
    sqs.server.advance(5)
    queue.call("tag_queue", Tags={"a": "b"})
    queue.send()
    assert queue.attributes("CreatedTimestamp", "LastModifiedTimestamp") == created
    queue.set(DelaySeconds="1")
    changed = queue.attributes("CreatedTimestamp", "LastModifiedTimestamp")
    assert changed["CreatedTimestamp"] == created["CreatedTimestamp"]
    assert int(changed["LastModifiedTimestamp"]) == int(created["LastModifiedTimestamp"]) + 5


# ---- encryption at rest ------------------------------------------------------------------------------------------

SSE = ("KmsMasterKeyId", KEY_REUSE, "SqsManagedSseEnabled")


def test_a_key_replaces_the_queues_own_encryption(sqs: Sqs) -> None:
    queue = sqs.queue(KmsMasterKeyId="testKeyId", KmsDataKeyReusePeriodSeconds="6000")
    assert queue.attributes(*SSE) == {
        "KmsMasterKeyId": "testKeyId",
        "KmsDataKeyReusePeriodSeconds": "6000",
        "SqsManagedSseEnabled": "false",
    }
    queue.set(SqsManagedSseEnabled="true")
    assert queue.attributes("KmsMasterKeyId", "SqsManagedSseEnabled") == {"SqsManagedSseEnabled": "true"}


def test_a_key_is_reused_for_5_minutes_by_default(sqs: Sqs) -> None:
    queue = sqs.queue(KmsMasterKeyId="testKeyId")
    assert queue.attributes(KEY_REUSE) == {KEY_REUSE: "300"}
    for seconds in ("60", "86400"):
        queue.set(KmsDataKeyReusePeriodSeconds=seconds)
        assert queue.attributes(KEY_REUSE) == {KEY_REUSE: seconds}


def test_a_key_is_taken_away_by_an_empty_name(sqs: Sqs) -> None:
    queue = sqs.queue(KmsMasterKeyId="testKeyId", KmsDataKeyReusePeriodSeconds="6000")
    queue.set(KmsMasterKeyId="", KmsDataKeyReusePeriodSeconds="300")
    assert queue.attributes(*SSE) == {"SqsManagedSseEnabled": "false"}


def test_two_kinds_of_encryption_exclude_each_other(sqs: Sqs) -> None:
    message = (
        "You can use one type of server-side encryption (SSE) at one time."
        " You can either enable KMS SSE or SQS SSE."
    )
    with refused("InvalidAttributeName", message):
        sqs.queue(KmsMasterKeyId="testKeyId", SqsManagedSseEnabled="true")
    with refused("InvalidAttributeName", message):
        sqs.queue().set(SqsManagedSseEnabled="true", KmsMasterKeyId="testKeyId")


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_the_queues_own_encryption_is_on_or_off(sqs: Sqs, enabled: str) -> None:
    queue = sqs.queue(SqsManagedSseEnabled=enabled)
    assert queue.attributes("SqsManagedSseEnabled") == {"SqsManagedSseEnabled": enabled}
    with refused("InvalidAttributeValue", "Invalid value for the parameter SqsManagedSseEnabled."):
        queue.set(SqsManagedSseEnabled="maybe")


# ---- what only FIFO queues have ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("FifoQueue", "true", "Unknown Attribute FifoQueue."),
        ("FifoQueue", "false", "Unknown Attribute FifoQueue."),
        ("ContentBasedDeduplication", "true", "Unknown Attribute ContentBasedDeduplication."),
        (
            "DeduplicationScope",
            "queue",
            "You can specify the DeduplicationScope only when FifoQueue is set to true.",
        ),
        (
            "FifoThroughputLimit",
            "perQueue",
            "You can specify the FifoThroughputLimit only when FifoQueue is set to true.",
        ),
    ],
)
def test_a_standard_queue_has_no_fifo_attributes(sqs: Sqs, name: str, value: str, message: str) -> None:
    with refused("InvalidAttributeName", message):
        sqs.queue().set(**{name: value})


def test_a_queue_is_no_fifo_queue_by_saying_so_with_false(sqs: Sqs) -> None:
    with refused("InvalidAttributeName", "Unknown Attribute FifoQueue."):
        sqs.queue(FifoQueue="false")


def test_the_type_of_a_queue_cannot_be_changed(sqs: Sqs) -> None:
    queue = sqs.fifo()
    queue.set(FifoQueue="true")
    message = "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."
    with refused("InvalidAttributeValue", message):
        queue.set(FifoQueue="false")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ContentBasedDeduplication", ("true", "false")),
        ("DeduplicationScope", ("messageGroup", "queue")),
        ("FifoThroughputLimit", ("perMessageGroupId", "perQueue")),
    ],
)
def test_attributes_of_fifo_queues_are_set_and_shown(sqs: Sqs, name: str, values: tuple[str, str]) -> None:
    queue = sqs.fifo(**{name: values[0]})
    assert queue.attributes(name) == {name: values[0]}
    queue.set(**{name: values[1]})
    assert queue.attributes(name) == {name: values[1]}
    for wrong in ("", "sometimes"):
        with refused("InvalidAttributeValue", f"Invalid value for the parameter {name}."):
            queue.set(**{name: wrong})


# ---- documents ---------------------------------------------------------------------------------------------------


def test_a_policy_is_kept_as_it_is_and_deleted_by_an_empty_one(sqs: Sqs) -> None:
    queue = sqs.queue(Policy=POLICY)
    assert queue.attributes("Policy") == {"Policy": POLICY}
    queue.set(Policy="")
    assert queue.attributes("Policy") == {}


@pytest.mark.parametrize(
    "policy", ["nonsense", "[]", '{"Statement": 7}', '{"Statement": [{"Effect": "Maybe"}]}']
)
def test_an_invalid_policy_is_refused(sqs: Sqs, policy: str) -> None:
    with refused("InvalidAttributeValue", "Invalid value for the parameter Policy."):
        sqs.queue().set(Policy=policy)


@pytest.mark.parametrize(("given", "shown"), [(1, 1), (1000, 1000), ("5", 5)])
def test_a_redrive_policy_counts_in_numbers_or_strings(sqs: Sqs, given: object, shown: int) -> None:
    dead = sqs.queue()
    queue = sqs.queue(RedrivePolicy=redrive_policy(dead, given))
    read = orjson.loads(queue.attributes()["RedrivePolicy"])
    assert read == {"deadLetterTargetArn": dead.arn, "maxReceiveCount": shown}
    queue.set(RedrivePolicy="")
    assert "RedrivePolicy" not in queue.attributes()


@pytest.mark.parametrize("count", [0, -1, 1001, "0", "x", 1.5, True, [], "1" * 5000])
def test_a_redrive_policy_counts_from_1_to_1000(sqs: Sqs, count: Any) -> None:
    dead = sqs.queue()
    policy = orjson.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": count}).decode()
    shown = count if isinstance(count, str) else orjson.dumps(count).decode()
    reason = f"Invalid value for maxReceiveCount: {shown}, valid values are from 1 to 1000 both inclusive."
    with refused(
        "InvalidParameterValue", f"Value {policy} for parameter RedrivePolicy is invalid. Reason: {reason}"
    ):
        sqs.queue().set(RedrivePolicy=policy)


def _refuses_target(queue: Queue, policy: str, reason: str) -> None:
    message = f"Value {policy} for parameter RedrivePolicy is invalid. Reason: {reason}"
    with refused("InvalidParameterValue", message):
        queue.set(RedrivePolicy=policy)
    assert "RedrivePolicy" not in queue.attributes()


def test_a_redrive_policy_names_a_queue(sqs: Sqs) -> None:
    queue = sqs.queue()
    dummy = '{"deadLetterTargetArn": "dummy", "maxReceiveCount": 42}'
    _refuses_target(queue, dummy, "Invalid value for deadLetterTargetArn.")
    missing = "Redrive policy does not contain mandatory attribute: deadLetterTargetArn."
    _refuses_target(queue, '{"maxReceiveCount": 42}', missing)
    uncounted = f'{{"deadLetterTargetArn":"{queue.arn}"}}'
    missing = "Redrive policy does not contain mandatory attribute: maxReceiveCount."
    _refuses_target(queue, uncounted, missing)
    _refuses_target(queue, "nonsense", "RedrivePolicy is not valid JSON.")
    absent = f'{{"deadLetterTargetArn":"{queue.arn}-not","maxReceiveCount":3}}'
    _refuses_target(queue, absent, "Dead letter target does not exist.")


def test_dead_letters_stay_with_their_kind_account_and_region(sqs: Sqs) -> None:
    queue, fifo = sqs.queue(), sqs.fifo()
    kind = "Dead-letter queue must be same type of queue as the source."
    _refuses_target(queue, redrive_policy(fifo, 3), kind)
    _refuses_target(fifo, redrive_policy(queue, 3), kind)
    owner = "Dead-letter target owner should be same as the source, and in its region."
    for elsewhere in (sqs.elsewhere(account="200000000000"), sqs.elsewhere(region="eu-central-1")):
        _refuses_target(queue, redrive_policy(elsewhere.queue(), 3), owner)


def test_a_queue_may_be_created_with_everything(sqs: Sqs) -> None:
    dead = sqs.fifo()
    attributes = {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "true",
        "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId",
        "DelaySeconds": "1",
        "MaximumMessageSize": "2048",
        "MessageRetentionPeriod": "120",
        "ReceiveMessageWaitTimeSeconds": "2",
        "VisibilityTimeout": "3",
        "KmsMasterKeyId": "alias/aws/sqs",
        "KmsDataKeyReusePeriodSeconds": "60",
        "Policy": POLICY,
        "RedrivePolicy": redrive_policy(dead, 4),
        "RedriveAllowPolicy": '{"redrivePermission":"denyAll"}',
    }
    queue = sqs.create(new_name(fifo=True), attributes)
    assert {name: queue.attributes()[name] for name in attributes} == attributes
    assert sqs.create(queue.name, attributes).url == queue.url
