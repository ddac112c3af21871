"""The texts that SNS sends: notifications and confirmations, and the parts of them that are signed.

The order of the keys is the recorded one. Nothing here waits or signs: a signature is handed in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from redrive.aws.kit.messages import sequence_number
from redrive.aws.sns.notifications.published import Confirmation, PublishedMessage
from redrive.aws.sns.notifications.signing import UnsubscribeTokens

CONTENT_TYPE: Final = "text/plain; charset=UTF-8"
SUBSCRIBE: Final = "SubscriptionConfirmation"
UNSUBSCRIBE: Final = "UnsubscribeConfirmation"
_NOTIFICATION: Final = "Notification"

_EVERY_REQUEST: Final = {
    "User-Agent": "Amazon Simple Notification Service Agent",
    "Accept-Encoding": "gzip,deflate",
    "Connection": "Keep-Alive",
}
_ASKS: Final = {
    SUBSCRIBE: (
        "You have chosen to subscribe to the topic {topic}.\n"
        "To confirm the subscription, visit the SubscribeURL included in this message."
    ),
    UNSUBSCRIBE: (
        "You have chosen to deactivate subscription {subscription}.\n"
        "To cancel this operation and restore the subscription, visit the SubscribeURL included in this message."
    ),
}


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
    return {name: {"Type": declared, "Value": value} for name, (declared, value) in attributes.items()}


def signed_text(published: PublishedMessage, text: str) -> str:
    """The signed part of a notification."""
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
    return headers | _EVERY_REQUEST


# ---- confirmations -------------------------------------------------------------------------------------------


def confirmation_text(confirmation: Confirmation, links: Links, signature: str) -> str:
    """A confirmation in JSON."""
    document = {
        "Type": confirmation.kind,
        "MessageId": confirmation.id,
        "Token": confirmation.token,
        "TopicArn": confirmation.topic,
        "Message": ask(confirmation),
        "SubscribeURL": links.confirm(confirmation),
        "Timestamp": timestamp(confirmation.sent_at),
        "SignatureVersion": confirmation.version,
        "Signature": signature,
        "SigningCertURL": links.certificate,
    }
    return orjson.dumps(document).decode()


def ask(confirmation: Confirmation) -> str:
    """The question of a confirmation, its `Message`."""
    return _ASKS[confirmation.kind].format(topic=confirmation.topic, subscription=confirmation.subscription)


def signed_ask(confirmation: Confirmation, links: Links) -> str:
    """The signed part of a confirmation."""
    return _signed_text(
        {
            "Message": ask(confirmation),
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
    return headers | _EVERY_REQUEST


def timestamp(at: int) -> str:
    """A moment (ms) as SNS writes it: `2026-01-02T03:04:05.000Z`, always with milliseconds."""
    seconds, rest_ms = divmod(at, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()}.{rest_ms:03d}Z"


def _signed_text(fields: Mapping[str, str | None]) -> str:
    """Name and value of each field that is there, a line each, in byte order of the names."""
    return "".join(f"{name}\n{value}\n" for name, value in fields.items() if value is not None)
