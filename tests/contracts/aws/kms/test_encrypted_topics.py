"""Topics with a key, and topics that deliver into queues with one: the key policy of the dead-letter document."""

import itertools
import os
from typing import Any

import orjson
import pytest

from tests.contracts.aws.clients import client
from tests.contracts.aws.cloudwatch.client import Watch
from tests.contracts.aws.kms.keys import ACCOUNT, ROOT, allow, new_key, policy
from tests.contracts.aws.kms.stored import holds
from tests.contracts.aws.sns.client import Sns, Topic
from tests.contracts.aws.sqs.client import Queue, refused
from tests.services.clients import Client
from tests.services.server import Server

_numbers = itertools.count(1)
OWNER = allow({"AWS": ROOT}, "kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey*", Sid="use")
#: The statement as the document on durable dead-letter queues prints it.
GRANT_SNS = {
    "Sid": "GrantSnsAccessToKms",
    "Effect": "Allow",
    "Principal": {"Service": "sns.amazonaws.com"},
    "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
    "Resource": "*",
}
ROLE = f"arn:aws:iam::{ACCOUNT}:role/feedback"
LOGGED = {"SQSFailureFeedbackRoleArn": ROLE, "SQSSuccessFeedbackRoleArn": ROLE}


@pytest.fixture
def sns(server: Server) -> Sns:
    return Sns(server)


@pytest.fixture
def marked() -> str:
    """A text that no other test has: what was deleted stays in SQLite's file for a while."""
    return f"marked-{next(_numbers)}-{os.getpid()}"


def subscribed(topic: Topic, queue: Queue, dead: Queue | None = None, **attributes: str) -> None:
    redrive = (
        {} if dead is None else {"RedrivePolicy": orjson.dumps({"deadLetterTargetArn": dead.arn}).decode()}
    )
    topic.subscribe("sqs", queue.arn, RawMessageDelivery="true", **redrive, **attributes)


def delivery_log(server: Server, topic: Topic) -> list[Any]:
    group = f"sns/us-east-1/{ACCOUNT}/{topic.arn.rpartition(':')[2]}"
    logs = client(server.url, "logs", "json")
    found = []
    for name in (group, f"{group}/Failure"):
        try:
            events = logs.filter_log_events(logGroupName=name)["events"]
        except logs.exceptions.ResourceNotFoundException:
            continue
        found += [orjson.loads(event["message"]) for event in events]
    return found


def total(server: Server, topic: Topic, metric: str) -> float:
    sums = Watch(server).sums("AWS/SNS", metric, TopicName=topic.arn.rpartition(":")[2])
    return sum(sums)


def test_a_queue_with_a_key_takes_notifications_by_the_documents_policy(
    server: Server, sns: Sns, kms: Client, marked: str
) -> None:
    key = new_key(kms, Policy=policy(OWNER, GRANT_SNS))
    topic, dead = sns.topic(**LOGGED), sns.sqs.queue()
    queue = sns.sqs.queue(KmsMasterKeyId=key)
    subscribed(topic, queue, dead)
    topic.publish(marked)
    assert not holds(server, marked)
    assert (queue.bodies(), dead.bodies()) == ([marked], [])
    assert total(server, topic, "NumberOfNotificationsDelivered") == 1


@pytest.mark.parametrize(
    "statement",
    [
        {**GRANT_SNS, "Action": ["kms:Decrypt"]},
        {**GRANT_SNS, "Action": ["kms:GenerateDataKey*"]},
        {**GRANT_SNS, "Principal": {"Service": "events.amazonaws.com"}},
        {**GRANT_SNS, "Effect": "Deny"},
        {
            **GRANT_SNS,
            "Condition": {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:000000000000:other"}},
        },
    ],
    ids=["no data key", "no decryption", "another service", "denied", "another topic"],
)
def test_without_each_part_of_the_policy_the_notification_is_a_dead_letter_at_once(
    server: Server, sns: Sns, kms: Client, marked: str, statement: dict[str, Any]
) -> None:
    key = new_key(kms, Policy=policy(OWNER, statement))
    topic, dead = sns.topic(**LOGGED), sns.sqs.queue()
    queue = sns.sqs.queue(KmsMasterKeyId=key)
    subscribed(topic, queue, dead)
    topic.publish(marked)

    assert (queue.bodies(), dead.bodies()) == ([], [marked])
    (event,) = delivery_log(server, topic)
    assert (event["status"], event["delivery"]["statusCode"]) == ("FAILURE", 400)
    answered = orjson.loads(event["delivery"]["providerResponse"])
    assert answered["ErrorCode"] == "KMS.AccessDeniedException"
    assert answered["ErrorMessage"].startswith(
        "null (Service: AWSKMS; Status Code: 400; Error Code: AccessDenied"
    )
    assert total(server, topic, "NumberOfNotificationsFailed") == 1
    assert total(server, topic, "NumberOfNotificationsRedrivenToDlq") == 1


def test_a_dead_letter_queue_with_a_key_needs_the_policy_as_well(
    server: Server, sns: Sns, kms: Client, marked: str
) -> None:
    key = new_key(kms, Policy=policy(OWNER))
    topic, dead = sns.topic(**LOGGED), sns.sqs.queue(KmsMasterKeyId=key)
    gone = sns.sqs.queue()
    subscribed(topic, gone, dead)
    gone.call("delete_queue")
    topic.publish("lost")
    assert dead.bodies() == []
    assert total(server, topic, "NumberOfNotificationsFailedToRedriveToDlq") == 1
    kms.put_key_policy(KeyId=key, Policy=policy(OWNER, GRANT_SNS))
    topic.publish(marked)
    assert dead.bodies() == [marked]
    assert not holds(server, marked)


@pytest.mark.parametrize(
    ("break_key", "code"),
    [
        (lambda kms, key: kms.disable_key(KeyId=key), "KMS.DisabledException"),
        (lambda kms, key: kms.schedule_key_deletion(KeyId=key), "KMS.InvalidStateException"),
    ],
    ids=["disabled", "pending deletion"],
)
def test_a_key_that_cannot_be_used_makes_dead_letters_at_once(
    server: Server, sns: Sns, kms: Client, break_key: Any, code: str
) -> None:
    key = new_key(kms, Policy=policy(OWNER, GRANT_SNS))
    topic, dead = sns.topic(**LOGGED), sns.sqs.queue()
    subscribed(topic, sns.sqs.queue(KmsMasterKeyId=key), dead)
    break_key(kms, key)
    topic.publish("letter")
    assert dead.bodies() == ["letter"]
    (event,) = delivery_log(server, topic)
    assert orjson.loads(event["delivery"]["providerResponse"])["ErrorCode"] == code


def test_a_throttled_key_is_tried_again(server: Server, sns: Sns, kms: Client, marked: str) -> None:
    key = new_key(kms, Policy=policy(OWNER, GRANT_SNS))
    topic, dead = sns.topic(), sns.sqs.queue()
    queue = sns.sqs.queue(KmsMasterKeyId=key)
    subscribed(topic, queue, dead)
    fault = {"endpoint": key, "status": 429}
    assert server.ask("POST", "/_redrive/faults", orjson.dumps(fault))[0] == 200
    with refused("KMS.ThrottlingException"):
        queue.send("x")
    topic.publish(marked)
    server.advance(1)
    assert (queue.bodies(), dead.bodies()) == ([], [])
    server.ask("POST", "/_redrive/faults", orjson.dumps(fault | {"status": None}))
    server.advance(60)
    assert (queue.bodies(), dead.bodies()) == ([marked], [])


# ---- topics with a key ------------------------------------------------------------------------------------------------


def test_a_publisher_needs_both_rights_to_a_topics_key(sns: Sns, kms: Client) -> None:
    for right in ("kms:GenerateDataKey", "kms:Decrypt"):
        topic = sns.topic(KmsMasterKeyId=new_key(kms, Policy=policy(allow({"AWS": ROOT}, right))))
        with refused("KMSAccessDenied"):
            topic.publish()
        answer = topic.call("publish_batch", PublishBatchRequestEntries=[{"Id": "a", "Message": "x"}])
        assert [(each["Code"], each["SenderFault"]) for each in answer["Failed"]] == [
            ("KMSAccessDenied", True)
        ]
    with refused("KMSNotFound"):
        sns.topic(KmsMasterKeyId="alias/none").publish()


def test_backlogs_of_a_topic_with_a_key_are_encrypted_and_end_as_each_queue_wants(
    server: Server, sns: Sns, kms: Client, marked: str
) -> None:
    """Fan-out to a plain queue, to one with a key, and to one that fails and whose dead-letter queue has a key."""
    key = new_key(kms, Policy=policy(OWNER, GRANT_SNS))
    topic = sns.topic(KmsMasterKeyId=key)
    plain, sealed, late = sns.sqs.queue(), sns.sqs.queue(KmsMasterKeyId=key), sns.sqs.queue()
    dead = sns.sqs.queue(KmsMasterKeyId=key)
    for queue in (plain, sealed):
        subscribed(topic, queue)
    subscribed(topic, late, dead, FilterPolicy='{"kind": ["marked"]}')
    fault = {"endpoint": late.arn, "status": 503}
    server.ask("POST", "/_redrive/faults", orjson.dumps(fault))
    kind = {"kind": {"DataType": "String", "StringValue": "marked"}}
    topic.publish(marked, MessageAttributes=kind)
    assert sealed.one()["MessageAttributes"] == kind
    (message,) = plain.receive()
    plain.delete(message)
    late.call("delete_queue")
    server.ask("POST", "/_redrive/faults", orjson.dumps(fault | {"status": None}))
    server.advance(60)
    letter = dead.one()
    assert (letter["Body"], letter["MessageAttributes"]) == (marked, kind)


def test_waiting_notifications_of_a_topic_with_a_key_are_not_in_the_store(
    server: Server, sns: Sns, kms: Client, marked: str
) -> None:
    key = new_key(kms, Policy=policy(OWNER, GRANT_SNS))
    topic, queue = sns.topic(KmsMasterKeyId=key), sns.sqs.queue()
    subscribed(topic, queue)
    fault = {"endpoint": queue.arn, "status": 503}
    server.ask("POST", "/_redrive/faults", orjson.dumps(fault))
    topic.publish(marked, Subject=f"subject-{marked}")
    assert not holds(server, marked)
    assert not holds(server, f"subject-{marked}")
    kms.disable_key(KeyId=key)
    server.advance(301)  # for as long the data key is remembered
    server.ask("POST", "/_redrive/faults", orjson.dumps(fault | {"status": None}))
    server.advance(60)
    assert (queue.bodies(), total(server, topic, "NumberOfNotificationsFailed")) == ([], 0)
    assert not holds(server, marked)
    kms.enable_key(KeyId=key)
    server.advance(3600)
    assert queue.bodies() == [marked]


def test_the_archive_of_a_topic_with_a_key_is_encrypted_and_replayed(
    server: Server, sns: Sns, kms: Client, marked: str
) -> None:
    key = new_key(kms, Policy=policy(OWNER, GRANT_SNS))
    topic = sns.topic(fifo=True, KmsMasterKeyId=key, ArchivePolicy='{"MessageRetentionPeriod": "7"}')
    topic.publish(marked, MessageGroupId="g", MessageDeduplicationId="1")
    assert not holds(server, marked)
    queue = sns.sqs.fifo(KmsMasterKeyId=key)
    replay = {"PointType": "Timestamp", "StartingPoint": "2020-01-01T00:00:00.000Z"}
    topic.subscribe("sqs", queue.arn, RawMessageDelivery="true", ReplayPolicy=orjson.dumps(replay).decode())
    server.advance(60)
    assert queue.bodies() == [marked]
    assert not holds(server, marked)
