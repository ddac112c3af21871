"""A message as a delivery's headers keep it, beside its text: JSON with short names.

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
from typing import Any, Final, Self

import orjson

ENVELOPE: Final = "sns"
CONFIRMATION_ENVELOPE: Final = "sns-confirmation"


def envelope(
    message_id: str,
    topic: str,
    sent_at: int,
    version: str,
    subject: str | None = None,
    attributes: Mapping[str, tuple[str, str]] | None = None,
    trace: str | None = None,
) -> bytes:
    """The headers that all subscribers share; written at each publication, so without a value in between."""
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

    def envelope(self) -> bytes:
        """The headers that all subscribers share."""
        return envelope(
            self.id, self.topic, self.sent_at, self.version, self.subject, self.attributes, self.trace
        )

    @classmethod
    def unpack(cls, headers: bytes) -> Self:
        """Read the headers of a delivery, or an envelope."""
        header_document = orjson.loads(headers)
        attributes = header_document.get("attributes", {})
        return cls(
            id=header_document["id"],
            topic=header_document["topic"],
            sent_at=header_document["sent_at"],
            version=header_document["version"],
            subject=header_document.get("subject"),
            attributes={name: (declared, value) for name, (declared, value) in attributes.items()},
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
    return headers.startswith(b'{"envelope":"%b"' % CONFIRMATION_ENVELOPE.encode())
