"""Encryption at rest: messages of queues and topics with a key are sealed by data keys of KMS.

`KmsMasterKeyId` names a customer's key, to which callers and services need the right; `SqsManagedSseEnabled` means the
root key, which needs none. The root key also seals what waits in places that no caller can name (events for functions,
their letters and records, records of streams, calls that are owed): some of it comes from where a customer's key is, and
nobody could choose a key there. A data key serves a queue for `KmsDataKeyReusePeriodSeconds`, and a right that was asked
for counts for as long. Neither outlives the process.

Context keys and rights: "Encryption at rest" of the developer guides of SQS and SNS.
"""

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final

from redrive.access.keys import is_account
from redrive.access.message_seal import DataKey, MessageSeal, seal_of
from redrive.access.principals import Principal
from redrive.aws.encryption.data_keys import OPEN_MS, DataKeys, KeysInside, RootKey
from redrive.aws.encryption.sealer import KEY, KEY_REUSE, REUSE_SECONDS, QueueSealer, RememberedRights
from redrive.aws.gateway.inner_calls import InnerCalls
from redrive.aws.kit.call import Call
from redrive.aws.wire.errors import AwsError
from redrive.engine.ports import NodeStore, OpenedDelivery, Runtime
from redrive.model.delivery import Delivery, is_sealed
from redrive.model.errors import KeyUnusable, RedriveError
from redrive.model.queue import Queue
from redrive.model.topic import Topic

#: In the place of a body that is not shown.
HIDDEN: Final = "(encrypted: its key cannot be used, or not by you)"
SQS_SSE: Final = "SqsManagedSseEnabled"
_FIELDS: Final = attrgetter(*Delivery.__dataclass_fields__)
_SEALERS_MAX: Final = 10_000  # queues remembered with their data keys, a kilobyte each


class Encryption:
    """`redrive.engine.ports.MessageSealing` of Amazon's queues and topics, and the rights to their keys."""

    def __init__(
        self,
        calls: InnerCalls,
        inside: KeysInside,
        root: RootKey,
        runtime: Runtime,
        *,
        by_default: bool,
        store: NodeStore,
    ) -> None:
        self.root, self.inside = root, inside
        self.keys = DataKeys(calls, inside, root, runtime, store)
        self._clock = runtime.clock
        self._by_default = by_default  # also queues that say nothing of encryption, by the root key
        self._queues: dict[int, QueueSealer] = {}
        self._topics: dict[int, QueueSealer] = {}
        self._rights = RememberedRights()

    # ---- MessageSealing ---------------------------------------------------------------------------------

    def of_queue(self, queue: Queue) -> QueueSealer | None:
        """The sealer of a queue, if it is private, or its attributes or `by_default` ask for one; else None."""
        attributes = queue.attributes
        private = ":" in queue.name.region  # ResourceName.private, without the call: each message asks
        if not (KEY in attributes or SQS_SSE in attributes or self._by_default or private):
            return None
        sealer = self._queues.get(queue.id)
        if sealer is not None and sealer.attributes is attributes:
            return sealer
        key = attributes.get(KEY)
        if key is None:
            default = "true" if private or self._by_default else "false"
            if attributes.get(SQS_SSE, default) != "true" or not is_account(queue.name.account):
                return None
        if len(self._queues) >= _SEALERS_MAX:
            self._queues.clear()
        sealer = self._queues[queue.id] = QueueSealer(
            self.keys, self._rights, "sqs", queue.name, key or "", attributes
        )
        return sealer

    def of_topic(self, topic: Topic) -> QueueSealer | None:
        """The sealer of a topic's backlogs and archive; None: they are not encrypted."""
        key = topic.attributes.get(KEY, "")
        if not key and not (topic.name.private and is_account(topic.name.account)):
            return None
        sealer = self._topics.get(topic.id)
        if sealer is None or sealer.key_id != key:
            if len(self._topics) >= _SEALERS_MAX:
                self._topics.clear()
            sealer = self._topics[topic.id] = QueueSealer(
                self.keys, self._rights, "sns", topic.name, key, topic.attributes
            )
        return sealer

    async def opened(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Deliveries, decrypted where their key can be used; nothing is awaited for data keys that are remembered."""
        now, keys = self._clock.now(), self.keys
        opened = list(deliveries)
        for index, delivery in enumerate(deliveries):
            if is_sealed(delivery):
                try:
                    seal = seal_of(delivery)
                    data_key = keys.known(seal, now) or await keys.opened(seal)
                    opened[index] = _opened(delivery, seal, data_key)
                except (AwsError, RedriveError, ValueError, KeyError):
                    continue  # it stays as it is
        return opened

    # ---- rights -----------------------------------------------------------------------------------------

    def has_sent(self, call: Call, queue: Queue) -> bool:
        """True if the caller was let send to a queue no longer ago than its data key serves."""
        sealer = self._queues.get(queue.id)
        return sealer is not None and sealer.attributes is queue.attributes and sealer.has_admitted(call)

    async def admit_sender(self, call: Call, queue: Queue) -> None:
        """Refuse a message for a queue whose key the caller may not use; raises KeyUnusable if KMS refuses."""
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
        """Refuse to show messages, sealed or opened, to a principal without permission for their keys.

        A right that was asked for counts for `reuse_ms`.

        Raises:
            KeyUnusable: KMS refuses.
        """
        checked_before: MessageSeal | None = None
        for delivery in deliveries:
            if isinstance(delivery, OpenedDelivery):
                seal: MessageSeal = delivery.seal
            elif is_sealed(delivery):
                seal = seal_of(delivery)
            else:
                continue
            if seal.key and seal is not checked_before:
                await self._check_right(principal, region, seal, reuse_ms)
                checked_before = seal

    async def _check_right(self, principal: Principal, region: str, seal: MessageSeal, reuse_ms: int) -> None:
        """Ask KMS if a principal may decrypt the key of a seal, unless the right is remembered."""
        now = self._clock.now()
        if self._rights.has(principal, seal.about, now):
            return
        version = self._rights.version
        await self.keys.check_may_decrypt(principal, region, seal, {})
        self._rights.add(principal, seal.about, now + reuse_ms, version)

    async def shown_to(self, principal: Principal, region: str, delivery: Delivery) -> Delivery:
        """A delivery as somebody may see it: opened by right, and else with `HIDDEN` for a body."""
        (opened_delivery,) = await self.opened([delivery])
        try:
            await self.check_reader(principal, region, [opened_delivery], OPEN_MS)
        except KeyUnusable:
            return replace(delivery, body=HIDDEN)
        return replace(delivery, body=HIDDEN) if is_sealed(opened_delivery) else opened_delivery

    def has_read(self, principal: Principal, queue: Queue) -> bool:
        """True if somebody was let read a queue no longer ago than its data keys serve."""
        return self._rights.has(principal, queue.name.key, self._clock.now())

    def note_reader(self, principal: Principal, queue: Queue) -> None:
        """Somebody was let read a queue."""
        until = self._clock.now() + reuse_ms(queue)
        self._rights.add(principal, queue.name.key, until, self._rights.version)

    def forget_rights(self) -> None:
        """A key, an alias or a grant has changed: whoever was let use a key asks again. Data keys serve their time."""
        self._rights.clear()


def _opened(delivery: Delivery, seal: MessageSeal, data_key: DataKey) -> OpenedDelivery:
    opened = OpenedDelivery(*_FIELDS(delivery))
    opened.body, opened.headers = data_key.open(seal, delivery)
    opened.sealed, opened.seal = None, seal
    return opened


def reuse_ms(queue: Queue) -> int:
    """For how long a queue's data key serves, and a right counts that was asked for."""
    return int(queue.attributes.get(KEY_REUSE, REUSE_SECONDS)) * 1000
