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
from redrive.aws.sns.documents.destinations import PROTOCOLS, MessageForm
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

    A signature depends on the text alone, so it is remembered by the digest of that: subscribers of one message share it,
    and one that gets another text (`MessageStructure=json`) gets its own.
    """

    def __init__(self, pair: SigningPair) -> None:
        self._pair = pair
        self._signatures: OrderedDict[bytes, str] = OrderedDict()
        self._running: dict[bytes, asyncio.Future[dict[bytes, str]]] = {}
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="redrive-sign")

    def sign_now(self, text: str, version: str) -> str:
        """The signature in base 64 (version `1`: SHA-1, `2`: SHA-256); blocks for 0.2 ms unless it is remembered."""
        digest = _digest(text, version)
        return self._remembered_signature(digest) or self._remember(digest, self._sign(digest, version))

    async def sign(self, text: str, version: str) -> str:
        """The signature: a remembered one, that of a task under way, or one that a thread makes.

        OpenSSL works there without blocking the interpreter.
        """
        digest = _digest(text, version)
        signature = self._remembered_signature(digest)
        if signature is not None:
            return signature
        task = self._running.get(digest) or self._begin({digest: version})
        return (await asyncio.shield(task))[digest]  # others may wait for it if this caller is cancelled

    async def sign_together(self, texts: Sequence[tuple[str, str]]) -> list[str | None]:
        """The signatures of texts, each with its version; None of one that fails.

        A thread's turn costs the event loop some 60 us: the new texts are shared out, and each thread has one turn.
        """
        digests = [_digest(text, version) for text, version in texts]
        versions = {digest: version for digest, (_, version) in zip(digests, texts, strict=True)}
        new_digests = [
            digest for digest in versions if digest not in self._signatures and digest not in self._running
        ]
        for thread in range(_THREADS):
            if share := new_digests[thread::_THREADS]:
                self._begin({digest: versions[digest] for digest in share})
        tasks = {self._running[digest] for digest in versions if digest in self._running}
        if tasks:
            await asyncio.wait(tasks)
        return [self._remembered_signature(digest) for digest in digests]

    def _begin(self, versions: Mapping[bytes, str]) -> "asyncio.Future[dict[bytes, str]]":
        """A task that signs these digests, each for its version, in one turn of a thread; it returns all signatures."""
        task = asyncio.get_running_loop().run_in_executor(self._threads, self._sign_each, versions)
        for digest in versions:
            self._running[digest] = task
        task.add_done_callback(partial(self._remember_result, versions))
        return task

    def _remember_result(self, digests: Iterable[bytes], task: "asyncio.Future[dict[bytes, str]]") -> None:
        """Remember the signatures of a task that has ended."""
        for digest in digests:
            del self._running[digest]
        if not task.cancelled() and task.exception() is None:
            for digest, signature in task.result().items():
                self._remember(digest, signature)

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _sign_each(self, versions: Mapping[bytes, str]) -> dict[bytes, str]:
        return {digest: self._sign(digest, version) for digest, version in versions.items()}

    def _sign(self, digest: bytes, version: str) -> str:
        return b64encode(self._pair.sign(digest, _DIGESTS[version])).decode()

    def _remembered_signature(self, digest: bytes) -> str | None:
        signature = self._signatures.get(digest)
        if signature is not None:
            self._signatures.move_to_end(digest)
        return signature

    def _remember(self, digest: bytes, signature: str) -> str:
        self._signatures[digest] = signature
        if len(self._signatures) > _REMEMBERED_MAX:
            self._signatures.popitem(last=False)
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
"""Makes the push request of a delivery."""

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
# Whatever version the signature is of: recorded, and known as a defect.
_LAMBDA_SIGNATURE_VERSION: Final = "1"


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
        if form is MessageForm.NOTIFICATION:
            http_headers = notification.notification_headers(published)
            text = delivery.body if published.raw else await self._notification(published, delivery.body)
            return _push_request(subscription, text, content_type, http_headers)
        if form in (MessageForm.MAIL, MessageForm.MAIL_DOCUMENT):
            return await self._mail(subscription, published, delivery.body, display_name)
        if form is MessageForm.EVENT:
            event = await self._event(published, delivery.body)
            trace = {_TRACE: published.trace} if published.trace else {}
            return _push_request(subscription, event, _JSON, {SOURCE: published.topic, **trace})
        if form is MessageForm.RECORD:
            role_header = {STREAM_ROLE: subscription.attributes.get(ROLE, "")}
            return _push_request(subscription, self._record(published, delivery.body), _JSON, role_header)
        return _push_request(subscription, delivery.body, CONTENT_TYPE)  # MessageForm.TEXT

    async def notifications(
        self, subscription: Subscription, deliveries: Sequence[Delivery], content_type: str
    ) -> list[PushRequest | None]:
        """The pushes of several notifications over HTTP, signed together; None for a confirmation or if signing fails."""
        messages = [_message_of(delivery) for delivery in deliveries]
        to_sign = [
            (notification.signed_text(published, delivery.body), published.version)
            for published, delivery in zip(messages, deliveries, strict=True)
            if published is not None and published.is_signed
        ]
        signatures = iter(await self._signer.sign_together(to_sign))
        requests: list[PushRequest | None] = []
        for published, delivery in zip(messages, deliveries, strict=True):
            if published is None:
                requests.append(None)
                continue
            signature = next(signatures) if published.is_signed else None
            requests.append(self._over_http(subscription, published, delivery.body, content_type, signature))
        return requests

    def notification_at_once(
        self, subscription: Subscription, delivery: Delivery, content_type: str
    ) -> PushRequest | None:
        """The push of a notification over HTTP that needs no signature; None for any other delivery."""
        published = _message_of(delivery)
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
        return _push_request(subscription, text, content_type, notification.notification_headers(published))

    def present(self, delivery: Delivery) -> tuple[str, dict[str, dict[str, Any]]]:
        """The body that a receiver gets of a delivery in a queue, and the attributes in SQS's form.

        A dead letter looks the same, whatever protocol it was meant for. The signature, where there is one, is made
        on the spot, or was made when the message was pushed.
        """
        headers = delivery.headers or b"{}"
        if is_confirmation(headers):  # of a queue in another account, whose owner has to agree
            confirmation = Confirmation.unpack(headers)
            signed_text = notification.signed_question(confirmation, self._links)
            signature = self._signer.sign_now(signed_text, confirmation.version)
            return notification.confirmation_text(confirmation, self._links, signature), {}
        published = PublishedMessage.unpack(headers)
        replayed = is_replayed(headers)
        if published.raw:
            attributes = {**published.attributes, **(_REPLAYED if replayed else {})}
            return delivery.body, {name: unpacked(*packed) for name, packed in attributes.items()}
        if published.sequence is not None:
            body = notification.notification(published, delivery.body, self._links, None, replayed=replayed)
            return body, {}
        signed_text = notification.signed_text(published, delivery.body)
        signature = self._signer.sign_now(signed_text, published.version)
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
                name: {"Type": "Binary" if data_type.startswith("Binary") else "String", "Value": value}
                for name, (data_type, value) in published.attributes.items()
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
        if PROTOCOLS[subscription.protocol].form is MessageForm.MAIL_DOCUMENT:
            text = await self._notification(published, text)
        else:
            unsubscribe_url = self._links.unsubscribe(published.subscription)
            text = f"{text}\n\n--\nTo receive no more of these, visit:\n{unsubscribe_url}\n"
        headers = self._mail_headers(published.id, subscription, published.subject or _SUBJECT, display_name)
        return _push_request(subscription, text, CONTENT_TYPE, headers)

    async def _confirmation(
        self, subscription: Subscription, confirmation: Confirmation, display_name: str
    ) -> PushRequest:
        """The push of a confirmation, which is plain text whatever the delivery policy says."""
        form = PROTOCOLS[subscription.protocol].form
        if form is MessageForm.MAIL:
            return self._confirmation_mail(subscription, confirmation, display_name)
        signed_text = notification.signed_question(confirmation, self._links)
        signature = await self._signer.sign(signed_text, confirmation.version)
        text = notification.confirmation_text(confirmation, self._links, signature)
        if form is MessageForm.NOTIFICATION:
            headers = notification.confirmation_headers(confirmation)
        else:
            headers = self._mail_headers(confirmation.id, subscription, _CONFIRMATION_SUBJECT, display_name)
        return _push_request(subscription, text, CONTENT_TYPE, headers)

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
        return _push_request(subscription, text, CONTENT_TYPE, headers)

    def _mail_headers(
        self, message_id: str, subscription: Subscription, subject: str, display_name: str
    ) -> dict[str, str]:
        """The headers of a mail; each attempt has the same Message-ID, so that a second copy is recognised."""
        unique = f"<{message_id}.{subscription.id}@{self._links.host}>"
        return {"Subject": subject, "From": display_name, "Message-ID": unique}


def _message_of(delivery: Delivery) -> PublishedMessage | None:
    """The message of a notification; None: it is a confirmation."""
    headers = delivery.headers or b"{}"
    return None if is_confirmation(headers) else PublishedMessage.unpack(headers)


def _push_request(
    subscription: Subscription, text: str, content_type: str, headers: dict[str, str] | None = None
) -> PushRequest:
    return PushRequest(subscription.endpoint, text.encode(), content_type, headers or {}, TIMEOUT_MS)
