"""Event subscriptions of namespaces' topics: made, shown, changed, removed.

In queue mode there is, beside what every event subscription has (`redrive.protocols.azure.arm.subscribers`), the queue
that callers receive from. It is made before the subscription and removed after it, so that nothing published is routed
to a queue that is not there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from redrive.engine.engine import Engine
from redrive.model.errors import AlreadyExists, NotFound
from redrive.model.queue import CopyTarget, Queue, ResourceName
from redrive.model.topic import Subscription, Topic
from redrive.protocols.azure.arm import event_documents, fields, paging
from redrive.protocols.azure.arm import namespace_subscription_documents as documents
from redrive.protocols.azure.arm.call import ArmCall, Verb, check_theirs
from redrive.protocols.azure.arm.delivery_attributes import MAPPINGS
from redrive.protocols.azure.arm.destinations import EndpointResolver
from redrive.protocols.azure.arm.namespace_documents import id_of
from redrive.protocols.azure.arm.publishers import IN_GROUP, PROVIDER, no_such
from redrive.protocols.azure.arm.subscribers import Subscribers
from redrive.protocols.azure.eventgrid import names
from redrive.protocols.azure.eventgrid.dead_letters import DELAY_MS
from redrive.protocols.azure.eventgrid.dialect import PULL
from redrive.protocols.azure.handshake import Handshakes, Question
from redrive.protocols.azure.namespaces.places import topic_name
from redrive.protocols.azure.wire.answers import empty_answer, json_answer
from redrive.protocols.azure.wire.arm_id import ArmId
from redrive.protocols.azure.wire.errors import invalid
from redrive.protocols.http import Response

SEVERAL: Final = f"{IN_GROUP}/namespaces/{{namespace}}/topics/{{topic}}/eventSubscriptions"
ONE: Final = f"{SEVERAL}/{{name}}"


class NamespaceSubscribers:
    """Writes and removes event subscriptions, those in queue mode with their queues."""

    def __init__(self, engine: Engine, subscribers: Subscribers) -> None:
        """Keep them in this engine; `subscribers` writes and removes what they have in common with all others."""
        self._queues = engine.resources.queues
        self._topics = engine.resources.topics
        self._subscribers = subscribers

    async def of(self, topic: Topic) -> list[Subscription]:
        """A topic's event subscriptions."""
        return await self._subscribers.of(topic)

    async def write(self, topic: Topic, wanted: Subscription) -> Subscription:
        """Make an event subscription, or change the one that stands; a new one begins with an empty queue."""
        if wanted.protocol != PULL:
            return await self._subscribers.write(wanted)
        left = await self._queues.get(ResourceName.from_key(wanted.endpoint))
        if left is not None and await self._topics.subscription(topic.name, wanted.id) is None:
            await self._queues.delete(left)
        await self._write_queue(await self._queue(wanted, topic))
        written = await self._subscribers.write(wanted)
        await self._write_queue(await self._queue(written, topic))
        return written

    async def remove(self, subscription: Subscription) -> None:
        """Take an event subscription away, with what waits in its queue."""
        await self._subscribers.remove(subscription)

    async def remove_all(self, topic: Topic) -> None:
        """Take away all that a topic has."""
        for subscription in await self.of(topic):
            await self.remove(subscription)

    async def follow(self, topic: Topic) -> None:
        """A topic keeps its events for another time now: so do its queues."""
        for subscription in await self.of(topic):
            if subscription.protocol == PULL:
                await self._write_queue(await self._queue(subscription, topic))

    async def _queue(self, subscription: Subscription, topic: Topic) -> Queue:
        """The queue of a subscription; a copy of each dead letter goes to its store, once that is there."""
        queue = documents.engine_queue(subscription, topic)
        store = await self._topics.subscription(topic.name, names.dead_letter_store(subscription.id))
        if store is None or subscription.dead_letter is None:
            return queue
        return replace(queue, copies=CopyTarget(store.queue_id, DELAY_MS))

    async def _write_queue(self, wanted: Queue) -> None:
        while True:
            try:
                if await self._queues.get(wanted.name) is None:
                    await self._queues.create(wanted)
                else:
                    await self._queues.update(wanted.name, lambda current: _in_place_of(current, wanted))
            except (AlreadyExists, NotFound):
                continue  # somebody was faster: look again
            return


def _in_place_of(current: Queue, wanted: Queue) -> Queue:
    return replace(
        wanted,
        id=current.id,
        created_at=current.created_at,
        modified_at=current.modified_at,
        purged_at=current.purged_at,
    )


class NamespaceSubscriptionOperations:
    """What is done to event subscriptions of namespaces' topics."""

    def __init__(
        self,
        engine: Engine,
        subscribers: NamespaceSubscribers,
        handshakes: Handshakes,
        resolve: EndpointResolver,
    ) -> None:
        """Do it through this engine.

        Args:
            engine: Keeps them.
            subscribers: Writes and removes them.
            handshakes: Asks endpoints whether they agree.
            resolve: What stands behind the resource ids of destinations.
        """
        self._topics = engine.resources.topics
        self._subscribers = subscribers
        self._handshakes = handshakes
        self._resolve = resolve

    @property
    def routes(self) -> Mapping[str, Verb]:
        """See `Operations.routes`."""
        return {
            f"PUT {ONE}": self.put,
            f"GET {ONE}": self.get,
            f"PATCH {ONE}": self.patch,
            f"DELETE {ONE}": self.delete,
            f"POST {ONE}/getDeliveryAttributes": self.get_delivery_attributes,
            f"POST {ONE}/getFullUrl": self.get_full_url,
            f"GET {SEVERAL}": self.list,
        }

    async def put(self, call: ArmCall) -> Response:
        """Make it, or put another in its place; what waits in its queue stays."""
        resource = _resource(call)
        topic = await self._topic(resource)
        event_documents.check_name(resource.name)
        given = fields.part(call.document, "properties") or {}
        existing = await self._standing(resource, topic.name)
        if existing is not None and _is_over(existing, call.now):
            await self._subscribers.remove(existing)
            existing = None
        status = HTTPStatus.CREATED if existing is None else HTTPStatus.OK
        resource = resource if existing is None else id_of(existing.attributes)
        return json_answer(await self._written(call, resource, topic, existing, given), status)

    async def get(self, call: ArmCall) -> Response:
        """Show it."""
        _, subscription = await self._found(call)
        return json_answer(documents.shown(subscription, call.now))

    async def patch(self, call: ArmCall) -> Response:
        """Change some of it."""
        topic, subscription = await self._found(call)
        change = fields.part(call.document, "properties") or {}
        given = fields.merged(event_documents.properties_of(subscription), change)
        resource = id_of(subscription.attributes)
        return json_answer(await self._written(call, resource, topic, subscription, given))

    async def delete(self, call: ArmCall) -> Response:
        """Remove it."""
        resource = _resource(call)
        subscription = await self._standing(resource, topic_name(resource))
        if subscription is not None:
            await self._subscribers.remove(subscription)
        return empty_answer(HTTPStatus.NO_CONTENT)

    async def list(self, call: ArmCall) -> Response:
        """A topic's event subscriptions."""
        topic = await self._topic(call.resource(PROVIDER, "namespaces", "topics"))

        def shown(one: Subscription) -> Mapping[str, object]:
            return documents.shown(one, call.now)

        async def fetch(after: str, limit: int) -> Sequence[Subscription]:
            return await self._topics.subscriptions_of(topic.name, after, limit)

        return await paging.page(call, fetch, lambda one: one.key, _listed_name, shown)

    async def get_delivery_attributes(self, call: ArmCall) -> Response:
        """The headers of its deliveries, secrets included; none, where events are received from a queue."""
        _, subscription = await self._found(call)
        return json_answer({"value": _destination(subscription).get(MAPPINGS) or []})

    async def get_full_url(self, call: ArmCall) -> Response:
        """A webhook's URL with its query, which may be a secret."""
        _, subscription = await self._found(call)
        return json_answer({"endpointUrl": _destination(subscription).get("endpointUrl")})

    async def _written(
        self,
        call: ArmCall,
        resource: ArmId,
        topic: Topic,
        existing: Subscription | None,
        given: fields.Document,
    ) -> Mapping[str, object]:
        before = {} if existing is None else event_documents.properties_of(existing)
        wanted = documents.accepted(given, before, topic, self._resolve)
        check_theirs(call, *documents.named(wanted.properties))
        made = documents.engine_subscription(resource, topic, wanted)
        if _is_over(made, call.now):
            raise invalid(f"The expirationTimeUtc '{wanted.properties['expirationTimeUtc']}' is over.")
        question = await self._question(call, wanted, made, existing)
        if question is not None:
            awaiting = event_documents.AWAITING
            made = documents.engine_subscription(resource, topic, wanted, awaiting, question.ends_at)
        written = await self._subscribers.write(topic, made)
        if question is not None:
            written = await self._handshakes.remember(question, written)
        return documents.shown(written, call.now)

    async def _question(
        self,
        call: ArmCall,
        wanted: documents.Accepted,
        made: Subscription,
        existing: Subscription | None,
    ) -> Question | None:
        """None: nobody has to agree, or has agreed; else what is still to be answered."""
        if wanted.destination is None or not wanted.destination.is_webhook:
            return None
        question = await self._handshakes.ask(made, call.base_url, call.now)
        agreed = existing is not None and existing.confirmed and existing.endpoint == made.endpoint
        return None if agreed else question

    async def _topic(self, resource: ArmId) -> Topic:
        """The topic that a resource is, or is at."""
        topic = await self._topics.get(topic_name(resource))
        if topic is None:
            raise no_such(resource._replace(parts=resource.parts[:4]))
        return topic

    async def _standing(self, resource: ArmId, topic: ResourceName) -> Subscription | None:
        """The event subscription, also one that is over and not removed yet."""
        return await self._topics.subscription(topic, names.subscription_id(resource.name))

    async def _found(self, call: ArmCall) -> tuple[Topic, Subscription]:
        resource = _resource(call)
        topic = await self._topic(resource)
        subscription = await self._standing(resource, topic.name)
        if subscription is None or _is_over(subscription, call.now):
            raise no_such(resource)
        return topic, subscription


def _resource(call: ArmCall) -> ArmId:
    topic = call.resource(PROVIDER, "namespaces", "topics")
    return topic.child("eventSubscriptions", call.params["name"])


def _destination(subscription: Subscription) -> Mapping[str, Any]:
    """The properties of where events are pushed; empty in queue mode."""
    configuration = event_documents.properties_of(subscription)["deliveryConfiguration"]
    found: Mapping[str, Any] = (
        documents.destination_of(configuration.get("push") or {}).get("properties") or {}
    )
    return found


def _is_over(subscription: Subscription, now: int) -> bool:
    return subscription.expires_at is not None and subscription.expires_at <= now


def _listed_name(subscription: Subscription) -> str | None:
    if names.is_dead_letter_store(subscription.id):
        return None
    return id_of(subscription.attributes).name
