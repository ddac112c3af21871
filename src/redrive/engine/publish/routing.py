"""Routing: a publication gets a route for each subscription that it matches.

A route leads straight into a queue of this server, into the backlog of an endpoint that Redrive pushes to, into a
dead-letter queue where the queue is missing or refuses the message, or nowhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from redrive.engine.configuration.matching import Matches
from redrive.engine.configuration.queues import Queues
from redrive.engine.configuration.topics import Topics
from redrive.engine.node.memory import FaultInjection, SubscriptionContexts
from redrive.engine.node.sealed_store import MessageSeals
from redrive.engine.ports import AttemptNote, NewDelivery, QueueStore, Runtime, Sealer, SubscriptionContext
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import DEAD_LETTERED, DELIVERED, DROPPED, Transition
from redrive.model.filtering import FilterVerdict, Subject
from redrive.model.message import Publication
from redrive.model.names import bytes_of, content_deduplication_id
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

_MISSING: Final = Attempt(AttemptResult.REFUSED, Reason.MISSING, 400, "", 0)
_ANY_BYTES: Final = 2**63


@dataclass(slots=True)
class DeliveryRoute:
    """One delivery of a publication, on its way into a queue."""

    subscription: Subscription  # Subscription it is for
    # The delivery as it enters a queue; None: it enters none, and is dropped.
    new_delivery: NewDelivery | None
    queue: Queue | None = None  # The queue it enters, where that is one that callers receive from
    # The reason why the endpoint's queue does not take it; `new_delivery` then enters the dead-letter queue.
    refusal: Attempt | None = None
    dead_refusal: Attempt | None = None  # The reason why the dead-letter queue does not take it either

    @property
    def transition(self) -> Transition:
        """The outcome of the delivery on the way."""
        if self.refusal is None:
            return DELIVERED
        return DROPPED if self.new_delivery is None else DEAD_LETTERED


@dataclass(slots=True)
class Routed:
    """One publication and all its routes."""

    topic: Topic  # Topic it is published to
    publication: Publication  # The message
    routes: list[DeliveryRoute] = field(default_factory=list)  # One for each subscription that it matches
    # The number of filters it did not pass, by reason.
    refused: Mapping[FilterVerdict, int] = field(default_factory=dict)
    # The number of advanced filters that were evaluated, by subscription.
    evaluated: Sequence[tuple[Subscription, int]] = ()
    alone: bool = False  # It goes to one subscriber alone and does not count as published
    replayed: bool = False  # It comes out of the topic's archive

    @property
    def new_deliveries(self) -> list[NewDelivery]:
        """The deliveries that enter queues."""
        return [route.new_delivery for route in self.routes if route.new_delivery is not None]


@dataclass(slots=True)
class _PublishContext:
    """A publication while its routes are found."""

    topic: Topic
    publication: Publication
    now: int
    # Of the default text; more than any text there is where protocols get different ones.
    body_bytes: int


@dataclass(frozen=True, slots=True)
class _CachedRoute:
    """The route of a subscription of an unordered topic, for as long as no document changes."""

    topic: Topic  # The identical object that the routes were computed for
    subscription: Subscription  # The identical object
    context: SubscriptionContext  # Theirs
    queue: Queue | None  # The queue that callers receive from; None: the backlog of an endpoint
    bytes_taken: int  # The size of a body that the queue did not refuse
    sealer: Sealer | None  # Sealer of the queue or the backlog


class PublicationRouter:
    """Finds the routes of publications; changes nothing."""

    def __init__(
        self,
        store: QueueStore,
        runtime: Runtime,
        queues: Queues,
        topics: Topics,
        contexts: SubscriptionContexts,
        faults: FaultInjection,
        seals: MessageSeals,
    ) -> None:
        self._seals = seals
        self._store = store
        self._runtime = runtime
        self._queues = queues
        self._topics = topics
        self._contexts = contexts
        self._faults = faults
        self._cached: dict[int, _CachedRoute] = {}
        self._cached_as_of = queues.changes

    async def routed(self, topic: Topic, publication: Publication, now: int) -> Routed:
        """The routes to all subscriptions that match."""
        matches = await self._matches(topic, publication)
        routed = Routed(topic, publication, refused=matches.refused, evaluated=matches.evaluated)
        if publication.screen is not None:
            routed.routes = [
                await self._screened(routed, subscription, now) for subscription in matches.subscriptions
            ]
            return routed
        publishing = _publishing(topic, publication, now)
        cached_routes = self._cached_routes()
        for subscription in matches.subscriptions:
            cached = cached_routes.get(subscription.queue_id)
            if (
                cached is not None
                and cached.subscription is subscription
                and cached.topic is topic
                and publishing.body_bytes <= cached.bytes_taken
                and publication.raw_refusal is None
            ):
                route = self._by_cache(cached, publication, now)
            else:
                route = await self._route(publishing, self._contexts.of(topic, subscription), subscription)
            routed.routes.append(route)
        return routed

    async def _screened(self, routed: Routed, subscription: Subscription, now: int) -> DeliveryRoute:
        """The route of what a subscriber may see; what it may not see is not dead-lettered either."""
        screen = routed.publication.screen
        seen = routed.publication if screen is None else screen(subscription)
        if isinstance(seen, Attempt):
            return DeliveryRoute(subscription, None, refusal=seen, dead_refusal=seen)
        context = self._contexts.of(routed.topic, subscription)
        return await self._route(_publishing(routed.topic, seen, now), context, subscription)

    def _by_cache(self, cached: _CachedRoute, publication: Publication, now: int) -> DeliveryRoute:
        """The route that `_route` would find, at a third of its time."""
        subscription, queue = cached.subscription, cached.queue
        new_delivery = NewDelivery(
            subscription.queue_id if queue is None else queue.id,
            self._runtime.message_id(),
            publication.body_for(subscription.protocol),
            cached.context.headers(publication.envelope),
            now if queue is None else now + queue.delay_ms,
            now,
            publication.group_id,
            False if queue is None else queue.ordered,
        )
        new_delivery.sealer = cached.sealer
        return DeliveryRoute(subscription, new_delivery, queue)

    def routed_alone(
        self, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> Routed:
        """The route into one subscription's backlog, which need not have been confirmed."""
        context = self._contexts.of(topic, subscription)
        backlog = self._into_backlog(_publishing(topic, publication, now), context)
        return Routed(topic, publication, [DeliveryRoute(subscription, backlog)], alone=True)

    async def routed_again(
        self, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> Routed:
        """The route to one subscription of a message that was published before."""
        context = self._contexts.of(topic, subscription)
        route = await self._route(_publishing(topic, publication, now), context, subscription)
        return Routed(topic, publication, [route], alone=True, replayed=True)

    async def _matches(self, topic: Topic, publication: Publication) -> Matches:
        """The subscriptions that match. Where protocols get different texts, a filter on the body sees its own."""
        subject = Subject(publication.attributes, publication.body, publication.document)
        matches = await self._topics.subscriptions.wanting(topic, subject)
        others = set(publication.bodies.values()) - {publication.body}
        if not others:
            return matches
        subscriptions: list[Subscription] = []
        for text in sorted({publication.body, *others}):
            matches = await self._topics.subscriptions.wanting(topic, Subject(publication.attributes, text))
            subscriptions += [
                subscription
                for subscription in matches.subscriptions
                if publication.body_for(subscription.protocol) == text
            ]
        return Matches(
            subscriptions, matches.refused
        )  # refused once a subscription, whatever texts there are

    # ---- remembered routes ------------------------------------------------------------------------------

    def _cached_routes(self) -> dict[int, _CachedRoute]:
        """The routes that still hold: none is older than the last change of a topic, subscription or queue.

        Of a publication to four queues, finding each route anew took a quarter of the processor's time.
        """
        if self._cached_as_of != self._queues.changes or self._faults.ever:
            self._cached.clear()
            self._cached_as_of = self._queues.changes
        return self._cached

    def _remember(
        self,
        publishing: _PublishContext,
        context: SubscriptionContext,
        subscription: Subscription,
        queue: Queue | None,
    ) -> None:
        """Remember a route, unless something changed while it was found."""
        topic = publishing.topic
        if topic.ordered or subscription.waiting_id is not None:
            return  # the route depends on the deliveries that wait
        bytes_taken = _ANY_BYTES
        sealer = self._seals.of_topic(topic) if queue is None else self._seals.of_queue(queue)
        if queue is not None:
            if sealer is not None and not sealer.lasts:
                return
            if self._queues.known(queue.name) is not queue or publishing.publication.bodies:
                return
            bytes_taken = publishing.body_bytes
        self._cached[subscription.queue_id] = _CachedRoute(
            topic, subscription, context, queue, bytes_taken, sealer
        )

    # ---- one route ------------------------------------------------------------------------------------

    async def _route(
        self, publishing: _PublishContext, context: SubscriptionContext, subscription: Subscription
    ) -> DeliveryRoute:
        waiting_id = subscription.waiting_id
        if waiting_id is not None and await self._waits(subscription, waiting_id):
            return DeliveryRoute(subscription, self._into_backlog(publishing, context, waiting_id))
        if context.queue is None:
            self._remember(publishing, context, subscription, None)
            return DeliveryRoute(subscription, self._into_backlog(publishing, context))
        if publishing.publication.raw_refusal is not None and subscription.raw:
            return await self._refused(publishing, context, publishing.publication.raw_refusal)
        if await self._held_back(publishing.topic, subscription):
            return DeliveryRoute(subscription, self._into_backlog(publishing, context))
        queue = self._queues.known(context.queue) or await self._queues.get(context.queue)
        refusal = await self._refusal(publishing, context, queue)
        if queue is None or refusal is not None:
            return await self._refused(publishing, context, refusal or _MISSING)
        self._remember(publishing, context, subscription, queue)
        return DeliveryRoute(subscription, self._into_queue(publishing, context, queue), queue)

    async def _held_back(self, topic: Topic, subscription: Subscription) -> bool:
        """True if a queue's deliveries wait in the backlog: while it fails, and in order, until that is through."""
        if self._faults.of(subscription.endpoint) is not None:
            return True
        may_wait = self._faults.ever or subscription.waiting_id is not None
        return topic.ordered and may_wait and bool(await self._store.peek(subscription.queue_id, 1))

    async def _waits(self, subscription: Subscription, waiting_id: int) -> bool:
        """True if a publication waits behind a replay, or behind others that did.

        Those that wait move into the backlog, which is looked into after this: nothing overtakes.
        """
        return subscription.held or bool(await self._store.peek(waiting_id, 1))

    async def _refused(
        self, publishing: _PublishContext, context: SubscriptionContext, refusal: Attempt
    ) -> DeliveryRoute:
        """The route of a message that the endpoint's queue does not take."""
        subscription = context.subscription
        if context.retries_refusals or refusal.result is AttemptResult.FAILED:
            return DeliveryRoute(subscription, self._into_backlog(publishing, context))
        if context.dead_letter is None:
            return DeliveryRoute(subscription, None, refusal=refusal)
        target = await self._queues.get(context.dead_letter)
        dead_refusal = await self._refusal(publishing, context, target)
        if target is None or dead_refusal is not None:
            return DeliveryRoute(subscription, None, refusal=refusal, dead_refusal=dead_refusal or _MISSING)
        new_delivery = self._into_queue(publishing, context, target)
        new_delivery.origin = subscription.queue_id
        new_delivery.note = AttemptNote(
            1, publishing.now, 0, refusal.reason, refusal.status, refusal.response
        )
        return DeliveryRoute(subscription, new_delivery, target, refusal=refusal)

    def _into_backlog(
        self, publishing: _PublishContext, context: SubscriptionContext, backlog_id: int | None = None
    ) -> NewDelivery:
        topic, publication, now = publishing.topic, publishing.publication, publishing.now
        new_delivery = NewDelivery(
            context.subscription.queue_id if backlog_id is None else backlog_id,
            self._runtime.message_id(),
            publication.body_for(context.subscription.protocol),
            context.headers(publication.envelope),
            now,
            now,
            publication.group_id,
            topic.ordered,
        )
        new_delivery.sealer = self._seals.of_topic(topic)
        if topic.ordered:
            new_delivery.deduplication_id = deduplication_id(topic, publication)
        return new_delivery

    def _into_queue(
        self, publishing: _PublishContext, context: SubscriptionContext, queue: Queue
    ) -> NewDelivery:
        """The delivery as it enters a queue; in an unordered one, an ordered topic's groups mean nothing."""
        topic, publication, now = publishing.topic, publishing.publication, publishing.now
        new_delivery = NewDelivery(
            queue.id,
            self._runtime.message_id(),
            publication.body_for(context.subscription.protocol),
            context.headers(publication.envelope),
            now + queue.delay_ms,
            now,
            None if topic.ordered and not queue.ordered else publication.group_id,
            queue.ordered,
        )
        new_delivery.sealer = self._seals.of_queue(queue)
        if topic.ordered and queue.ordered:
            new_delivery.deduplication_id = deduplication_id(topic, publication)
        return new_delivery

    async def _refusal(
        self, publishing: _PublishContext, context: SubscriptionContext, queue: Queue | None
    ) -> Attempt | None:
        body = publishing.publication.body_for(context.subscription.protocol)
        return await self._seals.refusal(context, queue, body)


def _publishing(topic: Topic, publication: Publication, now: int) -> _PublishContext:
    body_bytes = _ANY_BYTES if publication.bodies else bytes_of(publication.body)
    return _PublishContext(topic, publication, now, body_bytes)


def deduplication_id(topic: Topic, publication: Publication) -> str:
    """The text by which a repetition on an ordered topic is recognised."""
    chosen_id = publication.deduplication_id
    if chosen_id is None and topic.deduplicates_content:
        return content_deduplication_id(publication.body)
    return chosen_id or ""
