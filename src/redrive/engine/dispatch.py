"""Dispatch: deliveries are pushed to endpoints, each subscription at its own pace.

A subscription's backlog is a queue like any other, and its dispatcher is a consumer of it that waits for ever: it
claims what is due, makes the attempts side by side, and settles each by one decision. Between deliveries a
subscription costs one timer; a million retries on their way are a million rows and still one timer.

    due ──claim──► parcel ──push──► attempt ──decide──► settle (delivered, retry, dead letter, dropped)
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redrive.engine.arrivals import Arrivals
from redrive.engine.facts import Attempted, DeadLettered, Listener
from redrive.engine.faults import Faults
from redrive.engine.ports import (
    AttemptNote,
    ClaimOrder,
    Dialect,
    Endpoint,
    Plan,
    Runtime,
    Settlement,
    Store,
    Target,
)
from redrive.engine.queues import Queues
from redrive.engine.topics import Topics
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery, Ending, Limits, Outcome, Transition, decide
from redrive.model.errors import StoreUnavailable
from redrive.model.message import id_text
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

logger = logging.getLogger(__name__)

CLAIM_MAX = (
    100  # deliveries claimed at a time: one transaction, and what a crash leaves to wait for its lease
)
PAGE = 500  # subscriptions read together
LOOKS_MAX = 5_000  # backlogs looked into in one round of upkeep: 0.3 s of work in 30
STORE_AWAY_MS = 1_000  # a store that does not answer is tried again after this


class Dispatcher:
    """Pushes the backlogs of all subscriptions."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        queues: Queues,
        topics: Topics,
        arrivals: Arrivals,
        endpoints: Mapping[str, Endpoint],
        dialects: Mapping[str, Dialect],
        faults: Faults,
        listeners: Sequence[Listener],
    ) -> None:
        """Push through these endpoints, by the subscriptions' protocols."""
        self.store = store
        self.runtime = runtime
        self.queues = queues
        self.topics = topics
        self.arrivals = arrivals
        self.dialects = dialects
        self.endpoints = endpoints
        self.faults = faults
        self.listeners = listeners
        self.attempts = 0
        self._consumers: dict[int, _Consumer] = {}
        self._looked_after = ""
        topics.on_subscription = self._watch
        topics.on_unsubscription = self._unwatch

    async def open(self) -> None:
        """Take up every backlog."""
        after = ""
        while page := await self.topics.all_after(after, PAGE):
            for subscription in page:
                self._watch(subscription)
            after = page[-1].key

    async def look_round(self) -> None:
        """Look into the next backlogs whether anybody told of them or not; all are looked into in turn.

        Subscriptions are made on other nodes, and a node that dies tells nobody what it enqueued or held.
        """
        for _ in range(LOOKS_MAX // PAGE):
            page = await self.topics.all_after(self._looked_after, PAGE)
            for subscription in page:
                self._watch(subscription)
            self._looked_after = page[-1].key if len(page) == PAGE else ""
            if not self._looked_after:
                return

    async def close(self) -> None:
        """Leave what is under way to its leases."""
        work = [task for consumer in self._consumers.values() for task in consumer.stop()]
        await asyncio.gather(*work, return_exceptions=True)

    async def quiet(self) -> None:
        """Return when no attempt is under way: for simulated time, which must not run ahead of them."""
        while work := [task for consumer in self._consumers.values() for task in consumer.work()]:
            await asyncio.wait(work)

    def _watch(self, subscription: Subscription) -> None:
        consumer = self._consumers.get(subscription.queue_id)
        if consumer is None:
            consumer = self._consumers[subscription.queue_id] = _Consumer(self, subscription.queue_id)
            self.arrivals.watch(subscription.queue_id, consumer.wake)
        consumer.wake()

    def _unwatch(self, subscription: Subscription) -> None:
        consumer = self.forget(subscription.queue_id)
        if consumer is not None:
            consumer.stop()

    def forget(self, queue_id: int) -> "_Consumer | None":
        """Watch a backlog no more; whoever pushed it."""
        self.arrivals.unwatch(queue_id)
        return self._consumers.pop(queue_id, None)


class _Consumer:
    """One subscription's backlog being pushed."""

    def __init__(self, dispatcher: Dispatcher, queue_id: int) -> None:
        self._dispatcher = dispatcher
        self._queue_id = queue_id
        self._claiming: asyncio.Task[None] | None = None
        self._attempts: set[asyncio.Task[None]] = set()
        self._woken = False

    def wake(self) -> None:
        """Something may be due."""
        self._woken = True
        if self._claiming is None:
            self._claiming = asyncio.get_running_loop().create_task(self._claim_all())
            self._claiming.add_done_callback(self._claimed_all)

    def work(self) -> list[asyncio.Task[None]]:
        """What is under way."""
        return [*self._attempts, *([self._claiming] if self._claiming else [])]

    def stop(self) -> list[asyncio.Task[None]]:
        """Give up what is under way; its leases run out."""
        work = self.work()
        for task in work:
            task.cancel()
        return work

    def _claimed_all(self, claiming: asyncio.Task[None]) -> None:
        self._claiming = None
        if claiming.cancelled():
            return
        error = claiming.exception()
        if error is not None:
            logger.error("dispatch.interrupted queue=%d", self._queue_id, exc_info=error)
            clock = self._dispatcher.runtime.clock
            clock.call_at(clock.now() + STORE_AWAY_MS, self.wake)
        elif self._woken:
            self.wake()

    async def _claim_all(self) -> None:
        """Claim what is due as long as there is something, and room for it."""
        dispatcher = self._dispatcher
        while True:
            self._woken = False
            terms = await self._terms()
            if terms is None:
                return
            room = terms.plan.concurrency_max - len(self._attempts)
            if room <= 0:
                return  # the next attempt to end wakes us
            claimed = await dispatcher.store.claim(self._order(terms, min(room, CLAIM_MAX)))
            if claimed.deliveries:
                terms = (
                    await self._terms()
                )  # a change made during the claim holds for what was published after it
            if terms is None:
                return
            for delivery in claimed.deliveries:
                self._try(terms, delivery)
            if claimed.next_at is not None and not claimed.deliveries:
                dispatcher.arrivals.expect(self._queue_id, claimed.next_at)
            if not claimed.deliveries and not self._woken:
                return

    async def _terms(self) -> "_Terms | None":
        """Whose backlog it is and how it is pushed, now; None: it is pushed no more."""
        dispatcher = self._dispatcher
        subscription = await dispatcher.topics.subscription_of_queue(self._queue_id)
        if subscription is None:
            dispatcher.forget(self._queue_id)  # another node removed it
            return None
        topic = await dispatcher.topics.get(subscription.topic)
        if topic is None:
            return None
        return _Terms(topic, subscription, dispatcher.dialects[topic.dialect].plan(topic, subscription))

    def _order(self, terms: "_Terms", limit: int) -> ClaimOrder:
        topic, _, plan = terms
        runtime = self._dispatcher.runtime
        return ClaimOrder(
            queue_id=self._queue_id,
            ordered=topic.ordered,
            limit=1 if topic.ordered else limit,
            now=runtime.clock.now(),
            lease_ms=plan.lease_ms,
            token=runtime.token(),
            resumes=True,
            rate_max=plan.rate_max,
        )

    def _try(self, terms: "_Terms", delivery: Delivery) -> None:
        trial = _Trial(self._dispatcher, terms, delivery)
        task = asyncio.get_running_loop().create_task(trial.run())
        self._attempts.add(task)
        task.add_done_callback(self._tried)

    def _tried(self, task: asyncio.Task[None]) -> None:
        self._attempts.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, StoreUnavailable):
            logger.warning("dispatch.unsettled error=%s: tried again when its lease runs out", error)
        elif error is not None:
            logger.error("dispatch.attempt_failed queue=%d", self._queue_id, exc_info=error)
        self.wake()


class _Terms(NamedTuple):
    """Whose delivery it is, and how it is pushed."""

    topic: Topic
    subscription: Subscription
    plan: Plan


class _Trial:
    """One delivery being tried once."""

    __slots__ = ("_delivery", "_dialect", "_dispatcher", "_plan", "_subscription", "_topic")

    def __init__(self, dispatcher: Dispatcher, terms: _Terms, delivery: Delivery) -> None:
        self._dispatcher = dispatcher
        self._topic, self._subscription, self._plan = terms
        self._dialect = dispatcher.dialects[self._topic.dialect]
        self._delivery = delivery

    async def run(self) -> None:
        """Try, decide, settle, tell."""
        dispatcher = self._dispatcher
        name = self._dialect.queue_of(self._subscription)
        queue = None if name is None else await dispatcher.queues.get(name)
        attempt = await self._attempt(queue, is_queue=name is not None)
        dispatcher.attempts += 1
        now = dispatcher.runtime.clock.now()
        transition = self._decide(attempt, now)
        if transition.ending is Ending.DEAD_LETTERED:
            transition = await self._dead_letter(attempt, now)
        else:
            target = Target(queue.id, queue.ordered) if queue is not None and attempt.delivered else None
            await self._settle(attempt, transition, target, now)
        if transition.ending is Ending.RETRY:
            dispatcher.arrivals.expect(self._delivery.queue_id, transition.available_at)
        self._tell(attempt, transition, now)

    async def _attempt(self, queue: Queue | None, *, is_queue: bool) -> Attempt:
        dispatcher = self._dispatcher
        fault = dispatcher.faults.of(self._subscription.endpoint)
        if fault is not None:
            return fault
        if is_queue:
            objection = self._dialect.objection(self._topic, self._subscription, queue, self._delivery.body)
            return objection or _into_queue(self._delivery)
        endpoint = dispatcher.endpoints.get(self._subscription.protocol)
        if endpoint is None:
            return _NO_ENDPOINT
        parcel = await self._dialect.parcel(self._topic, self._subscription, [self._delivery])
        return await endpoint.push(parcel)

    def _decide(self, attempt: Attempt, now: int) -> Transition:
        slower = attempt.reason is Reason.THROTTLED and self._plan.throttled_schedule is not None
        schedule = self._plan.throttled_schedule if slower else self._plan.schedule
        dead_letters = self._dialect.dead_letters_to(self._subscription, self._delivery) is not None
        limits = Limits(dead_letters=dead_letters)
        return decide(
            self._delivery,
            attempt.outcome,
            schedule or self._plan.schedule,
            limits,
            now,
            self._dispatcher.runtime.chance,
        )

    async def _settle(
        self, attempt: Attempt, transition: Transition, target: Target | None, now: int
    ) -> None:
        delivery = self._delivery
        note = None if attempt.delivered else _note(delivery, attempt, now)
        settlement = Settlement(
            delivery.seq, delivery.token or 0, transition.ending, transition.available_at, target, note
        )
        (settled,) = await self._dispatcher.store.settle(
            delivery.queue_id, [settlement], now, ordered=self._topic.ordered
        )
        if not settled.done:
            logger.warning(
                "dispatch.late queue=%d seq=%d: %s", delivery.queue_id, delivery.seq, settled.reason
            )
        elif target is not None:
            self._dispatcher.arrivals.announce(target.queue_id)

    async def _dead_letter(self, attempt: Attempt, now: int) -> Transition:
        """Hand it to the dead-letter queue, if that takes it; a message no queue takes is dropped, and counted."""
        dispatcher = self._dispatcher
        name = self._dialect.dead_letters_to(self._subscription, self._delivery)
        queue = None if name is None else await dispatcher.queues.get(name)
        objection = self._dialect.objection(self._topic, self._subscription, queue, self._delivery.body)
        target = None if queue is None or objection else Target(queue.id, queue.ordered)
        transition = Transition(Ending.DROPPED if target is None else Ending.DEAD_LETTERED)
        await self._settle(attempt, transition, target, now)
        handed = objection or _into_queue(self._delivery)
        if objection is not None:
            logger.warning(
                "delivery.dead_letter_refused subscription=%s queue=%s reason=%s: dropped",
                self._subscription.key,
                None if name is None else name.key,
                objection.reason,
            )
        fact = DeadLettered(self._topic, self._subscription, self._delivery, handed, now)
        for listener in dispatcher.listeners:
            listener.dead_lettered(fact)
        return transition

    def _tell(self, attempt: Attempt, transition: Transition, now: int) -> None:
        delivery = self._delivery
        logger.debug(
            "delivery.attempted subscription=%s message=%s attempt=%d reason=%s status=%d ms=%d next=%s",
            self._subscription.key,
            id_text(delivery.message_id),
            delivery.attempts,
            attempt.reason,
            attempt.status,
            attempt.duration_ms,
            transition.ending,
        )
        fact = Attempted(self._topic, self._subscription, delivery, attempt, transition, now)
        for listener in self._dispatcher.listeners:
            listener.attempted(fact)


_NO_ENDPOINT = Attempt(
    Outcome.REFUSED, Reason.MISSING, 0, "this server is not set up for this kind of endpoint", 0
)


def _into_queue(delivery: Delivery) -> Attempt:
    name = id_text(delivery.message_id)
    return Attempt(Outcome.DELIVERED, Reason.ACCEPTED, 200, "", 0, (("message_id", name),))


def _note(delivery: Delivery, attempt: Attempt, now: int) -> AttemptNote:
    return AttemptNote(
        delivery.attempts, now, attempt.duration_ms, attempt.reason, attempt.status, attempt.response
    )
