"""Requests that were right once: every operation's, with values exchanged, bent, doubled and left out."""

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

from hypothesis import strategies as st

from tests.fuzz.world import DEAD, DEAD_ARN, FIFO, FIFO_HANDLE, HANDLE, STANDARD, TASK
from tests.protocols.wire.clients import Client

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
    ("ListQueues", {"QueueNamePrefix": "s", "MaxResults": 1, "NextToken": "YQ=="}),
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

_NASTY_TEXTS = [
    "",
    " ",
    "\0",
    "\ud800",
    "\udfff\ud800",
    "\ufffe",
    "\u0660",
    "\u0130",
    "\U0010ffff",
    "a" * 3000,
    "-1",
    "9" * 30,
    "1e400",
    "NaN",
    "true",
    "None",
    "../..",
    "%00%ff",
    "/",
    "//",
    "'; --",
    "<&>]]>",
    "[[[[[",
    "{}",
    "[]",
    "null",
    '{"a":' * 200,
    "arn:aws:sqs:us-east-1:000000000000:",
    "arn:aws:sqs:::",
    "http://localhost/000000000000/",
    "eyJ0YXNrSWQiOm51bGx9",
]
TEXTS = st.sampled_from(_NASTY_TEXTS) | st.text(st.characters(), max_size=30)
_NUMBERS = st.integers(-(2**70), 2**70) | st.sampled_from(
    [0, -1, 2**31, -(2**31) - 1, 2**63, 2**64, 1.5, 1e308, float("inf")]
)
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)


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
    document = _plain(right)
    for _ in range(draw(st.integers(0, 3))):
        document = _spoilt(draw, document)
    body = json.dumps(document, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")
    return Odd(operation, target=True, query=b"", body=body, path=draw(_PATHS))


_PATHS = st.sampled_from(["/", "/", "/", "/000000000000/standard", "/_aws/sqs/messages"])


def _plain(value: Any) -> Any:
    """A copy, with bytes as JSON has them."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _spoilt(draw: st.DrawFn, document: Any) -> Any:
    places = list(_places(document))
    if not places:
        return draw(JUNK)
    holder, key = draw(st.sampled_from(places))
    match draw(st.sampled_from(["junk", "junk", "inside", "gone", "more", "wrapped"])):
        case "junk":
            holder[key] = draw(JUNK)
        case "inside":
            holder[key] = _spoilt_inside(draw, holder[key])
        case "gone":
            del holder[key]
        case "more" if isinstance(holder, dict):
            holder[draw(TEXTS)] = draw(JUNK)
        case "more":
            holder.extend(holder[:1] * draw(st.integers(1, 12)))
        case _:
            holder[key] = [holder[key]]
    return document


def _spoilt_inside(draw: st.DrawFn, value: Any) -> Any:
    """A document within a text, spoilt like any other; other texts get more letters."""
    if not isinstance(value, str):
        return draw(JUNK)
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return value + draw(TEXTS)
    return json.dumps(_spoilt(draw, document))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


# ---- Query -------------------------------------------------------------------------------------------------------

_QUERY = Client("sqs", "query")


@st.composite
def query_requests(draw: st.DrawFn) -> Odd:
    """A Query request of any operation, with up to three of its fields spoilt."""
    operation, right = draw(st.sampled_from(RIGHT))
    made = _QUERY.request(operation, right)
    fields = [tuple(field.split("=", 1)) for field in made.body.decode().split("&")]
    for _ in range(draw(st.integers(0, 3))):
        fields = draw(_spoilt_fields(fields))
    form = "&".join(f"{name}={value}" for name, value in fields).encode(errors="surrogatepass")
    in_body = draw(st.booleans())
    return Odd(
        operation,
        target=False,
        query=b"" if in_body else form,
        body=form if in_body else b"",
        path=draw(_PATHS),
    )


@st.composite
def _spoilt_fields(draw: st.DrawFn, fields: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    if not fields:
        return [(_quoted(draw(TEXTS)), _quoted(draw(TEXTS)))]
    at = draw(st.integers(0, len(fields) - 1))
    name, value = fields[at]
    exchanged = draw(
        st.sampled_from(
            [
                [],
                [(name, _quoted(draw(TEXTS)))],
                [(name, str(draw(_NUMBERS)))],
                [(name.replace("1", draw(_INDEXES)), value)],
                [(f"{name}.{draw(_INDEXES)}", value)],
                [(name, value), (name, _quoted(draw(TEXTS)))],
                [(f"{name}.1.{_quoted(draw(TEXTS))}", value)],
                [(name, value + "%zz%c3%28")],
            ]
        )
    )
    return [*fields[:at], *exchanged, *fields[at + 1 :]]


_INDEXES = st.sampled_from(["0", "-1", "2", "1000000", "9" * 25, "x", "", "1.1", "\u0661"])


def _quoted(text: str) -> str:
    return quote_plus(text.encode(errors="surrogatepass"))


# ---- anything ----------------------------------------------------------------------------------------------------


@st.composite
def raw_requests(draw: st.DrawFn) -> Odd:
    """Bytes that mean nothing, addressed to an operation."""
    operation, _ = draw(st.sampled_from(RIGHT))
    return Odd(operation, target=draw(st.booleans()), query=b"", body=draw(st.binary(max_size=200)))


def requests() -> st.SearchStrategy[Odd]:
    """Any of them."""
    return st.one_of(json_requests(), query_requests(), raw_requests())
