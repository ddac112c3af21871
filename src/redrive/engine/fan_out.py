"""Fan out: a message published to a topic becomes a delivery for each subscription that wants it.

Everything a publication leads to is one transaction: deliveries straight into queues of this server, deliveries
into the backlogs of endpoints that Redrive pushes to, and dead letters for queues that are gone or closed to us.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from redrive.engine.arrivals import Arrivals
from redrive.engine.facts import Attempted, DeadLettered, Listener
from redrive.engine.faults import Faults
from redrive.engine.ports import Arrival, AttemptNote, Dialect, Enqueued, Gate, Runtime, Store
from redrive.engine.queues import Queues
from redrive.engine.topics import Topics
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery, Ending, Outcome, Transition
from redrive.model.filtering import Subject, Verdict
from redrive.model.message import Publication, bytes_of, content_deduplication_id, id_text
from redrive.model.queue import DEDUPLICATION_MS, Queue
from redrive.model.topic import Subscription, Topic

logger = logging.getLogger(__name__)

_DELIVERED = Transition(Ending.DELIVERED)
_DEAD_LETTERED = Transition(Ending.DEAD_LETTERED)
_DROPPED = Transition(Ending.DROPPED)


@dataclass(slots=True)
class _Route:
    """One delivery of a publication, on its way into a queue.

    Attributes:
        subscription: Whose.
        arrival: Where it enters; None: nowhere, it is dropped.
        queue: The queue it enters, where that is one that callers receive from.
        refusal: Why it does not enter the queue it is for; with an arrival, that is in the dead-letter queue.
        dead_refusal: Why the dead-letter queue does not take it either.
    """

    subscription: Subscription
    arrival: Arrival | None
    queue: Queue | None = None
    refusal: Attempt | None = None
    dead_refusal: Attempt | None = None

    @property
    def transition(self) -> Transition:
        if self.refusal is None:
            return _DELIVERED
        return _DROPPED if self.arrival is None else _DEAD_LETTERED


@dataclass(slots=True)
class _Plan:
    """One publication and all its routes."""

    publication: Publication
    routes: list[_Route] = field(default_factory=list)

    @property
    def arrivals(self) -> list[Arrival]:
        return [route.arrival for route in self.routes if route.arrival is not None]


class TopicPublisher:
    """Publishes to topics."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        queues: Queues,
        topics: Topics,
        arrivals: Arrivals,
        dialects: Mapping[str, Dialect],
        faults: Faults,
        listeners: Sequence[Listener],
    ) -> None:
        """Fan out through these parts; `dialects` by name, `listeners` are told what happened."""
        self._store = store
        self._runtime = runtime
        self._queues = queues
        self._topics = topics
        self._arrivals = arrivals
        self._dialects = dialects
        self._faults = faults
        self._listeners = listeners

    async def publish(self, topic: Topic, publications: Sequence[Publication]) -> list[Enqueued]:
        """Publish messages to one topic, in their order; all they lead to is on disk when this returns.

        A repetition on an ordered topic answers the original and leads to nothing.
        """
        now = self._runtime.clock.now()
        plans = [await self._plan(topic, publication, now) for publication in publications]
        if topic.ordered:
            enqueued = await self._store.publish([_gate(topic, plan, now) for plan in plans])
        else:
            arrivals = [arrival for plan in plans for arrival in plan.arrivals]
            if arrivals:
                await self._store.enqueue(arrivals)
            enqueued = [Enqueued(publication.id, 0, repeated=False) for publication in publications]
        self._tell(topic, plans, enqueued, now)
        return enqueued

    async def send(self, topic: Topic, subscription: Subscription, body: str, headers: bytes) -> None:
        """Send something to one endpoint alone, which need not have been confirmed: that may be what is sent."""
        now = self._runtime.clock.now()
        arrival = Arrival(
            queue_id=subscription.queue_id,
            message_id=self._runtime.message_id(),
            body=body,
            headers=headers,
            available_at=now,
            enqueued_at=now,
            group_id="" if topic.ordered else None,
            ordered=topic.ordered,
        )
        await self._store.enqueue([arrival])
        self._arrivals.announce(subscription.queue_id)

    # ---- where it goes ----------------------------------------------------------------------------------

    async def _plan(self, topic: Topic, publication: Publication, now: int) -> _Plan:
        plan = _Plan(publication)
        dialect = self._dialects[topic.dialect]
        for subscription in await self._wanting(topic, publication, now):
            at_once = self._route_at_once(dialect, topic, subscription, publication, now)
            route = at_once or await self._route(dialect, topic, subscription, publication, now)
            plan.routes.append(route)
        return plan

    async def _wanting(self, topic: Topic, publication: Publication, now: int) -> list[Subscription]:
        """Who wants it. Where protocols get different texts, a filter on the body sees its own protocol's."""
        wanted: list[Subscription] = []
        texts = {publication.body, *publication.bodies.values()}
        for text in sorted(texts):
            found = await self._topics.wanted(topic, Subject(publication.attributes, text))
            if len(texts) == 1:
                wanted = found.subscriptions
            else:
                wanted += [one for one in found.subscriptions if publication.body_for(one.protocol) == text]
            if text == publication.body:  # once a subscription, whatever texts there are
                self._tell_filtered(topic, found.refused, now)
        return wanted

    def _tell_filtered(self, topic: Topic, refused: Mapping[Verdict, int], now: int) -> None:
        for verdict, number in refused.items():
            for listener in self._listeners:
                listener.filtered(topic, verdict, number, now)

    def _route_at_once(
        self, dialect: Dialect, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> _Route | None:
        """The usual case, of which a publication may have thousands: a queue that this node remembers takes it.

        Nothing is waited for here, which makes it a third cheaper than `_route`. None: ask that.
        """
        name = dialect.queue_of(subscription)
        queue = None if name is None or self._faults.ever else self._queues.known(name)
        if queue is None:
            return None
        if dialect.objection(topic, subscription, queue, publication.body_for(subscription.protocol)):
            return None
        arrival = self._arrival(dialect, topic, subscription, publication, now, queue)
        return _Route(subscription, arrival, queue)

    async def _route(
        self, dialect: Dialect, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> _Route:
        name = dialect.queue_of(subscription)
        if name is None or await self._held_back(topic, subscription):
            return _Route(subscription, self._arrival(dialect, topic, subscription, publication, now))
        queue = self._queues.known(name) or await self._queues.get(name)
        refusal = dialect.objection(topic, subscription, queue, publication.body_for(subscription.protocol))
        if queue is None or refusal is not None:
            return await self._dead_letter(
                dialect, topic, subscription, publication, refusal or _MISSING, now
            )
        arrival = self._arrival(dialect, topic, subscription, publication, now, queue)
        return _Route(subscription, arrival, queue)

    async def _held_back(self, topic: Topic, subscription: Subscription) -> bool:
        """Whether a queue's deliveries wait in the backlog: while it fails, and in order, until that is through."""
        if self._faults.of(subscription.endpoint) is not None:
            return True
        return topic.ordered and self._faults.ever and bool(await self._store.peek(subscription.queue_id, 1))

    async def _dead_letter(
        self,
        dialect: Dialect,
        topic: Topic,
        subscription: Subscription,
        publication: Publication,
        refusal: Attempt,
        now: int,
    ) -> _Route:
        if subscription.dead_letter is None:
            return _Route(subscription, None, refusal=refusal)
        target = await self._queues.get(subscription.dead_letter)
        objection = dialect.objection(
            topic, subscription, target, publication.body_for(subscription.protocol)
        )
        if target is None or objection is not None:
            return _Route(subscription, None, refusal=refusal, dead_refusal=objection or _MISSING)
        arrival = self._arrival(dialect, topic, subscription, publication, now, target)
        arrival.origin = subscription.queue_id
        arrival.attempts = 1
        arrival.note = AttemptNote(1, now, 0, refusal.reason, refusal.status, refusal.response)
        return _Route(subscription, arrival, target, refusal=refusal)

    def _arrival(
        self,
        dialect: Dialect,
        topic: Topic,
        subscription: Subscription,
        publication: Publication,
        now: int,
        queue: Queue | None = None,
    ) -> Arrival:
        ordered = topic.ordered if queue is None else queue.ordered
        arrival = Arrival(
            queue_id=subscription.queue_id if queue is None else queue.id,
            message_id=self._runtime.message_id(),
            body=publication.body_for(subscription.protocol),
            headers=dialect.headers(topic, subscription, publication.envelope),
            available_at=now if queue is None else now + queue.delay_ms,
            enqueued_at=now,
            group_id=None if topic.ordered and not ordered else publication.group_id,
            ordered=ordered,
        )
        if topic.ordered and ordered:
            arrival.deduplication_id = _deduplication_id(topic, publication)
        return arrival

    # ---- what happened ----------------------------------------------------------------------------------

    def _tell(self, topic: Topic, plans: Sequence[_Plan], enqueued: Sequence[Enqueued], now: int) -> None:
        total = sum(plan.publication.bytes_published for plan in plans)
        for listener in self._listeners:
            listener.published(topic, len(plans), total, now)
        for plan, place in zip(plans, enqueued, strict=True):
            if not place.repeated:
                for route in plan.routes:
                    self._tell_route(topic, plan.publication, route, now)

    def _tell_route(self, topic: Topic, publication: Publication, route: _Route, now: int) -> None:
        if route.arrival is not None:
            if route.arrival.available_at <= now:
                self._arrivals.announce(route.arrival.queue_id)
            else:
                self._arrivals.expect(route.arrival.queue_id, route.arrival.available_at)
        if route.queue is not None and route.arrival is not None:
            for listener in self._listeners:
                listener.sent(route.queue, 1, bytes_of(route.arrival.body), now)
        if (route.queue is None and route.refusal is None) or not self._listeners:
            return  # not tried yet: it waits in the backlog of an endpoint
        delivery = _as_delivery(publication, route, now)
        attempt = route.refusal or _accepted(route)
        fact = Attempted(topic, route.subscription, delivery, attempt, route.transition, now)
        for listener in self._listeners:
            listener.attempted(fact)
        if route.refusal is not None and route.subscription.dead_letter is not None:
            handed = route.dead_refusal or _accepted(route)
            for listener in self._listeners:
                listener.dead_lettered(DeadLettered(topic, route.subscription, delivery, handed, now))


_MISSING = Attempt(Outcome.REFUSED, Reason.MISSING, 400, "", 0)


def _accepted(route: _Route) -> Attempt:
    name = "" if route.arrival is None else id_text(route.arrival.message_id)
    return Attempt(Outcome.DELIVERED, Reason.ACCEPTED, 200, "", 0, (("message_id", name),))


def _as_delivery(publication: Publication, route: _Route, now: int) -> Delivery:
    return Delivery(
        queue_id=route.subscription.queue_id,
        seq=0,
        available_at=now,
        attempts=1,
        token=None,
        enqueued_at=now,
        sent_at=now,
        first_claimed_at=now,
        message_id=publication.id if route.arrival is None else route.arrival.message_id,
        group_id=publication.group_id,
        deduplication_id=publication.deduplication_id,
        origin=None,
        headers=publication.envelope if route.arrival is None else route.arrival.headers,
        body=publication.body_for(route.subscription.protocol),
    )


def _gate(topic: Topic, plan: _Plan, now: int) -> Gate:
    publication = plan.publication
    key = _deduplication_id(topic, publication)
    if topic.deduplicates_per_group:
        key = f"{publication.group_id}\n{key}"
    return Gate(topic.id, key, now, now + DEDUPLICATION_MS, publication.id, plan.arrivals)


def _deduplication_id(topic: Topic, publication: Publication) -> str:
    given = publication.deduplication_id
    if given is None and topic.deduplicates_content:
        return content_deduplication_id(publication.body)
    return given or ""
