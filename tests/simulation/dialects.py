"""Two delivery profiles: one that says no more than it must, and one that says all that a profile can."""

import random
from collections.abc import Mapping, Sequence

from redrive.engine.ports import FollowUp, Plan, PushRequest, SubscriptionContext
from redrive.engine.ports.facts import Attempted
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import Delivery
from redrive.model.queue import Queue
from redrive.model.topic import Publication, Subscription, Topic
from tests.simulation.subscribers import LEASE_MS, LETTER_DELAY_MS, LETTERED, PLAIN, RESTS, SubscriptionPlan

_MISSING = Attempt(AttemptResult.REFUSED, Reason.MISSING, 400, "")


class Waits:
    """A schedule that is a list of waits, and an end."""

    def __init__(self, waits_ms: tuple[int, ...], lives_ms: int | None) -> None:
        self._waits_ms = waits_ms
        self._lives_ms = lives_ms

    def delay_ms(self, attempt: int, rng: random.Random) -> int | None:
        """The wait after that failed attempt; None: there is none."""
        return self._waits_ms[attempt - 1] if attempt <= len(self._waits_ms) else None

    def expired(self, published_at: int, now: int) -> bool:
        """True if it may be tried no more."""
        return self._lives_ms is not None and now >= published_at + self._lives_ms


class Plain:
    """`redrive.engine.ports.DeliveryProfile` for topics that say no more than they must."""

    name = PLAIN

    def __init__(self, plans: Mapping[str, SubscriptionPlan]) -> None:
        self._plans = plans

    def context(self, topic: Topic, subscription: Subscription) -> SubscriptionContext:
        """As the run's options say; nothing stands beside the body."""
        plan = self._plans.get(subscription.id) or SubscriptionPlan(subscription.id, topic.name.name)
        return SubscriptionContext(
            topic,
            subscription,
            self,
            Plan(
                Waits(plan.waits_ms, plan.lives_ms),
                rate_max=plan.rate_max,
                concurrency_max=plan.concurrency_max,
                lease_ms=LEASE_MS,
                batch=plan.batch,
                soft_timeout_ms=plan.soft_timeout_ms,
                circuit=RESTS if plan.rests else None,
            ),
            headers=lambda envelope: envelope,
            queue=subscription.topic._replace(name=plan.queue) if plan.queue else None,
            dead_letter=subscription.dead_letter,
        )

    def refusal(
        self, context: SubscriptionContext, queue: Queue | None, body: str, headers: bytes | None = None
    ) -> Attempt | None:
        """Every queue that is there takes everything."""
        return _MISSING if queue is None else None

    async def render(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> PushRequest:
        """The bodies, and what they are known by."""
        marks = " ".join(f"{one.seq}/{one.token}/{one.sent_at}" for one in deliveries)
        body = "\n".join(one.body for one in deliveries).encode()
        return PushRequest(
            context.subscription.endpoint, body, "text/plain", {"deliveries": marks}, 2 * LEASE_MS
        )

    def follow_ups(self, fact: Attempted) -> Sequence[FollowUp]:
        """Nothing."""
        return ()


class Lettered(Plain):
    """The same, with a letter about each delivery that is given up."""

    name = LETTERED

    def follow_ups(self, fact: Attempted) -> Sequence[FollowUp]:
        """A letter to the subscription's letter box."""
        box, delivery = self._plans[fact.subscription.id].letters, fact.delivery
        if fact.attempt.delivered or not box:
            return ()
        letter = Publication(delivery.message_id, delivery.body, {}, {}, b"{}", len(delivery.body))
        return (FollowUp(fact.topic.name, letter, box, LETTER_DELAY_MS),)
