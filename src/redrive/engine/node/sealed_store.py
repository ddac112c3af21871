"""The store behind seals: deliveries that carry a sealer are encrypted on their way in, and opened when they are claimed.

All that enters a queue comes through here, by whatever verb: a verb that `MessageStore` or `DocumentStore` has and
`SealedStore` has not is an error of types. Reading a queue (`QueueStore`) opens nothing: whoever shows messages opens
them by the right of the caller.
Documents of secret kinds are sealed and opened here as well, whole, for everybody.
"""

import contextlib
from collections.abc import Awaitable, Sequence
from dataclasses import replace

from typing_extensions import override

from redrive.engine.ports import (
    Change,
    Claim,
    ClaimRequest,
    ClaimResult,
    DocumentSealing,
    DocumentStore,
    Enqueued,
    LookRequest,
    MessageSealing,
    MessageStore,
    Moved,
    MoveRequest,
    NewDelivery,
    OrderedPublication,
    Put,
    Resource,
    Sealer,
    Settled,
    Settlement,
    Store,
    SubscriptionContext,
)
from redrive.engine.ports.sealing import NO_SEALING
from redrive.model.attempt import Attempt
from redrive.model.delivery import SEAL_MARK, Delivery, is_sealed
from redrive.model.errors import Conflict, Refused
from redrive.model.log import LogEvent
from redrive.model.queue import Queue
from redrive.model.topic import Topic

_WRAPPED = "wrapped"  # the member of a sealed document: a store with a key of its own seals that once more
_SEALED_AT_ONCE = 100  # documents of an older version, read together


class MessageSeals(MessageSealing):
    """The encryption of messages that the server registered, or none."""

    def __init__(self) -> None:
        self.sealing: MessageSealing = NO_SEALING

    @override
    def of_queue(self, queue: Queue) -> Sealer | None:
        return self.sealing.of_queue(queue)

    @override
    def of_topic(self, topic: Topic) -> Sealer | None:
        return self.sealing.of_topic(topic)

    @override
    async def opened(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        return await self.sealing.opened(deliveries)

    async def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        """The reason why a queue does not take a message: its own rules, or the key that would have to seal it.

        See `DeliveryProfile.refusal`.
        """
        refusal = context.profile.refusal(context, queue, body, headers)
        if refusal is not None or queue is None:
            return refusal
        sealer = self.sealing.of_queue(queue)
        return None if sealer is None else await sealer.admit(context.topic)


class DocumentSeals:
    """The sealing of documents of secret kinds that the server registered, or none."""

    def __init__(self) -> None:
        self.sealing: DocumentSealing | None = None
        self.kinds: set[str] = set()

    def seal_change(self, change: Change) -> Change:
        """A change as it is stored: a document of a secret kind sealed."""
        if self.sealing is None or not isinstance(change, Put) or change.kind not in self.kinds:
            return change
        return change._replace(
            document={_WRAPPED: self.sealing.sealed(change.kind, change.key, change.document)}
        )

    def open_resource(self, resource: Resource) -> Resource:
        """A document as it was written; one of an older version, which did not seal it, as it is."""
        if self.sealing is None or not self.seals(resource):
            return resource
        return self.sealing.opened(resource._replace(document=resource.document[_WRAPPED]))

    def seals(self, resource: Resource) -> bool:
        """True if a document is of a secret kind, and sealed."""
        return resource.kind in self.kinds and resource.document.keys() == {_WRAPPED}


class SealedStore(MessageStore, DocumentStore):
    """The store's verbs that carry bodies or documents, which may be sealed."""

    def __init__(self, store: Store, seals: MessageSeals, documents: DocumentSeals) -> None:
        self._store = store
        self._seals = seals
        self._documents = documents

    # ---- in ---------------------------------------------------------------------------------------------

    @override
    def enqueue(self, new_deliveries: Sequence[NewDelivery]) -> Awaitable[list[Enqueued]]:
        if _has_sealer(new_deliveries):
            return self._enqueue_sealed(new_deliveries)
        return self._store.enqueue(new_deliveries)

    async def _enqueue_sealed(self, new_deliveries: Sequence[NewDelivery]) -> list[Enqueued]:
        return await self._store.enqueue(await _seal(new_deliveries))

    @override
    def publish(self, publications: Sequence[OrderedPublication]) -> Awaitable[list[Enqueued]]:
        if any(_has_sealer(publication.new_deliveries) for publication in publications):
            return self._publish_sealed(publications)
        return self._store.publish(publications)

    async def _publish_sealed(self, publications: Sequence[OrderedPublication]) -> list[Enqueued]:
        return await self._store.publish(
            [
                replace(publication, new_deliveries=await _seal(publication.new_deliveries))
                for publication in publications
            ]
        )

    @override
    async def write(
        self,
        changes: Sequence[Change],
        new_deliveries: Sequence[NewDelivery] = (),
        log_events: Sequence[LogEvent] = (),
    ) -> list[int]:
        if _has_sealer(new_deliveries):
            new_deliveries = await _seal(new_deliveries)
        stored_changes = [self._documents.seal_change(change) for change in changes]
        return await self._store.write(stored_changes, new_deliveries, log_events)

    @override
    def settle(
        self,
        queue_id: int,
        settlements: Sequence[Settlement],
        now: int,
        *,
        ordered: bool,
        strict_lease: bool = False,
    ) -> Awaitable[list[Settled]]:
        for settlement in settlements:
            if settlement.follow_ups:
                return self._settle_sealed(
                    queue_id, settlements, now, ordered=ordered, strict_lease=strict_lease
                )
        return self._store.settle(queue_id, settlements, now, ordered=ordered, strict_lease=strict_lease)

    async def _settle_sealed(
        self, queue_id: int, settlements: Sequence[Settlement], now: int, *, ordered: bool, strict_lease: bool
    ) -> list[Settled]:
        sealed = [
            settlement._replace(follow_ups=await _seal(settlement.follow_ups)) for settlement in settlements
        ]
        return await self._store.settle(queue_id, sealed, now, ordered=ordered, strict_lease=strict_lease)

    @override
    def extend(
        self, queue_id: int, claims: Sequence[Claim], now: int, *, ordered: bool, strict_lease: bool = False
    ) -> Awaitable[list[Settled]]:
        return self._store.extend(queue_id, claims, now, ordered=ordered, strict_lease=strict_lease)

    @override
    async def move(self, request: MoveRequest) -> Moved:
        """A message is moved as it was sealed; raises Refused if a sealed one would get another body."""
        if request.bodies:
            look = LookRequest(request.queue_id, len(request.bodies), seqs=list(request.bodies))
            for delivery in await self._store.look(look):
                if is_sealed(delivery):
                    raise Refused(f"message {delivery.seq} is encrypted and cannot be given another body")
        return await self._store.move(request)

    # ---- out --------------------------------------------------------------------------------------------

    @override
    async def claim(self, request: ClaimRequest) -> ClaimResult:
        claimed = await self._store.claim(request)
        for delivery in claimed.deliveries:  # `any` of a generator takes four times as long
            if delivery.body[:1] == SEAL_MARK:
                claimed.deliveries = await self._seals.opened(claimed.deliveries)
                break
        return claimed

    # ---- documents ---------------------------------------------------------------------------------------

    @override
    async def get(self, kind: str, key: str) -> Resource | None:
        resource = await self._store.get(kind, key)
        return None if resource is None else self._documents.open_resource(resource)

    @override
    async def get_each(self, keys: Sequence[tuple[str, str]]) -> list[Resource]:
        return [self._documents.open_resource(resource) for resource in await self._store.get_each(keys)]

    @override
    async def find(self, kind: str, prefix: str, after: str = "", limit: int | None = None) -> list[Resource]:
        resources = await self._store.find(kind, prefix, after, limit)
        if kind not in self._documents.kinds:
            return resources
        return [self._documents.open_resource(resource) for resource in resources]

    @override
    async def kinds(self) -> set[str]:
        return await self._store.kinds()

    @override
    async def new_id(self) -> int:
        return await self._store.new_id()

    async def seal_documents(self) -> None:
        """Seal what an older version left in clear."""
        for kind in sorted(self._documents.kinds):
            after = ""
            while resources := await self._store.find(kind, "", after, _SEALED_AT_ONCE):
                after = resources[-1].key
                for resource in resources:
                    if not self._documents.seals(resource):
                        with contextlib.suppress(Conflict):  # changed meanwhile, and so sealed
                            await self.write([Put(kind, resource.key, resource.document, resource.version)])


def _has_sealer(new_deliveries: Sequence[NewDelivery]) -> bool:
    """True if a queue among theirs has a sealer; a plain loop, as `any` of a generator takes four times as long."""
    for new_delivery in new_deliveries:  # noqa: SIM110 - as above
        if new_delivery.sealer is not None:
            return True
    return False


async def _seal(new_deliveries: Sequence[NewDelivery]) -> Sequence[NewDelivery]:
    """The deliveries as they are stored; they differ from those that listeners are told of."""
    stored: list[NewDelivery] = []
    prepared_sealer: Sealer | None = None
    for new_delivery in new_deliveries:
        sealer = new_delivery.sealer
        if sealer is None:
            stored.append(new_delivery)
            continue
        if sealer is not prepared_sealer:
            await sealer.prepare()
            prepared_sealer = sealer
        content = sealer.seal(
            new_delivery.queue_id, new_delivery.message_id, new_delivery.body, new_delivery.headers
        )
        stored.append(_with_content(new_delivery, *content))
    return stored


def _with_content(
    new_delivery: NewDelivery, body: str, headers: bytes | None, sealed: bytes | None
) -> NewDelivery:
    """A delivery with other content, to be stored as it is; `dataclasses.replace` takes eight times as long."""
    return NewDelivery(
        new_delivery.queue_id,
        new_delivery.message_id,
        body,
        headers,
        new_delivery.available_at,
        new_delivery.enqueued_at,
        new_delivery.group_id,
        new_delivery.ordered,
        new_delivery.deduplication_id,
        new_delivery.deduplication_key,
        new_delivery.deduplicate_until,
        new_delivery.origin,
        new_delivery.attempts,
        new_delivery.note,
        None,
        sealed,
    )
