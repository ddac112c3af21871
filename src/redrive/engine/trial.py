"""A trial: one attempt at one delivery, or at several that go together, and what is decided about each.

An attempt has one outcome for all that went in it, unless its endpoint says what came of each; and each has a decision
of its own. How they end by that is in `ends`.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from redrive.engine.ends import EXPIRED, End, Ends, into_queue
from redrive.engine.facts import Attempted
from redrive.engine.means import Means, Terms
from redrive.engine.ports import Endpoint, Parcel
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery, Ending, Limits, Outcome, Transition, decide
from redrive.model.errors import StoreUnavailable
from redrive.model.queue import Queue

logger = logging.getLogger(__name__)

NO_ENDPOINT = Attempt(
    Outcome.REFUSED, Reason.MISSING, 0, "this server is not set up for this kind of endpoint", 0
)
UNMADE = Attempt(Outcome.FAILED, Reason.UNMADE, 0, "this server could not say what to push", 0)
UNPUSHED = Attempt(Outcome.FAILED, Reason.UNMADE, 0, "this server failed in pushing it", 0)
IMPATIENT = "No answer in the time given"


class Trial:
    """Deliveries of one subscription being tried once, together."""

    __slots__ = ("_decided", "_deliveries", "_holds_until", "_means", "_terms")

    def __init__(self, means: Means, terms: Terms, deliveries: Sequence[Delivery]) -> None:
        """Try these; more than one only where the plan has batches."""
        self._means = means
        self._terms = terms
        self._deliveries = deliveries
        self._decided: list[Transition] | None = None  # when patience ended, which is before the attempt did
        self._holds_until = min(one.available_at for one in deliveries)

    async def run(self) -> None:
        """Try, decide, settle, tell."""
        topic, subscription, plan, dialect = self._terms
        means = self._means
        name = dialect.queue_of(subscription)
        queue = None if name is None else await means.queues.get(name)
        if name is None:
            attempt = await self._push()
        else:
            attempt = means.faults.of(subscription.endpoint) or self._hand_over(queue)
        attempt = plan.answers.judge(attempt)
        each = self._each(attempt)
        now = self._now()
        throttles = await means.unsettled.insist(len(each), self._holds_until, lambda: self._throttles(each))
        taker = queue if attempt.delivered else None
        transitions = self._decided or self._decide(each, now, throttles)
        ends = [
            End(Attempted(topic, subscription, delivery, own, transition, now, position), taker)
            for position, (delivery, own, transition) in enumerate(
                zip(self._deliveries, each, transitions, strict=True)
            )
        ]
        await self._end(ends, now)
        if self._decided is None:
            await self._note(attempt, now)

    async def give_up(self) -> None:
        """Their time is over: they end without an attempt."""
        topic, subscription, _, _ = self._terms
        now = self._now()
        ends = []
        for delivery in self._deliveries:
            dead = self._has_dead_letters(delivery)
            transition = Transition(Ending.DEAD_LETTERED if dead else Ending.EXPIRED)
            tried = replace(delivery, attempts=delivery.attempts - 1)
            ends.append(End(Attempted(topic, subscription, tried, EXPIRED, transition, now)))
        await self._end(ends, now)

    # ---- the attempt ------------------------------------------------------------------------------------

    def _hand_over(self, queue: Queue | None) -> Attempt:
        topic, subscription, _, dialect = self._terms
        (delivery,) = self._deliveries
        return dialect.objection(topic, subscription, queue, delivery.body, delivery.headers) or into_queue(
            delivery
        )

    async def _push(self) -> Attempt:
        topic, subscription, _, dialect = self._terms
        means = self._means
        fault = means.faults.of(subscription.endpoint)
        if fault is not None:
            return fault
        endpoint = means.endpoints.get(subscription.protocol)
        if endpoint is None:
            return NO_ENDPOINT
        try:
            parcel = await dialect.parcel(topic, subscription, self._deliveries)
        except StoreUnavailable:
            raise
        except Exception:  # uncounted it would be tried again for ever, whenever its lease has run out
            logger.exception("delivery.unmade subscription=%s", subscription.key)
            return UNMADE
        try:
            return await self._push_patiently(endpoint, parcel)
        except StoreUnavailable:
            raise
        except Exception:  # likewise
            logger.exception("delivery.unpushed subscription=%s", subscription.key)
            return UNPUSHED

    async def _push_patiently(self, endpoint: Endpoint, parcel: Parcel) -> Attempt:
        plan = self._terms.plan
        if plan.patience_ms is None:
            return await endpoint.push(parcel)
        patient_until = self._now() + plan.patience_ms
        pushing = asyncio.ensure_future(endpoint.push(parcel))
        try:
            with self._means.patience.begin() as hangs:
                if await self._means.patience.wait(pushing, hangs, patient_until):
                    return pushing.result()
                return await self._late(pushing, hangs, plan.patience_ms)
        finally:
            pushing.cancel()

    async def _late(
        self, pushing: "asyncio.Future[Attempt]", hangs: "asyncio.Future[None]", patience_ms: int
    ) -> Attempt:
        """Patience is over: it failed, unless the endpoint takes it before the next attempt would begin, or refuses it.

        The claim is held until then, so that nobody else tries meanwhile. The endpoint's rest begins at once: a late
        success ends it.
        """
        failed = Attempt(Outcome.FAILED, Reason.TIMED_OUT, 0, IMPATIENT, patience_ms)
        now = self._now()
        transitions = self._decide(self._each(failed), now)
        due = [one.available_at for one in transitions if one.ending is Ending.RETRY]
        if len(due) < len(self._deliveries):
            return failed
        await self._note(failed, now)
        await self._means.unsettled.insist(len(due), self._holds_until, lambda: self._hold(due))
        answered = await self._means.patience.wait(pushing, hangs, min(due))
        late = pushing.result() if answered else failed
        if self._terms.plan.answers.judge(late).outcome is not Outcome.FAILED:
            return late
        self._decided = transitions
        return failed

    def _now(self) -> int:
        return self._means.runtime.clock.now()

    async def _hold(self, due: Sequence[int]) -> None:
        """Keep the claims until the next attempts are due, and for as long again as it takes to settle them."""
        until = [at + self._terms.plan.lease_ms for at in due]
        claims = [
            (delivery.seq, delivery.token or 0, at)
            for delivery, at in zip(self._deliveries, until, strict=True)
        ]
        queue_id, now = self._deliveries[0].queue_id, self._now()
        await self._means.store.extend(queue_id, claims, now, ordered=self._terms.topic.ordered)
        self._holds_until = min(until)

    async def _note(self, attempt: Attempt, now: int) -> None:
        """Tell the endpoint's probation; what is not written now is written by the next attempt."""
        subscription, policy = self._terms.subscription, self._terms.plan.probation
        try:
            await self._means.probations.note(subscription, policy, attempt, now)
        except StoreUnavailable as error:
            logger.warning("endpoint.rest_unwritten subscription=%s error=%s", subscription.key, error)

    # ---- what is decided --------------------------------------------------------------------------------

    def _each(self, attempt: Attempt) -> list[Attempt]:
        """What came of each: the same, unless the endpoint told them apart."""
        parts = [self._terms.plan.answers.judge(part) for part in attempt.parts]
        return parts or [attempt] * len(self._deliveries)

    async def _throttles(self, each: Sequence[Attempt]) -> dict[int, int]:
        """How often those that were throttled now have been, by their seq; nobody asks where that means nothing.

        A schedule for throttling counts them alone: an outage before would have used it up, and whoever comes back from
        one asks for a slower pace.
        """
        if self._terms.plan.throttled_schedule is None:
            return {}
        throttled = [
            delivery
            for delivery, attempt in zip(self._deliveries, each, strict=True)
            if attempt.reason is Reason.THROTTLED
        ]
        counts = await asyncio.gather(*(self._throttled_before(delivery) for delivery in throttled))
        return {delivery.seq: before + 1 for delivery, before in zip(throttled, counts, strict=True)}

    async def _throttled_before(self, delivery: Delivery) -> int:
        if delivery.attempts == 1:
            return 0
        notes = await self._means.store.notes(delivery.queue_id, delivery.message_id)
        return sum(note.reason == Reason.THROTTLED for note in notes)

    def _decide(
        self, each: Sequence[Attempt], now: int, throttles: Mapping[int, int] | None = None
    ) -> list[Transition]:
        """One decision for all that have come equally far, so that what failed together stays together."""
        decided: dict[tuple[Attempt, int, bool], Transition] = {}
        transitions = []
        for delivery, attempt in zip(self._deliveries, each, strict=True):
            number = (throttles or {}).get(delivery.seq)
            dead_letters = not attempt.delivered and self._has_dead_letters(delivery)
            as_far = (attempt, number or delivery.attempts, dead_letters)
            transition = decided.get(as_far)
            if transition is None:
                transition = decided[as_far] = self._decide_one(
                    delivery, attempt, now, number, dead_letters=dead_letters
                )
            transitions.append(transition)
        return transitions

    def _decide_one(
        self, delivery: Delivery, attempt: Attempt, now: int, throttles: int | None, *, dead_letters: bool
    ) -> Transition:
        plan = self._terms.plan
        schedule, chance = plan.schedule, self._means.runtime.chance
        if throttles is not None and plan.throttled_schedule is not None:
            schedule, delivery = plan.throttled_schedule, replace(delivery, attempts=throttles)
        limits = Limits(dead_letters=dead_letters)
        floor_ms = plan.answers.floor_ms(attempt)
        return decide(delivery, attempt.outcome, schedule, limits, now, chance, floor_ms)

    def _has_dead_letters(self, delivery: Delivery) -> bool:
        _, subscription, _, dialect = self._terms
        return dialect.dead_letters_to(subscription, delivery) is not None

    async def _end(self, ends: Sequence[End], now: int) -> None:
        await Ends(self._means, self._terms, self._deliveries, ends, now).come(self._holds_until)
