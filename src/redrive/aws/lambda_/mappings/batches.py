"""Batches of messages: which a function gets, the event that it gets of them, and which its answer says have failed."""

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from redrive.aws.lambda_.documents.records import EventSourceMapping
from redrive.aws.wire.shapes import Structure
from redrive.model.delivery import Delivery
from redrive.model.filtering import FilterPolicyInvalid, FilterVerdict, Scope, Subject, read_policy

_BODY = "body"
EVENT_BYTES_MAX: Final = 6 * 1024 * 1024
# The order of a record's attributes, as recorded.
_ATTRIBUTES: Final = (
    *("ApproximateReceiveCount", "AWSTraceHeader", "SentTimestamp", "SequenceNumber", "MessageGroupId"),
    *("SenderId", "MessageDeduplicationId", "ApproximateFirstReceiveTimestamp", "DeadLetterQueueSourceArn"),
)
_EMPTY: Final = b'{"Records":[]}'


class MappingFilter:
    """Patterns, of which a record has to match one.

    A pattern for a JSON body and a body that is no JSON never match, nor the other way round.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        """Read patterns; raises ValueError if a pattern is not one."""
        try:
            self._policies = [read_policy(pattern, Scope.BODY) for pattern in patterns]
        except FilterPolicyInvalid as problem:
            raise ValueError(str(problem)) from None

    def matches(self, record: Mapping[str, Any]) -> bool:
        """True if one of the filters matches a record, or there are none."""
        if not self._policies:
            return True
        text = orjson.dumps({**record, _BODY: _read(record[_BODY])}).decode()
        subject = Subject({}, text)
        return any(policy.match(subject) is FilterVerdict.MATCHED for policy in self._policies)


def _read(body: str) -> object:
    """A body as patterns see it: JSON of an object or a list, or else the text."""
    try:
        document: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    return document if isinstance(document, dict | list) else body


@dataclass(frozen=True, slots=True)
class Item:
    """One message of a batch."""

    delivery: Delivery  # As it was claimed
    record: Mapping[str, Any]  # As the function sees it
    size: int  # Size of the record in JSON (bytes)

    @property
    def claim(self) -> tuple[int, int]:
        """The claim, to settle it by."""
        return self.delivery.seq, self.delivery.token or 0


def item_of(mapping: EventSourceMapping, delivery: Delivery, message: Structure) -> Item:
    """A claimed message, as SQS shows it to receivers, as an item of a batch; its members in the order recorded."""
    attributes = message.get("Attributes", {})
    record: dict[str, Any] = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": {name: attributes[name] for name in _ATTRIBUTES if name in attributes},
        "messageAttributes": {
            name: _attribute(value) for name, value in message.get("MessageAttributes", {}).items()
        },
    }
    if "MD5OfMessageAttributes" in message:
        record["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
    record |= {
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": mapping.queue_arn,
        "awsRegion": mapping.queue.region,
    }
    return Item(delivery, record, len(orjson.dumps(record)))


def _attribute(value: Mapping[str, Any]) -> dict[str, Any]:
    """A message's attribute as events of Lambda have it."""
    value_members = {"stringValue": value["StringValue"]} if "StringValue" in value else {}
    if "BinaryValue" in value:
        binary = value["BinaryValue"]
        value_members["binaryValue"] = binary if isinstance(binary, str) else _base64(binary)
    return {**value_members, "stringListValues": [], "binaryListValues": [], "dataType": value["DataType"]}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def split(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Items in their order, as many together as an event may hold."""
    together: list[Item] = []
    size = 0
    for item in items:
        if together and size + item.size > EVENT_BYTES_MAX - len(_EMPTY):
            yield together
            together, size = [], 0
        together.append(item)
        size += item.size + 1
    if together:
        yield together


def event_of(items: Sequence[Item]) -> bytes:
    """The event that a function gets."""
    return orjson.dumps({"Records": [item.record for item in items]})


def failed_of(answer: bytes, items: Sequence[Item]) -> Collection[str]:
    """The ids of the messages that an answer with partial failures says have failed; all of them if it is no such.

    "Reporting batch item failures": an empty answer, or one without failures, is a success; what cannot be read, or
    names a message that was not there, is a failure of all.
    """
    all_ids = [item.record["messageId"] for item in items]
    try:
        document = orjson.loads(answer) if answer else None
    except orjson.JSONDecodeError:
        return all_ids
    if document is None:
        return ()
    if not isinstance(document, dict):
        return all_ids
    failures = document.get("batchItemFailures")
    if not failures:
        return ()
    if not isinstance(failures, list):
        return all_ids
    failed_ids = [_identifier(each) for each in failures]
    return failed_ids if set(failed_ids) <= set(all_ids) else all_ids


def _identifier(failure: object) -> str:
    identifier = failure.get("itemIdentifier") if isinstance(failure, dict) else None
    return identifier if isinstance(identifier, str) else ""
