"""One subscription's backlog and its consumer, which claims what is due and tries it side by side.

The consumer sleeps until it is woken: by an arrival, by the moment at which something falls due, or by the end of an
attempt that stood in the way of others. `_consume` decides; the other methods do as they are told.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Final, NamedTuple

from redrive.engine.configuration.topics import Topics
from redrive.engine.ports import Batch, Claim, ClaimRequest, PushRequest, SubscriptionContext
from redrive.engine.push.attempt import DeliveryAttempt
from redrive.engine.push.direct import DirectPushes
from redrive.engine.push.settlement import PIECE, JointSettlements, PushParts
from redrive.engine.receive.notifier import LOOK_AGAIN_MS
from redrive.model.delivery import Delivery
from redrive.model.errors import StoreUnavailable
from redrive.model.names import bytes_of

logger = logging.getLogger(__name__)

CLAIM_MAX: Final = 100  # deliveries claimed at a time; a crash leaves so many to wait for their lease
# Pushes that are prepared together: the first of them waits for the last, 2 to 8 ms where each has a signature.
PREPARED_TOGETHER: Final = 16
# A probe begins within this part of the lease in which other nodes leave the endpoint alone.
ASKING_SHARE: Final = 8
STORE_AWAY_MS: Final = 1_000  # a store that does not answer is tried again after this
_ANY_NUMBER: Final = 2**31


class _Claim(NamedTuple):
    """The answer to a claim."""

    deliveries: Sequence[Delivery]  # Claimed now
    limit: int  # Upper limit of the claim
    all_due: bool  # Nothing more of the backlog is due
    next_at: int | None  # When the next delivery falls due (ms), where `all_due`; None: there is none


class BacklogConsumer:
    """Pushes one subscription's backlog."""

    def __init__(
        self, parts: PushParts, topics: Topics, queue_id: int, forget: Callable[[int], object]
    ) -> None:
        """Consume the backlog of that number; `forget` is called with it when its subscription is gone."""
        self._parts = parts
        self._topics = topics
        self._queue_id = queue_id
        self._forget = forget
        self._consuming: asyncio.Task[None] | None = None
        self._attempts: set[asyncio.Task[None]] = set()
        self._settlements = JointSettlements(parts, self._claim_early)
        self._direct = DirectPushes(parts, self._settlements, self._start, self._go_on)
        self._woken = False
        self._stopped = False
        # Deliveries may be due that were not claimed: they are looked for when an attempt ends.
        self._held_up = False
        # Deliveries claimed together while the circuit breaker is half open: one is tried; doubled while all that are
        # claimed turn out to be overdue, so that a long rest's backlog does not end one by one.
        self._probe_claim = 1
        # Deliveries that one attempt takes, by their weight: see `_learn_weight`.
        self._per_attempt = _ANY_NUMBER

    # ---- tasks --------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Look into the backlog: something may be due."""
        if self._stopped:
            return
        self._woken = True
        if self._consuming is None:
            self._consuming = asyncio.get_running_loop().create_task(self._consume())
            self._consuming.add_done_callback(self._consumed)

    @property
    def _under_way(self) -> int:
        """The number of attempts that have not ended."""
        return len(self._attempts) + len(self._direct)

    @property
    def is_busy(self) -> bool:
        """True if something is under way."""
        return self._consuming is not None or bool(self._under_way)

    def work(self) -> list[asyncio.Future[None]]:
        """The work that is under way."""
        consuming = [self._consuming] if self._consuming else []
        return [*self._attempts, *self._direct.work(), *self._settlements.tasks, *consuming]

    def stop_claiming(self) -> None:
        """Claim nothing more."""
        self._stopped = True

    def stop(self) -> list[asyncio.Future[None]]:
        """Cancel everything, for good; leases run out. Return the cancelled tasks."""
        self._stopped = True
        self._direct.stop()
        work = [*self._settlements.stop(), *self.work()]
        for task in work:
            task.cancel()
        return work

    def _consumed(self, consuming: asyncio.Task[None]) -> None:
        """The loop ended: look again soon after a failure, at once where something woke it meanwhile."""
        self._consuming = None
        if consuming.cancelled():
            return
        error = consuming.exception()
        if error is not None:
            if not isinstance(error, StoreUnavailable):  # of which the store tells, once for all backlogs
                logger.error("dispatch.interrupted queue=%d", self._queue_id, exc_info=error)
            self._parts.notifier.expect(self._queue_id, self._now() + STORE_AWAY_MS)
        elif self._woken:
            self.wake()

    def _start(self, attempt: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(attempt)
        self._attempts.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._attempts.discard(task)
        if not task.cancelled():
            self._go_on(task.exception())

    def _claim_early(self) -> None:
        """Attempts are being settled: what they held up may take their places."""
        if self._held_up:
            self.wake()

    def _go_on(self, error: BaseException | None) -> None:
        """An attempt ended: what it held up goes on. Its own retry, if there is one, was announced with its end."""
        if isinstance(error, StoreUnavailable):
            logger.warning("dispatch.given_up error=%s: tried again when its lease runs out", error)
        elif error is not None:
            logger.error("dispatch.attempt_failed queue=%d", self._queue_id, exc_info=error)
        if self._held_up or error is not None:
            self.wake()

    # ---- the loop -----------------------------------------------------------------------------------------

    async def _consume(self) -> None:
        """Claim and push as long as something is due and there is room for more attempts."""
        while not self._stopped:
            self._woken, self._held_up = False, True  # held up, unless all that is due is claimed below
            context = await self._context()
            if context is None:
                return
            opens_at = await self._opens_at(context)
            if opens_at is not None and opens_at > self._now():
                self._parts.notifier.expect(self._queue_id, opens_at)
                return
            half_open = opens_at is not None
            room = (1 if half_open else context.plan.concurrency_max) - self._under_way
            if not half_open and not context.topic.ordered:
                room += self._settlements.places
            if room <= 0:
                return
            if half_open:
                claim = await self._probe(context)
            else:
                claim = await self._try_what_is_due(context, room)
            if claim.all_due and not self._woken:
                # The next of a group may go when the one before it has ended.
                self._held_up = half_open or context.topic.ordered
                self._expect(claim.next_at)
                return

    async def _context(self) -> SubscriptionContext | None:
        """The subscription as it is now; None: it is pushed to no more."""
        subscription = await self._topics.subscriptions.of_backlog(self._queue_id)
        if subscription is None:
            self._forget(self._queue_id)  # another node removed it
            return None
        topic = await self._topics.get(subscription.topic)
        return None if topic is None else self._parts.contexts.of(topic, subscription)

    async def _opens_at(self, context: SubscriptionContext) -> int | None:
        """The moment (ms) this node may probe an endpoint whose circuit breaker is open; None: it is closed."""
        if context.plan.circuit is None:
            return None
        circuit = await self._parts.circuits.of(context.subscription)
        return None if circuit is None else circuit.next_at(self._parts.runtime.node, self._now())

    async def _try_what_is_due(self, context: SubscriptionContext, room: int) -> _Claim:
        """Claim what fills up to `room` attempts and begin them; what they do not take is given back."""
        claim = await self._claim_for(context, room)
        current = await self._context() if claim.deliveries else None
        if current is None:  # nothing was claimed, or the subscription is gone, and what was claimed with it
            return claim
        due = self._expire_overdue(current, claim.deliveries)
        attempts = list(_batches(due, current.plan.batch))
        for first in range(0, min(room, len(attempts)), PREPARED_TOGETHER):
            together = attempts[first : min(first + PREPARED_TOGETHER, room)]
            prepared = await self._direct.prepare(current, together)
            for deliveries, push_request in zip(together, prepared, strict=True):
                self._try(current, deliveries, push_request)
        surplus = [delivery for deliveries in attempts[room:] for delivery in deliveries]
        self._learn_weight(claim, len(surplus), room)
        await self._give_back(current, surplus)
        return claim._replace(all_due=claim.all_due and not surplus)

    async def _probe(self, context: SubscriptionContext) -> _Claim:
        """Try one delivery at an endpoint whose circuit breaker is half open, unless another node does."""
        claim = await self._claim(context, 1 if context.topic.ordered else self._probe_claim)
        current = await self._context() if claim.deliveries else None
        if current is None:
            return claim
        due = self._expire_overdue(current, claim.deliveries)
        self._probe_claim = 1 if due else min(2 * self._probe_claim, CLAIM_MAX)
        if due and await self._is_prober(current):
            due = self._expire_overdue(current, due)  # asking took its time, and theirs may be over
            if due:
                self._try(current, due[:1])
                due = due[1:]
        await self._give_back(current, due)
        return claim._replace(all_due=False)  # the breaker's state may have changed: look again

    async def _is_prober(self, context: SubscriptionContext) -> bool:
        """True if this node is the one to probe. Where asking took long it asks again: another's turn is near."""
        lease_ms, asked_at = context.plan.lease_ms, self._now()
        mine = await self._parts.circuits.probe(context.subscription, lease_ms, asked_at)
        return mine and self._now() - asked_at <= lease_ms // ASKING_SHARE

    # ---- claims -------------------------------------------------------------------------------------------

    async def _claim_for(self, context: SubscriptionContext, room: int) -> _Claim:
        """Claim as many deliveries as fill `room` attempts."""
        if context.topic.ordered:
            return await self._claim(context, 1)
        batch = context.plan.batch
        limit = max(min(room, CLAIM_MAX), min(batch.deliveries_max, room * self._per_attempt))
        if limit <= PIECE:
            return await self._claim(context, limit)
        return await self._claim_in_pieces(context, limit, room * batch.bytes_target)

    async def _claim(self, context: SubscriptionContext, limit: int) -> _Claim:
        """Claim deliveries that are due, up to `limit`, with the time (ms) at which more are."""
        request = ClaimRequest(
            queue_id=self._queue_id,
            ordered=context.topic.ordered,
            limit=limit,
            now=self._now(),
            lease_ms=context.plan.lease_ms,
            token=self._parts.runtime.token(),
            resumes=True,
            rate_max=context.plan.rate_max,
            looks_ahead=True,
        )
        claimed = await self._parts.store.claim(request)
        deliveries, next_at = claimed.deliveries, claimed.next_at
        # What is due may have been passed over, for the pace or because another node was about to take it: ask again.
        passed_over = next_at is not None and next_at <= request.now
        may_be_more = bool(deliveries) and (request.rate_max is not None or passed_over)
        all_due = len(deliveries) < limit and not may_be_more
        return _Claim(deliveries, limit, all_due, next_at)

    async def _claim_in_pieces(self, context: SubscriptionContext, limit: int, bytes_max: int) -> _Claim:
        """Claim very many a piece at a time, as long as their weight has room in the attempts."""
        deliveries: list[Delivery] = []
        weight = 0
        while (remaining := limit - len(deliveries)) > 0 and weight <= bytes_max:
            try:
                piece = await self._claim(context, min(remaining, PIECE))
            except StoreUnavailable:
                if deliveries:
                    break  # and push these
                raise
            deliveries += piece.deliveries
            weight += sum(bytes_of(delivery.body) for delivery in piece.deliveries)
            if piece.all_due:
                return _Claim(deliveries, limit, all_due=True, next_at=piece.next_at)
        return _Claim(deliveries, limit, all_due=False, next_at=None)

    def _learn_weight(self, claim: _Claim, surplus: int, room: int) -> None:
        """Learn how many deliveries go in one attempt, by their weight: what is claimed beyond that is read in vain."""
        if surplus:
            self._per_attempt = max(1, (len(claim.deliveries) - surplus) // room)
        elif len(claim.deliveries) == claim.limit:
            self._per_attempt = min(2 * self._per_attempt, _ANY_NUMBER)

    async def _give_back(self, context: SubscriptionContext, deliveries: Sequence[Delivery]) -> None:
        """End the claims of deliveries that were not tried; the next claim of one counts as the same attempt."""
        if not deliveries:
            return
        now = self._now()
        claims = [Claim(delivery.seq, delivery.token or 0, now) for delivery in deliveries]
        await self._parts.store.extend(self._queue_id, claims, now, ordered=context.topic.ordered)

    def _expect(self, due_at: int | None) -> None:
        if due_at is not None:
            self._parts.notifier.expect(self._queue_id, max(due_at, self._now() + LOOK_AGAIN_MS))

    # ---- attempts -----------------------------------------------------------------------------------------

    def _try(
        self,
        context: SubscriptionContext,
        deliveries: Sequence[Delivery],
        prepared: PushRequest | None = None,
    ) -> None:
        self._parts.counters.attempts += 1
        if not self._direct.begin(context, deliveries, prepared):
            self._start(DeliveryAttempt(self._parts, self._settlements, context, deliveries).run())

    def _expire_overdue(
        self, context: SubscriptionContext, deliveries: Sequence[Delivery]
    ) -> Sequence[Delivery]:
        """Begin to end the deliveries whose time is over; return the others."""
        now, schedule = self._now(), context.plan.schedule
        overdue = [delivery for delivery in deliveries if schedule.expired(delivery.sent_at, now)]
        if not overdue:
            return deliveries
        self._start(DeliveryAttempt(self._parts, self._settlements, context, overdue).expire())
        return [delivery for delivery in deliveries if not schedule.expired(delivery.sent_at, now)]

    def _now(self) -> int:
        return self._parts.runtime.clock.now()


def _batches(deliveries: Sequence[Delivery], batch: Batch) -> Iterator[Sequence[Delivery]]:
    """Deliveries in their order, as many together as a batch allows; one that is too large for any goes alone."""
    together: list[Delivery] = []
    weight = 0
    for delivery in deliveries:
        size = bytes_of(delivery.body) if batch.deliveries_max > 1 else 0
        if together and (len(together) >= batch.deliveries_max or weight + size > batch.bytes_target):
            yield together
            together, weight = [], 0
        together.append(delivery)
        weight += size
    if together:
        yield together
