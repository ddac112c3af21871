"""Encryption at rest: messages of queues and topics with a key are sealed by data keys of KMS.

`KmsMasterKeyId` names a customer's key, to which callers and services need the right; `SqsManagedSseEnabled` means the
root key, which needs none. A data key serves a queue for `KmsDataKeyReusePeriodSeconds`, and a right that was asked for
counts for as long. Neither outlives the process.

Context keys and rights: "Encryption at rest" of the developer guides of SQS and SNS.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from redrive.access.keys import is_account
from redrive.access.message_seal import DataKey, Seal, seal_of
from redrive.access.principals import Principal
from redrive.engine.ports import OpenedDelivery, Resource, Runtime, is_sealed
from redrive.model.delivery import Delivery
from redrive.model.errors import KeyUnusable, RedriveError
from redrive.model.queue import Queue
from redrive.model.topic import Topic
from redrive.protocols.aws.call import Call
from redrive.protocols.aws.encryption.sealer import (
    CONTEXT_NAMES,
    KEY,
    KEY_REUSE,
    REUSE_SECONDS,
    QueueSealer,
)
from redrive.protocols.aws.inner_calls import InnerCalls
from redrive.protocols.aws.wire.errors import AwsError

#: In the place of a body that is not shown.
HIDDEN: Final = "(encrypted: its key cannot be used, or not by you)"
SQS_SSE: Final = "SqsManagedSseEnabled"
_OPEN_MS: Final = 300_000  # so long a data key that was opened stays so
_OPEN_MAX: Final = 4096  # data keys, 200 bytes each
_ADMITTED_MAX: Final = 1024  # principals remembered for a queue
_SEALERS_MAX: Final = 10_000  # queues remembered with their data keys, a kilobyte each
_KIND: Final = "data_key"


class KeysInside(Protocol):
    """The server's own use of KMS's keys; see `redrive.protocols.aws.kms.inside`."""

    async def data_key(
        self, account: str, region: str, key_id: str, context: Mapping[str, str]
    ) -> tuple[str, bytes, bytes]:
        """The ARN of the key, a new data key, and the same encrypted."""
        ...

    async def opened(self, region: str, blob: bytes, context: Mapping[str, str]) -> bytes:
        """The data key that was encrypted so."""
        ...


class RootKey(Protocol):
    """A key that seals documents, data keys among them; see `redrive.stores.seal`."""

    def is_of_first(self, document: Any) -> bool:
        """True if it has sealed the document, and no older one that it opens as well."""
        ...

    def sealed(self, kind: str, key: str, document: Any) -> Any:
        """A document that nobody else can read."""
        ...

    def opened(self, resource: Resource) -> Resource:
        """The document as it was."""
        ...


class Encryption:
    """`redrive.engine.ports.MessageSealing` of Amazon's queues and topics, and the rights to their keys."""

    def __init__(
        self, calls: InnerCalls, inside: KeysInside, root: RootKey, runtime: Runtime, *, by_default: bool
    ) -> None:
        """Encrypt by these keys.

        Args:
            calls: Asks KMS in the name of callers.
            inside: Asks KMS in nobody's name.
            root: The root key, for queues without a key of a customer's.
            runtime: Time, and chance for nonces.
            by_default: Queues that say nothing of encryption are encrypted by the root key.
        """
        self.calls = calls
        self.inside = inside
        self.root = root
        self.clock = runtime.clock
        self.random_bytes = runtime.chance.randbytes
        self._by_default = by_default
        self._queues: dict[int, QueueSealer] = {}
        self._topics: dict[int, QueueSealer] = {}
        self._open: dict[str, tuple[DataKey, int]] = {}
        self._readers: dict[tuple[str, str], int] = {}

    # ---- MessageSealing ---------------------------------------------------------------------------------

    def of_queue(self, queue: Queue) -> QueueSealer | None:
        """See `MessageSealing.of_queue`."""
        attributes = queue.attributes
        if not (KEY in attributes or SQS_SSE in attributes or self._by_default):
            return None
        known = self._queues.get(queue.id)
        if known is not None and known.attributes is attributes:
            return known
        key = attributes.get(KEY)
        if key is None:
            chosen = attributes.get(SQS_SSE)
            if chosen != "true" and (chosen is not None or not self._by_default):
                return None
            if not is_account(queue.name.account) or (queue.name.private and chosen is None):
                return None
        if len(self._queues) >= _SEALERS_MAX:
            self._queues.clear()
        known = self._queues[queue.id] = QueueSealer(self, "sqs", queue.name, key or "", attributes)
        return known

    def of_topic(self, topic: Topic) -> QueueSealer | None:
        """See `MessageSealing.of_topic`."""
        key = topic.attributes.get(KEY)
        if key is None:
            return None
        known = self._topics.get(topic.id)
        if known is None or known.key_id != key:
            if len(self._topics) >= _SEALERS_MAX:
                self._topics.clear()
            known = self._topics[topic.id] = QueueSealer(self, "sns", topic.name, key, topic.attributes)
        return known

    async def opened(self, delivery: Delivery) -> Delivery:
        """See `MessageSealing.opened`."""
        seal = seal_of(delivery.headers or b"{}")
        try:
            data_key = await self._data_key(seal)
            body, headers = data_key.opened(seal, delivery.body)
        except (AwsError, RedriveError, ValueError):
            return delivery
        fields = {name: getattr(delivery, name) for name in Delivery.__dataclass_fields__}
        return OpenedDelivery(**{**fields, "body": body, "headers": headers}, key=seal.key, seal=seal.raw)

    async def _data_key(self, seal: Seal) -> DataKey:
        now = self.clock.now()
        known = self._open.get(seal.data)
        if known is not None and now < known[1]:
            return known[0]
        if seal.key:
            region = seal.key.split(":")[3]
            plaintext = await self.inside.opened(region, b64decode(seal.data), seal.context)
        else:
            plaintext = self._root_opened(seal)
        data_key = DataKey(plaintext, seal.key, seal.context, seal.data)
        self.remember(seal.data, data_key, now + _OPEN_MS)
        return data_key

    def remember(self, data: str, data_key: DataKey, until: int) -> None:
        """Keep a data key in memory, until then (ms)."""
        if len(self._open) >= _OPEN_MAX:
            self._open.clear()
        self._open[data] = (data_key, until)

    def _root_opened(self, seal: Seal) -> bytes:
        (arn,) = seal.context.values()
        kept = {"sealed_by": seal.data[:8], "content": seal.data[9:]}
        return b64decode(self.root.opened(Resource(_KIND, arn, 1, kept)).document["data_key"])

    def root_sealed(self, arn: str, plaintext: bytes) -> str:
        """A data key for the queue of an ARN, encrypted by the root key, as text."""
        sealed = self.root.sealed(_KIND, arn, {"data_key": b64encode(plaintext).decode()})
        return f"{sealed['sealed_by']}.{sealed['content']}"

    # ---- rights -----------------------------------------------------------------------------------------

    def has_sent(self, call: Call, queue: Queue) -> bool:
        """True if the caller was let send to a queue no longer ago than its data key serves."""
        known = self._queues.get(queue.id)
        return known is not None and known.attributes is queue.attributes and known.has_admitted(call)

    async def admit_sender(self, call: Call, queue: Queue) -> None:
        """Refuse a message for a queue whose key the caller may not use, or nobody can.

        Raises:
            KeyUnusable: KMS refuses.
        """
        await self._admit(self.of_queue(queue), call.principal)

    async def admit_publisher(self, call: Call, topic: Topic) -> None:
        """As `admit_sender`, for a topic."""
        await self._admit(self.of_topic(topic), call.principal)

    async def _admit(self, sealer: QueueSealer | None, principal: Principal) -> None:
        if sealer is not None and not sealer.lasts:
            await sealer.admit_principal(principal)

    async def check_reader(
        self, principal: Principal, region: str, deliveries: Sequence[Delivery], reuse_ms: int
    ) -> None:
        """Refuse to show messages, sealed or opened, to somebody who may not use their keys.

        Args:
            principal: Who wants to see them.
            region: Where.
            deliveries: The messages.
            reuse_ms: How long the right counts that was asked for.

        Raises:
            KeyUnusable: KMS refuses.
        """
        for delivery in deliveries:
            if isinstance(delivery, OpenedDelivery):
                if delivery.key:
                    await self._check_reader(principal, region, delivery.key, delivery.seal, reuse_ms)
            elif is_sealed(delivery):
                seal = seal_of(delivery.headers or b"{}")
                await self._check_reader(principal, region, seal.key, seal.raw, reuse_ms)

    async def _check_reader(
        self, principal: Principal, region: str, key: str, seal: bytes, reuse_ms: int
    ) -> None:
        now = self.clock.now()
        if not key or now < self._readers.get((principal.name, key), 0):
            return
        await self.decrypted(principal, region, key, seal_of(b'{"sealed":%b}' % seal), {})
        if len(self._readers) >= _ADMITTED_MAX:
            self._readers.clear()
        self._readers[principal.name, key] = now + reuse_ms

    async def shown_to(self, principal: Principal, region: str, delivery: Delivery) -> Delivery:
        """A delivery as somebody may see it: opened by right, and else with `HIDDEN` for a body."""
        opened = await self.opened(delivery)
        try:
            await self.check_reader(principal, region, [opened], _OPEN_MS)
        except KeyUnusable:
            return replace(delivery, body=HIDDEN)
        return replace(delivery, body=HIDDEN) if is_sealed(opened) else opened

    def has_read(self, principal: Principal, queue: Queue) -> bool:
        """True if somebody was let read a queue no longer ago than its data keys serve."""
        return self.clock.now() < self._readers.get((principal.name, queue.name.key), 0)

    def note_reader(self, principal: Principal, queue: Queue) -> None:
        """Somebody was let read a queue."""
        self._readers[principal.name, queue.name.key] = self.clock.now() + reuse_ms(queue)

    async def decrypted(
        self, principal: Principal, region: str, key: str, seal: Seal, keys: Mapping[str, Any]
    ) -> None:
        """Ask KMS to decrypt a data key in the name of somebody.

        Raises:
            KeyUnusable: It refuses.
        """
        service = "sns" if CONTEXT_NAMES["sns"] in seal.context else "sqs"
        params = {
            "CiphertextBlob": b64decode(seal.data),
            "EncryptionContext": seal.context,
            "KeyId": key,
        }
        await self.ask("Decrypt", params, principal, region, service, keys)

    async def ask(
        self,
        operation: str,
        params: dict[str, Any],
        principal: Principal,
        region: str,
        service: str,
        keys: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Call KMS for somebody, through a service.

        Raises:
            KeyUnusable: It refuses.
        """
        via = {"kms:ViaService": f"{service}.{region}.amazonaws.com", **keys}
        try:
            return await self.calls.call("kms", operation, params, principal, region, keys=via)
        except AwsError as refused:
            raise KeyUnusable(refused.message, refused.code) from refused


def reuse_ms(queue: Queue) -> int:
    """For how long a queue's data key serves, and a right counts that was asked for."""
    return int(queue.attributes.get(KEY_REUSE, REUSE_SECONDS)) * 1000
