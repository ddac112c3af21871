"""The world outside: endpoints that answer, fail, refuse or hang, and a dialect in which their topics are published."""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from redrive.engine.facts import Attempted
from redrive.engine.ports import Consequence, Parcel, Plan
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery, Outcome
from redrive.model.queue import Queue, ResourceName
from redrive.model.topic import Subscription, Topic
from tests.simulation.options import SubscriptionPlan
from tests.simulation.trace import Trace

LEASE_MS = 3_000  # of an attempt; a slow endpoint takes longer

_OK = Attempt(Outcome.DELIVERED, Reason.ACCEPTED, 200, "", 1)
_BROKEN = Attempt(Outcome.FAILED, Reason.SERVER_ERROR, 503, "", 1)
_REFUSED = Attempt(Outcome.REFUSED, Reason.CLIENT_ERROR, 400, "", 1)
_MISSING = Attempt(Outcome.REFUSED, Reason.MISSING, 400, "", 0)


@dataclass
class Seen:
    """What an endpoint saw: the bodies it took, and those it will never take."""

    plan: SubscriptionPlan
    accepted: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)


class Outside:
    """All endpoints, each by the name of its subscription: `redrive.engine.ports.Endpoint`."""

    def __init__(
        self,
        plans: Mapping[str, SubscriptionPlan],
        pause: Callable[[float], Awaitable[None]],
        chance: random.Random,
        trace: Trace,
    ) -> None:
        self.seen = {name: Seen(plan) for name, plan in plans.items()}
        self.well = False
        self._pause = pause
        self._chance = chance
        self._trace = trace

    async def push(self, parcel: Parcel) -> Attempt:
        """Take a delivery, or not."""
        seen, body = self.seen[parcel.endpoint], parcel.body.decode()
        slow = not self.well and self._chance.random() < seen.plan.slow
        await self._pause(self._chance.uniform(0, 2 * LEASE_MS if slow else 50))
        attempt = self._attempt(seen, body)
        self._trace.note(parcel.endpoint, "sees", repr(body), "and says", attempt.status)
        self._trace.mark(f"pushed: {attempt.reason}")
        return attempt

    def _attempt(self, seen: Seen, body: str) -> Attempt:
        roll = 1.0 if self.well else self._chance.random()
        if roll < seen.plan.broken:
            return _BROKEN
        if roll < seen.plan.broken + seen.plan.refused:
            seen.refused.add(body)
            return _REFUSED
        seen.accepted.add(body)
        return _OK

    async def close(self) -> None:
        """They go on without us."""


class Waits:
    """A schedule that is a list of waits."""

    def __init__(self, waits_ms: tuple[int, ...]) -> None:
        self._waits_ms = waits_ms

    def delay_ms(self, attempt: int, chance: random.Random) -> int | None:
        """The wait after that failed attempt; None: there is none."""
        return self._waits_ms[attempt - 1] if attempt <= len(self._waits_ms) else None

    def expired(self, published_at: int, now: int) -> bool:
        """Never."""
        return False


class Plain:
    """`redrive.engine.ports.Dialect` for topics that say no more than they must."""

    def __init__(self, plans: Mapping[str, SubscriptionPlan]) -> None:
        self._plans = plans

    def headers(self, topic: Topic, subscription: Subscription, envelope: bytes) -> bytes:
        """Nothing beside the body."""
        return envelope

    def queue_of(self, subscription: Subscription) -> ResourceName | None:
        """The queue that a subscription's endpoint names, if it names one."""
        queue = self._plans[subscription.id].queue
        return subscription.topic._replace(name=queue) if queue else None

    def objection(
        self, topic: Topic, subscription: Subscription, queue: Queue | None, body: str
    ) -> Attempt | None:
        """Every queue that is there takes everything."""
        return _MISSING if queue is None else None

    def dead_letters_to(self, subscription: Subscription, delivery: Delivery) -> ResourceName | None:
        """Where the subscription says."""
        return subscription.dead_letter

    def plan(self, topic: Topic, subscription: Subscription) -> Plan:
        """What the run's options say."""
        plan = self._plans[subscription.id]
        return Plan(
            Waits(plan.waits_ms),
            rate_max=plan.rate_max,
            concurrency_max=plan.concurrency_max,
            lease_ms=LEASE_MS,
        )

    async def parcel(
        self, topic: Topic, subscription: Subscription, deliveries: Sequence[Delivery]
    ) -> Parcel:
        """The body alone."""
        (delivery,) = deliveries
        return Parcel(subscription.endpoint, delivery.body.encode(), "text/plain", {}, LEASE_MS)

    def leads_to(self, fact: Attempted) -> Sequence[Consequence]:
        """Nothing."""
        return ()
