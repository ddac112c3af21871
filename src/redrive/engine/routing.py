"""Where a publication goes: a route for each subscription that wants it.

A route leads straight into a queue of this server, into the backlog of an endpoint that Redrive pushes to, into a
dead-letter queue where the queue is gone or closed to us, or nowhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redrive.engine.faults import Faults
from redrive.engine.ports import Arrival, AttemptNote, Dialect, Runtime, Store
from redrive.engine.queues import Queues
from redrive.engine.topics import Topics, Wanted
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Ending, Outcome, Transition
from redrive.model.filtering import Subject, Verdict
from redrive.model.message import Publication, content_deduplication_id
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

_MISSING = Attempt(Outcome.REFUSED, Reason.MISSING, 400, "", 0)
_DELIVERED = Transition(Ending.DELIVERED)
_DEAD_LETTERED = Transition(Ending.DEAD_LETTERED)
_DROPPED = Transition(Ending.DROPPED)


@dataclass(slots=True)
class Route:
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
        """What became of it on the way."""
        if self.refusal is None:
            return _DELIVERED
        return _DROPPED if self.arrival is None else _DEAD_LETTERED


@dataclass(slots=True)
class Routed:
    """One publication and all its routes.

    Attributes:
        topic: Where it is published.
        publication: The message.
        routes: Who gets it.
        refused: How many filters it did not pass, by reason.
        alone: It goes to one subscriber alone and does not count as published.
    """

    topic: Topic
    publication: Publication
    routes: list[Route] = field(default_factory=list)
    refused: Mapping[Verdict, int] = field(default_factory=dict)
    alone: bool = False

    @property
    def arrivals(self) -> list[Arrival]:
        """What enters queues."""
        return [route.arrival for route in self.routes if route.arrival is not None]


class Router:
    """Finds the routes of publications; changes nothing."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        queues: Queues,
        topics: Topics,
        dialects: Mapping[str, Dialect],
        faults: Faults,
    ) -> None:
        """Look into these parts; `dialects` by name."""
        self._store = store
        self._runtime = runtime
        self._queues = queues
        self._topics = topics
        self._dialects = dialects
        self._faults = faults

    async def routed(self, topic: Topic, publication: Publication, now: int) -> Routed:
        """The routes to all who want it."""
        dialect = self._dialects[topic.dialect]
        wanted = await self._wanted(topic, publication)
        routed = Routed(topic, publication, refused=wanted.refused)
        for subscription in wanted.subscriptions:
            at_once = self._route_at_once(dialect, topic, subscription, publication, now)
            route = at_once or await self._route(dialect, topic, subscription, publication, now)
            routed.routes.append(route)
        return routed

    def routed_alone(
        self, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> Routed:
        """The route into one subscriber's backlog, who need not have been confirmed."""
        dialect = self._dialects[topic.dialect]
        arrival = self._arrival(dialect, topic, subscription, publication, now)
        return Routed(topic, publication, [Route(subscription, arrival)], alone=True)

    async def _wanted(self, topic: Topic, publication: Publication) -> Wanted:
        """Who wants it. Where protocols get different texts, a filter on the body sees its own protocol's."""
        subject = Subject(publication.attributes, publication.body, publication.document)
        wanted = await self._topics.wanted(topic, subject)
        others = set(publication.bodies.values()) - {publication.body}
        if not others:
            return wanted
        subscriptions: list[Subscription] = []
        for text in sorted({publication.body, *others}):
            found = await self._topics.wanted(topic, Subject(publication.attributes, text))
            subscriptions += [
                one for one in found.subscriptions if publication.body_for(one.protocol) == text
            ]
        return Wanted(subscriptions, wanted.refused)  # refused once a subscription, whatever texts there are

    def _route_at_once(
        self, dialect: Dialect, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> Route | None:
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
        return Route(subscription, arrival, queue)

    async def _route(
        self, dialect: Dialect, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> Route:
        name = dialect.queue_of(subscription)
        if name is None or await self._held_back(topic, subscription):
            return Route(subscription, self._arrival(dialect, topic, subscription, publication, now))
        queue = self._queues.known(name) or await self._queues.get(name)
        refusal = dialect.objection(topic, subscription, queue, publication.body_for(subscription.protocol))
        if queue is None or refusal is not None:
            return await self._dead_letter(
                dialect, topic, subscription, publication, refusal or _MISSING, now
            )
        arrival = self._arrival(dialect, topic, subscription, publication, now, queue)
        return Route(subscription, arrival, queue)

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
    ) -> Route:
        if subscription.dead_letter is None:
            return Route(subscription, None, refusal=refusal)
        target = await self._queues.get(subscription.dead_letter)
        objection = dialect.objection(
            topic, subscription, target, publication.body_for(subscription.protocol)
        )
        if target is None or objection is not None:
            return Route(subscription, None, refusal=refusal, dead_refusal=objection or _MISSING)
        arrival = self._arrival(dialect, topic, subscription, publication, now, target)
        arrival.origin = subscription.queue_id
        arrival.attempts = 1
        arrival.note = AttemptNote(1, now, 0, refusal.reason, refusal.status, refusal.response)
        return Route(subscription, arrival, target, refusal=refusal)

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
            arrival.deduplication_id = deduplication_id(topic, publication)
        return arrival


def deduplication_id(topic: Topic, publication: Publication) -> str:
    """What a repetition on an ordered topic is recognised by."""
    given = publication.deduplication_id
    if given is None and topic.deduplicates_content:
        return content_deduplication_id(publication.body)
    return given or ""
