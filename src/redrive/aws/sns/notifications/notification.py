"""The texts that SNS sends: notifications and confirmations, and the parts of them that are signed.

The order of the keys is the recorded one. Nothing here waits or signs: a signature is handed in.

A delivery's headers keep the message beside its text, as JSON with short names:

    {"envelope":"sns",
     "id": "…",              the message's id, the same for all subscribers
     "topic": "arn:…",
     "sent_at": 1767225600000,   when it was published (ms)
     "version": "1",         of its signature
     "subject": "…",         where one was given; so are the two below
     "attributes": {"name": ["String", "value"]},   a binary value in base 64
     "trace": "Root=…"}      X-Amzn-Trace-Id of the publisher

is the envelope, the same for all subscribers and written once for each publication. Each subscriber's delivery has
`"subscription": "arn:…"` and `"raw": true` before it, and the engine puts `"sequence": 17` before those when the
topic is a FIFO one. `attributes` and `trace` are what SQS keeps beside a message, under the names it has for them.

A message about a subscription itself, asking its endpoint whether it agrees, has `"envelope":"sns-confirmation"`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Final, Self
from urllib.parse import urlsplit

import orjson

from redrive.access.secret import InstallationSecret
from redrive.aws.kit.messages import sequence_number

ENVELOPE: Final = "sns"
CONFIRMATION_ENVELOPE: Final = "sns-confirmation"
_CONFIRMATION: Final = b'{"envelope":"%b"' % CONFIRMATION_ENVELOPE.encode()


def envelope(
    message_id: str,
    topic: str,
    sent_at: int,
    version: str,
    subject: str | None = None,
    attributes: Mapping[str, tuple[str, str]] | None = None,
    trace: str | None = None,
) -> bytes:
    """The headers that all subscribers share. Each publication calls it: single values cost less than an object."""
    headers: dict[str, Any] = {
        "envelope": ENVELOPE,
        "id": message_id,
        "topic": topic,
        "sent_at": sent_at,
        "version": version,
    }
    if subject is not None:
        headers["subject"] = subject
    if attributes:
        headers["attributes"] = attributes
    if trace is not None:
        headers["trace"] = trace
    return orjson.dumps(headers)


@dataclass(slots=True)  # frozen, it would take four times as long to make, and each publication makes one
class PublishedMessage:
    """A message as one subscriber gets it, without its text; see the module for its fields."""

    id: str
    topic: str
    sent_at: int
    version: str = "1"
    subject: str | None = None
    attributes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    trace: str | None = None
    sequence: int | None = None  # Its sequence number in a FIFO topic; None for any other topic
    subscription: str = ""  # The subscriber's ARN; empty in what all share
    raw: bool = False  # The subscriber wants the text alone

    @property
    def is_signed(self) -> bool:
        """True if the notification of it has a signature."""
        return not self.raw and self.sequence is None

    def envelope(self) -> bytes:
        """The headers that all subscribers share."""
        return envelope(
            self.id, self.topic, self.sent_at, self.version, self.subject, self.attributes, self.trace
        )

    @classmethod
    def unpack(cls, headers: bytes) -> Self:
        """Read the headers of a delivery, or an envelope."""
        header_document = orjson.loads(headers)
        attributes = header_document.get("attributes")
        return cls(
            id=header_document["id"],
            topic=header_document["topic"],
            sent_at=header_document["sent_at"],
            version=header_document["version"],
            subject=header_document.get("subject"),
            attributes={name: (data_type, value) for name, (data_type, value) in attributes.items()}
            if attributes
            else {},
            trace=header_document.get("trace"),
            sequence=header_document.get("sequence"),
            subscription=header_document.get("subscription", ""),
            raw=header_document.get("raw", False),
        )


def address(envelope: bytes, subscription: str, *, raw: bool) -> bytes:
    """An envelope made one subscriber's: the headers of a delivery, without writing the envelope again."""
    return opening(subscription, raw=raw) + envelope[1:]


def opening(subscription: str, *, raw: bool) -> bytes:
    """The beginning that `address` puts in the place of an envelope's first character."""
    return b'{"subscription":%b,"raw":%b,' % (orjson.dumps(subscription), b"true" if raw else b"false")


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A message that asks an endpoint whether it wants what it gets, or no longer gets."""

    kind: str  # `SubscriptionConfirmation` or `UnsubscribeConfirmation`
    id: str  # The message's id
    topic: str  # ARN
    subscription: str  # ARN
    token: str  # Token that the endpoint confirms with
    sent_at: int  # ms
    version: str = "1"  # Signature version

    def pack(self) -> bytes:
        """The headers of its delivery, without the body."""
        return orjson.dumps({"envelope": CONFIRMATION_ENVELOPE, **asdict(self)})

    @classmethod
    def unpack(cls, headers: bytes) -> Self:
        """Read what `pack` wrote."""
        header_document = orjson.loads(headers)
        del header_document["envelope"]
        return cls(**header_document)


def is_confirmation(headers: bytes) -> bool:
    """Returns whether headers are a confirmation's; else they are a message's."""
    return headers.startswith(_CONFIRMATION)


CONTENT_TYPE: Final = "text/plain; charset=UTF-8"
SUBSCRIBE: Final = "SubscriptionConfirmation"
UNSUBSCRIBE: Final = "UnsubscribeConfirmation"
_NOTIFICATION: Final = "Notification"

_COMMON_HEADERS: Final = {
    "User-Agent": "Amazon Simple Notification Service Agent",
    "Accept-Encoding": "gzip,deflate",
    "Connection": "Keep-Alive",
}
_TEXTS: Final = {
    SUBSCRIBE: (
        "You have chosen to subscribe to the topic {topic}.\n"
        "To confirm the subscription, visit the SubscribeURL included in this message."
    ),
    UNSUBSCRIBE: (
        "You have chosen to deactivate subscription {subscription}.\n"
        "To cancel this operation and restore the subscription, visit the SubscribeURL included in this message."
    ),
}


_PURPOSE: Final = "unsubscribe links"


class UnsubscribeTokens:
    """Tokens of links to unsubscribe; nothing of them is stored.

    A subscription's ARN proves nothing: it stands in lists, in logs and in every message. A link's token proves that this
    server sent it.
    """

    def __init__(self, secret: InstallationSecret) -> None:
        self._secret = secret
        # Each notification of a subscription has it, and making it takes 8 us.
        self._token = lru_cache(maxsize=1_024)(partial(secret.tag, _PURPOSE))

    def token(self, subscription: str) -> str:
        """The token for a subscription's ARN."""
        return self._token(subscription)

    def proves(self, subscription: str, token: str) -> bool:
        """True if a token is that ARN's."""
        return self._secret.is_tag(_PURPOSE, subscription, token)


@dataclass(frozen=True, slots=True)
class Links:
    """The URLs that messages carry."""

    base_url: str  # Where subscribers reach this server, without a slash at the end
    certificate_path: str  # Path of the certificate that verifies signatures
    tokens: UnsubscribeTokens  # Tokens of unsubscribe links

    @property
    def certificate(self) -> str:
        """SigningCertURL."""
        return f"{self.base_url}{self.certificate_path}"

    @property
    def host(self) -> str:
        """The host's name alone."""
        return urlsplit(self.base_url).hostname or "localhost"

    def unsubscribe(self, subscription: str) -> str:
        """UnsubscribeURL, for the subscription's ARN."""
        token = self.tokens.token(subscription)
        return f"{self.base_url}/?Action=Unsubscribe&SubscriptionArn={subscription}&Token={token}"

    def confirm(self, confirmation: Confirmation) -> str:
        """SubscribeURL."""
        query = f"Action=ConfirmSubscription&TopicArn={confirmation.topic}&Token={confirmation.token}"
        return f"{self.base_url}/?{query}"


# ---- notifications -------------------------------------------------------------------------------------------


def notification(
    published: PublishedMessage, text: str, links: Links, signature: str | None, *, replayed: bool = False
) -> str:
    """A notification in JSON, for every protocol but Lambda and Firehose.

    Args:
        published: What is kept of the message.
        text: The message.
        links: The URLs in it.
        signature: In base 64; None on a FIFO topic, which signs nothing.
        replayed: It comes out of the topic's archive.
    """
    document: dict[str, Any] = {"Type": _NOTIFICATION, "MessageId": published.id}
    if published.sequence is not None:
        document["SequenceNumber"] = sequence_number(published.sequence)
    document["TopicArn"] = published.topic
    if published.subject is not None:
        document["Subject"] = published.subject
    document["Message"] = text
    document["Timestamp"] = timestamp(published.sent_at)
    if signature is not None:
        document["SignatureVersion"] = published.version
        document["Signature"] = signature
        document["SigningCertURL"] = links.certificate
    document["UnsubscribeURL"] = links.unsubscribe(published.subscription)
    if published.attributes:
        document["MessageAttributes"] = message_attributes(published.attributes)
    if replayed:
        document["Replayed"] = True
    return orjson.dumps(document).decode()


def message_attributes(attributes: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, str]]:
    """Attributes as a notification shows them; a binary value in base 64."""
    return {name: {"Type": data_type, "Value": value} for name, (data_type, value) in attributes.items()}


def signed_text(published: PublishedMessage, text: str) -> str:
    """The text that is signed of a notification: the names and values of its members."""
    return _signed_text(
        {
            "Message": text,
            "MessageId": published.id,
            "Subject": published.subject,
            "Timestamp": timestamp(published.sent_at),
            "TopicArn": published.topic,
            "Type": _NOTIFICATION,
        }
    )


def notification_headers(published: PublishedMessage) -> dict[str, str]:
    """The headers of a notification pushed over HTTP."""
    headers = {
        "x-amz-sns-message-type": _NOTIFICATION,
        "x-amz-sns-message-id": published.id,
        "x-amz-sns-topic-arn": published.topic,
        "x-amz-sns-subscription-arn": published.subscription,
    }
    if published.raw:
        headers["x-amz-sns-rawdelivery"] = "true"
    return headers | _COMMON_HEADERS


# ---- confirmations -------------------------------------------------------------------------------------------


def confirmation_text(confirmation: Confirmation, links: Links, signature: str) -> str:
    """The JSON document that asks an endpoint to confirm that a subscription begins, or has ended."""
    document = {
        "Type": confirmation.kind,
        "MessageId": confirmation.id,
        "Token": confirmation.token,
        "TopicArn": confirmation.topic,
        "Message": question(confirmation),
        "SubscribeURL": links.confirm(confirmation),
        "Timestamp": timestamp(confirmation.sent_at),
        "SignatureVersion": confirmation.version,
        "Signature": signature,
        "SigningCertURL": links.certificate,
    }
    return orjson.dumps(document).decode()


def question(confirmation: Confirmation) -> str:
    """The question of a confirmation, its `Message`."""
    return _TEXTS[confirmation.kind].format(topic=confirmation.topic, subscription=confirmation.subscription)


def signed_question(confirmation: Confirmation, links: Links) -> str:
    """The text that is signed of a confirmation."""
    return _signed_text(
        {
            "Message": question(confirmation),
            "MessageId": confirmation.id,
            "SubscribeURL": links.confirm(confirmation),
            "Timestamp": timestamp(confirmation.sent_at),
            "Token": confirmation.token,
            "TopicArn": confirmation.topic,
            "Type": confirmation.kind,
        }
    )


def confirmation_headers(confirmation: Confirmation) -> dict[str, str]:
    """The headers of a confirmation pushed over HTTP."""
    headers = {
        "x-amz-sns-message-type": confirmation.kind,
        "x-amz-sns-message-id": confirmation.id,
        "x-amz-sns-topic-arn": confirmation.topic,
    }
    if confirmation.kind == UNSUBSCRIBE:
        headers["x-amz-sns-subscription-arn"] = confirmation.subscription
    return headers | _COMMON_HEADERS


def timestamp(at: int) -> str:
    """A moment (ms) as SNS writes it: `2026-01-02T03:04:05.000Z`, always with milliseconds."""
    seconds, rest_ms = divmod(at, 1000)
    return f"{_second(seconds)}.{rest_ms:03d}Z"


@lru_cache(maxsize=64)  # a notification has it twice, and many are published in one second
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def _signed_text(fields: Mapping[str, str | None]) -> str:
    """Name and value of each field that is there, a line each, in byte order of the names."""
    return "".join(f"{name}\n{value}\n" for name, value in fields.items() if value is not None)
