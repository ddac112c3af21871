"""How deliveries end that were tried together, once it is decided: settled together, but for very many in pieces.

Each ends by its own token, so that a node that dies between two pieces leaves the second to be tried again. What a
dead letter is handed to, and what an end leads to (letters for another store, further events), enters the store in the
transaction that ends it. All of it is insisted on: the push was made, and unsettled it would be made again.
"""

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from redrive.engine.facts import Attempted, DeadLettered
from redrive.engine.fan_out import Led
from redrive.engine.means import Means, Terms
from redrive.engine.ports import AttemptNote, Settled, Settlement, Target
from redrive.model.attempt import Attempt, Reason
from redrive.model.delivery import Delivery, Ending, Outcome, Transition
from redrive.model.errors import StoreUnavailable
from redrive.model.message import bytes_of, id_text
from redrive.model.queue import Queue, ResourceName

logger = logging.getLogger(__name__)

PIECE = 500  # of a larger batch, settled at a time: 10 ms of SQLite's, in which nobody else has his turn

EXPIRED = Attempt(Outcome.REFUSED, Reason.EXPIRED, 0, "", 0)
_UNASKED = Attempt(Outcome.REFUSED, Reason.UNMADE, 0, "this server could not say where to", 0)


@dataclass(slots=True)
class End:
    """One delivery and what becomes of it.

    Attributes:
        fact: What listeners are told.
        queue: The queue it enters, if it enters one.
        led: What its end leads to besides.
        handed: For a dead letter: what came of handing it over; None: it was dropped without anybody to take it.
        met: Whether it came in time: else the delivery was another's by then, or gone, and did not end like this.
        ready: Whether it is known where it goes, and what it leads to.
    """

    fact: Attempted
    queue: Queue | None = None
    led: Led | None = None
    handed: Attempt | None = None
    met: bool = True
    ready: bool = False


class Ends:
    """Deliveries of one claim on their way out, or back."""

    def __init__(
        self,
        means: Means,
        terms: Terms,
        deliveries: Sequence[Delivery],
        ends: Sequence[End],
        now: int,
    ) -> None:
        """End these deliveries like this.

        Args:
            means: The parts of the engine that it takes.
            terms: Whose they are.
            deliveries: As they were claimed.
            ends: Of each.
            now: When the attempt ended (ms).
        """
        self._means = means
        self._terms = terms
        self._deliveries = deliveries
        self._ends = ends
        self._now = now
        self._asked = 0  # how often the store was asked to settle a piece

    async def come(self, until: int) -> None:
        """Find out where they go, settle, tell; `until` is the end of their claim (ms).

        Raises:
            StoreUnavailable: It was away until then.
        """
        insist = functools.partial(self._means.unsettled.insist, len(self._ends), until)
        await insist(self._prepare)
        for first in range(0, len(self._ends), PIECE):
            piece = slice(first, first + PIECE)
            settled = await insist(functools.partial(self._settle, piece))
            self._hear(self._ends[piece], settled)
        for end in self._ends:
            self._tell(end)

    # ---- before it is settled ---------------------------------------------------------------------------

    async def _prepare(self) -> None:
        for end in self._ends:
            if end.ready:
                continue
            if end.fact.transition.ending is Ending.DEAD_LETTERED:
                await self._address(end)
            if end.fact.transition.ending is not Ending.RETRY:
                await self._lead_on(end)
            end.ready = True

    async def _address(self, end: End) -> None:
        """Find the dead-letter queue, if it takes the letter; what no queue takes is dropped, and counted."""
        name, queue, objection = await self._addressed(end.fact.delivery)
        end.handed = objection or into_queue(end.fact.delivery)
        if queue is not None and objection is None:
            end.queue = queue
            return
        end.fact = replace(end.fact, transition=Transition(Ending.DROPPED))
        logger.warning(
            "delivery.dead_letter_refused subscription=%s queue=%s reason=%s: dropped",
            self._terms.subscription.key,
            None if name is None else name.key,
            end.handed.reason,
        )

    async def _addressed(
        self, delivery: Delivery
    ) -> tuple[ResourceName | None, Queue | None, Attempt | None]:
        """Which queue it is, and why it does not take the letter."""
        topic, subscription, _, dialect = self._terms
        name = dialect.dead_letters_to(subscription, delivery)
        queue = None if name is None else await self._means.queues.get(name)
        try:
            return name, queue, dialect.objection(topic, subscription, queue, delivery.body)
        except Exception:  # see `_lead_on`
            logger.exception("delivery.dead_letter_unasked subscription=%s", subscription.key)
            return name, queue, _UNASKED

    async def _lead_on(self, end: End) -> None:
        """Find what the end leads to; where that cannot be said, the delivery ends all the same.

        A fault of our own would be the same the next time: unsettled, the delivery would be pushed again at each lease,
        for ever, to an endpoint that may have taken it. So what it would have led to is told in the log, and lost.
        """
        try:
            consequences = self._terms.dialect.leads_to(end.fact)
            if consequences:
                end.led = await self._means.publisher.arrivals_for(consequences, self._now)
        except StoreUnavailable:
            raise
        except Exception:
            logger.exception(
                "delivery.leads_nowhere subscription=%s message=%s ending=%s: it ends without what it should lead to",
                self._terms.subscription.key,
                id_text(end.fact.delivery.message_id),
                end.fact.transition.ending,
            )

    # ---- settled ----------------------------------------------------------------------------------------

    async def _settle(self, piece: slice) -> Sequence[Settled]:
        settlements = [
            _settlement(delivery, end, self._now)
            for delivery, end in zip(self._deliveries[piece], self._ends[piece], strict=True)
        ]
        self._asked += 1
        queue_id, now = self._deliveries[0].queue_id, self._means.runtime.clock.now()
        return await self._means.store.settle(queue_id, settlements, now, ordered=self._terms.topic.ordered)

    def _hear(self, ends: Sequence[End], settled: Sequence[Settled]) -> None:
        """What the store said.

        Asked once more because its answer was lost, it finds the delivery gone: gone as it was asked for, then.
        """
        asked, self._asked = self._asked, 0
        for end, answer in zip(ends, settled, strict=True):
            delivery = end.fact.delivery
            end.met = answer.done or (asked > 1 and answer.reason == "gone")
            if not end.met:
                logger.warning(
                    "dispatch.late queue=%d seq=%d: %s", delivery.queue_id, delivery.seq, answer.reason
                )
            elif end.queue is not None:
                self._means.arrivals.announce(end.queue.id)
            if end.met and end.led is not None:
                self._means.publisher.tell(end.led)

    # ---- what happened ----------------------------------------------------------------------------------

    def _tell(self, end: End) -> None:
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


def _settlement(delivery: Delivery, end: End, now: int) -> Settlement:
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


def into_queue(delivery: Delivery) -> Attempt:
    """A queue of this server takes it."""
    name = id_text(delivery.message_id)
    return Attempt(Outcome.DELIVERED, Reason.ACCEPTED, 200, "", 0, (("message_id", name),))


def _note(delivery: Delivery, attempt: Attempt, now: int) -> AttemptNote:
    return AttemptNote(
        delivery.attempts, now, attempt.duration_ms, attempt.reason, attempt.status, attempt.response
    )
