"""A trial: one attempt at one delivery, or at several that go together, and what becomes of each.

An attempt has one outcome for all that went in it, unless its endpoint says what came of each. They are settled in one
transaction, each by its own decision, and
what their ends lead to (letters for another store, further events) enters the store in that same transaction.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from redrive.engine.arrivals import Arrivals
from redrive.engine.facts import Attempted, DeadLettered, Listener
from redrive.engine.fan_out import Led, TopicPublisher
from redrive.engine.faults import Faults
from redrive.engine.ports import (
    AttemptNote,
    Dialect,
    Endpoint,
    Parcel,
    Plan,
    Runtime,
    Settlement,
    Store,
    Target,
)
from redrive.engine.probation import Probations
from redrive.engine.queues import Queues
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery, Ending, Limits, Outcome, Transition, decide
from redrive.model.errors import StoreUnavailable
from redrive.model.message import bytes_of, id_text
from redrive.model.queue import Queue
from redrive.model.topic import Subscription, Topic

logger = logging.getLogger(__name__)

EXPIRED = Attempt(Outcome.REFUSED, Reason.EXPIRED, 0, "", 0)
NO_ENDPOINT = Attempt(
    Outcome.REFUSED, Reason.MISSING, 0, "this server is not set up for this kind of endpoint", 0
)
UNMADE = Attempt(Outcome.FAILED, Reason.UNMADE, 0, "this server could not say what to push", 0)
IMPATIENT = "No answer in the time given"


class Terms(NamedTuple):
    """Whose deliveries they are, and how they are pushed."""

    topic: Topic
    subscription: Subscription
    plan: Plan
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class Means:
    """What a trial takes: the parts of the engine that it goes through."""

    store: Store
    runtime: Runtime
    queues: Queues
    arrivals: Arrivals
    endpoints: Mapping[str, Endpoint]
    faults: Faults
    listeners: Sequence[Listener]
    publisher: TopicPublisher
    probations: Probations


@dataclass(slots=True)
class _End:
    """One delivery and what becomes of it.

    Attributes:
        fact: What listeners are told.
        queue: The queue it enters, if it enters one.
        led: What its end leads to besides.
        handed: For a dead letter: what came of handing it over; None: it was dropped without anybody to take it.
        met: Whether it came in time: else the delivery was another's by then, or gone, and did not end like this.
    """

    fact: Attempted
    queue: Queue | None = None
    led: Led | None = None
    handed: Attempt | None = None
    met: bool = True


class Trial:
    """Deliveries of one subscription being tried once, together."""

    __slots__ = ("_decided", "_deliveries", "_means", "_terms")

    def __init__(self, means: Means, terms: Terms, deliveries: Sequence[Delivery]) -> None:
        """Try these; more than one only where the plan has batches."""
        self._means = means
        self._terms = terms
        self._deliveries = deliveries
        self._decided: list[Transition] | None = None  # when patience ended, which is before the attempt did

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
        throttles = await self._throttles(each)
        now = means.runtime.clock.now()
        taker = queue if attempt.delivered else None
        transitions = self._decided or self._decide(each, now, throttles)
        ends = [
            _End(Attempted(topic, subscription, delivery, own, transition, now, position), taker)
            for position, (delivery, own, transition) in enumerate(
                zip(self._deliveries, each, transitions, strict=True)
            )
        ]
        await self._end(ends, now)
        if self._decided is None:
            await means.probations.note(subscription, plan.probation, attempt, now)

    async def give_up(self) -> None:
        """Their time is over: they end without an attempt."""
        topic, subscription, _, _ = self._terms
        now = self._means.runtime.clock.now()
        ends = []
        for delivery in self._deliveries:
            dead = self._has_dead_letters(delivery)
            transition = Transition(Ending.DEAD_LETTERED if dead else Ending.EXPIRED)
            tried = replace(delivery, attempts=delivery.attempts - 1)
            ends.append(_End(Attempted(topic, subscription, tried, EXPIRED, transition, now)))
        await self._end(ends, now)

    # ---- the attempt ------------------------------------------------------------------------------------

    def _hand_over(self, queue: Queue | None) -> Attempt:
        topic, subscription, _, dialect = self._terms
        (delivery,) = self._deliveries
        return dialect.objection(topic, subscription, queue, delivery.body, delivery.headers) or _into_queue(
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
        return await self._push_patiently(endpoint, parcel)

    async def _push_patiently(self, endpoint: Endpoint, parcel: Parcel) -> Attempt:
        plan = self._terms.plan
        if plan.patience_ms is None:
            return await endpoint.push(parcel)
        pushing = asyncio.ensure_future(endpoint.push(parcel))
        try:
            await asyncio.wait([pushing], timeout=plan.patience_ms / 1000)
            return pushing.result() if pushing.done() else await self._late(pushing, plan.patience_ms)
        finally:
            pushing.cancel()

    async def _late(self, pushing: "asyncio.Future[Attempt]", patience_ms: int) -> Attempt:
        """Patience is over: it failed, unless the endpoint takes it before the next attempt would begin.

        The claim is held until then, so that nobody else tries meanwhile. The endpoint's rest begins at once: a late
        success ends it.
        """
        failed = Attempt(Outcome.FAILED, Reason.TIMED_OUT, 0, IMPATIENT, patience_ms)
        now = self._means.runtime.clock.now()
        transitions = self._decide(self._each(failed), now)
        due = [one.available_at for one in transitions if one.ending is Ending.RETRY]
        if len(due) < len(self._deliveries):
            return failed
        plan, means = self._terms.plan, self._means
        await means.probations.note(self._terms.subscription, plan.probation, failed, now)
        claims = [
            (delivery.seq, delivery.token or 0, at + plan.lease_ms)
            for delivery, at in zip(self._deliveries, due, strict=True)
        ]
        await means.store.extend(self._deliveries[0].queue_id, claims, now, ordered=self._terms.topic.ordered)
        await asyncio.wait([pushing], timeout=(min(due) - now) / 1000)
        late = pushing.result() if pushing.done() else failed
        if plan.answers.judge(late).delivered:
            return late
        self._decided = transitions
        return failed

    # ---- what becomes of them ---------------------------------------------------------------------------

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

    async def _end(self, ends: Sequence[_End], now: int) -> None:
        for end in ends:
            if end.fact.transition.ending is Ending.DEAD_LETTERED:
                await self._address(end)
            if end.fact.transition.ending is not Ending.RETRY:
                consequences = self._terms.dialect.leads_to(end.fact)
                if consequences:
                    end.led = await self._means.publisher.arrivals_for(consequences, now)
        await self._settle(ends, now)
        for end in ends:
            self._tell(end)

    async def _address(self, end: _End) -> None:
        """Find the dead-letter queue, if it takes the letter; what no queue takes is dropped, and counted."""
        topic, subscription, _, dialect = self._terms
        delivery = end.fact.delivery
        name = dialect.dead_letters_to(subscription, delivery)
        queue = None if name is None else await self._means.queues.get(name)
        objection = dialect.objection(topic, subscription, queue, delivery.body)
        end.handed = objection or _into_queue(delivery)
        if queue is not None and objection is None:
            end.queue = queue
            return
        end.fact = replace(end.fact, transition=Transition(Ending.DROPPED))
        logger.warning(
            "delivery.dead_letter_refused subscription=%s queue=%s reason=%s: dropped",
            subscription.key,
            None if name is None else name.key,
            end.handed.reason,
        )

    async def _settle(self, ends: Sequence[_End], now: int) -> None:
        queue_id = self._deliveries[0].queue_id
        settlements = [
            _settlement(delivery, end, now) for delivery, end in zip(self._deliveries, ends, strict=True)
        ]
        store, ordered = self._means.store, self._terms.topic.ordered
        try:
            settled = await store.settle(queue_id, settlements, now, ordered=ordered)
        except StoreUnavailable:  # a connection was cut, most often: unsettled, the push would be made again
            settled = await store.settle(queue_id, settlements, now, ordered=ordered)
        for end, answer in zip(ends, settled, strict=True):
            delivery = end.fact.delivery
            end.met = answer.done
            if not end.met:
                logger.warning("dispatch.late queue=%d seq=%d: %s", queue_id, delivery.seq, answer.reason)
            elif end.queue is not None:
                self._means.arrivals.announce(end.queue.id)
            if end.met and end.led is not None:
                self._means.publisher.tell(end.led)

    # ---- what happened ----------------------------------------------------------------------------------

    def _tell(self, end: _End) -> None:
        fact, listeners = end.fact, self._means.listeners
        delivery, attempt, transition = fact.delivery, fact.attempt, fact.transition
        if transition.ending is Ending.RETRY:
            self._means.arrivals.expect(delivery.queue_id, transition.available_at)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "delivery.attempted subscription=%s message=%s attempt=%d reason=%s status=%d ms=%d next=%s",
                fact.subscription.key,
                id_text(delivery.message_id),
                delivery.attempts,
                attempt.reason,
                attempt.status,
                attempt.duration_ms,
                transition.ending,
            )
        if end.met and end.queue is not None:
            for listener in listeners:
                listener.sent(end.queue, 1, bytes_of(delivery.body), fact.at)
        if end.met and end.handed is not None:
            letter = DeadLettered(fact.topic, fact.subscription, delivery, end.handed, fact.at)
            for listener in listeners:
                listener.dead_lettered(letter)
        for listener in listeners:
            if attempt is not EXPIRED:
                listener.attempted(fact)  # also if it is not met: the attempt was made
            elif end.met:
                listener.expired(fact)


def _settlement(delivery: Delivery, end: _End, now: int) -> Settlement:
    attempt, transition = end.fact.attempt, end.fact.transition
    return Settlement(
        delivery.seq,
        delivery.token or 0,
        transition.ending,
        transition.available_at,
        None if end.queue is None else Target(end.queue.id, end.queue.ordered),
        None if attempt.delivered or attempt is EXPIRED else _note(delivery, attempt, now),
        () if end.led is None else end.led.arrivals,
        anew=transition.ending is Ending.DEAD_LETTERED,
    )


def _into_queue(delivery: Delivery) -> Attempt:
    name = id_text(delivery.message_id)
    return Attempt(Outcome.DELIVERED, Reason.ACCEPTED, 200, "", 0, (("message_id", name),))


def _note(delivery: Delivery, attempt: Attempt, now: int) -> AttemptNote:
    return AttemptNote(
        delivery.attempts, now, attempt.duration_ms, attempt.reason, attempt.status, attempt.response
    )
