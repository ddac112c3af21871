"""Conditions: how a subscription's endpoint stands, for those who ask why nothing arrives."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from redrive.engine.configuration.queues import Queues
from redrive.engine.configuration.topics import Topics
from redrive.engine.node.memory import SubscriptionContexts
from redrive.engine.ports import Endpoint, NeedsSetUp, QueueStore, SubscriptionContext
from redrive.engine.push.circuit_breakers import CircuitBreakers, Failing
from redrive.model.attempt import Reason
from redrive.model.circuit import OpenCircuit
from redrive.model.delivery import Schedule
from redrive.model.topic import Subscription


class EndpointState(enum.StrEnum):
    """The condition of an endpoint; where several are true, the first."""

    UNCONFIRMED = "unconfirmed"  # it has not agreed to get messages
    NOT_SET_UP = "not_set_up"  # this server is not set up for its kind
    CIRCUIT_OPEN = "circuit_open"  # its circuit breaker is open or half open
    FAILING = "failing"  # the last attempt failed, or what is owed first has been tried in vain
    SERVED = "served"


@dataclass(frozen=True, slots=True)
class EndpointCondition:
    """The condition of one subscription's endpoint."""

    condition: EndpointState  # State in one word
    circuit: OpenCircuit | None = None  # Its circuit breaker, where that is not closed
    failing: Failing | None = None  # The failures, where it fails, as far as they are known

    def tried_in_vain(self, failing: Failing | None) -> "EndpointCondition":
        """The condition once it is known how often what is owed first was tried in vain; None: not at all."""
        if failing is None:
            return self
        served = self.condition is EndpointState.SERVED
        return replace(self, condition=EndpointState.FAILING if served else self.condition, failing=failing)

    @property
    def troubled(self) -> bool:
        """True if it is not simply served."""
        return self.condition is not EndpointState.SERVED


class EndpointConditions:
    """Tells the condition of endpoints, from what this node knows and what the store holds."""

    def __init__(
        self,
        store: QueueStore,
        topics: Topics,
        queues: Queues,
        contexts: SubscriptionContexts,
        endpoints: Mapping[str, Endpoint],
        circuits: CircuitBreakers,
    ) -> None:
        self._store = store
        self._topics = topics
        self._queues = queues
        self._contexts = contexts
        self._endpoints = endpoints
        self._circuits = circuits

    async def of(self, subscription: Subscription) -> EndpointCondition:
        """The condition of a subscription's endpoint now."""
        return (await self.of_each([subscription]))[0]

    async def of_each(self, subscriptions: Sequence[Subscription]) -> list[EndpointCondition]:
        """The conditions of several; failures that this node has not seen are read from the notes, for all at once."""
        known_conditions = [await self._known(subscription) for subscription in subscriptions]
        unclear = [
            subscription
            for subscription, condition in zip(subscriptions, known_conditions, strict=True)
            if condition.condition in (EndpointState.SERVED, EndpointState.CIRCUIT_OPEN)
            and condition.failing is None
        ]
        failures = await self._tried_in_vain(unclear)
        return [
            condition.tried_in_vain(failures.get(subscription.queue_id))
            for subscription, condition in zip(subscriptions, known_conditions, strict=True)
        ]

    async def schedule_of(self, subscription: Subscription) -> Schedule | None:
        """The schedule by which deliveries to a subscription are tried again; None: its topic is gone."""
        topic = await self._topics.get(subscription.topic)
        return None if topic is None else self._contexts.of(topic, subscription).plan.schedule

    async def _known(self, subscription: Subscription) -> EndpointCondition:
        """The condition as far as this node knows it without a look at the backlog."""
        circuit = await self._circuits.of(subscription)
        topic = await self._topics.get(subscription.topic)
        if topic is None:
            return EndpointCondition(EndpointState.SERVED, circuit)
        context = self._contexts.of(topic, subscription)
        if context.awaits_confirmation:
            return EndpointCondition(EndpointState.UNCONFIRMED, circuit)
        if context.queue is None and not self.is_set_up(subscription.protocol):
            return EndpointCondition(EndpointState.NOT_SET_UP, circuit)
        failing = await self._failing(context)
        if circuit is not None:
            return EndpointCondition(EndpointState.CIRCUIT_OPEN, circuit, failing)
        return EndpointCondition(EndpointState.FAILING if failing else EndpointState.SERVED, None, failing)

    def is_set_up(self, protocol: str) -> bool:
        """True if this server can push to endpoints of a kind."""
        endpoint = self._endpoints.get(protocol)
        if endpoint is None:
            return False
        return endpoint.set_up if isinstance(endpoint, NeedsSetUp) else True

    async def _failing(self, context: SubscriptionContext) -> Failing | None:
        """The failures that this node saw; of a queue that does not take messages now, its refusal."""
        if context.queue is not None:
            queue = await self._queues.get(context.queue)
            refusal = context.profile.refusal(context, queue, "")
            if refusal is not None:
                return Failing(0, refusal.reason, refusal.status)
        return self._circuits.failing(context.subscription)

    async def _tried_in_vain(self, subscriptions: Sequence[Subscription]) -> dict[int, Failing]:
        """The failures noted of the first delivery in each backlog: seen by other nodes, or before this one started."""
        if not subscriptions:
            return {}
        first = await self._store.first_of_each([subscription.queue_id for subscription in subscriptions])
        keys = [(queue_id, delivery.message_id) for queue_id, delivery in first.items()]
        noted = await self._store.notes_of_each(keys) if keys else {}
        return {
            queue_id: Failing(len(notes), Reason(notes[-1].reason), notes[-1].status, notes[0].at)
            for (queue_id, _), notes in noted.items()
        }
