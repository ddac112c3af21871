"""Settling attempts: deliveries that were tried together end together, or go back, each by its own token.

Very many are settled in pieces, so that a node that dies between two pieces leaves the second to be tried again. The
queue that a dead letter goes to, and the messages that an end leads to (a letter for a store, a further event), are in
the transaction that ends the delivery. All of it is repeated while the store is away: the push was made, and unsettled
it would be made again.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from redrive.engine.configuration.queues import Queues
from redrive.engine.node.memory import FaultInjection, Listeners, NodeCounters, SubscriptionContexts
from redrive.engine.node.sealed_store import MessageSeals
from redrive.engine.ports import (
    AttemptNote,
    Endpoint,
    MessageStore,
    MoveTarget,
    OpenedDelivery,
    QueueStore,
    Runtime,
    Settled,
    Settlement,
    StoredContent,
    SubscriptionContext,
)
from redrive.engine.ports.facts import Attempted, DeadLettered, Undelivered
from redrive.engine.publish.fan_out import RoutedFollowUps, TopicPublisher
from redrive.engine.push.circuit_breakers import CircuitBreakers
from redrive.engine.push.late_pushes import LatePushes, SoftTimeout
from redrive.engine.push.retrier import SettleRetrier
from redrive.engine.receive.notifier import QueueNotifier
from redrive.model.attempt import Attempt, AttemptResult, Reason
from redrive.model.delivery import DROPPED, EXPIRED, DeadLetterReason, Delivery, Outcome, is_sealed
from redrive.model.errors import StoreUnavailable
from redrive.model.names import bytes_of, id_text
from redrive.model.queue import Queue

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PushParts:
    """The parts of the engine that take part in an attempt, by role."""

    store: MessageStore
    queue_store: QueueStore
    runtime: Runtime
    queues: Queues
    notifier: QueueNotifier
    contexts: SubscriptionContexts
    counters: NodeCounters
    endpoints: Mapping[str, Endpoint]
    faults: FaultInjection
    listeners: Listeners
    publisher: TopicPublisher
    circuits: CircuitBreakers
    retrier: SettleRetrier
    soft_timeout: SoftTimeout
    late_pushes: LatePushes
    seals: MessageSeals


# Of a larger batch, claimed or settled at a time: 10 ms of SQLite's, in which nobody else has a turn.
PIECE: Final = 500

OVERDUE: Final = Attempt(AttemptResult.REFUSED, Reason.EXPIRED, 0, "")
_NOT_LOST: Final = frozenset({Outcome.DELIVERED, Outcome.RETRY})
_UNASKED: Final = Attempt(AttemptResult.REFUSED, Reason.UNMADE, 0, "this server could not say where to")


@dataclass(slots=True)
class SettleItem:
    """One delivery and what becomes of it."""

    fact: Attempted  # Event for the listeners
    queue: Queue | None = None  # The queue it enters, if it enters one
    follow_ups: RoutedFollowUps | None = None  # The messages that its end leads to
    # For a dead letter: the answer of its queue; None: it is dropped without having one.
    handover: Attempt | None = None
    # The claim still held: else the delivery was another's by then, or gone, and did not end like this.
    is_settled: bool = True
    ready: bool = False  # The queue and the follow-ups have been found


class AttemptSettlement:
    """The settlement of the deliveries of one attempt."""

    def __init__(
        self,
        parts: PushParts,
        context: SubscriptionContext,
        deliveries: Sequence[Delivery],
        items: Sequence[SettleItem],
    ) -> None:
        """Settle the outcome of an attempt at these deliveries, as they were claimed; one item for each, in order."""
        self._parts = parts
        self._context = context
        self._deliveries = deliveries
        self._items = items
        self._calls = 0  # to the store, for the piece at hand

    async def settle(self, until: int) -> None:
        """Find the queue of each, settle, tell the listeners; `until` is the end of the claim (ms).

        Raises:
            StoreUnavailable: The store was away until then.
        """
        retry = functools.partial(self._parts.retrier.retry_until_lease_ends, len(self._items), until)
        await retry(self._prepare)
        for first in range(0, len(self._items), PIECE):
            piece = slice(first, first + PIECE)
            settled = await retry(functools.partial(self._settle, piece))
            self._take_answers(self._items[piece], settled)
        for item in self._items:
            self._tell(item)

    # ---- before it is settled ---------------------------------------------------------------------------

    async def _prepare(self) -> None:
        """Find what each settlement needs; `ready` lets a repeated call go on where an earlier one failed."""
        for item in self._items:
            if item.ready:
                continue
            if item.fact.transition.outcome is Outcome.DEAD_LETTERED:
                await self._find_dead_letter_queue(item)
            if item.fact.transition.outcome is not Outcome.RETRY:
                await self._find_follow_ups(item)
            item.ready = True

    async def _find_dead_letter_queue(self, item: SettleItem) -> None:
        """Find the queue of a dead letter; the delivery is dropped where no queue takes it."""
        fact, context = item.fact, self._context
        if context.is_confirmation(fact.delivery):
            item.fact = replace(fact, transition=EXPIRED if fact.attempt is OVERDUE else DROPPED)
            return
        name = context.dead_letter
        queue = None if name is None else await self._parts.queues.get(name)
        refusal = await self._refusal(queue, fact.delivery)
        item.handover = refusal or accepted(fact.delivery)
        if queue is not None and refusal is None:
            item.queue = queue
            return
        item.fact = replace(fact, transition=DROPPED)

    async def _refusal(self, queue: Queue | None, delivery: Delivery) -> Attempt | None:
        """The reason why a dead-letter queue does not take a delivery; None: it does."""
        context = self._context
        try:
            return await self._parts.seals.refusal(context, queue, delivery.body)
        except StoreUnavailable:
            raise
        except Exception:  # see `_find_follow_ups`
            logger.exception("delivery.dead_letter_unasked subscription=%s", context.subscription.key)
            return _UNASKED

    async def _find_follow_ups(self, item: SettleItem) -> None:
        """Route the messages that the end leads to; where that fails, the delivery ends without them.

        A fault of our own would be the same the next time: unsettled, the delivery would be pushed again at each lease,
        for ever, to an endpoint that may have taken it. So the messages are lost, and the log says so.
        """
        try:
            follow_ups = self._context.profile.follow_ups(item.fact)
            if follow_ups:
                item.follow_ups = await self._parts.publisher.route_follow_ups(follow_ups, item.fact.at)
        except StoreUnavailable:
            raise
        except Exception:
            logger.exception(
                "delivery.leads_nowhere subscription=%s message=%s ending=%s: its follow-up is lost",
                self._context.subscription.key,
                id_text(item.fact.delivery.message_id),
                item.fact.transition.outcome,
            )

    # ---- settled ----------------------------------------------------------------------------------------

    async def _settle(self, piece: slice) -> Sequence[Settled]:
        """Settle some of the deliveries in one transaction; the store's answer for each."""
        settlements = [
            _settlement(
                delivery, item, None if item.queue is None else await self._content(delivery, item.queue)
            )
            for delivery, item in zip(self._deliveries[piece], self._items[piece], strict=True)
        ]
        self._calls += 1
        queue_id, now = self._deliveries[0].queue_id, self._parts.runtime.clock.now()
        ordered = self._context.topic.ordered
        return await self._parts.store.settle(queue_id, settlements, now, ordered=ordered)

    async def _content(self, delivery: Delivery, queue: Queue) -> StoredContent | None:
        """The content that a delivery enters a queue with, sealed by that queue's key; None: as it is in the store."""
        if is_sealed(delivery):
            return None
        if (sealer := self._parts.seals.of_queue(queue)) is not None:
            await sealer.prepare()
            return sealer.seal(queue.id, delivery.message_id, delivery.body, delivery.headers)
        return (delivery.body, delivery.headers, None) if isinstance(delivery, OpenedDelivery) else None

    def _take_answers(self, items: Sequence[SettleItem], settled: Sequence[Settled]) -> None:
        """Take the store's answers.

        A second call, made because the answer to the first was lost, finds the delivery gone: the first has settled it.
        """
        calls, self._calls = self._calls, 0
        for item, answer in zip(items, settled, strict=True):
            delivery = item.fact.delivery
            item.is_settled = answer.done or (calls > 1 and answer.reason == "gone")
            if not item.is_settled:
                logger.warning(
                    "dispatch.late queue=%d seq=%d: %s", delivery.queue_id, delivery.seq, answer.reason
                )
                continue
            if item.queue is not None:
                self._parts.notifier.announce(item.queue.id)
            if item.follow_ups is not None:
                self._parts.publisher.tell(item.follow_ups)

    # ---- told -------------------------------------------------------------------------------------------

    def _tell(self, item: SettleItem) -> None:
        """Tell consumers and listeners of a delivery's attempt and, unless its claim was lost, of its end."""
        fact, parts = item.fact, self._parts
        if fact.transition.outcome is Outcome.RETRY:
            parts.notifier.expect(fact.delivery.queue_id, fact.transition.available_at)
        if logger.isEnabledFor(logging.DEBUG):
            _log(fact)
        audience = parts.listeners.of(self._context.profile.name)
        if item.is_settled and item.queue is not None:
            parts.listeners.queues.sent(item.queue, 1, bytes_of(fact.delivery.body), fact.at)
        if item.is_settled and item.handover is not None:
            letter = DeadLettered(fact.topic, fact.subscription, fact.delivery, item.handover, fact.at)
            audience.dead_lettered(letter)
        if fact.attempt is not OVERDUE:
            audience.attempted(fact)  # also where the claim no longer held: the attempt was made
        elif item.is_settled:
            audience.expired(fact)
        if item.is_settled and fact.transition.outcome not in _NOT_LOST:
            confirmation = self._context.is_confirmation(fact.delivery)
            is_dead_letter = item.follow_ups is not None and item.follow_ups.has_dead_letter
            audience.undelivered(Undelivered(fact, item.handover, confirmation, dead_letter=is_dead_letter))


@dataclass(slots=True)
class _SettlementGroup:
    """Attempts that end together; see AttemptSettlement for the rest."""

    context: SubscriptionContext
    until: int
    deliveries: list[Delivery] = field(default_factory=list)
    items: list[SettleItem] = field(default_factory=list)
    # Called with what went wrong, or None; the others may have given up meanwhile.
    waiting: list[Callable[[Exception | None], None]] = field(default_factory=list)


class JointSettlements:
    """Successes of one backlog that are settled together: those that occur while the ones before are being settled.

    They share a call of the store and a commit with each other, and with the next claim: alone, these cost a quarter of a
    push. Nobody waits for company. A failure is settled by itself, since what it leads to may take its time.
    """

    def __init__(self, parts: PushParts, on_begin: Callable[[], None]) -> None:
        """Settle by these parts; `on_begin` is called when some begin to be settled."""
        self._parts = parts
        self._on_begin = on_begin
        self._settling = 0
        self._group: _SettlementGroup | None = None  # gathers
        self.tasks: set[asyncio.Task[None]] = set()  # Under way

    @property
    def places(self) -> int:
        """The number of attempts whose places may be taken: they are being settled, and the store is there."""
        return 0 if self._parts.retrier.waiting else self._settling

    def settle(
        self,
        context: SubscriptionContext,
        deliveries: Sequence[Delivery],
        items: Sequence[SettleItem],
        until: int,
    ) -> "asyncio.Future[None]":
        """Done when these are settled; see `AttemptSettlement.settle`."""
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def take(error: Exception | None) -> None:
            if settled.done():
                return
            if error is None:
                settled.set_result(None)
            else:
                settled.set_exception(error)

        self.add(context, deliveries, items, until, take)
        return settled

    def add(
        self,
        context: SubscriptionContext,
        deliveries: Sequence[Delivery],
        items: Sequence[SettleItem],
        until: int,
        take: Callable[[Exception | None], None],
    ) -> None:
        """Settle with others; `take` is called when these are settled, or with what `AttemptSettlement.settle` raised."""
        group = self._group
        if group is None or group.context is not context:
            self._begin()
            group = self._group = _SettlementGroup(context, until)
            # Else the end of a task under way begins it, unless that may wait for the store until its lease ends.
            if not self.tasks or self._parts.retrier.waiting:
                asyncio.get_running_loop().call_soon(self._begin)
        group.until = min(group.until, until)
        group.deliveries += deliveries
        group.items += items
        group.waiting.append(take)

    def stop(self) -> list["asyncio.Task[None]"]:
        """Settle nothing more: leases run out. The tasks that are to be cancelled."""
        self._group = None
        return list(self.tasks)

    def _begin(self) -> None:
        """Settle those that have gathered."""
        group, self._group = self._group, None
        if group is not None:
            task = asyncio.get_running_loop().create_task(self._run(group))
            self.tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        self._begin()

    async def _run(self, group: _SettlementGroup) -> None:
        """Settle a group, and tell each of its attempts how that ended."""
        error: Exception | None = None
        settlement = AttemptSettlement(self._parts, group.context, group.deliveries, group.items)
        number = len(group.waiting)
        self._settling += number
        self._on_begin()  # what is claimed now is in the same commit
        try:
            await settlement.settle(group.until)
        except Exception as caught:  # noqa: BLE001 - each attempt of the group is told
            error = caught
        finally:
            self._settling -= number
        for take in group.waiting:
            take(error)


def _log(fact: Attempted) -> None:
    delivery, attempt = fact.delivery, fact.attempt
    logger.debug(
        "delivery.attempted subscription=%s message=%s attempt=%d reason=%s status=%d ms=%d next=%s",
        fact.subscription.key,
        id_text(delivery.message_id),
        delivery.attempts,
        attempt.reason,
        attempt.status,
        attempt.duration_ms,
        fact.transition.outcome,
    )


def _settlement(delivery: Delivery, item: SettleItem, content: StoredContent | None) -> Settlement:
    """The settlement of a delivery as the store takes it, with the note of an attempt that failed."""
    attempt, transition = item.fact.attempt, item.fact.transition
    return Settlement(
        delivery.seq,
        delivery.token or 0,
        transition.outcome,
        transition.available_at,
        None if item.queue is None else MoveTarget(item.queue.id, item.queue.ordered),
        None if attempt.delivered or attempt is OVERDUE else _note(delivery, attempt, item.fact.at),
        () if item.follow_ups is None else item.follow_ups.new_deliveries,
        as_new=transition.outcome is Outcome.DEAD_LETTERED,
        content=content,
        reason=DeadLetterReason.EXPIRED if attempt is OVERDUE else DeadLetterReason.REJECTED,
    )


def accepted(delivery: Delivery) -> Attempt:
    """The result of handing a delivery to a queue of this server that takes it."""
    name = id_text(delivery.message_id)
    return Attempt(AttemptResult.DELIVERED, Reason.ACCEPTED, 200, "", 0, (("message_id", name),))


def _note(delivery: Delivery, attempt: Attempt, now: int) -> AttemptNote:
    return AttemptNote(
        delivery.attempts, now, attempt.duration_ms, attempt.reason, attempt.status, attempt.response
    )
