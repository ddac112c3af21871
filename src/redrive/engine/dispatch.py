"""Dispatch: deliveries are pushed to endpoints, each subscription at its own pace.

A subscription's backlog is a queue like any other, and its dispatcher is a consumer of it that waits for ever: it
claims what is due and tries it side by side, each by a `Trial`. Between deliveries a subscription costs one timer; a
million retries on their way are a million rows and still one timer.

    due ──claim──► parcel ──push──► attempt ──decide──► settle (delivered, retry, dead letter, dropped)
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace

from redrive.engine.means import Means, Terms
from redrive.engine.ports import ONE_EACH, Batch, Claimed, ClaimOrder, Dialect
from redrive.engine.topics import Topics
from redrive.engine.trial import Trial
from redrive.model.delivery import Delivery
from redrive.model.errors import StoreUnavailable
from redrive.model.message import bytes_of
from redrive.model.topic import Subscription

logger = logging.getLogger(__name__)

CLAIM_MAX = (
    100  # deliveries claimed at a time: one transaction, and what a crash leaves to wait for its lease
)
PIECE = 500  # of a larger batch, claimed at a time: 10 ms of SQLite's, in which nobody else has his turn
PAGE = 500  # subscriptions read together
LOOKS_MAX = 5_000  # backlogs looked into in one round of upkeep: 0.3 s of work in 30
STORE_AWAY_MS = 1_000  # a store that does not answer is tried again after this
LOOK_AGAIN_MS = 10  # a claim passes over what another node is about to take; sooner would be a busy loop
_ANY_NUMBER = 2**31


class Dispatcher:
    """Pushes the backlogs of all subscriptions."""

    def __init__(self, means: Means, topics: Topics, dialects: Mapping[str, Dialect]) -> None:
        """Push by these means; `dialects` by name."""
        self.means = means
        self.topics = topics
        self.dialects = dialects
        self.attempts = 0
        self._consumers: dict[int, _Consumer] = {}
        self._looked_after = ""
        self._unseen: set[int] = set()
        self._closed = False
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
                self._unseen.discard(subscription.queue_id)
                self._watch(subscription)
            self._looked_after = page[-1].key if len(page) == PAGE else ""
            if not self._looked_after:
                self._look_at_the_unseen()
                return

    def _look_at_the_unseen(self) -> None:
        """A backlog that was in no page has lost its subscription, on another node: who looks finds that out."""
        for queue_id in self._unseen & self._consumers.keys():
            self._consumers[queue_id].wake()
        self._unseen = set(self._consumers)

    async def lift(self, subscription: Subscription) -> bool:
        """End the probation of a subscription's endpoint, and serve it at once; whether there was one."""
        lifted = await self.means.probations.lift(subscription)
        self._watch(subscription)
        return lifted

    async def drain(self, seconds: float) -> None:
        """Take up nothing any more, and let attempts end that are under way: who is cut off is pushed again."""
        self._closed = True
        for consumer in self._consumers.values():
            consumer.rest()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while work := self._work():
                    await asyncio.wait(work)

    async def close(self) -> None:
        """Leave what is under way to its leases, and take up nothing any more, whatever is heard of."""
        self._closed = True
        if left := self.means.unsettled.number:
            logger.warning("dispatch.left number=%d: the store was away; they are pushed again", left)
        consumers = [self.forget(queue_id) for queue_id in list(self._consumers)]
        work = [task for consumer in consumers if consumer is not None for task in consumer.stop()]
        await asyncio.gather(*work, return_exceptions=True)

    async def quiet(self) -> None:
        """Return when no attempt is under way but what hangs: for simulated time, which must not run ahead of them."""
        await self.means.patience.quiet(self._work)

    def _work(self) -> list[asyncio.Task[None]]:
        return [task for consumer in self._consumers.values() for task in consumer.work()]

    def _watch(self, subscription: Subscription) -> None:
        if self._closed:
            return
        consumer = self._consumers.get(subscription.queue_id)
        if consumer is None:
            consumer = self._consumers[subscription.queue_id] = _Consumer(self, subscription.queue_id)
            self.means.arrivals.watch(subscription.queue_id, consumer.wake)
        consumer.wake()

    def _unwatch(self, subscription: Subscription) -> None:
        consumer = self.forget(subscription.queue_id)
        if consumer is not None:
            consumer.stop()

    def forget(self, queue_id: int) -> "_Consumer | None":
        """Watch a backlog no more; whoever pushed it."""
        self.means.arrivals.unwatch(queue_id)
        return self._consumers.pop(queue_id, None)


class _Consumer:
    """One subscription's backlog being pushed."""

    def __init__(self, dispatcher: Dispatcher, queue_id: int) -> None:
        self._dispatcher = dispatcher
        self._queue_id = queue_id
        self._claiming: asyncio.Task[None] | None = None
        self._attempts: set[asyncio.Task[None]] = set()
        self._woken = False
        self._stopped = False
        self._ending = 1  # deliveries claimed together after a rest: more where all are past their time
        self._fitting = _ANY_NUMBER  # deliveries an attempt takes, as far as is known: see `_fit`

    def wake(self) -> None:
        """Something may be due."""
        if self._stopped:
            return
        self._woken = True
        if self._claiming is None:
            self._claiming = asyncio.get_running_loop().create_task(self._claim_all())
            self._claiming.add_done_callback(self._claimed_all)

    def work(self) -> list[asyncio.Task[None]]:
        """What is under way."""
        return [*self._attempts, *([self._claiming] if self._claiming else [])]

    def rest(self) -> None:
        """Claim nothing any more."""
        self._stopped = True

    def stop(self) -> list[asyncio.Task[None]]:
        """Give up what is under way, for good; its leases run out."""
        self._stopped = True
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
            if not isinstance(error, StoreUnavailable):  # of which the store tells, once for all backlogs
                logger.error("dispatch.interrupted queue=%d", self._queue_id, exc_info=error)
            clock = self._dispatcher.means.runtime.clock
            clock.call_at(clock.now() + STORE_AWAY_MS, self.wake)
        elif self._woken:
            self.wake()

    async def _claim_all(self) -> None:
        """Claim what is due as long as there is something, and room for it."""
        while not self._stopped:
            self._woken = False
            terms = await self._terms()
            served = None if terms is None else await self._served(terms)
            if terms is None or served is None:
                return
            room = served.plan.concurrency_max - len(self._attempts)
            if room <= 0:
                return  # the next attempt to end wakes us
            probing = served is not terms
            order = self._order(served, room, probing=probing)
            claimed = await self._claim(order, served.plan.batch, room)
            if claimed.deliveries:
                await self._take(claimed.deliveries, order, room, probing=probing)
            elif claimed.next_at is not None:
                self._expect(claimed.next_at)
            if not claimed.deliveries and not self._woken:
                return

    async def _take(
        self, deliveries: Sequence[Delivery], order: ClaimOrder, room: int, *, probing: bool
    ) -> None:
        """Do with each claimed delivery what is right for it."""
        terms = await self._terms()  # a change made during the claim holds for what was published after it
        if terms is None:
            return
        due = self._end_overdue(terms, deliveries)
        self._ending = 1 if due else min(2 * self._ending, CLAIM_MAX)
        surplus: Sequence[Delivery] = ()
        if due and probing:
            mine = await self._probes(terms)
            due = self._end_overdue(terms, due)  # asking took its time, and theirs may be over
            surplus = self._try_all(terms, due, room, ONE_EACH) if mine else due
        elif not probing:
            surplus = self._try_all(terms, due, room, terms.plan.batch)
            self._fit(len(deliveries), len(surplus), order, room)
        if surplus:
            await self._give_back(terms, surplus)

    async def _terms(self) -> Terms | None:
        """Whose backlog it is and how it is pushed, now; None: it is pushed no more."""
        dispatcher = self._dispatcher
        subscription = await dispatcher.topics.subscription_of_queue(self._queue_id)
        if subscription is None:
            dispatcher.forget(self._queue_id)  # another node removed it
            return None
        topic = await dispatcher.topics.get(subscription.topic)
        if topic is None:
            return None
        dialect = dispatcher.dialects[topic.dialect]
        return Terms(topic, subscription, dialect.plan(topic, subscription), dialect)

    async def _served(self, terms: Terms) -> Terms | None:
        """The same terms; for an endpoint whose rest is over, one delivery at a time; None while it rests."""
        if terms.plan.probation is None:
            return terms
        means = self._dispatcher.means
        probation = await means.probations.of(terms.subscription)
        if probation is None:
            return terms
        now = means.runtime.clock.now()
        if (next_at := probation.next_at(means.runtime.node, now)) > now:
            means.arrivals.expect(self._queue_id, next_at)
            return None
        return terms._replace(plan=replace(terms.plan, concurrency_max=1, batch=ONE_EACH))

    async def _probes(self, terms: Terms) -> bool:
        """Whether it is this node that tries an endpoint whose rest is over."""
        means = self._dispatcher.means
        now = means.runtime.clock.now()
        return await means.probations.probe(terms.subscription, terms.plan.lease_ms, now)

    def _order(self, terms: Terms, room: int, *, probing: bool) -> ClaimOrder:
        runtime = self._dispatcher.means.runtime
        ordered = terms.topic.ordered
        together = min(terms.plan.batch.deliveries_max, room * self._fitting)
        several = self._ending if probing else max(min(room, CLAIM_MAX), together)
        return ClaimOrder(
            queue_id=self._queue_id,
            ordered=ordered,
            limit=1 if ordered else several,
            now=runtime.clock.now(),
            lease_ms=terms.plan.lease_ms,
            token=runtime.token(),
            resumes=True,
            rate_max=terms.plan.rate_max,
        )

    async def _claim(self, order: ClaimOrder, batch: Batch, room: int) -> Claimed:
        """Claim so many; of very many a piece at a time, as long as there is room for its weight in the attempts."""
        means = self._dispatcher.means
        if order.limit <= PIECE:
            return await means.store.claim(order)
        claimed, weight = Claimed(), 0
        while (left := order.limit - len(claimed.deliveries)) > 0 and weight <= room * batch.bytes_target:
            now, token = means.runtime.clock.now(), means.runtime.token()
            piece = replace(order, limit=min(left, PIECE), now=now, token=token)
            try:
                got = await means.store.claim(piece)
            except StoreUnavailable:
                if claimed.deliveries:
                    break  # and push these
                raise
            claimed.deliveries += got.deliveries
            claimed.next_at = got.next_at
            weight += sum(bytes_of(one.body) for one in got.deliveries)
            if len(got.deliveries) < piece.limit:
                break
        return claimed

    def _expect(self, due_at: int) -> None:
        means = self._dispatcher.means
        now = means.runtime.clock.now()
        means.arrivals.expect(self._queue_id, due_at if due_at > now else now + LOOK_AGAIN_MS)

    def _end_overdue(self, terms: Terms, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """Give up what is past its time; the others."""
        means = self._dispatcher.means
        now, schedule = means.runtime.clock.now(), terms.plan.schedule
        overdue = [one for one in deliveries if schedule.expired(one.sent_at, now)]
        if not overdue:
            return deliveries
        self._start(Trial(means, terms, overdue).give_up())
        return [one for one in deliveries if not schedule.expired(one.sent_at, now)]

    def _try_all(
        self, terms: Terms, deliveries: Sequence[Delivery], room: int, batch: Batch
    ) -> Sequence[Delivery]:
        """Begin as many attempts as there is room for; the deliveries that would have needed more."""
        means = self._dispatcher.means
        batches = list(_batches(deliveries, batch))
        for together in batches[:room]:
            self._dispatcher.attempts += 1
            self._start(Trial(means, terms, together).run())
        return [one for together in batches[room:] for one in together]

    def _fit(self, claimed: int, surplus: int, order: ClaimOrder, room: int) -> None:
        """Learn how many deliveries go in one attempt, by their weight: what is claimed beyond is read in vain."""
        if surplus:
            self._fitting = max(1, (claimed - surplus) // room)
        elif claimed == order.limit:
            self._fitting = min(2 * self._fitting, _ANY_NUMBER)

    async def _give_back(self, terms: Terms, deliveries: Sequence[Delivery]) -> None:
        """Let go of what was claimed and not tried; when it is claimed again, it is as the same attempt."""
        means = self._dispatcher.means
        now = means.runtime.clock.now()
        claims = [(one.seq, one.token or 0, now) for one in deliveries]
        await means.store.extend(self._queue_id, claims, now, ordered=terms.topic.ordered)

    def _start(self, trial: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(trial)
        self._attempts.add(task)
        task.add_done_callback(self._tried)

    def _tried(self, task: asyncio.Task[None]) -> None:
        self._attempts.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, StoreUnavailable):
            logger.warning("dispatch.given_up error=%s: tried again when its lease runs out", error)
        elif error is not None:
            logger.error("dispatch.attempt_failed queue=%d", self._queue_id, exc_info=error)
        self.wake()


def _batches(deliveries: Sequence[Delivery], batch: Batch) -> Iterator[Sequence[Delivery]]:
    """Deliveries in their order, as many together as a batch allows; one that is too large for any goes alone."""
    together: list[Delivery] = []
    weight = 0
    for delivery in deliveries:
        own = bytes_of(delivery.body) if batch.deliveries_max > 1 else 0
        if together and (len(together) >= batch.deliveries_max or weight + own > batch.bytes_target):
            yield together
            together, weight = [], 0
        together.append(delivery)
        weight += own
    if together:
        yield together
