"""Where a publication goes: a route for each subscription that wants it.

A route leads straight into a queue of this server, into the backlog of an endpoint that Redrive pushes to, into a
dead-letter queue where the queue is gone or closed to us, or nowhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from redrive.engine.faults import Faults
from redrive.engine.interest import Wanted
from redrive.engine.ports import Arrival, AttemptNote, Dialect, Runtime, Store
from redrive.engine.queues import Queues
from redrive.engine.topics import Topics
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Ending, Outcome, Transition
from redrive.model.filtering import Subject, Verdict
from redrive.model.message import Publication, bytes_of, content_deduplication_id
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
        asked: How many advanced filters were asked about it, by subscription.
        alone: It goes to one subscriber alone and does not count as published.
        replayed: It comes out of the topic's archive.
    """

    topic: Topic
    publication: Publication
    routes: list[Route] = field(default_factory=list)
    refused: Mapping[Verdict, int] = field(default_factory=dict)
    asked: Sequence[tuple[Subscription, int]] = ()
    alone: bool = False
    replayed: bool = False

    @property
    def arrivals(self) -> list[Arrival]:
        """What enters queues."""
        return [route.arrival for route in self.routes if route.arrival is not None]


@dataclass(slots=True)
class _Letter:
    """A publication while its routes are found.

    Attributes:
        body_bytes: Of the text for everybody; more than any text there is where protocols get different ones.
    """

    topic: Topic
    dialect: Dialect
    publication: Publication
    now: int
    body_bytes: int


@dataclass(frozen=True, slots=True)
class _Lane:
    """What is remembered of a subscription to an unordered topic: where it leads, while nothing about that changes.

    Attributes:
        topic: As it was.
        subscription: As it was.
        queue: Where callers receive it; None: into the backlog of an endpoint.
        bytes_taken: Of a body that it took without an objection.
        headers: See `Dialect.headers`.
    """

    topic: Topic
    subscription: Subscription
    queue: Queue | None
    bytes_taken: int
    headers: Callable[[bytes], bytes]


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
        self._lanes: dict[int, _Lane] = {}
        self._lanes_as_of = queues.changes

    async def routed(self, topic: Topic, publication: Publication, now: int) -> Routed:
        """The routes to all who want it."""
        wanted = await self._wanted(topic, publication)
        routed = Routed(topic, publication, refused=wanted.refused, asked=wanted.asked)
        if publication.screen is not None:
            routed.routes = [await self._screened(routed, one, now) for one in wanted.subscriptions]
            return routed
        letter = self._letter(topic, publication, now)
        lanes = self._current_lanes()
        for subscription in wanted.subscriptions:
            lane = lanes.get(subscription.queue_id)
            if (
                lane is not None
                and lane.subscription is subscription
                and lane.topic is topic
                and letter.body_bytes <= lane.bytes_taken
                and publication.raw_refusal is None
            ):
                route = self._along(lane, publication, now)
            else:
                route = await self._route(letter, subscription)
            routed.routes.append(route)
        return routed

    async def _screened(self, routed: Routed, subscription: Subscription, now: int) -> Route:
        """The route of what a subscriber may see; what it may not see is nobody's dead letter either."""
        screen = routed.publication.screen
        seen = routed.publication if screen is None else screen(subscription)
        if isinstance(seen, Attempt):
            return Route(subscription, None, refusal=seen, dead_refusal=seen)
        return await self._route(self._letter(routed.topic, seen, now), subscription)

    def _along(self, lane: _Lane, publication: Publication, now: int) -> Route:
        """What `_route` would find, at a third of its time."""
        subscription, queue = lane.subscription, lane.queue
        arrival = Arrival(
            subscription.queue_id if queue is None else queue.id,
            self._runtime.message_id(),
            publication.body_for(subscription.protocol),
            lane.headers(publication.envelope),
            now if queue is None else now + queue.delay_ms,
            now,
            publication.group_id,
            False if queue is None else queue.ordered,
        )
        return Route(subscription, arrival, queue)

    def routed_alone(
        self, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> Routed:
        """The route into one subscriber's backlog, who need not have been confirmed."""
        letter = self._letter(topic, publication, now)
        route = Route(subscription, self._arrival(letter, subscription))
        return Routed(topic, publication, [route], alone=True)

    async def routed_again(
        self, topic: Topic, subscription: Subscription, publication: Publication, now: int
    ) -> Routed:
        """The route to one subscriber of what was published before."""
        route = await self._route(self._letter(topic, publication, now), subscription)
        return Routed(topic, publication, [route], alone=True, replayed=True)

    def _letter(self, topic: Topic, publication: Publication, now: int) -> _Letter:
        dialect = self._dialects[topic.dialect]
        body_bytes = _ANY_BYTES if publication.bodies else bytes_of(publication.body)
        return _Letter(topic, dialect, publication, now, body_bytes)

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

    def _current_lanes(self) -> dict[int, _Lane]:
        """The lanes that still hold: none that is older than the last change of a topic, subscription or queue.

        Of a publication to four queues, asking for each where it leads took a quarter of the processor's time.
        """
        if self._lanes_as_of != self._queues.changes or self._faults.ever:
            self._lanes.clear()
            self._lanes_as_of = self._queues.changes
        return self._lanes

    async def _route(self, letter: _Letter, subscription: Subscription) -> Route:
        if subscription.waiting_id is not None and await self._waits(subscription, subscription.waiting_id):
            waiting = replace(subscription, queue_id=subscription.waiting_id)
            return Route(subscription, self._arrival(letter, waiting))
        name = letter.dialect.queue_of(subscription)
        if name is None:
            self._remember(letter, subscription, None)
            return Route(subscription, self._arrival(letter, subscription))
        if letter.publication.raw_refusal is not None and subscription.raw:
            return await self._dead_letter(letter, subscription, letter.publication.raw_refusal)
        if await self._held_back(letter.topic, subscription):
            return Route(subscription, self._arrival(letter, subscription))
        queue = self._queues.known(name) or await self._queues.get(name)
        refusal = _objection(letter, subscription, queue)
        if queue is None or refusal is not None:
            return await self._dead_letter(letter, subscription, refusal or _MISSING)
        self._remember(letter, subscription, queue)
        return Route(subscription, self._arrival(letter, subscription, queue), queue)

    def _remember(self, letter: _Letter, subscription: Subscription, queue: Queue | None) -> None:
        """Remember where a subscription leads, if that is still so: it may have been waited for."""
        topic = letter.topic
        if topic.ordered or subscription.waiting_id is not None:
            return  # where it leads depends on what waits
        bytes_taken = _ANY_BYTES
        if queue is not None:
            if self._queues.known(queue.name) is not queue or letter.publication.bodies:
                return
            bytes_taken = letter.body_bytes
        headers = letter.dialect.headers(topic, subscription)
        self._lanes[subscription.queue_id] = _Lane(topic, subscription, queue, bytes_taken, headers)

    async def _held_back(self, topic: Topic, subscription: Subscription) -> bool:
        """Whether a queue's deliveries wait in the backlog: while it fails, and in order, until that is through."""
        if self._faults.of(subscription.endpoint) is not None:
            return True
        may_wait = self._faults.ever or subscription.waiting_id is not None
        return topic.ordered and may_wait and bool(await self._store.peek(subscription.queue_id, 1))

    async def _waits(self, subscription: Subscription, waiting_id: int) -> bool:
        """Whether a publication waits behind a replay, or behind others that did.

        What waits moves into the backlog, which is looked into after this: nothing overtakes.
        """
        return subscription.held or bool(await self._store.peek(waiting_id, 1))

    async def _dead_letter(self, letter: _Letter, subscription: Subscription, refusal: Attempt) -> Route:
        if letter.dialect.insists(subscription):
            return Route(subscription, self._arrival(letter, subscription))
        if subscription.dead_letter is None:
            return Route(subscription, None, refusal=refusal)
        target = await self._queues.get(subscription.dead_letter)
        objection = _objection(letter, subscription, target)
        if target is None or objection is not None:
            return Route(subscription, None, refusal=refusal, dead_refusal=objection or _MISSING)
        arrival = self._arrival(letter, subscription, target)
        arrival.origin = subscription.queue_id
        arrival.note = AttemptNote(1, letter.now, 0, refusal.reason, refusal.status, refusal.response)
        return Route(subscription, arrival, target, refusal=refusal)

    def _arrival(self, letter: _Letter, subscription: Subscription, queue: Queue | None = None) -> Arrival:
        topic, publication, now = letter.topic, letter.publication, letter.now
        ordered = topic.ordered if queue is None else queue.ordered
        arrival = Arrival(
            subscription.queue_id if queue is None else queue.id,
            self._runtime.message_id(),
            publication.body_for(subscription.protocol),
            letter.dialect.headers(topic, subscription)(publication.envelope),
            now if queue is None else now + queue.delay_ms,
            now,
            None if topic.ordered and not ordered else publication.group_id,
            ordered,
        )
        if topic.ordered and ordered:
            arrival.deduplication_id = deduplication_id(topic, publication)
        return arrival


_ANY_BYTES: Final = 2**63


def _objection(letter: _Letter, subscription: Subscription, queue: Queue | None) -> Attempt | None:
    body = letter.publication.body_for(subscription.protocol)
    return letter.dialect.objection(letter.topic, subscription, queue, body)


def deduplication_id(topic: Topic, publication: Publication) -> str:
    """What a repetition on an ordered topic is recognised by."""
    given = publication.deduplication_id
    if given is None and topic.deduplicates_content:
        return content_deduplication_id(publication.body)
    return given or ""
