"""Redrive: dead letters go back where they came from, or elsewhere, as tasks in the background.

A batch moves in one transaction; the count beside it is written after it and may lag by one batch after a crash (SQS
calls it approximate).
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from redrive.engine.configuration.draft import Draft
from redrive.engine.configuration.kinds import QUEUE
from redrive.engine.node.memory import NodeCounters
from redrive.engine.ports import DocumentKind, Moved, MoveRequest, MoveTarget, Runtime, Store
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.resources import Resources
from redrive.engine.tasks.dead_letters import BATCH_MAX
from redrive.engine.tasks.leased_tasks import LeasedTasks
from redrive.engine.tasks.redrive_plan import (
    CAUSES_MAX,
    EVERYTHING,
    Canary,
    RedriveOptions,
    RedrivePlanner,
    RedriveTargets,
    cause_of,
    sample_of,
)
from redrive.model.errors import NotFound, Refused, TaskActive
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.task import (
    LOOK_AGAIN_MS,
    CarefulPace,
    CarefulStep,
    MoveChoice,
    MoveTask,
    TaskState,
    careful_step,
)
from redrive.model.topic import Subscription

logger = logging.getLogger(__name__)

TASK: Final = DocumentKind.of("move_task", MoveTask)
# Of each source the task that was started last: who starts another changes it, so of two at once one is written.
LAST_TASK: DocumentKind[str] = DocumentKind(
    "last_move_task", lambda key: {"key": key}, lambda document: document["key"]
)

TASKS_KEPT = 10  # finished ones per source, as many as ListMessageMoveTasks shows
TASK_MS_MAX = 36 * 60 * 60 * 1000  # a task runs for 36 hours at most (SQS quotas)
NOTHING = Moved({}, has_more=True)


class Redriver:
    """Starts, carries on, cancels and lists move tasks.

    Attributes:
        plan: Counts what a task would move (`RedrivePlanner.plan`).
    """

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        resources: Resources,
        notifier: QueueNotifier,
        counters: NodeCounters,
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._documents = resources.documents
        self._queues = resources.queues
        self._targets = RedriveTargets(resources)
        self._planner = RedrivePlanner(store, runtime.clock, self._targets)
        self.plan = self._planner.plan
        self._canary = Canary(store, runtime.clock)
        self._notifier = notifier
        self._counters = counters
        self._tasks = LeasedTasks(runtime, resources.documents, TASK)

    async def start(
        self,
        source: Queue,
        destination: Queue | None,
        rate_max: int | None,
        options: RedriveOptions = EVERYTHING,
    ) -> MoveTask:
        """Begin to move what waits in `source` now.

        Args:
            source: A dead-letter queue, or any other.
            destination: Where everything goes; None: each message where it came from.
            rate_max: Messages a second; None: as fast as the store takes them.
            options: Which of them, and how carefully.

        Raises:
            TaskActive: A task for this source is running, or paused.
        """
        now = self._runtime.clock.now()
        plan = await self._planner.count(source, options.choice)
        task = MoveTask(
            id=self._runtime.message_id().hex(),
            source=source.name,
            destination=None if destination is None else destination.name,
            rate_max=rate_max,
            to_move=plan.number,
            started_at=now,
            last_seq=plan.last_seq if options.last_seq is None else min(plan.last_seq, options.last_seq),
            state=TaskState.WAITING if options.delay_ms else TaskState.RUNNING,
            choice=options.choice,
            keeps_origin=options.keeps_origin,
            careful=options.careful,
            starts_at=now + options.delay_ms,
            by=options.by,
        )
        task = self._tasks.with_lease(task)
        await self._documents.transact(lambda draft: self._start_in(draft, task))
        self._tasks.begin(task, self._carry_on)
        return task

    async def _start_in(self, draft: Draft, task: MoveTask) -> None:
        """Write a task as its source's last; of two that begin at the same moment, the other finds it there."""
        # Read first: one that begins after this may be missed by `find`, but changes what was read.
        await draft.get(LAST_TASK, task.source.key)
        tasks = await draft.find(TASK, f"{task.source.key}/")
        if any(earlier.state.active for _, earlier in tasks):
            raise TaskActive(task.source.key)
        draft.put(TASK, task.key, task)
        draft.put(LAST_TASK, task.source.key, task.key)
        for key, _ in tasks[: 1 - TASKS_KEPT]:  # with the new one, so many stay
            draft.remove(TASK, key)

    async def cancel(self, source: ResourceName, task_id: str) -> MoveTask:
        """Ask a task to stop; what it has moved stays moved.

        Raises:
            NotFound: No such task.
            Refused: It has ended, or is stopping.
        """

        def mark_cancelled(current: MoveTask) -> MoveTask:
            if not current.state.active or current.state is TaskState.CANCELLING:
                raise Refused(f"task {task_id} is {current.state}")
            is_paused = current.state is TaskState.PAUSED  # no node works on it
            return replace(current, state=TaskState.CANCELLED if is_paused else TaskState.CANCELLING)

        return await self._change(source, task_id, mark_cancelled)

    async def pause(self, source: ResourceName, task_id: str) -> MoveTask:
        """Ask a task to pause; it keeps its place, and nobody can start another meanwhile.

        Raises:
            NotFound: No such task.
            Refused: It does not run.
        """

        def mark_paused(current: MoveTask) -> MoveTask:
            if current.state not in (TaskState.WAITING, TaskState.RUNNING):
                raise Refused(f"task {task_id} is {current.state}")
            return replace(current, state=TaskState.PAUSED)

        return await self._change(source, task_id, mark_paused)

    async def resume(
        self, source: ResourceName, task_id: str, pace: CarefulPace | int | None = None
    ) -> MoveTask:
        """Let a paused task go on where it was.

        `pace` replaces the one that it had: careful, or so many a second; 0: as fast as the store takes them.

        Raises:
            NotFound: No such task.
            Refused: It is not paused.
        """

        def mark_resumed(current: MoveTask) -> MoveTask:
            if current.state is not TaskState.PAUSED:
                raise Refused(f"task {task_id} is {current.state}")
            resumed_task = self._tasks.with_lease(current.as_resumed(self._runtime.clock.now()))
            if pace is None:
                return resumed_task
            if isinstance(pace, CarefulPace):
                return replace(resumed_task, careful=pace, rate_max=None)
            return replace(resumed_task, careful=None, rate_max=pace or None)

        task = await self._change(source, task_id, mark_resumed)
        self._tasks.begin(task, self._carry_on)
        return task

    async def _change(
        self, source: ResourceName, task_id: str, change: Callable[[MoveTask], MoveTask]
    ) -> MoveTask:
        task = next((each for each in await self.tasks_of(source) if each.id == task_id), None)
        if task is None:
            raise NotFound(task_id)
        return await self._documents.update(TASK, task.key, change)

    async def tasks_of(self, source: ResourceName) -> list[MoveTask]:
        """The tasks of a source, latest first."""
        return (await self._documents.find(TASK, f"{source.key}/"))[::-1]

    async def current(self, failed_since: int) -> list[MoveTask]:
        """The tasks of all accounts that have not ended, and those that failed since then (ms): one read, or two.

        One that failed is left out once another of its source was started, and where its source is gone. The moment of a
        failure is not written down; each step renews the lease, which tells it to half a minute (`LEASE_MS`).
        """
        last = {task.source.key: task for task in await self._documents.find(TASK, "")}  # the last started
        failed = (task for task in last.values() if task.state is TaskState.FAILED)
        sources = [(QUEUE, task.source.key) for task in failed if task.lease_until >= failed_since]
        existing_sources = await self._documents.get_each(sources)
        return [
            task for key, task in last.items() if task.state.active or (QUEUE.name, key) in existing_sources
        ]

    async def active_tasks(self, account: str) -> int:
        """The number of running tasks of an account."""
        tasks = await self._documents.find(TASK, f"{account}/")
        return sum(task.state.active for task in tasks)

    async def origins_of(self, source: ResourceName) -> list[Queue | Subscription]:
        """The origins that are configured to send to a queue (NotFound: it is gone), and others whose letters it holds.

        A function sends its own, and a queue or a subscription may have another dead-letter queue by now.
        """
        queue = await self._queues.get(source)
        if queue is None:
            raise NotFound("source")
        counts = await self._store.causes(queue.id, CAUSES_MAX, 1, CAUSES_MAX)
        return await self._targets.origins(source, {count.cause.origin for count in counts})

    async def take_up(self) -> int | None:
        """Resume tasks that no node works on; see `LeasedTasks.take_up`."""
        tasks = [task for task in await self._documents.find(TASK, "") if task.state.at_work]
        return await self._tasks.take_up(tasks, self._carry_on)

    async def stop(self) -> None:
        """Leave the running tasks to the next start."""
        await self._tasks.stop()

    async def reset(self) -> None:
        """Stop and forget every task."""
        await self._tasks.reset()
        await self._documents.clear(LAST_TASK)

    # ---- carrying a task on ------------------------------------------------------------------------------

    async def _carry_on(self, task: MoveTask) -> None:
        """Move batch after batch until the task ends, is paused or cancelled, or is carried on by another node."""
        try:
            task = await self._wait_for_start(task)
            origins = await self._origins(task)
            has_more = True
            while has_more and task.state is TaskState.RUNNING:
                began = self._runtime.clock.now()
                step = await self._step(task, began)
                if step.stop:
                    task = await self._pause_for_failures(task)
                    break
                moved = await self._move_batch(task, origins, began, step.move) if step.move else NOTHING
                has_more = moved.has_more
                task = await self._record(task, moved)
                if not self._tasks.is_ours(task):
                    return  # another node took it up meanwhile, and carries it on
                if has_more and step.wait_ms:
                    # In proportion: a batch may have moved fewer than the step's wait is for.
                    pause_ms = step.wait_ms * moved.total // step.move if step.move else step.wait_ms
                    await self._runtime.clock.sleep_until(began + pause_ms)
                    task = await self._documents.get(TASK, task.key) or task
            if task.state is not TaskState.PAUSED:
                await self._finish(task, TaskState.CANCELLED if has_more else TaskState.COMPLETED)
        except (NotFound, Refused) as error:
            await self._finish(replace(task, failure=str(error)), TaskState.FAILED)

    async def _wait_for_start(self, task: MoveTask) -> MoveTask:
        """Wait until a task begins, looking now and then whether it still should."""
        clock = self._runtime.clock
        while task.state is TaskState.WAITING and clock.now() < task.starts_at:
            await clock.sleep_until(min(task.starts_at, clock.now() + LOOK_AGAIN_MS))
            task = await self._documents.get(TASK, task.key) or task
        if task.state is not TaskState.WAITING:
            return task
        return await self._documents.update(TASK, task.key, _mark_running)

    async def _step(self, task: MoveTask, now: int) -> CarefulStep:
        """The number to move next, and the wait after them."""
        rate = task.rate_max
        if task.careful is None:
            batch = min(BATCH_MAX, rate or BATCH_MAX)
            return CarefulStep(batch, batch * 1000 // rate if rate else 0)
        passed_ms = now - task.taken_at if task.taken_at else None
        moved = task.moved - task.moved_before
        return careful_step(task.careful, moved, task.fares, passed_ms, BATCH_MAX)

    async def _pause_for_failures(self, task: MoveTask) -> MoveTask:
        """Pause a running task because too many of its sample failed; returns it as it stands then."""
        outcomes = await self._canary.last_outcomes(task.sample, task.fares)
        why = await self._canary.failure_text(task.sample)
        stopped_why = f"{outcomes.failed} of {outcomes.looked_at} failed their first attempt{why}"
        logger.warning("redrive.stopped_itself source=%s: %s", task.source.key, stopped_why)

        def mark_paused(current: MoveTask) -> MoveTask:
            if current.state is not TaskState.RUNNING:
                return current
            return replace(current, state=TaskState.PAUSED, stopped_why=stopped_why, fares=outcomes)

        return await self._documents.update(TASK, task.key, mark_paused)

    async def _origins(self, task: MoveTask) -> list[Queue | Subscription]:
        """The origins to which a task moves messages back; none if all go to one destination."""
        if task.destination is not None:
            return []
        if task.choice is None or not task.choice.failure:
            return await self.origins_of(task.source)
        origin = await self._targets.origin(task.choice.origin)
        return [] if origin is None else [origin]

    async def _move_batch(
        self, task: MoveTask, origins: Sequence[Queue | Subscription], now: int, limit: int
    ) -> Moved:
        """Move up to `limit` messages; a task runs for 36 hours at most, as in SQS."""
        if now >= max(task.started_at, task.resumed_at) + TASK_MS_MAX:
            raise Refused("the task ran for 36 hours")
        source = await self._queues.get(task.source)
        if source is None:
            raise NotFound("source")
        choice = task.choice
        request = MoveRequest(
            queue_id=source.id,
            ordered=source.ordered,
            limit=limit,
            now=now,
            seq_max=task.last_seq,
            message_ids=[self._runtime.message_id() for _ in range(limit)],
            destination=await self._destination(task),
            origins=await self._targets.existing_targets(origins),
            cause=None if choice is None else cause_of(choice),
            excepted=() if choice is None else choice.excepted,
            keeps_origin=task.keeps_origin,
        )
        if choice is not None and choice.query:
            moved = await self._move_finds(task, choice, request)
        else:
            moved = await self._store.move(request)
        self._counters.queue(source).messages_redriven += 0 if task.keeps_origin else moved.total
        for queue_id, number in moved.per_queue.items():
            self._notifier.announce(queue_id, number)
        return moved

    async def _move_finds(self, task: MoveTask, choice: MoveChoice, request: MoveRequest) -> Moved:
        """Move what the search finds in the next slice, up to the limit; and note how far it looked."""
        page = await self._planner.next_finds(choice, request, task.looked_to)
        moved = NOTHING
        if page.seqs:
            moved = await self._store.move(replace(request, seqs=page.seqs, cause=None, excepted=()))
        await self._documents.update(TASK, task.key, lambda now: replace(now, looked_to=page.looked_to))
        return moved._replace(has_more=not page.ended)

    async def _destination(self, task: MoveTask) -> MoveTarget | None:
        if task.destination is None:
            return None
        queue = await self._queues.get(task.destination)
        if queue is None:
            raise NotFound("destination")
        return MoveTarget(queue.id, queue.ordered)

    async def _record(self, task: MoveTask, moved: Moved) -> MoveTask:
        """Note how many a batch moved and, for a careful task, what became of its sample; this renews the lease."""
        now = self._runtime.clock.now()
        sample = task.sample
        if task.careful is not None:
            sample = sample_of(moved.became) if moved.became else sample
            outcomes = await self._canary.outcomes(sample, now)

        def count_moved(current: MoveTask) -> MoveTask:
            current = self._tasks.with_lease(current) if self._tasks.is_ours(current) else current
            current = current.with_moved(moved.total, now)
            if current.careful is None:
                return current
            all_taken = outcomes.looked_at and outcomes.taken == outcomes.looked_at
            taken_at = now if all_taken and not current.taken_at else current.taken_at
            return replace(current, sample=tuple(sample), fares=outcomes, taken_at=taken_at)

        return await self._documents.update(TASK, task.key, count_moved)

    async def _finish(self, task: MoveTask, state: TaskState) -> None:
        """End the task, unless another node that worked at it did: what ended stays as it ended."""
        logger.info("redrive.%s source=%s moved=%d", state, task.source.key, task.moved)

        def mark_finished(current: MoveTask) -> MoveTask:
            return replace(current, state=state, failure=task.failure) if current.state.active else current

        await self._documents.update(TASK, task.key, mark_finished)


def _mark_running(current: MoveTask) -> MoveTask:
    return replace(current, state=TaskState.RUNNING) if current.state is TaskState.WAITING else current
