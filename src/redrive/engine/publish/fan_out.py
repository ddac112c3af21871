"""Fan out: a message published to a topic becomes a delivery for each subscription that it matches.

Everything a publication leads to is one transaction: deliveries straight into queues of this server, deliveries
into the backlogs of endpoints that Redrive pushes to, and dead letters for queues that are missing or closed to us.
"""

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from redrive.engine.configuration.draft import Draft
from redrive.engine.configuration.queues import Queues
from redrive.engine.configuration.topics import Topics
from redrive.engine.node.memory import FaultInjection, Listeners, SubscriptionContexts
from redrive.engine.node.sealed_store import MessageSeals
from redrive.engine.ports import (
    Enqueued,
    FollowUp,
    MessageStore,
    NewDelivery,
    OrderedPublication,
    QueueStore,
    Runtime,
)
from redrive.engine.ports.facts import Accepted, Attempted, DeadLettered, Undelivered
from redrive.engine.publish.archive import Archived, archive_rows, mark
from redrive.engine.publish.plan import FanOutPlan
from redrive.engine.publish.routing import DeliveryRoute, PublicationRouter, Routed
from redrive.engine.receive.notifier import QueueNotifier
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery, as_replayed
from redrive.model.names import bytes_of, id_text
from redrive.model.queue import DEDUPLICATION_MS, Queue
from redrive.model.topic import Publication, Subscription, Topic, deduplication_id

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoutedFollowUps:
    """The follow-ups of a delivery's end, on their way into its transaction."""

    routed: Sequence[Routed]  # Those whose topic and subscription exist
    now: int  # When their routes were found (ms)

    @property
    def new_deliveries(self) -> list[NewDelivery]:
        """The deliveries that enter queues."""
        return [new_delivery for routed in self.routed for new_delivery in routed.new_deliveries]

    @property
    def has_dead_letter(self) -> bool:
        """True if one of them goes to a single subscription, as dead letters do; others tell of the end."""
        return any(routed.alone for routed in self.routed)


class TopicPublisher:
    """Publishes to topics."""

    def __init__(
        self,
        messages: MessageStore,
        store: QueueStore,
        runtime: Runtime,
        queues: Queues,
        topics: Topics,
        notifier: QueueNotifier,
        contexts: SubscriptionContexts,
        faults: FaultInjection,
        listeners: Listeners,
        seals: MessageSeals,
    ) -> None:
        """Fan out through these parts; `listeners` are told what happened."""
        self._seals = seals
        self._messages = messages
        self._runtime = runtime
        self._topics = topics
        self._notifier = notifier
        self._contexts = contexts
        self._listeners = listeners
        self._router = PublicationRouter(store, runtime, queues, topics, contexts, faults, seals)

    async def publish(self, topic: Topic, publications: Sequence[Publication]) -> list[Enqueued]:
        """Publish messages to one topic, in their order; all they lead to is on disk when this returns.

        A repetition on an ordered topic answers the original and leads to nothing.
        """
        now = self._runtime.clock.now()
        routed = [
            self._router.route_by_plan(topic, publication, now)
            or await self._router.route(topic, publication, now)
            for publication in publications
        ]
        enqueued = await self._enter(routed, now)
        self._tell_all(topic, routed, enqueued, now)
        return enqueued

    async def publish_each(
        self, pairs: Sequence[tuple[Topic, Sequence[Publication]]]
    ) -> list[list[Enqueued]]:
        """Publish to several topics in one transaction: all of it or nothing. The answers, topic by topic.

        Raises:
            ValueError: Some of the topics are ordered and some are not; no verb of the store takes both at once.
        """
        now = self._runtime.clock.now()
        routed = [
            [await self._router.route(topic, publication, now) for publication in publications]
            for topic, publications in pairs
        ]
        flat = [publication for of_topic in routed for publication in of_topic]
        answers = iter(await self._enter(flat, now))
        enqueued = [[next(answers) for _ in of_topic] for of_topic in routed]
        for (topic, _), of_topic, places in zip(pairs, routed, enqueued, strict=True):
            self._tell_all(topic, of_topic, places, now)
        return enqueued

    async def _enter(self, routed: Sequence[Routed], now: int) -> list[Enqueued]:
        """Store all deliveries in one transaction; the result of each publication, without a place if unordered."""
        orders = {publication.topic.ordered for publication in routed}
        if orders == {True, False}:
            raise ValueError("ordered and unordered topics cannot be published to at once")
        if orders == {True}:
            return await self._messages.publish(
                [self._ordered_publication(publication, now) for publication in routed]
            )
        new_deliveries = [
            new_delivery for publication in routed for new_delivery in publication.new_deliveries
        ]
        if new_deliveries:
            await self._messages.enqueue(new_deliveries)
        return [Enqueued(publication.publication.id, 0, repeated=False) for publication in routed]

    def _ordered_publication(self, routed: Routed, now: int) -> OrderedPublication:
        """A publication on an ordered topic, as the store deduplicates it and enters it, with its row in the archive."""
        topic, publication = routed.topic, routed.publication
        key = deduplication_id(topic, publication)
        if topic.deduplicates_per_group:
            key = f"{publication.group_id}\n{key}"
        rows = archive_rows(topic, publication, now)
        for new_delivery in rows:
            new_delivery.sealer = self._seals.of_topic(topic)
        return OrderedPublication(
            topic.id, key, now, now + DEDUPLICATION_MS, publication.id, [*routed.new_deliveries, *rows]
        )

    async def publish_again(
        self, topic: Topic, subscription: Subscription, archive: Sequence[Archived], replay: str
    ) -> None:
        """Publish archived publications to one subscription, each at most once in the replay of that name."""
        now = self._runtime.clock.now()
        again = [
            await self._router.route_again(topic, subscription, former.publication, now) for former in archive
        ]
        for former, routed in zip(archive, again, strict=True):
            for new_delivery in routed.new_deliveries:
                mark(new_delivery, former, replay)
        new_deliveries = [new_delivery for routed in again for new_delivery in routed.new_deliveries]
        places = iter(await self._messages.enqueue(new_deliveries))
        for routed in again:
            repeated = any(next(places).repeated for _ in routed.new_deliveries)
            self._tell(routed, now, repeated=repeated)

    def publish_alone_in(
        self, draft: Draft, topic: Topic, subscription: Subscription, body: str, headers: bytes
    ) -> None:
        """Send a message to one endpoint alone, which need not have been confirmed: its confirmation, for one.

        It enters the backlog in the transaction that writes the draft.
        """
        now = self._runtime.clock.now()
        new_delivery = NewDelivery(
            queue_id=subscription.queue_id,
            message_id=self._runtime.message_id(),
            body=body,
            headers=headers,
            available_at=now,
            enqueued_at=now,
            group_id="" if topic.ordered else None,
            ordered=topic.ordered,
        )
        draft.enqueue(new_delivery)
        draft.afterwards(lambda: self._notifier.announce(subscription.queue_id))

    # ---- follow-ups -------------------------------------------------------------------------------------

    async def route_follow_ups(self, follow_ups: Sequence[FollowUp], now: int) -> RoutedFollowUps:
        """Route what a delivery's end leads to, for the transaction that ends it; `tell` when that is on disk.

        A topic or a subscription that is gone gets nothing.

        Raises:
            ValueError: A topic is ordered: its sequence numbers are given in their own transaction.
        """
        routed = [await self._route_follow_up(follow_up, now) for follow_up in follow_ups]
        return RoutedFollowUps([each for each in routed if each is not None], now)

    async def _route_follow_up(self, follow_up: FollowUp, now: int) -> Routed | None:
        """Route a follow-up to its topic, or to one subscription; None if that does not exist (any more)."""
        topic = await self._topics.get(follow_up.topic)
        if topic is None:
            logger.debug("publish.nowhere topic=%s: it never had a subscription", follow_up.topic.key)
            return None
        if topic.ordered:
            raise ValueError(f"{topic.name.key} is ordered: nothing can follow there")
        if follow_up.subscription_id is None:
            routed = await self._router.route(topic, follow_up.publication, now)
        else:
            subscription = await self._topics.subscriptions.get(topic.name, follow_up.subscription_id)
            if subscription is None:
                logger.warning(
                    "publish.nowhere topic=%s subscription=%s: it was deleted",
                    topic.name.key,
                    follow_up.subscription_id,
                )
                return None
            routed = self._router.route_alone(topic, subscription, follow_up.publication, now)
        for new_delivery in routed.new_deliveries:
            new_delivery.available_at += follow_up.delay_ms
        return routed

    def tell(self, follow_ups: RoutedFollowUps) -> None:
        """Follow-ups are on disk: wake their consumers, and tell the listeners."""
        for routed in follow_ups.routed:
            if not routed.alone:
                self._tell_published(routed.topic, [routed], follow_ups.now)
            self._tell(routed, follow_ups.now, repeated=False)

    # ---- told -------------------------------------------------------------------------------------------

    def _tell_all(
        self, topic: Topic, routed: Sequence[Routed], enqueued: Sequence[Enqueued], now: int
    ) -> None:
        """Tell the listeners of these publications; of one that repeats another only what its filters did."""
        self._tell_published(topic, routed, now)
        if topic.archive_ms:
            self._tell_archived(topic, routed, enqueued, now)
        for publication, enqueued_as in zip(routed, enqueued, strict=True):
            self._tell(publication, now, repeated=enqueued_as.repeated)

    def _tell_published(self, topic: Topic, routed: Sequence[Routed], now: int) -> None:
        total = sum([publication.publication.bytes_published for publication in routed])
        matched = sum([publication.has_subscriber for publication in routed])
        self._listeners.of(topic.dialect).published(topic, len(routed), matched, total, now)

    def _tell_archived(
        self, topic: Topic, routed: Sequence[Routed], enqueued: Sequence[Enqueued], now: int
    ) -> None:
        """Tell the listeners how many publications, and bytes, the topic's archive took."""
        sizes = [
            publication.publication.bytes_published
            for publication, enqueued_as in zip(routed, enqueued, strict=True)
            if not enqueued_as.repeated
        ]
        self._listeners.of(topic.dialect).archived(topic, len(sizes), sum(sizes), now)

    def _tell(self, routed: Routed, now: int, *, repeated: bool) -> None:
        """Tell the listeners what filters did to a publication and, unless it repeats another, where it went."""
        if routed.refused or routed.evaluated:
            self._tell_filtered(routed, now)
        if repeated:
            return
        if routed.plan is not None:
            self._tell_planned(routed, routed.plan, now)
        else:
            self._tell_routes(routed, now)

    def _tell_planned(self, routed: Routed, plan: FanOutPlan, now: int) -> None:
        """Wake the receivers of all queues and backlogs of the plan, and tell of what the queues accepted."""
        due = [new_delivery.queue_id for new_delivery in routed.planned if new_delivery.available_at <= now]
        self._notifier.announce_each(due)
        if len(due) < len(routed.planned):
            for new_delivery in routed.planned:
                if new_delivery.available_at > now:
                    self._notifier.expect(new_delivery.queue_id, new_delivery.available_at)
        if plan.queues:
            body_bytes = bytes_of(routed.publication.body)  # a planned queue gets no text of a protocol's own
            self._tell_accepted(routed, plan.queues, body_bytes, now)

    def _tell_routes(self, routed: Routed, now: int) -> None:
        """Do what `_tell_planned` does for each route found; also tell of those that were refused."""
        sent: dict[int, list[Queue]] = {}  # by the bytes of body that they got: nearly always as many
        for route in routed.routes:
            new_delivery = route.new_delivery
            if new_delivery is not None:
                self._wake(new_delivery, now)
                if route.refusal is None and route.queue is not None:
                    sent.setdefault(bytes_of(new_delivery.body), []).append(route.queue)
            if route.refusal is not None:
                self._tell_refused(routed, route, route.refusal, now)
        for body_bytes, queues in sent.items():
            self._tell_accepted(routed, queues, body_bytes, now)

    def _tell_accepted(self, routed: Routed, queues: Sequence[Queue], body_bytes: int, now: int) -> None:
        attempts = functools.partial(self._attempts, routed, body_bytes, now)
        fact = Accepted(routed.topic, queues, body_bytes, attempts, now, routed.replayed)
        self._listeners.of(routed.topic.dialect).accepted(fact)

    def _tell_filtered(self, routed: Routed, now: int) -> None:
        """Tell the listeners how many subscriptions each verdict of a filter kept the publication from."""
        audience = self._listeners.of(routed.topic.dialect)
        for verdict, number in routed.refused.items():
            audience.filtered(routed.topic, verdict, number, now)
        if routed.evaluated:
            audience.evaluated(routed.topic, routed.evaluated, now)

    def _wake(self, new_delivery: NewDelivery, now: int) -> None:
        if new_delivery.available_at <= now:
            self._notifier.announce(new_delivery.queue_id)
        else:
            self._notifier.expect(new_delivery.queue_id, new_delivery.available_at)

    def _tell_refused(self, routed: Routed, route: DeliveryRoute, refusal: Attempt, now: int) -> None:
        """Tell of a delivery that the endpoint's queue refused, and of the dead letter that it became, if any."""
        audience = self._listeners.of(routed.topic.dialect)
        fact = self._attempted(routed, route, refusal, now)
        if route.queue is not None and route.new_delivery is not None:
            self._listeners.queues.sent(route.queue, 1, bytes_of(route.new_delivery.body), now)
        audience.attempted(fact)
        handover = None
        if route.subscription.dead_letter is not None:
            handover = route.dead_refusal or _accepted(route)
            letter = DeadLettered(routed.topic, route.subscription, fact.delivery, handover, now)
            audience.dead_lettered(letter)
        audience.undelivered(Undelivered(fact, handover, confirmation=False))

    def _attempts(self, routed: Routed, body_bytes: int, now: int) -> list[Attempted]:
        """The deliveries with so many bytes of body that went straight into queues, which no backlog tries first."""
        return [
            self._attempted(routed, route, _accepted(route), now)
            for route in routed.all_routes
            if route.queue is not None
            and route.refusal is None
            and route.new_delivery is not None
            and bytes_of(route.new_delivery.body) == body_bytes
        ]

    def _attempted(self, routed: Routed, route: DeliveryRoute, attempt: Attempt, now: int) -> Attempted:
        topic, subscription = routed.topic, route.subscription
        delivery = _as_delivery(routed, route, now)
        identify = self._contexts.of(topic, subscription).identify
        return Attempted(topic, subscription, delivery, attempt, route.transition, now, identify=identify)


def _accepted(route: DeliveryRoute) -> Attempt:
    name = "" if route.new_delivery is None else id_text(route.new_delivery.message_id)
    return Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "", 0, (("message_id", name),))


def _as_delivery(routed: Routed, route: DeliveryRoute, now: int) -> Delivery:
    """The delivery that listeners are told of: it went straight into a queue, without ever being in a backlog."""
    publication = routed.publication
    envelope = as_replayed(publication.envelope) if routed.replayed else publication.envelope
    return Delivery(
        queue_id=route.subscription.queue_id,
        seq=0,
        available_at=now,
        attempts=1,
        token=None,
        enqueued_at=now,
        sent_at=now,
        first_claimed_at=now,
        message_id=publication.id if route.new_delivery is None else route.new_delivery.message_id,
        group_id=publication.group_id,
        deduplication_id=publication.deduplication_id,
        origin=None,
        headers=envelope if route.new_delivery is None else route.new_delivery.headers,
        body=publication.body_for(route.subscription.protocol)
        if route.new_delivery is None
        else route.new_delivery.body,
    )
