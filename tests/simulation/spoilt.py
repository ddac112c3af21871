"""Engines with one thing wrong, on a store that is right."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from redrive.engine.configuration.matching import Matches
from redrive.engine.engine import Engine
from redrive.engine.ports import Batch, Endpoint, Plan, PushRequest, SubscriptionContext
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Schedule
from redrive.model.filtering import Subject
from redrive.model.topic import Subscription, Topic
from tests.simulation.subscribers import LETTERED, PLAIN
from tests.simulation.world import InMemory


class Indiscriminate(InMemory):
    """An engine that sends everything to everybody."""

    def spoil(self, engine: Engine) -> None:
        async def wanted(topic: Topic, _: Subject) -> Matches:
            return Matches(
                [one for one in await engine.resources.subscriptions.of(topic.name) if one.confirmed], {}
            )

        engine.resources.subscriptions.wanting = wanted  # type: ignore[method-assign, assignment]  # that is the point


class Remembering(InMemory):
    """An engine that answers by what it remembers, also where another node has changed it unheard."""

    def spoil(self, engine: Engine) -> None:
        async def stand(_: object) -> bool:
            return True

        engine.resources.documents._still_stand = stand  # type: ignore[method-assign]  # that is the point


class Restless(InMemory):
    """An engine that lets nobody rest."""

    def spoil(self, engine: Engine) -> None:
        async def of(_: Subscription) -> None:
            return None

        engine.parts.circuits.of = of  # type: ignore[method-assign, assignment]  # that is the point


class Forsaking(InMemory):
    """An engine that asks the store once to settle what was pushed."""

    needs = PLAIN

    def spoil(self, engine: Engine) -> None:
        async def once(_number: int, _until: int, work: Callable[[], Awaitable[Any]]) -> Any:
            return await work()

        engine.parts.dispatcher.parts.retrier.retry_until_lease_ends = once  # type: ignore[method-assign, assignment]  # that is the point


class Crowding(InMemory):
    """An engine whose nodes all try at once when a rest is over."""

    def spoil(self, engine: Engine) -> None:
        async def probe(*_: object) -> bool:
            return True

        engine.parts.circuits.probe = probe  # type: ignore[method-assign]  # that is the point


class Replanned(InMemory):
    """An engine that does not keep to its plans; the base of those that follow."""

    def spoil(self, engine: Engine) -> None:
        contexts = engine.parts.contexts.of

        def replanned(topic: Topic, subscription: Subscription) -> SubscriptionContext:
            context = contexts(topic, subscription)
            return replace(context, plan=self.replan(context.plan))

        engine.parts.contexts.of = replanned  # type: ignore[method-assign]  # that is the point

    @staticmethod
    def replan(plan: Plan) -> Plan:
        """Return the plan, spoilt by this mutant."""
        return plan


class Greedy(Replanned):
    """Takes more along than a batch may hold."""

    needs = LETTERED

    @staticmethod
    def replan(plan: Plan) -> Plan:
        return replace(plan, batch=Batch(100, 10_000))


class Untiring(Replanned):
    """Tries what is past its time."""

    needs = LETTERED

    @staticmethod
    def replan(plan: Plan) -> Plan:
        return replace(plan, schedule=_Endless(plan.schedule))


class _Endless:
    def __init__(self, real: Schedule) -> None:
        self.delay_ms = real.delay_ms

    def expired(self, published_at: int, now: int) -> bool:
        return False


class Dismissive(InMemory):
    """An engine that does not hear an endpoint that answers late."""

    def spoil(self, engine: Engine) -> None:
        for protocol, endpoint in list(engine.parts.dispatcher.parts.endpoints.items()):
            engine.add_endpoint(protocol, _Dismissed(endpoint, engine))


class _Dismissed:
    def __init__(self, real: Endpoint, engine: Engine) -> None:
        self._real = real
        self._clock = engine.clock
        self.close = real.close

    async def push(self, push_request: PushRequest) -> Attempt:
        began = self._clock.now()
        attempt = await self._real.push(push_request)
        if attempt.delivered and self._clock.now() > began + 1_000:
            return Attempt(AttemptResult.FAILED, Reason.TIMED_OUT, 0, "", 1)
        return attempt
