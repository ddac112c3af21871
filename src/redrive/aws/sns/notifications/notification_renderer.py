"""Renders messages for each kind of subscriber, addressed and signed: one signature for all subscribers of a message."""

import asyncio
import hashlib
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import orjson

from redrive.access.signing_pair import SigningPair
from redrive.aws.kit.messages import unpacked
from redrive.aws.sns.documents.destinations import PROTOCOLS, Form
from redrive.aws.sns.documents.subscription_attributes import ROLE
from redrive.aws.sns.notifications import notification
from redrive.aws.sns.notifications.notification import (
    CONTENT_TYPE,
    Confirmation,
    Links,
    PublishedMessage,
    is_confirmation,
)
from redrive.engine.ports import PushRequest
from redrive.model.delivery import Delivery, is_replayed
from redrive.model.topic import Subscription

_DIGESTS: Final = {"1": "sha1", "2": "sha256"}
_THREADS: Final = 2
# 344 characters each, 2 MiB with their keys; a fan-out takes a moment, not an hour.
_REMEMBERED_MAX: Final = 4096


class Signer:
    """Signs by PKCS #1 1.5, as SNS does.

    A signature is a matter of the text alone, so its digest is what it is remembered by: subscribers of one message
    share it, and one that gets another text (`MessageStructure=json`) gets its own.
    """

    def __init__(self, pair: SigningPair) -> None:
        self._pair = pair
        self._made: OrderedDict[bytes, str] = OrderedDict()
        self._under_way: dict[bytes, asyncio.Future[dict[bytes, str]]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="redrive-sign")

    def sign_now(self, text: str, version: str) -> str:
        """The signature in base 64; keeps its caller for about 0.2 ms when it has to be made.

        Args:
            text: What is signed.
            version: `1` for SHA-1, `2` for SHA-256.
        """
        digest = _digest(text, version)
        return self._remembered(digest) or self._remember(digest, self._sign(digest, version))

    async def sign(self, text: str, version: str) -> str:
        """The same in a thread, where OpenSSL works without holding up the interpreter."""
        digest = _digest(text, version)
        known = self._remembered(digest)
        if known is not None:
            return known
        making = self._under_way.get(digest) or self._begin({digest: version})
        return (await asyncio.shield(making))[digest]  # one who leaves takes it from nobody

    async def sign_together(self, texts: Sequence[tuple[str, str]]) -> list[str | None]:
        """The signatures of texts, each with its version; None of one that fails.

        A thread's turn costs the event loop some 60 us, so that each thread has one for all.
        """
        digests = [_digest(text, version) for text, version in texts]
        versions = {digest: version for digest, (_, version) in zip(digests, texts, strict=True)}
        to_make = [
            digest for digest in versions if digest not in self._made and digest not in self._under_way
        ]
        for share in (to_make[number::_THREADS] for number in range(_THREADS)):
            if share:
                self._begin({digest: versions[digest] for digest in share})
        making = {self._under_way[digest] for digest in versions if digest in self._under_way}
        if making:
            await asyncio.wait(making)
        return [self._remembered(digest) for digest in digests]

    def _begin(self, versions: Mapping[bytes, str]) -> "asyncio.Future[dict[bytes, str]]":
        """Sign digests in one turn of a thread."""
        making = asyncio.get_running_loop().run_in_executor(self._threads, self._sign_each, versions)
        for digest in versions:
            self._under_way[digest] = making
        making.add_done_callback(partial(self._end, versions))
        return making

    def _end(self, digests: Iterable[bytes], making: "asyncio.Future[dict[bytes, str]]") -> None:
        for digest in digests:
            del self._under_way[digest]
        if not making.cancelled() and making.exception() is None:
            for digest, signature in making.result().items():
                self._remember(digest, signature)

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _sign_each(self, versions: Mapping[bytes, str]) -> dict[bytes, str]:
        return {digest: self._sign(digest, version) for digest, version in versions.items()}

    def _sign(self, digest: bytes, version: str) -> str:
        return b64encode(self._pair.sign(digest, _DIGESTS[version])).decode()

    def _remembered(self, digest: bytes) -> str | None:
        signature = self._made.get(digest)
        if signature is not None:
            self._made.move_to_end(digest)
        return signature

    def _remember(self, digest: bytes, signature: str) -> str:
        self._made[digest] = signature
        if len(self._made) > _REMEMBERED_MAX:
            self._made.popitem(last=False)
        return signature


def _digest(text: str, version: str) -> bytes:
    """The digest that is signed; the two versions' differ in length, so it tells them apart as well."""
    return hashlib.new(_DIGESTS[version], text.encode(), usedforsecurity=False).digest()


# ---- the certificate that subscribers check notifications by ---------------------------------------------------------

_NAME_HEX: Final = 32
PATH_BEGINNING: Final = "/SimpleNotificationService-"


def certificate_path(pair: SigningPair) -> str:
    """The path: `/SimpleNotificationService-<32 hex digits of the certificate's own digest>.pem`."""
    return f"{PATH_BEGINNING}{hashlib.sha256(pair.pem).hexdigest()[:_NAME_HEX]}.pem"


# ---- rendering -------------------------------------------------------------------------------------------------------

Render: TypeAlias = Callable[[Subscription, Delivery], Awaitable[PushRequest]]
"""Makes the request of a delivery."""

# "no answer within 15 seconds" is a failed attempt (SNS, message delivery retries).
TIMEOUT_MS: Final = 15_000
_JSON: Final = "application/json"
_TRACE: Final = "X-Amzn-Trace-Id"
#: The header of a request to a function that names the topic it comes from; endpoints within this server look at it.
SOURCE: Final = "x-redrive-source-arn"
#: The same for a request to a stream, with the role that puts records there.
STREAM_ROLE: Final = "x-redrive-role-arn"
_REPLAYED: Final = {"Replayed": ("String", "true")}
_SUBJECT: Final = "AWS Notification Message"
_CONFIRMATION_SUBJECT: Final = "AWS Notification - Subscription Confirmation"
_LAMBDA_SIGNATURE_VERSION: Final = (
    "1"  # whatever version the signature is of: recorded, and known as a defect
)


class NotificationRenderer:
    """Renders deliveries, with one signature for all subscribers of a message."""

    def __init__(
        self, links: Links, signer: Signer, renderers: Mapping[str, Render] = MappingProxyType({})
    ) -> None:
        """Render with these URLs, signed by this signer; deliveries of some protocols by renderers of their own."""
        self._links = links
        self._signer = signer
        self._renderers = dict(renderers)

    async def push_request(
        self, subscription: Subscription, delivery: Delivery, *, content_type: str, display_name: str
    ) -> PushRequest:
        """The push of a delivery to an endpoint that is not a queue.

        Args:
            subscription: Whose delivery; its protocol decides.
            delivery: One whose headers were written by `published.address` or `Confirmation.pack`.
            content_type: Of notifications over HTTP, as the delivery policy has it.
            display_name: The topic's, for the sender of mails; may be empty.
        """
        headers = delivery.headers or b"{}"
        if is_confirmation(headers):
            confirmation = Confirmation.unpack(headers)
            return await self._confirmation(subscription, confirmation, display_name)
        protocol = subscription.protocol
        if protocol in self._renderers:
            return await self._renderers[protocol](subscription, delivery)
        published = PublishedMessage.unpack(headers)
        form = PROTOCOLS[protocol].form
        if form is Form.NOTIFICATION:
            pushed = notification.notification_headers(published)
            text = delivery.body if published.raw else await self._notification(published, delivery.body)
            return _parcel(subscription, text, content_type, pushed)
        if form in (Form.MAIL, Form.MAIL_DOCUMENT):
            return await self._mail(subscription, published, delivery.body, display_name)
        if form is Form.EVENT:
            event = await self._event(published, delivery.body)
            trace = {_TRACE: published.trace} if published.trace else {}
            return _parcel(subscription, event, _JSON, {SOURCE: published.topic, **trace})
        if form is Form.RECORD:
            role = {STREAM_ROLE: subscription.attributes.get(ROLE, "")}
            return _parcel(subscription, self._record(published, delivery.body), _JSON, role)
        return _parcel(subscription, delivery.body, CONTENT_TYPE)

    async def notifications(
        self, subscription: Subscription, deliveries: Sequence[Delivery], content_type: str
    ) -> list[PushRequest | None]:
        """The same of several notifications over HTTP, which are signed together; None of any other."""
        messages = [_published(delivery) for delivery in deliveries]
        to_sign = [
            (notification.signed_text(published, delivery.body), published.version)
            for published, delivery in zip(messages, deliveries, strict=True)
            if published is not None and published.is_signed
        ]
        signatures = iter(await self._signer.sign_together(to_sign))
        return [
            None
            if published is None
            else self._over_http(
                subscription,
                published,
                delivery.body,
                content_type,
                next(signatures) if published.is_signed else None,
            )
            for published, delivery in zip(messages, deliveries, strict=True)
        ]

    def notification_at_once(
        self, subscription: Subscription, delivery: Delivery, content_type: str
    ) -> PushRequest | None:
        """The same of a notification over HTTP that needs no signature; None: of any other."""
        published = _published(delivery)
        if published is None:
            return None
        return self._over_http(subscription, published, delivery.body, content_type, None)

    def _over_http(
        self,
        subscription: Subscription,
        published: PublishedMessage,
        text: str,
        content_type: str,
        signature: str | None,
    ) -> PushRequest | None:
        """The push of a notification; None: it should be signed, and is not."""
        if published.is_signed and signature is None:
            return None
        if not published.raw:
            text = notification.notification(published, text, self._links, signature)
        return _parcel(subscription, text, content_type, notification.notification_headers(published))

    def present(self, delivery: Delivery) -> tuple[str, dict[str, dict[str, Any]]]:
        """The body that a receiver gets of a delivery in a queue, and the attributes in SQS's form.

        A dead letter looks the same, whatever protocol it was meant for. The signature, where there is one, is made
        on the spot, or was made when the message was pushed.
        """
        headers = delivery.headers or b"{}"
        if is_confirmation(headers):  # of a queue in another account, whose owner has to agree
            confirmation = Confirmation.unpack(headers)
            confirmation_request = notification.signed_ask(confirmation, self._links)
            signed = self._signer.sign_now(confirmation_request, confirmation.version)
            return notification.confirmation_text(confirmation, self._links, signed), {}
        published = PublishedMessage.unpack(headers)
        replayed = is_replayed(headers)
        if published.raw:
            attributes = {**published.attributes, **(_REPLAYED if replayed else {})}
            return delivery.body, {name: unpacked(*packed) for name, packed in attributes.items()}
        if published.sequence is not None:
            body = notification.notification(published, delivery.body, self._links, None, replayed=replayed)
            return body, {}
        signed = notification.signed_text(published, delivery.body)
        signature = self._signer.sign_now(signed, published.version)
        return notification.notification(published, delivery.body, self._links, signature), {}

    async def _notification(self, published: PublishedMessage, text: str) -> str:
        return notification.notification(published, text, self._links, await self._signature(published, text))

    async def _signature(self, published: PublishedMessage, text: str) -> str | None:
        if published.sequence is not None:
            return None
        return await self._signer.sign(notification.signed_text(published, text), published.version)

    async def _event(self, published: PublishedMessage, text: str) -> str:
        """The event of a function: one record, its keys and their spelling as recorded."""
        record = {
            "Type": "Notification",
            "MessageId": published.id,
            "TopicArn": published.topic,
            "Subject": published.subject,
            "Message": text,
            "Timestamp": notification.timestamp(published.sent_at),
            "SignatureVersion": _LAMBDA_SIGNATURE_VERSION,
            "Signature": await self._signature(published, text),
            "SigningCertUrl": self._links.certificate,
            "UnsubscribeUrl": self._links.unsubscribe(published.subscription),
            "MessageAttributes": {
                name: {"Type": "Binary" if declared.startswith("Binary") else "String", "Value": value}
                for name, (declared, value) in published.attributes.items()
            },
        }
        source = {"EventSource": "aws:sns", "EventVersion": "1.0"}
        event = source | {"EventSubscriptionArn": published.subscription, "Sns": record}
        return orjson.dumps({"Records": [event]}).decode()

    def _record(self, published: PublishedMessage, text: str) -> str:
        """A stream's record: unsigned, and its own line in the object that it ends up in."""
        if published.raw:
            return text
        document: dict[str, Any] = {
            "Type": "Notification",
            "MessageId": published.id,
            "TopicArn": published.topic,
        }
        if published.subject is not None:
            document["Subject"] = published.subject
        document |= {"Message": text, "Timestamp": notification.timestamp(published.sent_at)}
        document["UnsubscribeURL"] = self._links.unsubscribe(published.subscription)
        if published.attributes:
            document["MessageAttributes"] = notification.message_attributes(published.attributes)
        return orjson.dumps(document).decode() + "\n"

    # ---- mail, and confirmations ------------------------------------------------------------------------------

    async def _mail(
        self, subscription: Subscription, published: PublishedMessage, text: str, display_name: str
    ) -> PushRequest:
        if PROTOCOLS[subscription.protocol].form is Form.MAIL_DOCUMENT:
            text = await self._notification(published, text)
        else:
            leave = self._links.unsubscribe(published.subscription)
            text = f"{text}\n\n--\nTo receive no more of these, visit:\n{leave}\n"
        headers = self._mail_headers(published.id, subscription, published.subject or _SUBJECT, display_name)
        return _parcel(subscription, text, CONTENT_TYPE, headers)

    async def _confirmation(
        self, subscription: Subscription, confirmation: Confirmation, display_name: str
    ) -> PushRequest:
        """A confirmation is plain text whatever the delivery policy says."""
        form = PROTOCOLS[subscription.protocol].form
        if form is Form.MAIL:
            return self._confirmation_mail(subscription, confirmation, display_name)
        signed = notification.signed_ask(confirmation, self._links)
        signature = await self._signer.sign(signed, confirmation.version)
        text = notification.confirmation_text(confirmation, self._links, signature)
        if form is Form.NOTIFICATION:
            headers = notification.confirmation_headers(confirmation)
        else:
            headers = self._mail_headers(confirmation.id, subscription, _CONFIRMATION_SUBJECT, display_name)
        return _parcel(subscription, text, CONTENT_TYPE, headers)

    def _confirmation_mail(
        self, subscription: Subscription, confirmation: Confirmation, display_name: str
    ) -> PushRequest:
        if confirmation.kind == notification.SUBSCRIBE:
            body = (
                f"You have chosen to subscribe to the topic\n{confirmation.topic}\n\nTo confirm it, visit:\n"
            )
        else:
            body = f"The subscription\n{confirmation.subscription}\nhas ended.\n\nTo restore it, visit:\n"
        text = f"{body}{self._links.confirm(confirmation)}\n"
        headers = self._mail_headers(confirmation.id, subscription, _CONFIRMATION_SUBJECT, display_name)
        return _parcel(subscription, text, CONTENT_TYPE, headers)

    def _mail_headers(
        self, message_id: str, subscription: Subscription, subject: str, display_name: str
    ) -> dict[str, str]:
        """The same for every attempt, so that a mail that comes twice can be told by its Message-ID."""
        unique = f"<{message_id}.{subscription.id}@{self._links.host}>"
        return {"Subject": subject, "From": display_name, "Message-ID": unique}


def _published(delivery: Delivery) -> PublishedMessage | None:
    """The message of a notification; None: it is a confirmation."""
    headers = delivery.headers or b"{}"
    return None if is_confirmation(headers) else PublishedMessage.unpack(headers)


def _parcel(
    subscription: Subscription, text: str, content_type: str, headers: dict[str, str] | None = None
) -> PushRequest:
    return PushRequest(subscription.endpoint, text.encode(), content_type, headers or {}, TIMEOUT_MS)
