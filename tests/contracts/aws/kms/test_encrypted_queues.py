"""Encryption at rest: what is in a queue with a key stands nowhere in the store, and is received as it was sent."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.contracts.aws.kms.__main__ import FullQueue
from tests.contracts.aws.kms.keys import DAY, ROOT, allow, new_key, policy
from tests.contracts.aws.kms.stored import data_keys, holds
from tests.contracts.aws.sqs.client import Queue, Sqs, redrive_policy, refused
from tests.services.clients import Client
from tests.services.server import Server, serving

MARKED = "the-marked-body-of-an-order"
SECRET = {"note": {"DataType": "String", "StringValue": "the-marked-attribute"}}


@pytest.fixture
def sqs(server: Server) -> Sqs:
    return Sqs(server)


def suffix(code: str) -> str:
    return f"(Service: AWSKMS; Status Code: 400; Error Code: {code}; Request ID: "


@pytest.mark.parametrize("mode", ["customer", "service", "root"])
def test_bodies_and_attributes_of_encrypted_queues_are_not_in_the_store(
    server: Server, sqs: Sqs, kms: Client, mode: str
) -> None:
    attributes = {
        "customer": {"KmsMasterKeyId": new_key(kms)},
        "service": {"KmsMasterKeyId": "alias/aws/sqs"},
        "root": {"SqsManagedSseEnabled": "true"},
    }[mode]
    queue, plain = sqs.queue(**attributes), sqs.queue(SqsManagedSseEnabled="false")
    body = f"{MARKED}-{mode}"
    queue.send(body, MessageAttributes=SECRET)
    plain.send(f"plain-{mode}")

    assert holds(server, f"plain-{mode}")
    assert not holds(server, body)
    assert not holds(server, SECRET["note"]["StringValue"])
    message = queue.one()
    assert (message["Body"], message["MessageAttributes"]["note"]["StringValue"]) == (
        body,
        SECRET["note"]["StringValue"],
    )
    queue.delete(message)


def test_a_batch_and_a_fifo_queue_with_a_key_behave_as_without(sqs: Sqs, kms: Client) -> None:
    queue = sqs.fifo(KmsMasterKeyId=new_key(kms), ContentBasedDeduplication="true")
    first = queue.send("order 1 ☂", MessageGroupId="g")
    again = queue.send("order 1 ☂", MessageGroupId="g")
    assert again["MessageId"] == first["MessageId"]
    queue.send_batch(
        {"Id": "a", "MessageBody": "order 2", "MessageGroupId": "g"},
        {"Id": "b", "MessageBody": "order 3", "MessageGroupId": "g"},
    )
    assert queue.bodies() == ["order 1 ☂", "order 2", "order 3"]


def test_a_dead_letter_keeps_its_seal_and_a_redrive_too(server: Server, sqs: Sqs, kms: Client) -> None:
    dead = sqs.queue(SqsManagedSseEnabled="false")
    queue = sqs.queue(KmsMasterKeyId=new_key(kms), RedrivePolicy=redrive_policy(dead, 1))
    queue.send(MARKED, MessageAttributes=SECRET)
    assert queue.bodies(VisibilityTimeout=0) == [MARKED]
    assert queue.bodies() == []
    assert not holds(server, MARKED)
    status, listed = server.ask("GET", f"/_redrive/dead-letters?queue={dead.name}")
    assert (status, MARKED.encode() in listed, b"(encrypted" in listed) == (200, False, True)
    letter = dead.one(VisibilityTimeout=0)
    assert (letter["Body"], letter["MessageAttributes"]) == (MARKED, SECRET)
    sqs.client.start_message_move_task(SourceArn=dead.arn, DestinationArn=queue.arn)
    server.advance(1)
    assert queue.bodies() == [MARKED]
    assert not holds(server, MARKED)


def test_peeking_opens_messages_by_right_alone(server: Server, sqs: Sqs, kms: Client) -> None:
    key = new_key(kms)
    queue = sqs.queue(KmsMasterKeyId=key)
    queue.send(MARKED)
    assert peeked(queue) == [MARKED]
    kms.put_key_policy(KeyId=key, Policy=policy())
    server.advance(301)
    assert peeked(queue) == ["(encrypted: its key cannot be used, or not by you)"]


def peeked(queue: Queue) -> list[str]:
    path = f"/_aws/sqs/messages?QueueUrl={queue.url}"
    status, body = queue.sqs.server.ask("GET", path, headers={"accept": "application/json"})
    assert status == 200, body
    shown: Any = orjson.loads(body)["ReceiveMessageResponse"]["ReceiveMessageResult"]["Message"]
    return [message["Body"] for message in (shown if isinstance(shown, list) else [shown])]


# ---- rights and states -----------------------------------------------------------------------------------------------


def test_a_key_that_does_not_exist_is_taken_and_refuses_messages(sqs: Sqs) -> None:
    queue = sqs.queue(KmsMasterKeyId="testKeyId")
    with refused("KMS.NotFoundException") as error:
        queue.send()
    assert error["Message"].startswith(f"Invalid keyId 'testKeyId' {suffix('NotFoundException')}")
    answer = queue.send_batch({"Id": "a", "MessageBody": "x"})
    assert [(each["Id"], each["Code"], each["SenderFault"]) for each in answer["Failed"]] == [
        ("a", "KMS.NotFoundException", True)
    ]
    assert queue.bodies() == []


@pytest.mark.parametrize("missing", ["kms:GenerateDataKey", "kms:Decrypt"])
def test_a_sender_needs_both_rights_and_a_receiver_one(sqs: Sqs, kms: Client, missing: str) -> None:
    rights = {"kms:GenerateDataKey", "kms:Decrypt"}
    key = new_key(kms, Policy=policy(allow({"AWS": ROOT}, *sorted(rights - {missing}))))
    queue = sqs.queue(KmsMasterKeyId=key)
    with refused("KMS.AccessDeniedException") as error:
        queue.send()
    assert error["Message"].startswith(
        f"User: {ROOT} is not authorized to perform: {missing} on resource: {key} because no resource-based policy"
        f" allows the {missing} action {suffix('AccessDeniedException')}"
    )
    assert queue.bodies() == []  # nothing was stored, and of nothing there is nothing to read
    kms.put_key_policy(KeyId=key, Policy=policy(allow({"AWS": ROOT}, *sorted(rights))))
    queue.send("now")
    kms.put_key_policy(KeyId=key, Policy=policy(allow({"AWS": ROOT}, "kms:GenerateDataKey")))
    with refused("KMS.AccessDeniedException"):
        queue.receive()


def test_a_disabled_key_refuses_sends_at_once_and_hides_nothing(sqs: Sqs, kms: Client) -> None:
    key = new_key(kms)
    queue = sqs.queue(KmsMasterKeyId=key, KmsDataKeyReusePeriodSeconds="86400")
    queue.send("before")
    kms.disable_key(KeyId=key)
    for call in (queue.send, queue.receive):
        with refused("KMS.DisabledException") as error:
            call()
        assert error["Message"].startswith(f"{key} is disabled. {suffix('DisabledException')}")
    kms.enable_key(KeyId=key)
    messages = queue.receive()
    assert [(each["Body"], each["Attributes"]["ApproximateReceiveCount"]) for each in messages] == [
        ("before", "1")
    ]


def test_messages_are_readable_after_rotations_and_not_after_the_keys_deletion(
    server: Server, sqs: Sqs, kms: Client
) -> None:
    key = new_key(kms)
    queue = sqs.queue(KmsMasterKeyId=key)
    for number in range(3):
        queue.send(f"order {number}")
        kms.rotate_key_on_demand(KeyId=key)
        server.advance(301)
    assert queue.bodies(VisibilityTimeout=0) == ["order 0", "order 1", "order 2"]
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    server.advance(301)
    with refused("KMS.InvalidStateException"):
        queue.receive()
    queue.call("set_queue_attributes", Attributes={"MessageRetentionPeriod": str(14 * DAY)})
    server.advance(7 * DAY)
    for call in (queue.send, queue.receive):
        with refused("KMS.NotFoundException"):
            call()
    queue.call("set_queue_attributes", Attributes={"KmsMasterKeyId": ""})
    queue.send("plain again")
    assert queue.bodies() == ["plain again"]


def test_each_data_key_serves_for_the_reuse_period(server: Server, sqs: Sqs, kms: Client) -> None:
    key = new_key(kms)
    queue = sqs.queue(KmsMasterKeyId=key, KmsDataKeyReusePeriodSeconds="60")
    queue.send("a")
    kms.rotate_key_on_demand(KeyId=key)
    queue.send("b")
    server.advance(60)
    queue.send("c")
    assert len(data_keys(server, key)) == 2


def test_a_full_queue_outlives_rotations_and_not_its_keys_deletion(tmp_path: Path) -> None:
    """In small; `python -m tests.contracts.aws.kms` is the whole proof."""
    with serving(f"sqlite:///{tmp_path}/redrive.db", "--clock", "simulated", directory=tmp_path) as server:
        assert FullQueue(server, 60).steps()
