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
from redrive.engine.ports import AttemptNote, NewDelivery, QueueStore, Runtime, SubscriptionContext
from redrive.engine.publish.plan import ANY_BYTES, FanOutPlan, FanOutPlans, PlannedRoute
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import DEAD_LETTERED, DELIVERED, DROPPED, Transition
from redrive.model.filtering import FilterVerdict, Subject
from redrive.model.names import bytes_of
from redrive.model.queue import Queue
from redrive.model.topic import Publication, Subscription, Topic, deduplication_id

_MISSING: Final = Attempt(AttemptResult.REFUSED, Reason.MISSING, 400, "")


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
    # One for each subscription that it matches; none where there is a plan.
    routes: Sequence[DeliveryRoute] = ()
    # The number of filters it did not pass, by reason.
    refused: Mapping[FilterVerdict, int] = field(default_factory=dict)
    # The number of advanced filters that were evaluated, by subscription.
    evaluated: Sequence[tuple[Subscription, int]] = ()
    alone: bool = False  # It goes to one subscriber alone and does not count as published
    replayed: bool = False  # It comes out of the topic's archive
    plan: FanOutPlan | None = None  # The plan that all its deliveries were made by
    planned: Sequence[NewDelivery] = ()  # These deliveries, one for each route of the plan

    @property
    def new_deliveries(self) -> Sequence[NewDelivery]:
        """The deliveries that enter queues."""
        if self.plan is not None:
            return self.planned
        return [route.new_delivery for route in self.routes if route.new_delivery is not None]

    @property
    def has_subscriber(self) -> bool:
        """True if a subscription matches."""
        return bool(self.planned or self.routes)

    @property
    def all_routes(self) -> Sequence[DeliveryRoute]:
        """One route for each subscription that it matches, spelled out where there is a plan."""
        if self.plan is None:
            return self.routes
        return [
            DeliveryRoute(route.subscription, new_delivery, route.queue)
            for route, new_delivery in zip(self.plan.routes, self.planned, strict=True)
        ]


@dataclass(slots=True)
class _PublishContext:
    """A publication while its routes are found."""

    topic: Topic
    publication: Publication
    now: int
    # Of the default text; more than any text there is where protocols get different ones.
    body_bytes: int


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
        self._plans = FanOutPlans(queues, faults)

    async def route(self, topic: Topic, publication: Publication, now: int) -> Routed:
        """The routes to all subscriptions that match."""
        matches = await self._matches(topic, publication)
        routed = Routed(topic, publication, refused=matches.refused, evaluated=matches.evaluated)
        if publication.screen is not None:
            routed.routes = [
                await self._screened_route(routed, subscription, now)
                for subscription in matches.subscriptions
            ]
        elif not self._follow_plan(routed, matches.subscriptions, now):
            publishing = _publishing(topic, publication, now)
            routed.routes = [await self._route_to(publishing, each) for each in matches.subscriptions]
        return routed

    def route_by_plan(self, topic: Topic, publication: Publication, now: int) -> Routed | None:
        """The answer of `route` without waiting, where every subscription of the topic gets all and is planned."""
        subscriptions = self._topics.subscriptions.wanting_all(topic)
        if subscriptions is None or publication.screen is not None:
            return None
        routed = Routed(topic, publication)
        return routed if self._follow_plan(routed, subscriptions, now) else None

    def _follow_plan(self, routed: Routed, subscriptions: Sequence[Subscription], now: int) -> bool:
        """Make all deliveries of a publication by a plan, if there is one."""
        publication = routed.publication
        if publication.raw_refusal is not None:
            return False
        plan = self._plans.of(routed.topic, subscriptions, _body_bytes(publication))
        if plan is None:
            return False
        routed.plan, routed.planned = plan, plan.deliveries(publication, self._runtime.message_id, now)
        return True

    async def _route_to(self, publishing: _PublishContext, subscription: Subscription) -> DeliveryRoute:
        """The route to a subscription, by its plan where the topic has one for it."""
        topic, publication = publishing.topic, publishing.publication
        planned = self._plans.route(topic, subscription, publishing.body_bytes)
        if planned is None or publication.raw_refusal is not None:
            return await self._find_route(publishing, self._contexts.of(topic, subscription), subscription)
        new_delivery = planned.delivery(publication, self._runtime.message_id(), publishing.now)
        return DeliveryRoute(subscription, new_delivery, planned.queue)

    async def _screened_route(self, routed: Routed, subscription: Subscription, now: int) -> DeliveryRoute:
        """The route of a publication as the subscriber may see it; one that it may not see is not dead-lettered."""
        screen = routed.publication.screen
        visible = routed.publication if screen is None else screen(subscription)
        if isinstance(visible, Attempt):  # a refusal
            return DeliveryRoute(subscription, None, refusal=visible, dead_refusal=visible)
        context = self._contexts.of(routed.topic, subscription)
        return await self._find_route(_publishing(routed.topic, visible, now), context, subscription)

    def route_alone(
        self, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> Routed:
        """The route into one subscription's backlog, which need not have been confirmed."""
        context = self._contexts.of(topic, subscription)
        backlog = self._into_backlog(_publishing(topic, publication, now), context)
        return Routed(topic, publication, [DeliveryRoute(subscription, backlog)], alone=True)

    async def route_again(
        self, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> Routed:
        """The route to one subscription of a message that was published before."""
        context = self._contexts.of(topic, subscription)
        route = await self._find_route(_publishing(topic, publication, now), context, subscription)
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
        # Each subscription is refused once, however many texts there are: the counts of the last one stand for all.
        return Matches(subscriptions, matches.refused)

    def _plan(
        self,
        publishing: _PublishContext,
        context: SubscriptionContext,
        subscription: Subscription,
        queue: Queue | None,
    ) -> None:
        """Remember a route as planned, if it depends on nothing but documents."""
        topic = publishing.topic
        if topic.ordered or subscription.waiting_id is not None:
            return
        bytes_taken = ANY_BYTES
        sealer = self._seals.of_topic(topic) if queue is None else self._seals.of_queue(queue)
        if queue is not None:
            if sealer is not None and not sealer.lasts:
                return
            # another queue by now, or texts by protocol, whose sizes were not tried
            if self._queues.known(queue.name) is not queue or publishing.publication.bodies:
                return
            bytes_taken = publishing.body_bytes
        self._plans.add(PlannedRoute(topic, subscription, context, queue, bytes_taken, sealer))

    # ---- one route ------------------------------------------------------------------------------------

    async def _find_route(
        self, publishing: _PublishContext, context: SubscriptionContext, subscription: Subscription
    ) -> DeliveryRoute:
        """The route of a subscription that has no planned one; it is planned, if it can be."""
        waiting_id = subscription.waiting_id
        if waiting_id is not None and await self._waits(subscription, waiting_id):
            return DeliveryRoute(subscription, self._into_backlog(publishing, context, waiting_id))
        if context.queue is None:
            self._plan(publishing, context, subscription, None)
            return DeliveryRoute(subscription, self._into_backlog(publishing, context))
        if publishing.publication.raw_refusal is not None and subscription.raw:
            return await self._refused_route(publishing, context, publishing.publication.raw_refusal)
        if await self._held_back(publishing.topic, subscription):
            return DeliveryRoute(subscription, self._into_backlog(publishing, context))
        queue = self._queues.known(context.queue) or await self._queues.get(context.queue)
        refusal = await self._refusal(publishing, context, queue)
        if queue is None or refusal is not None:
            return await self._refused_route(publishing, context, refusal or _MISSING)
        self._plan(publishing, context, subscription, queue)
        return DeliveryRoute(subscription, self._into_queue(publishing, context, queue), queue)

    async def _held_back(self, topic: Topic, subscription: Subscription) -> bool:
        """True if a queue's deliveries wait in the backlog: while it fails, and in order, until that is through."""
        if self._faults.of(subscription.endpoint) is not None:
            return True
        may_wait = self._faults.are_used or subscription.waiting_id is not None
        return topic.ordered and may_wait and bool(await self._store.peek(subscription.queue_id, 1))

    async def _waits(self, subscription: Subscription, waiting_id: int) -> bool:
        """True if a publication waits behind a replay, or behind others that did.

        Those that wait move into the backlog, which is looked into after this: nothing overtakes.
        """
        return subscription.is_held or bool(await self._store.peek(waiting_id, 1))

    async def _refused_route(
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
        """The delivery as it enters the subscription's backlog, or the one (`backlog_id`) that holds it for a replay."""
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
    return _PublishContext(topic, publication, now, _body_bytes(publication))


def _body_bytes(publication: Publication) -> int:
    return ANY_BYTES if publication.bodies else bytes_of(publication.body)
