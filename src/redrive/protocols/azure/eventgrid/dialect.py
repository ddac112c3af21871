"""Event Grid's part in delivering: where an event goes, how often it is tried, what it is sent as, what follows."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from redrive.engine.facts import Attempted
from redrive.engine.ports import ONE_EACH, AttemptNote, Batch, Consequence, Parcel, Plan
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery, Outcome
from redrive.model.message import Publication, bytes_of
from redrive.model.queue import Queue, ResourceName
from redrive.model.retry_plans import EVENT_WEBHOOK, MINUTE_MS
from redrive.model.topic import Subscription, Topic
from redrive.protocols.azure.eventgrid import (
    dead_letters,
    names,
    namespace_letters,
    namespace_push,
    outcomes,
    parcels,
)
from redrive.protocols.azure.eventgrid.blob_created import blob_created, letter_path
from redrive.protocols.azure.eventgrid.published import ENVELOPE, Published, delivered_as
from redrive.protocols.azure.eventgrid.rendering import rendered
from redrive.protocols.azure.eventgrid.settings import (
    CLOUD_EVENT_SCHEMA,
    DeliverySettings,
    delivery_settings,
)
from redrive.protocols.azure.webhook_tokens import WebhookTokens
from redrive.protocols.azure.wire.arm_id import ArmId

QUEUE: Final = "queue"
TOPIC: Final = "topic"
PULL: Final = "pull"  # a namespace's queue, which callers receive from; the endpoint is its key in the engine
_QUEUE_ARN_PARTS: Final = 6
_PATIENCE_MS: Final = 30_000  # "waits 30 seconds for a response after delivering a message"
_LEASE_MS: Final = 60_000
_BLOB_TYPE: Final = "application/json"

__all__ = ["ENVELOPE", "TOPIC", "EventGridDialect", "present"]

Notes = Callable[[int, bytes], Awaitable[Sequence[AttemptNote]]]


class EventGridDialect:
    """`redrive.engine.ports.Dialect` of topics made through Event Grid."""

    def __init__(self, notes: Notes, tokens: WebhookTokens) -> None:
        """Deliver as Event Grid does.

        Args:
            notes: What is remembered of a message's attempts, by its backlog's number and its id.
            tokens: Issues those that webhooks want.
        """
        self._notes = notes
        self._tokens = tokens

    # ---- where it goes ---------------------------------------------------------------------------------------

    def headers(self, topic: Topic, subscription: Subscription) -> Callable[[bytes], bytes]:  # noqa: ARG002 - as Dialect
        """See `Dialect.headers`; beside a message in a queue of this server stands what its receiver is to see."""
        if subscription.protocol != QUEUE:
            return _as_it_is
        schema = delivery_settings(subscription).schema
        return lambda envelope: delivered_as(envelope, schema)

    def queue_of(self, subscription: Subscription) -> ResourceName | None:
        """See `Dialect.queue_of`."""
        if subscription.protocol == PULL:
            return ResourceName.from_key(subscription.endpoint)
        if subscription.protocol != QUEUE:
            return None
        parts = subscription.endpoint.split(":")
        return ResourceName(parts[4], parts[3], parts[5]) if len(parts) == _QUEUE_ARN_PARTS else None

    def dead_letters_to(self, subscription: Subscription, delivery: Delivery) -> ResourceName | None:  # noqa: ARG002 - as Dialect
        """See `Dialect.dead_letters_to`; a letter that its store does not take is dropped."""
        return None if names.is_dead_letter_store(subscription.id) else subscription.dead_letter

    def objection(
        self,
        topic: Topic,  # noqa: ARG002 - as Dialect
        subscription: Subscription,  # noqa: ARG002 - as Dialect
        queue: Queue | None,
        body: str,
        headers: bytes | None = None,  # noqa: ARG002 - as Dialect
    ) -> Attempt | None:
        """See `Dialect.objection`; whoever may subscribe a queue may have it filled."""
        if queue is None:
            return _MISSING
        return _TOO_LARGE if bytes_of(body) > queue.body_bytes_max else None

    def insists(self, subscription: Subscription) -> bool:
        """See `Dialect.insists`; a queue has the answers of a webhook, and its dead letters go where others go."""
        return subscription.protocol == QUEUE

    # ---- how often -------------------------------------------------------------------------------------------

    def plan(self, topic: Topic, subscription: Subscription) -> Plan:
        """See `Dialect.plan`."""
        of_namespace = namespace_letters.is_of_namespace(subscription)
        if names.is_dead_letter_store(subscription.id):
            return namespace_letters.PLAN if of_namespace else dead_letters.PLAN
        settings = delivery_settings(subscription)
        if subscription.protocol == QUEUE:  # handed over one by one
            settings = replace(settings, batch=ONE_EACH)
        if of_namespace:
            return namespace_push.plan(topic, settings)
        return _plan(
            settings.destination_type, settings.attempts_max, settings.minutes_to_live, settings.batch
        )

    # ---- what it gets ----------------------------------------------------------------------------------------

    async def parcel(
        self,
        topic: Topic,  # noqa: ARG002 - as Dialect
        subscription: Subscription,
        deliveries: Sequence[Delivery],
    ) -> Parcel:
        """See `Dialect.parcel`."""
        if not names.is_dead_letter_store(subscription.id):
            settings = delivery_settings(subscription)
            authorization = await self._tokens.authorization(settings.audience)
            return parcels.parcel(subscription, settings, deliveries, authorization)
        of_namespace = namespace_letters.is_of_namespace(subscription)
        texts = [await self._letter_text(one, of_namespace=of_namespace) for one in deliveries]
        return Parcel(
            endpoint=subscription.endpoint,
            body=f"[{','.join(texts)}]".encode(),
            content_type=_BLOB_TYPE,
            headers={"path": letter_path(subscription, deliveries[0])},
            timeout_ms=_PATIENCE_MS,
            headers_kept=("etag", "content-length"),
        )

    async def _letter_text(self, delivery: Delivery, *, of_namespace: bool) -> str:
        published = Published.unpack(delivery.headers)
        letter = published.letter
        if letter is not None and letter.outcome is None:
            notes = await self._notes(letter.backlog, bytes.fromhex(letter.message_id))
            letter = dead_letters.with_last_attempt(letter, notes)
        if of_namespace:
            return namespace_letters.text_of(delivery, letter)
        if letter is None:
            raise ValueError(f"delivery {delivery.seq} is no dead letter")
        return dead_letters.text_of(delivery.body, published, letter)

    # ---- what follows ----------------------------------------------------------------------------------------

    def leads_to(self, fact: Attempted) -> Sequence[Consequence]:
        """See `Dialect.leads_to`.

        What is given up becomes a letter for its store. A blob of letters is an event of its storage account. What is
        delivered to another topic is published there.
        """
        subscription = fact.subscription
        if names.is_dead_letter_store(subscription.id):
            created = blob_created(fact) if fact.attempt.delivered and fact.position == 0 else None
            return () if created is None else (created,)
        if not fact.attempt.delivered:
            settings = delivery_settings(subscription)
            return () if settings.dead_letter_container is None else (_letter(fact, settings),)
        return (_forwarded(fact),) if subscription.protocol == TOPIC else ()


@lru_cache(maxsize=1024)
def _plan(destination_type: str, attempts_max: int, minutes_to_live: int, batch: Batch) -> Plan:
    schedule = replace(EVENT_WEBHOOK, attempts_max=attempts_max, expires_after_ms=minutes_to_live * MINUTE_MS)
    return Plan(
        schedule,
        lease_ms=_LEASE_MS,
        batch=batch,
        answers=outcomes.answers_of(destination_type),
        patience_ms=_PATIENCE_MS,
        probation=outcomes.probation_of(destination_type),
    )


def _as_it_is(envelope: bytes) -> bytes:
    return envelope


def _letter(fact: Attempted, settings: DeliverySettings) -> Consequence:
    delivery = fact.delivery
    published = Published.unpack(delivery.headers)
    letter = dead_letters.letter_of(fact, settings)
    publication = _publication(delivery, delivery.body, replace(published, letter=letter))
    store = names.dead_letter_store(fact.subscription.id)
    return Consequence(fact.topic.name, publication, store, dead_letters.DELAY_MS)


def _forwarded(fact: Attempted) -> Consequence:
    """An event published to the topic that was subscribed to it; such topics take CloudEvents alone."""
    delivery, endpoint = fact.delivery, fact.subscription.endpoint
    resource = ArmId.parse(endpoint)
    topic = None if resource is None else names.topic_name(resource)
    if topic is None:
        raise ValueError(f"{endpoint} is no topic, and took an event")
    text = rendered(delivery.body, Published.unpack(delivery.headers), CLOUD_EVENT_SCHEMA)
    published = Published(CLOUD_EVENT_SCHEMA, endpoint, fact.at)
    return Consequence(topic, _publication(delivery, text, published))


def _publication(delivery: Delivery, body: str, published: Published) -> Publication:
    return Publication(
        id=delivery.message_id,
        body=body,
        bodies={},
        attributes={},
        envelope=published.envelope(),
        bytes_published=bytes_of(body),
    )


def present(delivery: Delivery) -> tuple[str, Mapping[str, Any]]:
    """What who receives a delivery from a queue of this server gets: the event, and no attributes."""
    published = Published.unpack(delivery.headers)
    return rendered(delivery.body, published, published.delivered_as or published.schema), {}


_MISSING: Final = Attempt(Outcome.REFUSED, Reason.MISSING, 404, "The queue does not exist.", 0)
_TOO_LARGE: Final = Attempt(
    Outcome.REFUSED, Reason.TOO_LARGE, 413, "The event is longer than the queue's maximum.", 0
)
