"""Operations: the part of the door through which an operator, or a facade for one, steps in."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from redrive.engine.configuration.dead_letter_sources import SCOPES_MAX, DeadLetterOrigin
from redrive.engine.node.memory import METRIC_NAMES, QueueCounters, failed_on_purpose
from redrive.engine.parts import EngineParts
from redrive.engine.ports import PushRequest
from redrive.engine.push.circuit_breakers import Failing
from redrive.engine.push.conditions import EndpointCondition, EndpointState
from redrive.engine.tasks.dead_letters import BATCH_MAX, SET_ASIDE, CauseDetails, DeadLetter, DeadLetterQueue
from redrive.engine.tasks.leased_tasks import LEASE_MS, LeasedTasks
from redrive.engine.tasks.redrive import TASK
from redrive.engine.tasks.redrive_plan import RATE_MAX, RedriveOptions, RedrivePlan
from redrive.engine.tracing import Trace, TracedDelivery
from redrive.model.attempt import NO_ENDPOINT, Attempt
from redrive.model.circuit import OpenCircuit
from redrive.model.delivery import Delivery, is_sealed
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

__all__ = [
    "BATCH_MAX",
    "LEASE_MS",
    "METRIC_NAMES",
    "RATE_MAX",
    "SCOPES_MAX",
    "SET_ASIDE",
    "TASK",
    "CauseDetails",
    "DeadLetter",
    "DeadLetterOrigin",
    "DeadLetterQueue",
    "EndpointCondition",
    "EndpointState",
    "LeasedTasks",
    "Operations",
    "RedriveOptions",
    "RedrivePlan",
    "Trace",
    "TracedDelivery",
]


class Operations:
    """Redrive tasks, replays, dead letters, circuit breakers and fault injection."""

    def __init__(self, parts: EngineParts) -> None:
        self.redrives: Final = parts.redriver
        self.moves: Final = parts.chosen_moves  # Of chosen dead letters, at once
        self.dead_letters: Final = parts.dead_letters
        self.replays: Final = parts.replayer
        self.conditions: Final = parts.conditions  # How endpoints stand
        self.trace: Final = parts.tracer.trace
        self._circuits = parts.circuits
        self._contexts = parts.contexts
        self._topics = parts.topics
        self._endpoints = parts.endpoints
        self._faults = parts.faults
        self._counters = parts.counters
        self._sweeper = parts.sweeper
        self.close_circuit: Final = parts.dispatcher.close_circuit
        self.reopen_circuit: Final = parts.circuits.reopen
        self.next_attempt_at: Final = parts.dispatcher.next_at

    async def drop_archive(self, topic: Topic) -> None:
        """Remove all that a topic has archived, once it archives no more; replays from there fail."""
        await self._sweeper.purge(topic.id)
        await self.replays.round()

    async def request_of(self, letter: DeadLetter) -> PushRequest | None:
        """The request of a further attempt at a dead letter, by its subscription as it is now; None: none is made."""
        subscription = letter.from_subscription
        topic = None if subscription is None else await self._topics.get(subscription.topic)
        if subscription is None or topic is None or is_sealed(letter.delivery):
            return None
        context = self._contexts.of(topic, subscription)
        delivery = replace(letter.delivery, attempts=letter.attempts + 1)
        return None if context.queue is not None else await context.profile.render(context, [delivery])

    async def push_once(
        self, subscription: Subscription, delivery: Delivery, headers: Mapping[str, str]
    ) -> Attempt | None:
        """The result of one attempt at something that no backlog holds: it is not repeated, counted or kept.

        Args:
            subscription: Whose endpoint.
            delivery: As its topic's facade makes those of the subscription.
            headers: Sent besides those of every delivery.

        Returns:
            None: nothing is pushed there: its messages go to a queue, or it is not confirmed.
        """
        topic = await self._topics.get(subscription.topic)
        context = None if topic is None else self._contexts.of(topic, subscription)
        if context is None or context.queue is not None or context.awaits_confirmation:
            return None
        endpoint = self._endpoints.get(subscription.protocol)
        attempt = self._faults.of(subscription.endpoint)  # an injected fault stands in for the push
        if attempt is None and endpoint is not None:
            request = await context.profile.render(context, [delivery])
            attempt = await endpoint.push(replace(request, headers={**request.headers, **headers}))
        return NO_ENDPOINT if attempt is None else context.plan.answers.judge(attempt)

    async def circuit(self, subscription: Subscription) -> OpenCircuit | None:
        """The open circuit breaker of a subscription's endpoint; None: closed."""
        return await self._circuits.of(subscription)

    async def open_circuits(self) -> Mapping[str, OpenCircuit]:
        """Every circuit breaker that is open, by its subscription's key."""
        return await self._circuits.all()

    @property
    def failing(self) -> Mapping[str, Failing]:
        """The rows of failures that endpoints are in as far as this node has seen, by their subscriptions' keys."""
        return self._circuits.rows_of_failures

    async def sweep(self) -> int:
        """Sweep every queue once, and take away what falls due; how many deliveries went."""
        return await self._sweeper.round()

    def counts(self, queue: Queue) -> QueueCounters:
        """The counts of a queue on this node since its start."""
        return self._counters.queue(queue)

    def queue_counts(self) -> Iterator[QueueCounters]:
        """The counts of each queue to which something happened on this node since its start."""
        return iter(self._counters)

    def inject_fault(self, endpoint: str, status: int) -> None:
        """Have every attempt at an endpoint end as if it answered with this status, from now on."""
        self._faults.set(endpoint, failed_on_purpose(status))

    def fault_of(self, endpoint: str) -> Attempt | None:
        """The attempt that stands in for real ones at an endpoint, if one does."""
        return self._faults.of(endpoint)

    def clear_fault(self, endpoint: str) -> None:
        """Let the endpoint answer for itself again."""
        self._faults.clear(endpoint)
