"""One attempt at a delivery, or at several that go together: push, decide, settle.

An attempt has one result for all that went in it, unless its endpoint tells them apart; each delivery has an outcome of
its own. How outcomes are settled is in `settlement`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from redrive.engine.ports import Claim, Endpoint, PushRequest, SubscriptionContext
from redrive.engine.ports.facts import Attempted
from redrive.engine.push.settlement import (
    OVERDUE,
    AttemptSettlement,
    JointSettlements,
    PushParts,
    SettleItem,
    accepted,
)
from redrive.model.attempt import NO_ENDPOINT, Attempt, AttemptResult, Reason
from redrive.model.delivery import (
    DEAD_LETTERED,
    DELIVERED,
    EXPIRED,
    Delivery,
    Limits,
    Outcome,
    Schedule,
    Transition,
    decide,
    is_sealed,
)
from redrive.model.errors import StoreUnavailable
from redrive.model.queue import Queue

logger = logging.getLogger(__name__)

_UNMADE: Final = Attempt(AttemptResult.FAILED, Reason.UNMADE, 0, "this server could not say what to push")
_UNPUSHED: Final = Attempt(AttemptResult.FAILED, Reason.UNMADE, 0, "this server failed in pushing it")
_UNOPENED: Final = Attempt(
    AttemptResult.FAILED, Reason.UNMADE, 0, "the key that the message is encrypted with cannot be used"
)
_NO_ANSWER: Final = "No answer in the time given"
_THROTTLED: Final = frozenset({Reason.THROTTLED})


class _Counted(NamedTuple):
    """A schedule, and the number of attempts that count in it."""

    schedule: Schedule
    attempts: int


class DeliveryAttempt:
    """One attempt to push deliveries of one subscription together."""

    __slots__ = (
        "_began",
        "_context",
        "_deliveries",
        "_early_transitions",
        "_holds_until",
        "_parts",
        "_settlements",
    )

    def __init__(
        self,
        parts: PushParts,
        settlements: JointSettlements,
        context: SubscriptionContext,
        deliveries: Sequence[Delivery],
    ) -> None:
        """Try these; more than one only where the plan has batches."""
        self._parts = parts
        self._settlements = settlements
        self._context = context
        self._deliveries = deliveries
        self._began: int | None = None
        self._early_transitions: list[Transition] | None = None  # at the soft time-out, before the push ended
        self._holds_until = min(delivery.available_at for delivery in deliveries)

    async def run(self) -> None:
        """Push, decide, settle, tell."""
        context, parts = self._context, self._parts
        queue = None if context.queue is None else await parts.queues.get(context.queue)
        await self._end(await self._try(queue), queue)

    async def take_over(self, pushing: "asyncio.Future[Attempt]", began: int) -> None:
        """Go on with a push that was begun then (ms)."""
        self._began = began
        await self._end(await self._result_of(pushing))

    async def end(self, attempt: Attempt) -> None:
        """Go on with the result of a push that has ended."""
        await self._end(attempt)

    async def _end(self, result: Attempt, queue: Queue | None = None) -> None:
        """Decide what becomes of each delivery, settle that, and tell the circuit breaker; `queue` takes a success."""
        context = self._context
        attempt = context.plan.answers.judge(result)
        results = self._result_of_each(attempt)
        now = self._now()
        all_delivered = attempt.delivered and not attempt.parts
        if all_delivered:
            transitions = [DELIVERED] * len(results)
        else:
            transitions = self._early_transitions or await self._decide_when_counted(results, now)
        taker = queue if attempt.delivered else None
        items = [
            SettleItem(
                Attempted(
                    context.topic,
                    context.subscription,
                    delivery,
                    delivery_result,
                    transition,
                    now,
                    position,
                    context.identify,
                ),
                taker,
            )
            for position, (delivery, delivery_result, transition) in enumerate(
                zip(self._deliveries, results, transitions, strict=True)
            )
        ]
        if all_delivered and taker is None:
            await self._settlements.settle(context, self._deliveries, items, self._holds_until)
        else:
            await self._settle(items)
        if self._early_transitions is None:
            await self._note(attempt, now)

    async def expire(self) -> None:
        """End deliveries whose time is over, without an attempt."""
        context, now = self._context, self._now()
        transition = EXPIRED if context.dead_letter is None else DEAD_LETTERED
        # the claim counted an attempt that is not made
        untried = [replace(delivery, attempts=delivery.attempts - 1) for delivery in self._deliveries]
        facts = [
            Attempted(
                context.topic,
                context.subscription,
                delivery,
                OVERDUE,
                transition,
                now,
                identify=context.identify,
            )
            for delivery in untried
        ]
        await self._settle([SettleItem(fact) for fact in facts])

    async def _settle(self, items: Sequence[SettleItem]) -> None:
        settlement = AttemptSettlement(self._parts, self._context, self._deliveries, items)
        await settlement.settle(self._holds_until)

    # ---- the push ---------------------------------------------------------------------------------------

    async def _try(self, queue: Queue | None) -> Attempt:
        """Hand the deliveries to their queue, where they have one, or push them; a fault stands in for either."""
        context, parts = self._context, self._parts
        fault = parts.faults.of(context.subscription.endpoint)
        if fault is not None:
            return fault
        if any(map(is_sealed, self._deliveries)):
            return _UNOPENED
        if context.queue is not None:
            return await self._hand_over(queue)
        endpoint = parts.endpoints.get(context.subscription.protocol)
        return NO_ENDPOINT if endpoint is None else await self._push(endpoint)

    async def _hand_over(self, queue: Queue | None) -> Attempt:
        (delivery,) = self._deliveries
        refusal = await self._parts.seals.refusal(self._context, queue, delivery.body, delivery.headers)
        return refusal or accepted(delivery)

    async def _push(self, endpoint: Endpoint) -> Attempt:
        """Push; a fault of our own is a failed attempt: uncounted, it would be repeated for ever, at each lease."""
        context = self._context
        try:
            push_request = await context.profile.render(context, self._deliveries)
        except StoreUnavailable:
            raise
        except Exception:
            logger.exception("delivery.unmade subscription=%s", context.subscription.key)
            return _UNMADE
        if context.plan.soft_timeout_ms is None:
            return await self._result_of(endpoint.push(push_request))
        return await self._result_of(self._push_beside_earlier(endpoint, push_request))

    async def _result_of(self, pushing: Awaitable[Attempt]) -> Attempt:
        """The result of a push, within its soft time-out if there is one; a fault of our own is a failed attempt."""
        soft_timeout_ms = self._context.plan.soft_timeout_ms
        try:
            if soft_timeout_ms is None:
                return await pushing
            return await self._wait_with_soft_timeout(asyncio.ensure_future(pushing), soft_timeout_ms)
        except StoreUnavailable:
            raise
        except Exception:
            logger.exception("delivery.unpushed subscription=%s", self._context.subscription.key)
            return _UNPUSHED

    # ---- the soft time-out ------------------------------------------------------------------------------

    async def _wait_with_soft_timeout(
        self, pushing: "asyncio.Future[Attempt]", soft_timeout_ms: int
    ) -> Attempt:
        """The result of a push; one that is not answered in time has failed, but may go on and succeed late."""
        began = self._now() if self._began is None else self._began
        late_answer_ms = self._context.plan.late_answer_ms
        goes_on = False
        try:
            with self._parts.soft_timeout.begin() as hangs:
                if await self._parts.soft_timeout.wait(pushing, hangs, began + soft_timeout_ms):
                    return pushing.result()
                late = await self._late_result(pushing, hangs, soft_timeout_ms)
            is_retried = self._early_transitions is not None
            if late_answer_ms is not None and is_retried and not pushing.done():
                late_until = began + late_answer_ms
                goes_on = self._parts.late_pushes.keep(pushing, self._deliveries, late_until, self._take_late)
            return late
        finally:
            if not goes_on:
                pushing.cancel()

    async def _push_beside_earlier(self, endpoint: Endpoint, push_request: PushRequest) -> Attempt:
        """The result of a push, or of an earlier attempt's that went on, if that one succeeds first."""
        earlier = self._parts.late_pushes.earlier(self._deliveries)
        for success in earlier:
            if success.done():
                return success.result()
        if not earlier:
            return await endpoint.push(push_request)
        pushing = asyncio.ensure_future(endpoint.push(push_request))
        try:
            await asyncio.wait([pushing, *earlier], return_when=asyncio.FIRST_COMPLETED)
            for success in earlier:
                if success.done():
                    return success.result()
            return pushing.result()
        finally:
            pushing.cancel()

    async def _take_late(self, attempt: Attempt) -> bool:
        """Take the result of a push that went on; True if it is a success, which closes the circuit breaker."""
        judged = self._context.plan.answers.judge(attempt)
        if judged.delivered and all(result.delivered for result in self._result_of_each(judged)):
            await self._note(judged, self._now())
            self._parts.notifier.announce(self._deliveries[0].queue_id)
            return True
        return False

    async def _late_result(
        self, pushing: "asyncio.Future[Attempt]", hangs: "asyncio.Future[None]", soft_timeout_ms: int
    ) -> Attempt:
        """The result of an attempt after its soft time-out: failed, unless a final answer comes before the next one.

        The claim is held until then, so that nobody else tries meanwhile. The circuit breaker hears of the failure at
        once: a late success closes it. If it stays failed, what was decided here stands: see `_early_transitions`.
        """
        failed = Attempt(AttemptResult.FAILED, Reason.TIMED_OUT, 0, _NO_ANSWER, soft_timeout_ms)
        now = self._now()
        transitions = self._decide(self._result_of_each(failed), now)
        due = [transition.available_at for transition in transitions if transition.outcome is Outcome.RETRY]
        if len(due) < len(self._deliveries):
            return failed  # the last attempt of some of them: it ends now
        await self._note(failed, now)
        await self._parts.retrier.retry_until_lease_ends(len(due), self._holds_until, lambda: self._hold(due))
        answered = await self._parts.soft_timeout.wait(pushing, hangs, min(due))
        late = pushing.result() if answered else failed
        if self._context.plan.answers.judge(late).result is not AttemptResult.FAILED:
            return late
        self._early_transitions = transitions
        return failed

    async def _hold(self, due: Sequence[int]) -> None:
        """Keep the claims until the next attempts are due, and for as long again as it takes to settle them."""
        until = [at + self._context.plan.lease_ms for at in due]
        claims = [
            Claim(delivery.seq, delivery.token or 0, at)
            for delivery, at in zip(self._deliveries, until, strict=True)
        ]
        queue_id, ordered = self._deliveries[0].queue_id, self._context.topic.ordered
        await self._parts.store.extend(queue_id, claims, self._now(), ordered=ordered)
        self._holds_until = min(until)

    # ---- the decision -----------------------------------------------------------------------------------

    def _now(self) -> int:
        return self._parts.runtime.clock.now()

    def _result_of_each(self, attempt: Attempt) -> list[Attempt]:
        """The result for each delivery: the same, unless the endpoint told them apart."""
        parts = [self._context.plan.answers.judge(part) for part in attempt.parts]
        return parts or [attempt] * len(self._deliveries)

    async def _decide_when_counted(self, results: Sequence[Attempt], now: int) -> list[Transition]:
        """Decide; where throttled attempts have a schedule of their own, after counting those before this one."""
        if self._context.plan.throttled_schedule is None:
            return self._decide(results, now)
        retry = self._parts.retrier.retry_until_lease_ends
        counted = await retry(len(results), self._holds_until, lambda: self._count_apart(results))
        return self._decide(results, now, counted)

    async def _count_apart(self, results: Sequence[Attempt]) -> dict[int, _Counted]:
        """The schedule that each failed delivery follows, and how many of its attempts count there, by seq.

        The schedule for throttling counts throttled attempts (with this one) alone: an outage before would have used it
        up, and an endpoint that comes back from an outage asks for a slower pace. The usual one omits the `uncounted`.
        """
        plan = self._context.plan
        throttling = plan.uncounted or _THROTTLED  # reasons
        failures = [
            (delivery, attempt.reason in throttling)
            for delivery, attempt in zip(self._deliveries, results, strict=True)
            # without `uncounted`, the usual schedule counts every attempt
            if not attempt.delivered and (attempt.reason in throttling or plan.uncounted)
        ]
        lookups = [self._ended_before(delivery, throttling) for delivery, _ in failures]
        counted: dict[int, _Counted] = {}
        for (delivery, is_throttled), number in zip(failures, await asyncio.gather(*lookups), strict=True):
            if is_throttled and plan.throttled_schedule is not None:
                counted[delivery.seq] = _Counted(plan.throttled_schedule, number + 1)
            else:
                counted[delivery.seq] = _Counted(plan.schedule, delivery.attempts - number)
        return counted

    async def _ended_before(self, delivery: Delivery, reasons: frozenset[Reason]) -> int:
        """The number of a delivery's attempts before this one that ended for these reasons."""
        if delivery.attempts == 1:
            return 0
        notes = await self._parts.queue_store.notes(delivery.queue_id, delivery.message_id)
        return sum(note.reason in reasons for note in notes)

    def _decide(
        self, results: Sequence[Attempt], now: int, counted: Mapping[int, _Counted] | None = None
    ) -> list[Transition]:
        """One decision for all deliveries at the same point, so that a batch that failed is tried again as a batch.

        A point is a result, the number of attempts that count, and the moment (ms) until which more are made.
        """
        transition_by_point: dict[tuple[Attempt, int, int | None], Transition] = {}
        transitions = []
        for delivery, attempt in zip(self._deliveries, results, strict=True):
            usual = _Counted(self._context.plan.schedule, delivery.attempts)
            schedule, number = (counted or {}).get(delivery.seq, usual)
            until = self._attempts_until(delivery)
            point = (attempt, number, until)
            if point not in transition_by_point:
                recounted = delivery if number == delivery.attempts else replace(delivery, attempts=number)
                transition_by_point[point] = self._decide_one(recounted, attempt, schedule, now, until)
            transitions.append(transition_by_point[point])
        return transitions

    def _attempts_until(self, delivery: Delivery) -> int | None:
        age_ms_max = self._context.plan.age_ms_max
        return None if age_ms_max is None else delivery.sent_at + age_ms_max

    def _decide_one(
        self, delivery: Delivery, attempt: Attempt, schedule: Schedule, now: int, until: int | None
    ) -> Transition:
        limits = Limits(dead_letters=self._context.dead_letter is not None, attempts_until=until)
        floor_ms = self._context.plan.answers.floor_ms(attempt)
        return decide(delivery, attempt.result, schedule, limits, now, self._parts.runtime.rng, floor_ms)

    # ---- the circuit breaker ----------------------------------------------------------------------------

    async def _note(self, attempt: Attempt, now: int) -> None:
        """Tell the endpoint's circuit breaker; if the store is away, the next attempt tells it as much."""
        subscription, policy = self._context.subscription, self._context.plan.circuit
        try:
            await self._parts.circuits.note(subscription, policy, attempt, now)
        except StoreUnavailable as error:
            logger.warning("endpoint.rest_unwritten subscription=%s error=%s", subscription.key, error)
