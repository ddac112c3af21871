"""The plan of a topic's fan-out: what its publications lead to, as far as it does not depend on the message.

    topic, subscriptions ── routed one by one ──► a planned route each ──► the plan ── every publication ──► deliveries

A publication that is routed one subscription at a time leaves a planned route of each that accepts it straight away: the
queue or the backlog, its delay, its sealer and how its headers begin. All of them serve until this node hears of the next
change of any document, made here or on another node: a topic, a subscription and its filter, a queue and its policy, its
dead-letter queue or its key, a replay. Then the next publication is routed one by one again. So a plan is never older
than what the directory remembers, and what the long way would go by (`Directory.changes`).

Finding each route anew took a quarter of the processor's time of a publication to four queues.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from redrive.engine.configuration.queues import Queues
from redrive.engine.node.memory import FaultInjection
from redrive.engine.ports import NewDelivery, Sealer, SubscriptionContext
from redrive.model.queue import Queue
from redrive.model.topic import Publication, Subscription, Topic

ANY_BYTES: Final = 2**63
# Routes, and plans; some 300 bytes each. Forgetting them all costs each topic one publication the long way.
_ROUTES_MAX: Final = 50_000


@dataclass(slots=True)
class PlannedRoute:
    """The route of a subscription of an unordered topic, for as long as no document changes."""

    topic: Topic  # The identical object that it was found for
    subscription: Subscription  # The identical object
    context: SubscriptionContext  # Theirs
    queue: Queue | None  # The queue that callers receive from; None: the backlog of an endpoint
    bytes_taken: int  # The size of a body that the queue did not refuse
    sealer: Sealer | None  # Sealer of the queue or the backlog
    # What each delivery takes from them: looking it up each time took as long as making the delivery.
    into_id: int = field(init=False)  # The number of the queue or the backlog
    delay_ms: int = field(init=False)
    ordered: bool = field(init=False)
    to_headers: Callable[[bytes], bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.into_id = self.subscription.queue_id if self.queue is None else self.queue.id
        self.delay_ms = 0 if self.queue is None else self.queue.delay_ms
        self.ordered = self.queue is not None and self.queue.ordered
        self.to_headers = self.context.headers

    def delivery(self, publication: Publication, message_id: bytes, now: int) -> NewDelivery:
        """The delivery of a publication as it enters the queue."""
        new_delivery = NewDelivery(
            self.into_id,
            message_id,
            publication.body_for(self.subscription.protocol) if publication.bodies else publication.body,
            self.to_headers(publication.envelope),
            now + self.delay_ms,
            now,
            publication.group_id,
            self.ordered,
        )
        if self.sealer is not None:
            new_delivery.sealer = self.sealer
        return new_delivery


@dataclass(frozen=True, slots=True)
class FanOutPlan:
    """The planned routes of all subscriptions that a message goes to."""

    topic: Topic
    subscriptions: Sequence[Subscription]  # The identical list that the topic's matcher handed out
    routes: Sequence[PlannedRoute]  # One for each of them
    queues: Sequence[Queue]  # Those that callers receive from
    bytes_taken: int  # The size of a body that none of them refused

    def deliveries(
        self, publication: Publication, new_id: Callable[[], bytes], now: int
    ) -> list[NewDelivery]:
        """The deliveries of a publication, one for each subscription."""
        return [route.delivery(publication, new_id(), now) for route in self.routes]


class FanOutPlans:
    """The plans and planned routes that still hold; none is made where endpoints are made to fail."""

    def __init__(self, queues: Queues, faults: FaultInjection) -> None:
        self._queues = queues
        self._faults = faults
        self._changes_seen = queues.changes
        self._routes: dict[int, PlannedRoute] = {}  # By the numbers of subscriptions' backlogs
        self._plans: dict[int, FanOutPlan] = {}  # By topic

    def add(self, route: PlannedRoute) -> None:
        """Remember a route that was found just now, unless something changed meanwhile."""
        if self._changes_seen != self._queues.changes or self._faults.are_used:
            return
        if len(self._routes) >= _ROUTES_MAX:
            self._forget()
        self._routes[route.subscription.queue_id] = route

    def of(self, topic: Topic, subscriptions: Sequence[Subscription], body_bytes: int) -> FanOutPlan | None:
        """The plan for a message of that size to these subscriptions; None: some of them have no route yet."""
        self.refresh()
        plan = self._plans.get(topic.id)
        if plan is None or plan.subscriptions is not subscriptions or plan.topic is not topic:
            plan = self._make(topic, subscriptions)
        return None if plan is None or body_bytes > plan.bytes_taken else plan

    def route(self, topic: Topic, subscription: Subscription, body_bytes: int) -> PlannedRoute | None:
        """The planned route of one subscription for a message of that size."""
        route = self._routes.get(subscription.queue_id)
        if route is None or route.subscription is not subscription or route.topic is not topic:
            return None
        return None if body_bytes > route.bytes_taken else route

    def refresh(self) -> None:
        """Forget everything if a document changed."""
        if self._changes_seen != self._queues.changes or self._faults.are_used:
            self._forget()
            self._changes_seen = self._queues.changes

    def _forget(self) -> None:
        self._routes.clear()
        self._plans.clear()

    def _make(self, topic: Topic, subscriptions: Sequence[Subscription]) -> FanOutPlan | None:
        """Make a plan of planned routes; None: some subscription has none yet."""
        routes: list[PlannedRoute] = []
        for subscription in subscriptions:
            route = self.route(topic, subscription, 0)
            if route is None:
                return None
            routes.append(route)
        queues = [route.queue for route in routes if route.queue is not None]
        if len(self._plans) >= _ROUTES_MAX:
            self._plans.clear()
        bytes_taken = min((route.bytes_taken for route in routes), default=ANY_BYTES)
        plan = self._plans[topic.id] = FanOutPlan(topic, subscriptions, routes, queues, bytes_taken)
        return plan
