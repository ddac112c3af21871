"""SQS in the words tests use: queues that know their URL, and refusals compared whole."""

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.services.clients import Client, OpenCall, Protocol, begin, sdk
from tests.services.server import Server

ACCOUNT = "000000000000"
REGION = "us-east-1"
DAY = 86_400

Message = dict[str, Any]

_PREFIX = "AWS.SimpleQueueService."
SHAPES = {  # the errors whose shape is not called after their query code
    f"{_PREFIX}NonExistentQueue": "QueueDoesNotExist",
    "QueueAlreadyExists": "QueueNameExists",
    "InvalidParameterValue": "InvalidParameterValueException",
    "MissingParameter": "MissingRequiredParameterException",
    "AccessDenied": "AccessDeniedException",
    "InvalidClientTokenId": "UnrecognizedClientException",
    "MissingAuthenticationToken": "MissingAuthenticationTokenException",
    "SignatureDoesNotMatch": "InvalidSignatureException",
    "ServiceUnavailable": "ServiceUnavailableException",
    "KMS.AccessDeniedException": "KmsAccessDenied",
    "KMS.DisabledException": "KmsDisabled",
    "KMS.InvalidStateException": "KmsInvalidState",
    "KMS.NotFoundException": "KmsNotFound",
    "KMS.ThrottlingException": "KmsThrottled",
}

_numbers = itertools.count(1)


def new_name(*, fifo: bool = False) -> str:
    """A queue name that no other test has."""
    return f"q{next(_numbers)}-{os.getpid()}{'.fifo' if fifo else ''}"


# Codes whose shape another service names by a rule of its own.
_OF_OTHER_SERVICES = {"InvalidParameterCombination", "InvalidAction", "ValidationError"}


@contextlib.contextmanager
def refused(code: str, message: str | None = None, status: int = 400) -> Iterator[dict[str, Any]]:
    """The block's call must be refused with this code (the query one), exactly this text, and this status.

    Yields:
        The error, filled in when the block has ended.
    """
    found: dict[str, Any] = {}
    with pytest.raises(ClientError) as caught:
        yield found
    response: Any = caught.value.response
    error, answered = response["Error"], response["ResponseMetadata"]["HTTPStatusCode"]
    assert (error["Code"], answered) == (code, status), error
    shape = SHAPES.get(code, code.removeprefix(_PREFIX))
    # Over JSON it stands beside the query code.
    if "QueryErrorCode" in error and code not in _OF_OTHER_SERVICES:
        assert error["QueryErrorCode"] == shape
    found.update(error)
    if message is not None:
        assert error["Message"] == message


@dataclass
class Sqs:
    """SQS at a server, for one caller over one protocol."""

    server: Server
    protocol: Protocol = "json"
    account: str = ACCOUNT
    region: str = REGION

    @cached_property
    def client(self) -> Client:
        return _kept(self.server.url, self.protocol, self.account, self.region)

    def elsewhere(self, *, account: str | None = None, region: str | None = None) -> "Sqs":
        """The same server, for another caller or in another region."""
        return Sqs(self.server, self.protocol, account or self.account, region or self.region)

    def create(self, name: str, attributes: dict[str, str] | None = None, **params: Any) -> "Queue":
        given = {"Attributes": attributes} if attributes else {}
        return Queue(self, self.client.create_queue(QueueName=name, **given, **params)["QueueUrl"])

    def queue(self, **attributes: str) -> "Queue":
        return self.create(new_name(), attributes)

    def fifo(self, **attributes: str) -> "Queue":
        return self.create(new_name(fifo=True), {"FifoQueue": "true", **attributes})

    def with_dead_letters(
        self, attempts: int, *, fifo: bool = False, **attributes: str
    ) -> "tuple[Queue, Queue]":
        """A queue, and the queue its dead letters go to."""
        make = self.fifo if fifo else self.queue
        dead = make()
        return make(RedrivePolicy=redrive_policy(dead, attempts), **attributes), dead

    def urls(self, **params: Any) -> list[str]:
        urls: list[str] = self.client.list_queues(**params).get("QueueUrls", [])
        return urls


@dataclass(frozen=True)
class Queue:
    """One queue, as one caller sees it."""

    sqs: Sqs
    url: str

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def arn(self) -> str:
        return f"arn:aws:sqs:{self.sqs.region}:{self.url.split('/')[-2]}:{self.name}"

    def seen_by(self, sqs: Sqs) -> "Queue":
        return Queue(sqs, self.url)

    def call(self, operation: str, **params: Any) -> Any:
        return getattr(self.sqs.client, operation)(QueueUrl=self.url, **params)

    def begin(self, operation: str, **params: Any) -> OpenCall:
        """Send a call without waiting for its answer."""
        own = _new(self.sqs.server.url, self.sqs.protocol, self.sqs.account, self.sqs.region)
        return begin(self.sqs.server, own, operation, QueueUrl=self.url, **params)

    def send(self, body: str = "body", **params: Any) -> Any:
        return self.call("send_message", MessageBody=body, **params)

    def send_fifo(self, body: str, group: str = "g", key: str | None = None, **params: Any) -> Any:
        """Send to a FIFO queue; the body is the deduplication id where there is no other."""
        key = body if key is None else key
        return self.send(body, MessageGroupId=group, MessageDeduplicationId=key, **params)

    def send_batch(self, *entries: dict[str, Any]) -> Any:
        return self.call("send_message_batch", Entries=entries)

    def receive(self, number: int = 10, **params: Any) -> list[Message]:
        """Receive with everything there is to be shown."""
        shown = {"MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"], **params}
        answer = self.call("receive_message", MaxNumberOfMessages=number, **shown)
        messages: list[Message] = answer.get("Messages", [])
        return messages

    def one(self, **params: Any) -> Message:
        """Receive the one message that is there."""
        (message,) = self.receive(**params)
        return message

    def bodies(self, number: int = 10, **params: Any) -> list[str]:
        return [message["Body"] for message in self.receive(number, **params)]

    def delete(self, message: Message) -> None:
        self.call("delete_message", ReceiptHandle=message["ReceiptHandle"])

    def hide(self, message: Message, seconds: int) -> None:
        """Change the visibility timeout of a message in flight."""
        self.call(
            "change_message_visibility",
            ReceiptHandle=message["ReceiptHandle"],
            VisibilityTimeout=seconds,
        )

    def attributes(self, *names: str) -> dict[str, str]:
        answer = self.call("get_queue_attributes", AttributeNames=list(names or ("All",)))
        attributes: dict[str, str] = answer.get("Attributes", {})
        return attributes

    def set(self, **attributes: str) -> None:
        self.call("set_queue_attributes", Attributes=attributes)

    def counts(self) -> tuple[int, int, int]:
        """Return how many messages may be received, are in flight, and are delayed."""
        shown = self.attributes(*_COUNTED)
        visible, hidden, delayed = (int(shown[name]) for name in _COUNTED)
        return visible, hidden, delayed


_COUNTED = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


def redrive_policy(dead: Queue, attempts: object) -> str:
    count = f'"{attempts}"' if isinstance(attempts, str) else attempts
    return f'{{"deadLetterTargetArn":"{dead.arn}","maxReceiveCount":{count}}}'


def entries(*bodies: str, **each: Any) -> Sequence[dict[str, Any]]:
    """A batch's entries, with ids `0`, `1` and so on."""
    return [{"Id": str(number), "MessageBody": body, **each} for number, body in enumerate(bodies)]


def text(value: str, data_type: str = "String") -> dict[str, Any]:
    """A message attribute."""
    return {"DataType": data_type, "StringValue": value}


def binary(value: bytes, data_type: str = "Binary") -> dict[str, Any]:
    """A binary message attribute."""
    return {"DataType": data_type, "BinaryValue": value}


def _new(url: str, protocol: Protocol, account: str, region: str) -> Client:
    return sdk(url, protocol, key=(account, "secret"), region=region)


_kept = cache(_new)  # a client takes 10 ms to make
