"""Typed messages: attributes, samples and JSON lines of the forms that send and publish, as parameters of calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from redrive.console import json_text
from redrive.console.visit import Unusable, Visit
from redrive.model.topic import Attribute

ATTRIBUTE_ROWS: Final = 4
TYPES: Final = ("String", "Number", "Binary")
LINES_MAX: Final = 1000
_LINES_WITH_BLANKS_MAX: Final = 10 * LINES_MAX
LINES_BYTES_MAX: Final = 1 << 20
BATCH: Final = 10  # entries that one call of SQS takes
_MEMBERS: Final = ("body", "attributes", "group", "deduplication", "delay")

#: Events as services send them, for a body or a function's test, by the name of who sends them.
SAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "order": {"order": 7001, "customer": "c-301", "total": "203.90", "currency": "EUR"},
    "SQS": {
        "Records": [
            {
                "messageId": "6f1c2a9e-41d7-4be0-9c2f-0d9be671c04f",
                "receiptHandle": "handle",
                "body": '{"order": 7001}',
                "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1767225600000"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:orders",
                "awsRegion": "us-east-1",
            }
        ]
    },
    "SNS": {
        "Records": [
            {
                "EventSource": "aws:sns",
                "EventVersion": "1.0",
                "EventSubscriptionArn": "arn:aws:sns:us-east-1:000000000000:Rentals:6f1c",
                "Sns": {
                    "Type": "Notification",
                    "MessageId": "6f1c2a9e-41d7-4be0-9c2f-0d9be671c04f",
                    "TopicArn": "arn:aws:sns:us-east-1:000000000000:Rentals",
                    "Subject": "An order",
                    "Message": '{"order": 7001}',
                    "Timestamp": "2026-01-01T00:00:00.000Z",
                    "MessageAttributes": {},
                },
            }
        ]
    },
    "S3": {
        "Records": [
            {
                "eventVersion": "2.1",
                "eventSource": "aws:s3",
                "awsRegion": "us-east-1",
                "eventTime": "2026-01-01T00:00:00.000Z",
                "eventName": "ObjectCreated:Put",
                "s3": {
                    "bucket": {"name": "orders", "arn": "arn:aws:s3:::orders"},
                    "object": {"key": "2026/7001.json", "size": 1024, "eTag": "0123456789abcdef"},
                },
            }
        ]
    },
    "API Gateway": {
        "version": "2.0",
        "routeKey": "POST /orders",
        "rawPath": "/orders",
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": {"http": {"method": "POST", "path": "/orders", "sourceIp": "127.0.0.1"}},
        "body": '{"order": 7001}',
        "isBase64Encoded": False,
    },
}


def sample_text(name: str) -> str:
    """The sample of that name as indented JSON; empty: there is none."""
    sample = SAMPLES.get(name)
    return "" if sample is None else orjson.dumps(sample, option=orjson.OPT_INDENT_2).decode()


def attribute_rows(visit: Visit) -> list[tuple[str, str, str]]:
    """The rows of the form: name, type and value of each attribute, and empty ones."""
    columns = [visit.form.get(f"attribute-{part}", ()) for part in ("name", "type", "value")]
    rows = list(zip(*columns, strict=False))
    return [*rows, *[("", TYPES[0], "")] * (ATTRIBUTE_ROWS - len(rows))]


def typed_attributes(visit: Visit) -> dict[str, Any]:
    """The attributes of the form's rows that have a name, as SQS and SNS take them."""
    return {
        name.strip(): _attribute(kind, value) for name, kind, value in attribute_rows(visit) if name.strip()
    }


def _attribute(kind: str, value: str) -> dict[str, Any]:
    data: dict[str, Any] = {"StringValue": value}
    if kind == "Binary":
        data = {"BinaryValue": value.encode("utf-8", "surrogatepass")}
    return {"DataType": kind if kind in TYPES else TYPES[0], **data}


def typed_body(visit: Visit) -> str:
    """The body of the form.

    Raises:
        Unusable: There is none, or it is no JSON though the form says that it is.
    """
    body = visit.parameter("body").replace("\r\n", "\n")
    if not body:
        raise Unusable("A message has a body.")
    if visit.parameter("format") == "json":
        try:
            json_text.check(body)
        except json_text.NotJsonError as error:
            raise Unusable(f"The body is not JSON: {error}.") from None
    return body


@dataclass(frozen=True, slots=True)
class Lines:
    """JSON lines, read."""

    entries: Sequence[Mapping[str, Any]]  # The messages, as entries of SendMessageBatch without ids
    problems: Sequence[tuple[int, str]]  # The lines that cannot be sent, each with its number and why


def read_lines(text: str) -> Lines:
    """The messages of JSON lines: each line is a body, or an object with `body` and other members of a message.

    Raises:
        Unusable: There are too many lines, or too many bytes.
    """
    if len(text.encode("utf-8", "surrogatepass")) > LINES_BYTES_MAX:
        raise Unusable("At most 1 MiB is sent at once.")
    if text.count("\n") > _LINES_WITH_BLANKS_MAX:
        raise Unusable(f"At most {LINES_MAX:,} lines are sent at once.")
    # Not `splitlines`: JSON lets other separators of lines stand in its texts.
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(numbered) > LINES_MAX:
        raise Unusable(f"At most {LINES_MAX:,} lines are sent at once.")
    entries, problems = [], []
    for number, line in numbered:
        try:
            entries.append(_entry(line))
        except (ValueError, TypeError, Unusable) as error:
            problems.append((number, str(error)))
    return Lines(entries, problems)


def _entry(line: str) -> dict[str, Any]:
    """The parameters of the message in a line, as SQS takes them; raises Unusable if a member is not one."""
    document = orjson.loads(line)
    if not isinstance(document, dict) or "body" not in document:
        return {"MessageBody": line.strip()}
    if unknown := sorted(set(document) - set(_MEMBERS)):
        raise Unusable(f"A message has no member {unknown[0]!r}: it has {', '.join(_MEMBERS)}.")
    body = document["body"]
    entry: dict[str, Any] = {"MessageBody": body if isinstance(body, str) else orjson.dumps(body).decode()}
    attributes = document.get("attributes", {})
    if not isinstance(attributes, dict):
        raise Unusable("Attributes are an object of texts and numbers.")
    if attributes:
        entry["MessageAttributes"] = {
            name: _attribute("String" if isinstance(value, str) else "Number", str(value))
            for name, value in attributes.items()
        }
    for member, name in (("group", "MessageGroupId"), ("deduplication", "MessageDeduplicationId")):
        if member in document:
            entry[name] = str(document[member])
    if "delay" in document:
        entry["DelaySeconds"] = int(document["delay"])
    return entry


def json_attributes(typed: dict[str, Any]) -> dict[str, Attribute]:
    """Message attributes from a typed JSON object: texts and numbers."""
    return {
        str(name): Attribute("Number" if isinstance(value, int | float) else "String", str(value))
        for name, value in typed.items()
        if not isinstance(value, bool) and isinstance(value, str | int | float)
    }
