"""Event Grid's part in delivering: which profile each subscription goes by, and the profile of dead letters' stores.

Event subscriptions of topics and of namespaces differ, and beside either may stand the store of its dead letters, a
subscription under its own id (`names.dead_letter_store`). All four are kept as subscriptions of topics whose
dialect is Event Grid's; this is where they are told apart.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from redrive.azure.entra import WebhookTokens
from redrive.azure.eventgrid import dead_letters, names, namespace_letters, settings
from redrive.azure.eventgrid.event_profile import PULL, EventProfile, NamespaceEventProfile, event_id
from redrive.azure.eventgrid.notation import timestamp, written_text
from redrive.azure.eventgrid.published import Letter, PublishedEvent, render_event
from redrive.azure.eventgrid.settings import EVENT_GRID_SCHEMA
from redrive.azure.wire.arm_id import ArmId
from redrive.engine.ports import AttemptNote, FollowUp, Plan, PushRequest, SubscriptionContext, whole_envelope
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import Attempt
from redrive.model.delivery import Delivery
from redrive.model.names import bytes_of, id_text
from redrive.model.queue import Queue
from redrive.model.topic import Publication, Subscription, Topic

_TIMEOUT_MS: Final = 30_000
_BLOB_TYPE: Final = "application/json"

Notes = Callable[[int, bytes], Awaitable[Sequence[AttemptNote]]]
UrlOf = Callable[[str], str]


class DeadLetterProfile:
    """`DeliveryProfile` of the stores that the dead letters of topics and domains go to."""

    name: Final = names.DEAD_LETTER_STORES
    plan: Plan = dead_letters.PLAN

    def __init__(self, notes: Notes, url_of: UrlOf) -> None:
        self._notes = notes  # What is remembered of a message's attempts, by its backlog's number and its id
        self._url_of = url_of

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """See `DeliveryProfile.context`; a letter that its store does not take is dropped."""
        return SubscriptionContext(
            topic, subscription, self, plan=self.plan, headers=whole_envelope, identify=event_id
        )

    def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        """See `DeliveryProfile.refusal`; never asked, since nothing here goes to a queue."""
        raise NotImplementedError

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        """See `DeliveryProfile.render`: a blob."""
        texts = [await self._text(delivery) for delivery in deliveries]
        return PushRequest(
            endpoint=context.subscription.endpoint,
            body=f"[{','.join(texts)}]".encode(),
            content_type=_BLOB_TYPE,
            headers={"path": self._path(context.subscription, deliveries[0]), **_container_of(context)},
            timeout_ms=_TIMEOUT_MS,
            headers_kept=("etag", "content-length"),
        )

    def follow_ups(self, fact: Attempted) -> Sequence[FollowUp]:
        """See `DeliveryProfile.follow_ups`: a blob is one event of its storage account, which its first letter has."""
        if not fact.attempt.delivered or fact.position > 0:
            return ()
        path = self._path(fact.subscription, fact.delivery)
        follow_up = blob_created(fact, path, f"{self._url_of(fact.subscription.endpoint)}/{path}")
        return () if follow_up is None else (follow_up,)

    def _path(self, store: Subscription, first: Delivery) -> str:
        """The name of the blob that a batch of letters is kept in."""
        return dead_letters.path_of(names.of_dead_letter_store(store.id).upper(), first)

    async def _text(self, delivery: Delivery) -> str:
        """The text of a dead letter, with the outcome of its last attempt, which is looked up if it is not known."""
        published_event = PublishedEvent.unpack(delivery.headers)
        letter = published_event.letter
        if letter is not None and letter.result is None:
            notes = await self._notes(letter.backlog, bytes.fromhex(letter.message_id))
            letter = dead_letters.with_last_attempt(letter, notes)
        return self._render(delivery, published_event, letter)

    def _render(self, delivery: Delivery, published_event: PublishedEvent, letter: Letter | None) -> str:
        if letter is None:
            raise ValueError(f"delivery {delivery.seq} is no dead letter")
        return dead_letters.text_of(delivery.body, published_event, letter)


def _container_of(context: SubscriptionContext) -> dict[str, str]:
    attributes = context.subscription.attributes
    return {name: attributes[name] for name in (settings.CONTAINER,) if name in attributes}


class NamespaceDeadLetterProfile(DeadLetterProfile):
    """`DeliveryProfile` of the stores that the dead letters of namespaces' topics go to."""

    plan = namespace_letters.PLAN

    @override
    def _path(self, store: Subscription, first: Delivery) -> str:
        return dead_letters.path_of(namespace_letters.folder_of(store), first)

    @override
    def _render(self, delivery: Delivery, published_event: PublishedEvent, letter: Letter | None) -> str:
        return namespace_letters.text_of(delivery, letter)


# The event of the storage account that a blob of dead letters was written to.

TYPE: Final = "Microsoft.Storage.BlobCreated"
_LENGTH: Final = "content-length"


def blob_created(fact: Attempted, path: str, url: str) -> FollowUp | None:
    """The event that a blob of this name at this URL leads to; None if the container's account has no topic."""
    container = ArmId.parse(fact.subscription.endpoint)
    account = None if container is None else container._replace(parts=container.parts[:2])
    topic = None if account is None else names.topic_name(account)
    if container is None or account is None or topic is None:
        return None
    body = _event(account, container, fact, path, url)
    text = written_text(body)
    publication = Publication(
        id=fact.delivery.message_id,
        body=text,
        bodies={},
        attributes={},
        envelope=PublishedEvent(EVENT_GRID_SCHEMA, account.text, fact.at).envelope(),
        bytes_published=bytes_of(text),
        document=body,
    )
    return FollowUp(topic, publication)


def _event(account: ArmId, container: ArmId, fact: Attempted, path: str, url: str) -> dict[str, object]:
    """The BlobCreated event of a blob, as a storage account publishes it."""
    identifiers = dict(fact.attempt.identifiers)
    request_id = id_text(fact.delivery.message_id)
    details: dict[str, object] = {
        "api": "PutBlob",
        "clientRequestId": request_id,
        "requestId": request_id,
        "eTag": identifiers.get("etag", ""),
        "contentType": "application/json",
        **({"contentLength": int(identifiers[_LENGTH])} if _LENGTH in identifiers else {}),
        "blobType": "BlockBlob",
        "url": url,
        "sequencer": f"{fact.delivery.seq:048x}",
        "storageDiagnostics": {"batchId": request_id},
    }
    return {
        "id": request_id,
        "eventTime": timestamp(fact.at),
        "eventType": TYPE,
        "dataVersion": "",
        "metadataVersion": "1",
        "topic": account.text,
        "subject": f"/blobServices/default/containers/{container.name}/blobs/{path}",
        "data": details,
    }


__all__ = ["PULL", "EventGridDeliveryProfile", "present"]


class EventGridDeliveryProfile(EventProfile):
    """`redrive.engine.ports.DeliveryProfile` of topics made through Event Grid."""

    def __init__(self, notes: Notes, tokens: WebhookTokens, url_of: UrlOf) -> None:
        super().__init__(tokens)
        self._of_namespaces = NamespaceEventProfile(tokens)
        # `notes`: what is remembered of a message's attempts, by its backlog's number and its id
        self._dead_letters = DeadLetterProfile(notes, url_of)
        self._dead_letters_of_namespaces = NamespaceDeadLetterProfile(notes, url_of)

    @override
    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """See `DeliveryProfile.context`; from the profile of the subscription's kind."""
        is_of_namespace = names.is_namespace_topic(topic.name)
        if names.is_dead_letter_store(subscription.id):
            profile = self._dead_letters_of_namespaces if is_of_namespace else self._dead_letters
            return profile.context(topic, subscription)
        if is_of_namespace:
            return self._of_namespaces.context(topic, subscription)
        return super().context(topic, subscription)


def present(delivery: Delivery) -> tuple[str, Mapping[str, Any]]:
    """The delivery as a receiver of this server's queue sees it: the event, and no attributes."""
    published_event = PublishedEvent.unpack(delivery.headers)
    return render_event(
        delivery.body, published_event, published_event.delivered_as or published_event.schema
    ), {}
