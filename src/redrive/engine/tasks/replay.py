"""Replay: what a topic's archive holds goes to one subscription again, as a task in the background.

    archive ──peek──► filter ──► route ──► the subscriber's queue, marked as replayed
    published meanwhile ──► waits ──────► the subscriber's backlog, once the replay has caught up

While a replay is under way, what is published waits in a queue of the subscription's own, so that it comes after
what is replayed. The replay has caught up when the archive's next publication is the first of those that wait; these
then move into the backlog, in their order, and what is published after them goes behind them. So each publication
reaches the subscriber by one of the two ways, whichever nodes have heard of the replay: who has not yet, delivers.

A replay with an end leaves the subscription at rest: what is published goes on waiting, and is dropped from there as
it is old enough to be read out of the archive when another replay resumes.

A replay is a document, so it survives its node, as move tasks do (`redrive.engine.tasks.redrive`). A batch that is
repeated after a crash is recognised delivery by delivery.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

from redrive.engine.configuration.matching import Turns, filter_of
from redrive.engine.node.sealed_store import MessageSeals
from redrive.engine.ports import DocumentKind, Runtime, Store, Timer
from redrive.engine.publish import archive
from redrive.engine.publish.archive import Archived
from redrive.engine.publish.fan_out import TopicPublisher
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.resources import Draft, Resources
from redrive.engine.tasks.leased_tasks import LeasedTasks
from redrive.engine.tasks.replay_buffer import ReplayBuffer, ReplayContext
from redrive.model.delivery import Delivery, is_sealed
from redrive.model.errors import KeyUnusable, NotFound
from redrive.model.filtering import MessageBudget, Subject
from redrive.model.task import Replay, ReplayState
from redrive.model.topic import Subscription

logger = logging.getLogger(__name__)

REPLAY: Final = DocumentKind.of("replay", Replay)

BATCH_MAX = 100  # publications read, and replayed in one transaction
SETTLED_MS = 1_000  # older than this, a publication has none on its way that belongs before it
# What waits is kept so long although the archive has it; far longer than nodes need for news.
OVERLAP_MS = 15_000
SKEW_MS = 60_000  # by so much nodes' clocks may differ, by which the archive is looked up
LOOK_MS = 100  # how often a replay looks whether what is before it is through


class Replayer:
    """Starts, carries on and ends replays."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        resources: Resources,
        notifier: QueueNotifier,
        publisher: TopicPublisher,
        seals: MessageSeals,
    ) -> None:
        self._seals = seals
        self._store = store
        self._runtime = runtime
        self._documents = resources.documents
        self._notifier = notifier
        self._publisher = publisher
        self._buffer = ReplayBuffer(store, runtime, resources, notifier)
        self._tasks = LeasedTasks(runtime, resources.documents, REPLAY)
        self._timers: dict[str, Timer] = {}
        self._turns = Turns()

    # ---- verbs ------------------------------------------------------------------------------------------

    async def start_in(
        self, draft: Draft, subscription: Subscription, starts_at: int, ends_at: int | None
    ) -> Replay:
        """Begin a replay; one that the subscription has already ends with it, and what is published waits from now on.

        Args:
            draft: What is written.
            subscription: Who gets it, as the draft leaves it.
            starts_at: What was published from then on (ms).
            ends_at: And until then (ms), after which the subscription rests; None: up to now, and it goes on.
        """
        new_replay = self._new_replay(subscription, starts_at, ends_at)
        begins_at = 0
        if await self._buffer.let_earlier_go(new_replay):  # nodes may be moving it just now
            begins_at = self._runtime.clock.now() + SETTLED_MS
        replay = self._tasks.with_lease(replace(new_replay, begins_at=begins_at))
        await draft.overwrite(REPLAY, replay.key, replay)
        await self._buffer.hold_in(draft, replay)
        draft.afterwards(lambda: self._tasks.begin(replay, self._carry_on))
        return replay

    def _new_replay(self, subscription: Subscription, starts_at: int, ends_at: int | None) -> Replay:
        return Replay(
            id=self._runtime.message_id().hex(),
            topic=subscription.topic,
            subscription_id=subscription.id,
            queue_id=subscription.queue_id,
            starts_at=min(starts_at, self._runtime.clock.now()),
            ends_at=ends_at,
        )

    async def of(self, subscription: Subscription) -> Replay | None:
        """The subscription's replay, under way or ended."""
        replay = await self._documents.get(REPLAY, subscription.key)
        return None if replay is None or replay.queue_id != subscription.queue_id else replay

    async def of_in(self, draft: Draft, subscription: Subscription) -> Replay | None:
        """See `of`: it is to stand still, or still not to be there, when the draft is written."""
        replay: Replay | None = await draft.get(REPLAY, subscription.key)
        return None if replay is None or replay.queue_id != subscription.queue_id else replay

    async def end_in(self, draft: Draft, subscription: Subscription) -> None:
        """Take the subscription's replay away, if it has one; when the draft is written, what waits is let go."""
        replay = await self.of_in(draft, subscription)
        if replay is None and subscription.is_held:  # an older version was cut short before it began
            replay = self._tasks.with_lease(self._new_replay(subscription, self._runtime.clock.now(), None))
            draft.put(REPLAY, replay.key, replay)
            await self._buffer.hold_in(draft, replay)
        if replay is None:
            return
        # One with an end is stopped at rest: what came until now was for nobody, and is purged.
        missed_to = 0 if replay.ends_at is None else await self._store.last_seq()
        stopped = draft.change(
            REPLAY,
            replay.key,
            replay,
            lambda current: replace(current, state=ReplayState.STOPPED, missed_to=missed_to),
        )
        draft.afterwards(lambda: self._tasks.begin(stopped, self._tend))

    # ---- upkeep -----------------------------------------------------------------------------------------

    async def round(self) -> int | None:
        """Resume replays that no node works on, and look after those that ended; see `LeasedTasks.take_up`."""
        replays = await self._documents.find(REPLAY, "")
        for replay in replays:
            if not replay.state.active:
                await self._tend(replay)
        return await self._tasks.take_up(replays, self._carry_on)

    @property
    def is_quiet(self) -> bool:
        """True if no replay is being worked at."""
        return self._tasks.is_quiet

    async def until_quiet(self) -> None:
        """Return when no replay is being worked at; one that waits for a moment to come is not."""
        await self._tasks.until_quiet()

    async def close(self) -> None:
        """Leave the replays under way to the next start."""
        while self._timers:
            self._timers.popitem()[1].cancel()
        await self._tasks.stop()

    async def reset(self) -> None:
        """Stop and forget every replay."""
        await self.close()
        await self._tasks.reset()

    # ---- carrying a replay on ----------------------------------------------------------------------------

    async def _carry_on(self, replay: Replay) -> None:
        """Go on with a replay until it ends, has to wait, or is carried on by another node."""
        current: Replay | None = await self._current(replay)  # it may have gone on since this was asked for
        while current is not None and current.state.active:
            context = await self._buffer.context(current)
            if context is None:
                await self._documents.remove(REPLAY, current.key)
                return
            if not context.topic.archive_ms:
                current = await self._record(current, state=ReplayState.FAILED)
            elif current.state is ReplayState.PENDING:
                current = await self._begin(current, context)
            else:
                current = await self._batch(current, context)
        if current is not None:
            logger.info("replay.%s subscription=%s", current.state, current.key)
            await self._tend(current)

    async def _current(self, replay: Replay) -> Replay | None:
        """The replay as it is now; None if it was replaced or taken away."""
        current: Replay | None = await self._documents.get(REPLAY, replay.key)
        return current if current is not None and current.id == replay.id else None

    async def _begin(self, replay: Replay, context: ReplayContext) -> Replay | None:
        """Forget what has waited for long, and find where in the archive to begin.

        What the subscriber is owed already comes first: it is older than what waits, and may be in the replay too.
        """
        await self._documents.transact(lambda draft: self._buffer.hold_in(draft, replay))
        subscription = context.subscription
        wait_ms = replay.begins_at - self._runtime.clock.now()
        if wait_ms > 0 or await self._store.peek(subscription.queue_id, 1):
            self._resume(replay, max(wait_ms, LOOK_MS))
            return None
        now = self._runtime.clock.now()
        await self._buffer.drop(subscription, max(replay.starts_at, now - OVERLAP_MS))
        last_seq = await self._last_before(context.topic.id, replay.starts_at - SKEW_MS)
        return await self._record(replay, state=ReplayState.RUNNING, last_seq=last_seq)

    async def _last_before(self, archive_id: int, moment: int) -> int:
        """A place in an archive before which all is older, by some 30 looks at single rows."""
        low, high = 0, await self._store.last_seq()
        while low < high:
            middle = (low + high) // 2
            rows = await self._store.peek(archive_id, 1, middle)
            if rows and rows[0].enqueued_at < moment:
                low = rows[0].seq
            else:
                high = middle
        return low

    async def _batch(self, replay: Replay, context: ReplayContext) -> Replay | None:
        """Replay the next publications of the archive; None if there is nothing to go on with now.

        A replay without an end goes on up to the first publication that waits for it; one with an end, until that.
        """
        topic, subscription = context
        now = self._runtime.clock.now()
        rows = await self._store.peek(topic.id, BATCH_MAX, replay.last_seq)
        page = [archive.read(await self._open(row)) for row in rows]
        first_waiting = await self._buffer.first(subscription)  # after the page, which it may be in

        def is_next(archived: Archived) -> bool:
            if replay.ends_at is None:
                return first_waiting is None or archived.sequence < first_waiting
            return archived.at <= now - SETTLED_MS

        ready = list(takewhile(is_next, page))
        await self._publish_again(replay, context, [each for each in ready if replay.covers(each.at)])
        last_seq = ready[-1].seq if ready else replay.last_seq
        has_more = len(ready) == BATCH_MAX
        is_done = not has_more
        if replay.ends_at is not None:
            is_done = _is_past(replay.ends_at, ready, now, has_more=has_more)
        state = ReplayState.COMPLETED if is_done else ReplayState.RUNNING
        recorded = await self._record(replay, state=state, last_seq=last_seq)
        if recorded is None or is_done or has_more:
            return recorded
        self._resume(recorded, SETTLED_MS)
        return None

    async def _open(self, row: Delivery) -> Delivery:
        (opened,) = await self._seals.opened([row])
        if is_sealed(opened):
            raise KeyUnusable("an archive cannot be read: the key that it is encrypted with cannot be used")
        return opened

    def _resume(self, replay: Replay, after_ms: int) -> None:
        """Carry a replay on after that time, in place of an earlier timer of it."""

        def resume() -> None:
            self._timers.pop(replay.id, None)
            self._tasks.begin(replay, self._carry_on)

        if (earlier := self._timers.pop(replay.id, None)) is not None:
            earlier.cancel()
        clock = self._runtime.clock
        self._timers[replay.id] = clock.call_at(clock.now() + after_ms, resume)

    async def _publish_again(
        self, replay: Replay, context: ReplayContext, publications: Sequence[Archived]
    ) -> None:
        """Publish to the subscription what its filter lets through."""
        topic, subscription = context
        matches_filter = filter_of(subscription)
        matches = []
        for archived in publications:
            await self._turns.begin()
            publication, budget = archived.publication, MessageBudget()
            if matches_filter(
                Subject(publication.attributes, publication.body_for(subscription.protocol)), budget
            ):
                matches.append(archived)
            self._turns.end(budget)
        if matches:
            unheld_subscription = replace(subscription, waiting_id=None, held_by=None)
            await self._publisher.publish_again(topic, unheld_subscription, matches, replay.id)

    async def _record(self, replay: Replay, state: ReplayState, last_seq: int | None = None) -> Replay | None:
        """Write down how far it is; None if it is no more this node's to carry on."""

        def record_progress(current: Replay) -> Replay:
            if current.id != replay.id or not current.state.active or not self._tasks.is_ours(current):
                return current
            last_read = current.last_seq if last_seq is None else last_seq
            return self._tasks.with_lease(replace(current, state=state, last_seq=last_read))

        try:
            stored = await self._documents.update(REPLAY, replay.key, record_progress)
        except NotFound:
            return None
        is_ours = stored.id == replay.id and stored.state is state and self._tasks.is_ours(stored)
        return stored if is_ours else None

    # ---- when it has ended -------------------------------------------------------------------------------

    async def _tend(self, replay: Replay) -> None:
        """Do what follows from a replay's end; harmless if it is done again."""
        context = await self._buffer.context(replay)
        if context is None:
            await self._documents.remove(REPLAY, replay.key)
            return
        subscription = context.subscription
        stays_at_rest = replay.state is ReplayState.COMPLETED and replay.ends_at is not None
        if stays_at_rest and context.topic.archive_ms:
            await self._buffer.drop(subscription, self._runtime.clock.now() - 2 * OVERLAP_MS)
            return
        if replay.state is ReplayState.STOPPED:
            await self._buffer.purge(subscription, replay.missed_to)
        if subscription.waiting_id is not None and await self._current(replay) is not None:
            # A node that had not heard yet may let something wait, which would hold up all that comes after it.
            self._notifier.watch(
                subscription.waiting_id, lambda: self._tasks.begin(replay, self._buffer.let_go)
            )
        await self._buffer.release(replay, subscription)
        if replay.state is ReplayState.STOPPED:
            await self._documents.remove(REPLAY, replay.key)


def _is_past(ends_at: int, ready: Sequence[Archived], now: int, *, has_more: bool) -> bool:
    """True if nothing that was published up to then can be left in the archive."""
    return bool(ready and ready[-1].at > ends_at + SKEW_MS) or (not has_more and now - SETTLED_MS >= ends_at)
