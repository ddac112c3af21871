"""Fan out: a message published to a topic becomes a delivery for each subscription that wants it.

Everything a publication leads to is one transaction: deliveries straight into queues of this server, deliveries
into the backlogs of endpoints that Redrive pushes to, and dead letters for queues that are gone or closed to us.
"""

import functools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redrive.engine.archive import Archived, archived, mark
from redrive.engine.arrivals import Arrivals
from redrive.engine.facts import Accepted, Attempted, DeadLettered, Listener
from redrive.engine.faults import Faults
from redrive.engine.ports import Arrival, Consequence, Dialect, Enqueued, Gate, Runtime, Store
from redrive.engine.queues import Queues
from redrive.engine.routing import Route, Routed, Router, deduplication_id
from redrive.engine.topics import Topics
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery, Outcome
from redrive.model.message import Publication, bytes_of, id_text
from redrive.model.queue import DEDUPLICATION_MS, Queue
from redrive.model.replay import replayed
from redrive.model.topic import Subscription, Topic

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Led:
    """What consequences lead to, on its way into a transaction.

    Attributes:
        routed: Each consequence whose topic and subscription are there.
        now: The moment it was found (ms).
    """

    routed: Sequence[Routed]
    now: int

    @property
    def arrivals(self) -> list[Arrival]:
        """What enters queues."""
        return [arrival for one in self.routed for arrival in one.arrivals]


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
        self._topics = topics
        self._arrivals = arrivals
        self._listeners = listeners
        self._router = Router(store, runtime, queues, topics, dialects, faults)

    async def publish(self, topic: Topic, publications: Sequence[Publication]) -> list[Enqueued]:
        """Publish messages to one topic, in their order; all they lead to is on disk when this returns.

        A repetition on an ordered topic answers the original and leads to nothing.
        """
        now = self._runtime.clock.now()
        routed = [await self._router.routed(topic, one, now) for one in publications]
        enqueued = await self._enter(routed, now)
        self._tell_all(topic, routed, enqueued, now)
        return enqueued

    async def publish_each(
        self, pairs: Sequence[tuple[Topic, Sequence[Publication]]]
    ) -> list[list[Enqueued]]:
        """Publish to several topics, in one transaction: all of it or nothing. What became of it, topic by topic.

        Raises:
            ValueError: Some of the topics are ordered and some are not; no verb of the store takes both at once.
        """
        now = self._runtime.clock.now()
        routed = [[await self._router.routed(topic, one, now) for one in these] for topic, these in pairs]
        flat = [one for these in routed for one in these]
        answers = iter(await self._enter(flat, now))
        enqueued = [[next(answers) for _ in these] for these in routed]
        for (topic, _), these, places in zip(pairs, routed, enqueued, strict=True):
            self._tell_all(topic, these, places, now)
        return enqueued

    async def _enter(self, routed: Sequence[Routed], now: int) -> list[Enqueued]:
        ordered = {one.topic.ordered for one in routed}
        if len(ordered) == 2:  # noqa: PLR2004 - True and False
            raise ValueError("ordered and unordered topics cannot be published to at once")
        if True in ordered:
            return await self._store.publish([_gate(one, now) for one in routed])
        arrivals = [arrival for one in routed for arrival in one.arrivals]
        if arrivals:
            await self._store.enqueue(arrivals)
        return [Enqueued(one.publication.id, 0, repeated=False) for one in routed]

    async def arrivals_for(self, consequences: Sequence[Consequence], now: int) -> Led:
        """What a delivery's end leads to, for the transaction that ends it; `tell` follows when that is on disk.

        A topic or a subscription that is gone gets nothing. Topics are unordered ones.
        """
        return Led([one for each in consequences if (one := await self._led(each, now)) is not None], now)

    async def _led(self, consequence: Consequence, now: int) -> Routed | None:
        topic = await self._topics.get(consequence.topic)
        if topic is None:
            logger.debug("publish.nowhere topic=%s: nobody ever subscribed there", consequence.topic.key)
            return None
        if topic.ordered:
            raise ValueError(f"{topic.name.key} is ordered: nothing can follow there")
        if consequence.subscription_id is None:
            routed = await self._router.routed(topic, consequence.publication, now)
        else:
            subscription = await self._topics.subscription(topic.name, consequence.subscription_id)
            if subscription is None:
                logger.warning(
                    "publish.nowhere topic=%s subscription=%s: it is gone",
                    topic.name.key,
                    consequence.subscription_id,
                )
                return None
            routed = self._router.routed_alone(topic, subscription, consequence.publication, now)
        for arrival in routed.arrivals:
            arrival.available_at += consequence.delay_ms
        return routed

    async def publish_again(
        self, topic: Topic, subscription: Subscription, these: Sequence[Archived], replay: str
    ) -> None:
        """Publish what an archive holds to one subscriber, once in the replay of that name."""
        now = self._runtime.clock.now()
        routed = [await self._router.routed_again(topic, subscription, one.publication, now) for one in these]
        for one, again in zip(these, routed, strict=True):
            for arrival in again.arrivals:
                mark(arrival, one, replay)
        places = iter(await self._store.enqueue([arrival for one in routed for arrival in one.arrivals]))
        for again in routed:
            repeated = any(next(places).repeated for _ in again.arrivals)
            self._tell(again, now, repeated=repeated)

    def tell(self, led: Led) -> None:
        """What consequences led to is on disk: wake who waits for it, and tell the listeners."""
        for one in led.routed:
            if not one.alone:
                self._tell_published(one.topic, [one], led.now)
            self._tell(one, led.now, repeated=False)

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

    # ---- what happened ----------------------------------------------------------------------------------

    def _tell_all(
        self, topic: Topic, routed: Sequence[Routed], enqueued: Sequence[Enqueued], now: int
    ) -> None:
        self._tell_published(topic, routed, now)
        if topic.archive_ms:
            self._tell_archived(topic, routed, enqueued, now)
        for one, place in zip(routed, enqueued, strict=True):
            self._tell(one, now, repeated=place.repeated)

    def _tell_published(self, topic: Topic, routed: Sequence[Routed], now: int) -> None:
        total = sum(one.publication.bytes_published for one in routed)
        matched = sum(bool(one.routes) for one in routed)
        for listener in self._listeners:
            listener.published(topic, len(routed), matched, total, now)

    def _tell_archived(
        self, topic: Topic, routed: Sequence[Routed], enqueued: Sequence[Enqueued], now: int
    ) -> None:
        sizes = [
            one.publication.bytes_published
            for one, place in zip(routed, enqueued, strict=True)
            if not place.repeated
        ]
        for listener in self._listeners:
            listener.archived(topic, len(sizes), sum(sizes), now)

    def _tell(self, routed: Routed, now: int, *, repeated: bool) -> None:
        if routed.refused or routed.asked:
            self._tell_filtered(routed, now)
        if repeated:
            return
        sent: list[tuple[Queue, int]] = []
        for route in routed.routes:
            arrival = route.arrival
            if arrival is not None:
                self._wake(arrival, now)
                if route.refusal is None and route.queue is not None:
                    sent.append((route.queue, bytes_of(arrival.body)))
            if route.refusal is not None:
                self._tell_refused(routed, route, route.refusal, now)
        if sent:
            fact = Accepted(routed.topic, sent, functools.partial(_taken, routed, now), now, routed.replayed)
            for listener in self._listeners:
                listener.accepted(fact)

    def _tell_filtered(self, routed: Routed, now: int) -> None:
        for listener in self._listeners:
            for verdict, number in routed.refused.items():
                listener.filtered(routed.topic, verdict, number, now)
            if routed.asked:
                listener.asked(routed.topic, routed.asked, now)

    def _wake(self, arrival: Arrival, now: int) -> None:
        if arrival.available_at <= now:
            self._arrivals.announce(arrival.queue_id)
        else:
            self._arrivals.expect(arrival.queue_id, arrival.available_at)

    def _tell_refused(self, routed: Routed, route: Route, refusal: Attempt, now: int) -> None:
        fact = _attempted(routed, route, refusal, now)
        handed = route.dead_refusal or _accepted(route)
        for listener in self._listeners:
            if route.queue is not None and route.arrival is not None:
                listener.sent(route.queue, 1, bytes_of(route.arrival.body), now)
            listener.attempted(fact)
            if route.subscription.dead_letter is not None:
                listener.dead_lettered(
                    DeadLettered(routed.topic, route.subscription, fact.delivery, handed, now)
                )


def _taken(routed: Routed, now: int) -> list[Attempted]:
    """What went straight into queues; what entered an endpoint's backlog has not been tried yet."""
    taken = [route for route in routed.routes if route.queue is not None and route.refusal is None]
    return [_attempted(routed, route, _accepted(route), now) for route in taken]


def _attempted(routed: Routed, route: Route, attempt: Attempt, now: int) -> Attempted:
    delivery = _as_delivery(routed, route, now)
    return Attempted(routed.topic, route.subscription, delivery, attempt, route.transition, now)


def _accepted(route: Route) -> Attempt:
    name = "" if route.arrival is None else id_text(route.arrival.message_id)
    return Attempt(Outcome.DELIVERED, Reason.ACCEPTED, 200, "", 0, (("message_id", name),))


def _as_delivery(routed: Routed, route: Route, now: int) -> Delivery:
    publication = routed.publication
    unsent = replayed(publication.envelope) if routed.replayed else publication.envelope
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
        headers=unsent if route.arrival is None else route.arrival.headers,
        body=publication.body_for(route.subscription.protocol)
        if route.arrival is None
        else route.arrival.body,
    )


def _gate(routed: Routed, now: int) -> Gate:
    topic, publication = routed.topic, routed.publication
    key = deduplication_id(topic, publication)
    if topic.deduplicates_per_group:
        key = f"{publication.group_id}\n{key}"
    return Gate(
        topic.id,
        key,
        now,
        now + DEDUPLICATION_MS,
        publication.id,
        [*routed.arrivals, *archived(topic, publication, now)],
    )
