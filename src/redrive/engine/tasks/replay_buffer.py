"""The replay buffer: publications that wait behind a replay, in a queue of the subscription's own."""

import contextlib
from dataclasses import replace
from typing import Final, NamedTuple

from redrive.engine.ports import MoveRequest, MoveTarget, Runtime, Store
from redrive.engine.publish import archive
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.resources import Draft, Resources
from redrive.model.errors import NotFound
from redrive.model.task import Replay
from redrive.model.topic import Subscription, Topic

MOVED_MAX: Final = 100  # moved in one transaction, and looked at for the first of them
ROWS_PER_SWEEP: Final = 1_000


class ReplayContext(NamedTuple):
    """The topic and subscription of a replay."""

    topic: Topic
    subscription: Subscription


class ReplayBuffer:
    """Holds publications back during a replay, and releases them."""

    def __init__(self, store: Store, runtime: Runtime, resources: Resources, notifier: QueueNotifier) -> None:
        self._store = store
        self._runtime = runtime
        self._topics = resources.topics
        self._subscriptions = resources.subscriptions
        self._notifier = notifier

    async def context(self, replay: Replay) -> ReplayContext | None:
        """The topic and subscription of a replay as they are now; None: one of them is gone."""
        topic = await self._topics.get(replay.topic)
        subscription = await self._subscriptions.get(replay.topic, replay.subscription_id)
        if topic is None or subscription is None or subscription.queue_id != replay.queue_id:
            return None
        return ReplayContext(topic, subscription)

    async def hold_in(self, draft: Draft, replay: Replay) -> None:
        """Have what is published wait, from the moment on at which the draft is written."""
        subscription = await self._subscriptions.get_in(draft, replay.topic, replay.subscription_id)
        if (
            subscription is None
            or subscription.queue_id != replay.queue_id
            or subscription.held_by == replay.id
        ):
            return
        waiting_id = subscription.waiting_id or await self._store.new_id()
        await self._subscriptions.update_in(
            draft, subscription, lambda current: replace(current, waiting_id=waiting_id, held_by=replay.id)
        )

    async def let_earlier_go(self, replay: Replay) -> bool:
        """Release what still waits behind an earlier replay, which has ended; True if something did."""
        context = await self.context(replay)
        if context is None or context.subscription.is_held or context.subscription.waiting_id is None:
            return False
        waiting_id = context.subscription.waiting_id
        self._notifier.unwatch(waiting_id)
        has_more = bool(await self._store.peek(waiting_id, 1))
        await self.let_go(replay)
        return has_more

    async def release(self, replay: Replay, subscription: Subscription) -> None:
        """Let what is published go to the subscriber, behind what waits, if it waits for this replay."""
        if subscription.held_by == replay.id:
            with contextlib.suppress(NotFound):
                await self._subscriptions.update(
                    subscription,
                    lambda current: (
                        replace(current, held_by=None) if current.held_by == replay.id else current
                    ),
                )
        await self.let_go(replay)

    async def let_go(self, replay: Replay) -> None:
        """Move what waits into the backlog, in its order, unless it waits for another replay."""
        while (context := await self.context(replay)) is not None and not context.subscription.is_held:
            topic, subscription = context
            if subscription.waiting_id is None or not await self._store.peek(subscription.waiting_id, 1):
                return
            request = MoveRequest(
                queue_id=subscription.waiting_id,
                ordered=topic.ordered,
                limit=MOVED_MAX,
                now=self._runtime.clock.now(),
                seq_max=await self._store.last_seq(),
                message_ids=[self._runtime.message_id() for _ in range(MOVED_MAX)],
                destination=MoveTarget(subscription.queue_id, topic.ordered),
            )
            moved = await self._store.move(request)
            self._notifier.announce(subscription.queue_id, moved.total)

    async def first(self, subscription: Subscription) -> int | None:
        """The sequence number of the first publication that waits; None: none waits.

        It is the least of a page: rows of publications that entered together may be in another order.
        """
        if subscription.waiting_id is None:
            return None
        waiting = await self._store.peek(subscription.waiting_id, MOVED_MAX)
        return min((archive.sequence_of(each) for each in waiting), default=None)

    async def drop(self, subscription: Subscription, before: int) -> None:
        """Forget what has waited since before that moment (ms)."""
        if subscription.waiting_id is None:
            return
        now = self._runtime.clock.now()
        while (await self._store.sweep(subscription.waiting_id, before - 1, now, ROWS_PER_SWEEP)).has_more:
            pass

    async def purge(self, subscription: Subscription, seq_max: int) -> None:
        """Forget what waits and arrived no later than this."""
        if subscription.waiting_id is None or not seq_max:
            return
        while await self._store.purge(subscription.waiting_id, seq_max, ROWS_PER_SWEEP):
            pass
