"""Requests that were right once: every operation's, with values exchanged, bent, doubled and left out."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from redrive.aws.sqs.errors import PAGES
from tests.aws.wire.clients import Client
from tests.fuzz.spoiling import plain, spoilt, spoilt_forms
from tests.fuzz.world import DEAD, DEAD_ARN, FIFO, FIFO_HANDLE, HANDLE, STANDARD, TASK

_POLICY = json.dumps(
    {
        "Version": "2012-10-17",
        "Id": "p",
        "Statement": [
            {
                "Sid": "s",
                "Effect": "Deny",
                "Principal": {"AWS": ["111111111111", "*"], "Service": "sns.amazonaws.com"},
                "Action": ["sqs:SendMessage", "sqs:*"],
                "Resource": "*",
                "Condition": {"StringLike": {"aws:SourceArn": ["arn:aws:sns:*:*:t", "*"]}},
            }
        ],
    }
)
_ATTRIBUTES = {
    "DelaySeconds": "1",
    "MaximumMessageSize": "2048",
    "MessageRetentionPeriod": "60",
    "ReceiveMessageWaitTimeSeconds": "1",
    "VisibilityTimeout": "1",
    "Policy": _POLICY,
    "RedrivePolicy": json.dumps({"deadLetterTargetArn": DEAD_ARN, "maxReceiveCount": 3}),
    "RedriveAllowPolicy": json.dumps(
        {"redrivePermission": "byQueue", "sourceQueueArns": ["arn:aws:sqs:us-east-1:000000000000:q"]}
    ),
    "KmsMasterKeyId": "key",
    "KmsDataKeyReusePeriodSeconds": "60",
    "SqsManagedSseEnabled": "false",
}
_FIFO_ATTRIBUTES = {
    "FifoQueue": "true",
    "ContentBasedDeduplication": "true",
    "DeduplicationScope": "messageGroup",
    "FifoThroughputLimit": "perMessageGroupId",
}
_MESSAGE_ATTRIBUTES = {
    "text": {"DataType": "String", "StringValue": "v"},
    "number": {"DataType": "Number.int", "StringValue": "1"},
    "bytes": {"DataType": "Binary", "BinaryValue": b"\0\xff"},
}
_TRACE = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}
_MESSAGE = {
    "MessageBody": "body",
    "MessageAttributes": _MESSAGE_ATTRIBUTES,
    "MessageSystemAttributes": _TRACE,
    "DelaySeconds": 1,
}
_FIFO_MESSAGE = {"MessageBody": "body", "MessageGroupId": "g", "MessageDeduplicationId": "d"}

RIGHT: list[tuple[str, dict[str, Any]]] = [
    ("AddPermission", {"QueueUrl": STANDARD, "Label": "l", "AWSAccountIds": ["1" * 12], "Actions": ["*"]}),
    ("CancelMessageMoveTask", {"TaskHandle": TASK}),
    ("ChangeMessageVisibility", {"QueueUrl": STANDARD, "ReceiptHandle": HANDLE, "VisibilityTimeout": 0}),
    (
        "ChangeMessageVisibilityBatch",
        {
            "QueueUrl": FIFO,
            "Entries": [{"Id": "1", "ReceiptHandle": FIFO_HANDLE, "VisibilityTimeout": 10}],
        },
    ),
    ("CreateQueue", {"QueueName": "new", "Attributes": _ATTRIBUTES, "tags": {"a": "b"}}),
    ("CreateQueue", {"QueueName": "new.fifo", "Attributes": _FIFO_ATTRIBUTES}),
    ("CreateQueue", {"QueueName": "standard", "Attributes": _ATTRIBUTES}),
    ("DeleteMessage", {"QueueUrl": STANDARD, "ReceiptHandle": HANDLE}),
    (
        "DeleteMessageBatch",
        {"QueueUrl": FIFO, "Entries": [{"Id": "1", "ReceiptHandle": FIFO_HANDLE}]},
    ),
    ("DeleteQueue", {"QueueUrl": DEAD}),
    ("GetQueueAttributes", {"QueueUrl": STANDARD, "AttributeNames": ["All", "Policy"]}),
    ("GetQueueUrl", {"QueueName": "standard", "QueueOwnerAWSAccountId": "000000000000"}),
    ("ListDeadLetterSourceQueues", {"QueueUrl": DEAD, "MaxResults": 1, "NextToken": ""}),
    ("ListMessageMoveTasks", {"SourceArn": DEAD_ARN, "MaxResults": 10}),
    ("ListQueueTags", {"QueueUrl": STANDARD}),
    ("ListQueues", {"QueueNamePrefix": "s", "MaxResults": 1, **PAGES.ending("ListQueues", "a")}),
    ("PurgeQueue", {"QueueUrl": STANDARD}),
    (
        "ReceiveMessage",
        {
            "QueueUrl": FIFO,
            "AttributeNames": ["All"],
            "MessageSystemAttributeNames": ["SenderId"],
            "MessageAttributeNames": ["a", "b.*", "All"],
            "MaxNumberOfMessages": 10,
            "VisibilityTimeout": 5,
            "WaitTimeSeconds": 1,
            "ReceiveRequestAttemptId": "again",
        },
    ),
    ("RemovePermission", {"QueueUrl": STANDARD, "Label": "l"}),
    ("SendMessage", {"QueueUrl": STANDARD, **_MESSAGE}),
    ("SendMessage", {"QueueUrl": FIFO, **_FIFO_MESSAGE}),
    (
        "SendMessageBatch",
        {"QueueUrl": STANDARD, "Entries": [{"Id": "1", **_MESSAGE}, {"Id": "2", **_MESSAGE}]},
    ),
    ("SendMessageBatch", {"QueueUrl": FIFO, "Entries": [{"Id": "1", **_FIFO_MESSAGE}]}),
    ("SetQueueAttributes", {"QueueUrl": STANDARD, "Attributes": _ATTRIBUTES}),
    ("SetQueueAttributes", {"QueueUrl": FIFO, "Attributes": _FIFO_ATTRIBUTES}),
    ("StartMessageMoveTask", {"SourceArn": DEAD_ARN, "DestinationArn": DEAD_ARN.replace("dead", "standard")}),
    ("TagQueue", {"QueueUrl": STANDARD, "Tags": {"a": "b"}}),
    ("UntagQueue", {"QueueUrl": STANDARD, "TagKeys": ["a"]}),
]


@dataclass(frozen=True, slots=True)
class Odd:
    """One request: its headers' part, its query string and its body, with stand-ins for handles in them."""

    operation: str
    target: bool
    query: bytes
    body: bytes
    path: str = "/"


# ---- JSON --------------------------------------------------------------------------------------------------------


@st.composite
def json_requests(draw: st.DrawFn) -> Odd:
    """A JSON request of any operation, with up to three of its values spoilt."""
    operation, right = draw(st.sampled_from(RIGHT))
    document = plain(right)
    for _ in range(draw(st.integers(0, 3))):
        document = spoilt(draw, document)
    body = json.dumps(document, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")
    return Odd(operation, target=True, query=b"", body=body, path=draw(_PATHS))


_PATHS = st.sampled_from(["/", "/", "/", "/000000000000/standard", "/_aws/sqs/messages"])


# ---- Query -------------------------------------------------------------------------------------------------------

_QUERY = Client("sqs", "query")


@st.composite
def query_requests(draw: st.DrawFn) -> Odd:
    """A Query request of any operation, with up to three of its fields spoilt."""
    operation, right = draw(st.sampled_from(RIGHT))
    form = draw(spoilt_forms(_QUERY.request(operation, right).body))
    in_body = draw(st.booleans())
    return Odd(
        operation,
        target=False,
        query=b"" if in_body else form,
        body=form if in_body else b"",
        path=draw(_PATHS),
    )


# ---- anything ----------------------------------------------------------------------------------------------------


@st.composite
def raw_requests(draw: st.DrawFn) -> Odd:
    """Bytes that mean nothing, addressed to an operation."""
    operation, _ = draw(st.sampled_from(RIGHT))
    return Odd(operation, target=draw(st.booleans()), query=b"", body=draw(st.binary(max_size=200)))


def requests() -> st.SearchStrategy[Odd]:
    """Any of them."""
    return st.one_of(json_requests(), query_requests(), raw_requests())
