"""A holder of a key makes the server work no more than its requests are worth, however they are put together.

Each of these once took seconds of the event loop, or memory for good. What is measured is processor time, in plain calls
of the same caller: signed, of one queue that is looked for.
"""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.attack.conftest import ACCOUNT
from tests.attack.forging import FORM, JSON, Key, signed
from tests.attack.spending import Wire, resident_bytes, send, spent
from tests.services.server import Server

MIB = 1024 * 1024
#: A plain call takes 0.2 to 0.5 ms with its connection, reading 3 MiB and their digest 2 to 10; an attack took 2 to 36 s.
TIMES_PLAIN_MAX = 200
#: A mebibyte of the smallest values that CBOR has: 0.1 s, the most that a request that may be as long can cost.
TIMES_PLAIN_OF_VALUES_MAX = 1_500
TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:costly"

Make = Callable[["Holder"], Wire]


class Holder:
    """Somebody with a key."""

    def __init__(self, server: Server, key: Key) -> None:
        self.server = server
        self.key = key
        self.queue = f"{server.url}/{ACCOUNT}/costly"

    def wire(self, service: str, body: bytes, headers: dict[str, str]) -> Wire:
        draft = signed(self.server, self.key, body, headers, service=service)
        return Wire(draft.method, draft.target, dict(draft.headers), draft.body)

    def sqs(self, operation: str, body: Any) -> Wire:
        """A call by JSON, of a document or of bytes."""
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.wire("sqs", text, {"X-Amz-Target": f"AmazonSQS.{operation}", "Content-Type": JSON})

    def query(self, service: str, body: bytes | dict[str, str]) -> Wire:
        """A call by Query."""
        text = body if isinstance(body, bytes) else urlencode(body).encode()
        return self.wire(service, text, {"Content-Type": FORM})

    def sns(self, operation: str, **members: str) -> Wire:
        return self.query("sns", {"Action": operation, "Version": "2010-03-31", **members})

    def topic_attribute(self, name: str, value: str) -> Wire:
        return self.sns("SetTopicAttributes", TopicArn=TOPIC, AttributeName=name, AttributeValue=value)

    def policy(self, policy: str) -> Wire:
        return self.sqs("SetQueueAttributes", {"QueueUrl": self.queue, "Attributes": {"Policy": policy}})

    def cbor(self, body: bytes) -> Wire:
        draft = signed(
            self.server,
            self.key,
            body,
            {"smithy-protocol": "rpc-v2-cbor", "Content-Type": "application/cbor"},
            target="/service/GraniteServiceVersion20100801/operation/PutMetricData",
            service="monitoring",
        )
        return Wire(draft.method, draft.target, dict(draft.headers), draft.body)

    def logs(self, operation: str, document: Any) -> Wire:
        headers = {"X-Amz-Target": f"Logs_20140328.{operation}", "Content-Type": "application/x-amz-json-1.1"}
        return self.wire("logs", json.dumps(document).encode(), headers)


def statements(count: int, resource: str, action: str = "sqs:*") -> str:
    statement = {"Effect": "Allow", "Principal": "*", "Action": action, "Resource": resource}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement] * count})


def members(count: int, member: str) -> bytes:
    return f"[{','.join([member] * count)}]".encode()


def entries(h: Holder, listed: bytes) -> Wire:
    return h.sqs("SendMessageBatch", b'{"QueueUrl":"%s","Entries":%s}' % (h.queue.encode(), listed))


POLICIES: dict[str, Make] = {
    "a queue's policy of stars": lambda h: h.policy(statements(1, "*" * 900_000)),
    "a queue's policy of stars and letters": lambda h: h.policy(statements(1, "*a" * 450_000)),
    "a queue's policy of 8,000 statements": lambda h: h.policy(statements(8_000, "*")),
    "a topic's policy of stars": lambda h: h.topic_attribute("Policy", statements(1, "*" * 300_000, "sns:*")),
    "a topic's policy of 3,000 statements": lambda h: h.topic_attribute(
        "Policy", statements(3_000, "*", "sns:*")
    ),
    "a policy of nested brackets": lambda h: h.policy("[" * 900_000),
    "a delivery policy of brackets": lambda h: h.topic_attribute("DeliveryPolicy", "[" * 300_000),
    "a data protection policy of brackets": lambda h: h.sns(
        "PutDataProtectionPolicy", ResourceArn=TOPIC, DataProtectionPolicy='{"a":' * 100_000
    ),
    "a redrive policy of brackets": lambda h: h.sqs(
        "SetQueueAttributes", {"QueueUrl": h.queue, "Attributes": {"RedrivePolicy": "[" * 900_000}}
    ),
}
BODIES: dict[str, Make] = {
    "a batch of 250,000 entries": lambda h: entries(h, members(250_000, '{"Id":"a"}')),
    "a batch of lists": lambda h: entries(h, members(1_000_000, "[]")),
    "a batch of numbers": lambda h: entries(h, members(1_000_000, "1")),
    "a batch that is nested": lambda h: entries(h, members(1_500, "[" * 1_000 + "]" * 1_000)),
    "a batch of brackets that are not closed": lambda h: entries(h, b"[" * 3 * MIB),
    "brackets in texts": lambda h: entries(h, members(60_000, '"[[[[[[,,,,,,{{{{{{{"')),
    "100,000 attributes of a message": lambda h: h.sqs(
        "SendMessage",
        {
            "QueueUrl": h.queue,
            "MessageBody": "x",
            "MessageAttributes": {f"a{n}": {"DataType": "String"} for n in range(100_000)},
        },
    ),
    "200,000 attributes of a queue": lambda h: h.sqs(
        "SetQueueAttributes", {"QueueUrl": h.queue, "Attributes": {f"a{n}": "" for n in range(200_000)}}
    ),
    "200,000 tags": lambda h: h.sqs(
        "TagQueue", {"QueueUrl": h.queue, "Tags": {f"a{n}": "" for n in range(200_000)}}
    ),
    "a number of a million digits": lambda h: h.sqs(
        "ReceiveMessage", b'{"QueueUrl":"%s","WaitTimeSeconds":%s}' % (h.queue.encode(), b"9" * MIB)
    ),
    "escapes": lambda h: h.sqs("SendMessage", b'{"QueueUrl":"%s"}' % (rb"\u0041" * 500_000)),
    "a queue URL of 3 MB": lambda h: h.sqs("GetQueueAttributes", {"QueueUrl": "https://" + "q/" * 1_500_000}),
    "fields without end": lambda h: h.query("sqs", b"Action=ListQueues&" + b"a&" * 1_500_000),
    "fields of escapes": lambda h: h.query("sqs", b"Action=ListQueues&" + b"%41&" * 800_000),
    "names of dots": lambda h: h.query("sqs", b"Action=ListQueues&" + (b"." * 31 + b"=&") * 90_000),
    "a name of dots": lambda h: h.query("sqs", b"Action=SendMessage&" + b"a." * 1_500_000 + b"=1"),
    "a place in a list far away": lambda h: h.query(
        "sqs", b"Action=SendMessageBatch&SendMessageBatchRequestEntry.%s.Id=1" % (b"9" * 1_000)
    ),
    "SNS: fields of escapes": lambda h: h.query("sns", b"Action=Publish&" + b"%41&" * 250_000),
    "SNS: a batch of 30,000": lambda h: h.query(
        "sns",
        b"Action=PublishBatch&"
        + b"&".join(b"PublishBatchRequestEntries.member.%d.Id=a" % n for n in range(1, 20_000)),
    ),
    "SNS: an ARN of a mebibyte": lambda h: h.sns("GetTopicAttributes", TopicArn=TOPIC + ":" * 900_000),
    "CBOR: a list of lists": lambda h: h.cbor(b"\xa1\x6aMetricData" + b"\x9f" * 500_000),
    "CBOR: a text in pieces": lambda h: h.cbor(b"\xa1\x69Namespace\x7f" + b"\x61a" * 450_000 + b"\xff"),
    "CBOR: a list of a length that is not there": lambda h: h.cbor(
        b"\xa1\x6aMetricData\x9b\x00\x00\x00\xff\xff\xff\xff\xff"
    ),
    "logs: a pattern of stars": lambda h: h.logs(
        "FilterLogEvents", {"logGroupName": "costly", "filterPattern": "[" + "*a*," * 250 + "]"}
    ),
    "logs: a pattern of brackets": lambda h: h.logs(
        "FilterLogEvents", {"logGroupName": "costly", "filterPattern": "(" * 1_000}
    ),
}


@pytest.fixture(scope="module")
def holder(strict: Server, key: Key) -> Holder:
    holder = Holder(strict, key)
    for wire in (
        holder.sqs("CreateQueue", {"QueueName": "costly"}),
        holder.sns("CreateTopic", Name="costly"),
    ):
        assert send(strict, wire)[0] == 200
    return holder


@pytest.fixture(scope="module")
def plain_seconds(holder: Holder) -> float:
    plain = holder.sqs("GetQueueUrl", {"QueueName": "costly"})
    assert send(holder.server, plain)[0] == 200
    return spent(holder.server, lambda: send(holder.server, plain), 20)


@pytest.mark.parametrize("make", {**POLICIES, **BODIES}.values(), ids=[*POLICIES, *BODIES])
def test_a_request_costs_what_a_request_may(holder: Holder, plain_seconds: float, make: Make) -> None:
    wire = make(holder)
    status, answer = send(holder.server, wire)
    assert status == 0 or 400 <= status < 500, (status, answer[:200])
    seconds = spent(holder.server, lambda: send(holder.server, wire), 3)
    assert seconds / plain_seconds < TIMES_PLAIN_MAX


def test_a_mebibyte_of_empty_lists_costs_what_reading_them_takes(
    holder: Holder, plain_seconds: float
) -> None:
    wire = holder.cbor(b"\xa1\x6aMetricData\x9f" + b"\x80" * 900_000 + b"\xff")
    assert send(holder.server, wire)[0] == 400
    seconds = spent(holder.server, lambda: send(holder.server, wire), 3)
    assert seconds / plain_seconds < TIMES_PLAIN_OF_VALUES_MAX


def test_refused_requests_leave_no_memory_behind(holder: Holder) -> None:
    """40 policies of 8 MB were 670 MB for good, and 100 queue URLs 800 MB."""

    def ask(number: int) -> None:
        long = str(number) + "x" * 700_000
        send(holder.server, holder.policy(statements(1, long)))
        send(holder.server, holder.topic_attribute("Policy", statements(1, long, "sns:*")))
        send(holder.server, holder.sqs("GetQueueAttributes", {"QueueUrl": f"https://a/{ACCOUNT}/{long}"}))
        send(holder.server, holder.sns("GetTopicAttributes", TopicArn=f"{TOPIC}{long}"))
        send(holder.server, holder.sns("Subscribe", TopicArn=TOPIC, Protocol="sqs", Endpoint=long))

    for number in range(8):
        ask(number)
    before = resident_bytes(holder.server)
    for number in range(8, 40):
        ask(number)
    assert resident_bytes(holder.server) - before < 16 * MIB
