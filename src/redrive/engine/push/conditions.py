"""Conditions: how a subscription's endpoint stands, for those who ask why nothing arrives."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from redrive.engine.configuration.queues import Queues
from redrive.engine.configuration.topics import Topics
from redrive.engine.ports import Endpoint, NeedsSetUp, Store, SubscriptionContext
from redrive.engine.push.circuit_breakers import CircuitBreakers, Failing
from redrive.engine.push.contexts import SubscriptionContexts
from redrive.model.attempt import Reason
from redrive.model.circuit import OpenCircuit
from redrive.model.topic import Subscription


class Condition(enum.StrEnum):
    """The condition of an endpoint; where several are true, the first."""

    UNCONFIRMED = "unconfirmed"  # it has not agreed to get messages
    NOT_SET_UP = "not_set_up"  # this server is not set up for its kind
    RESTING = "resting"  # its circuit breaker is open or half open
    FAILING = "failing"  # the last attempt failed, or what is owed first has been tried in vain
    SERVED = "served"


@dataclass(frozen=True, slots=True)
class EndpointCondition:
    """The condition of one subscription's endpoint.

    Attributes:
        condition: In one word.
        circuit: Its circuit breaker, where that is not closed.
        failing: The failures, where it fails, as far as they are known.
    """

    condition: Condition
    circuit: OpenCircuit | None = None
    failing: Failing | None = None

    @property
    def troubled(self) -> bool:
        """True if it is not simply served."""
        return self.condition is not Condition.SERVED


class EndpointConditions:
    """Tells how endpoints stand, from what this node knows and what the store holds."""

    def __init__(
        self,
        store: Store,
        topics: Topics,
        queues: Queues,
        contexts: SubscriptionContexts,
        endpoints: Mapping[str, Endpoint],
        circuits: CircuitBreakers,
    ) -> None:
        """Look into these parts."""
        self._store = store
        self._topics = topics
        self._queues = queues
        self._contexts = contexts
        self._endpoints = endpoints
        self._probations = circuits

    async def of(self, subscription: Subscription) -> EndpointCondition:
        """The condition of a subscription's endpoint now."""
        circuit = await self._probations.of(subscription)
        topic = await self._topics.get(subscription.topic)
        if topic is None:
            return EndpointCondition(Condition.SERVED, circuit)
        context = self._contexts.of(topic, subscription)
        if context.awaits_confirmation:
            return EndpointCondition(Condition.UNCONFIRMED, circuit)
        if context.queue is None and not self._is_set_up(subscription.protocol):
            return EndpointCondition(Condition.NOT_SET_UP, circuit)
        failing = await self._failing(context)
        if circuit is not None:
            return EndpointCondition(Condition.RESTING, circuit, failing)
        return EndpointCondition(Condition.FAILING if failing else Condition.SERVED, None, failing)

    def _is_set_up(self, protocol: str) -> bool:
        endpoint = self._endpoints.get(protocol)
        if endpoint is None:
            return False
        return endpoint.set_up if isinstance(endpoint, NeedsSetUp) else True

    async def _failing(self, context: SubscriptionContext) -> Failing | None:
        """The failures: of a queue, whether it takes messages now; seen by this node; else what the backlog says."""
        if context.queue is not None:
            queue = await self._queues.get(context.queue)
            refusal = context.profile.refusal(context, queue, "")
            if refusal is not None:
                return Failing(0, refusal.reason, refusal.status)
        return self._probations.failing(context.subscription) or await self._tried_in_vain(context)

    async def _tried_in_vain(self, context: SubscriptionContext) -> Failing | None:
        queue_id = context.subscription.queue_id
        for delivery in await self._store.peek(queue_id, 1):
            notes = await self._store.notes(queue_id, delivery.message_id)
            if notes:
                return Failing(len(notes), Reason(notes[-1].reason), notes[-1].status)
        return None
