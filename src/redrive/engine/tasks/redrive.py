"""Redrive: dead letters go back where they came from, or elsewhere, as tasks in the background.

A batch moves in one transaction; the count beside it is written after it and may lag by one batch after a crash (SQS
calls it approximate).
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from redrive.engine.configuration.draft import Draft
from redrive.engine.counters import NodeCounters
from redrive.engine.ports import DocumentKind, Moved, MoveRequest, Runtime, Store, Target
from redrive.engine.receive.notifier import QueueNotifier
from redrive.engine.resources import Resources
from redrive.engine.tasks.leased_tasks import LeasedTasks
from redrive.model.errors import NotFound, Refused, TaskActive
from redrive.model.names import ResourceName
from redrive.model.queue import Queue
from redrive.model.task import MoveTask, TaskState
from redrive.model.topic import Subscription

logger = logging.getLogger(__name__)

TASK: DocumentKind[MoveTask] = DocumentKind("move_task", MoveTask.to_document, MoveTask.from_document)
# Of each source the task that was started last: who starts another changes it, so of two at once one is written.
LAST_TASK: DocumentKind[str] = DocumentKind(
    "last_move_task", lambda key: {"key": key}, lambda document: document["key"]
)

BATCH_MAX = 100  # a batch is one transaction: long enough to be quick, short enough to hold up nobody
TASKS_KEPT = 10  # finished ones per source, as many as ListMessageMoveTasks shows
TASK_MS_MAX = 36 * 60 * 60 * 1000  # a task runs for 36 hours at most (SQS quotas)


class Redriver:
    """Starts, carries on, cancels and lists move tasks."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        resources: Resources,
        notifier: QueueNotifier,
        counters: NodeCounters,
    ) -> None:
        """Move deliveries within this store."""
        self._store = store
        self._runtime = runtime
        self._documents = resources.documents
        self._queues = resources.queues
        self._topics = resources.topics
        self._subscriptions = resources.subscriptions
        self._notifier = notifier
        self._measure = counters
        self._tasks = LeasedTasks(runtime, resources.documents, TASK)

    async def start(self, source: Queue, destination: Queue | None, rate_max: int | None) -> MoveTask:
        """Begin to move what waits in `source` now.

        Raises:
            TaskActive: A task for this source is running.
        """
        now = self._runtime.clock.now()
        task = MoveTask(
            id=self._runtime.message_id().hex(),
            source=source.name,
            destination=None if destination is None else destination.name,
            rate_max=rate_max,
            to_move=(await self._store.count(source.id, now)).available,
            started_at=now,
            last_seq=await self._store.last_seq(),
        )
        task = self._tasks.leased(task)
        await self._documents.transact(lambda draft: self._start_in(draft, task))
        self._tasks.begin(task, self._carry_on)
        return task

    async def _start_in(self, draft: Draft, task: MoveTask) -> None:
        """Write a task as its source's last; of two that begin at the same moment, the other finds it there."""
        await draft.get(
            LAST_TASK, task.source.key
        )  # first: what is found was there when it was read, or before
        tasks = await draft.find(TASK, f"{task.source.key}/")
        if any(earlier.state.active for _, earlier in tasks):
            raise TaskActive(task.source.key)
        draft.put(TASK, task.key, task)
        draft.put(LAST_TASK, task.source.key, task.key)
        for key, _ in tasks[: 1 - TASKS_KEPT]:
            draft.remove(TASK, key)

    async def move(self, source: Queue, seqs: Sequence[int], destination: Queue | None) -> Moved:
        """Move chosen dead letters at once, in one transaction; those that are in flight or not there stay.

        Args:
            source: Where they are.
            seqs: Which; at most `BATCH_MAX`.
            destination: Where to; None: each where it came from.
        """
        target = None if destination is None else Target(destination.id, destination.ordered)
        request = MoveRequest(
            queue_id=source.id,
            ordered=source.ordered,
            limit=min(len(seqs), BATCH_MAX),
            now=self._runtime.clock.now(),
            seq_max=await self._store.last_seq(),
            message_ids=[self._runtime.message_id() for _ in seqs],
            destination=target,
            origins={} if target else await self._standing(await self._origins(source.name)),
            seqs=seqs,
        )
        return self._moved(source, await self._store.move(request))

    def _moved(self, source: Queue, moved: Moved) -> Moved:
        self._measure.queue(source).messages_redriven += moved.total
        for queue_id, number in moved.per_queue.items():
            self._notifier.announce(queue_id, number)
        return moved

    async def cancel(self, source: ResourceName, task_id: str) -> MoveTask:
        """Ask a running task to stop; what it has moved stays moved.

        Raises:
            NotFound: No such task.
            Refused: It is not running.
        """
        task = next((each for each in await self.tasks_of(source) if each.id == task_id), None)
        if task is None:
            raise NotFound(task_id)

        def cancelling(current: MoveTask) -> MoveTask:
            if current.state is not TaskState.RUNNING:
                raise Refused(f"task {task_id} is {current.state}")
            return replace(current, state=TaskState.CANCELLING)

        return await self._documents.update(TASK, task.key, cancelling)

    async def tasks_of(self, source: ResourceName) -> list[MoveTask]:
        """The tasks of a source, latest first."""
        return (await self._documents.find(TASK, f"{source.key}/"))[::-1]

    async def active_tasks(self, account: str) -> int:
        """The number of running tasks of an account."""
        tasks = await self._documents.find(TASK, f"{account}/")
        return sum(task.state.active for task in tasks)

    async def take_up(self) -> None:
        """Carry on the tasks that nobody works at: after a restart, or when their node died."""
        await self._tasks.take_up(await self._documents.find(TASK, ""), self._carry_on)

    async def stop(self) -> None:
        """Leave the running tasks to the next start."""
        await self._tasks.stop()

    async def reset(self) -> None:
        """Stop and forget every task."""
        await self._tasks.reset()
        await self._documents.clear(LAST_TASK)

    # ---- carrying a task on ------------------------------------------------------------------------------

    async def _carry_on(self, task: MoveTask) -> None:
        try:
            origins = [] if task.destination else await self._origins(task.source)
            left = True
            while left and task.state is TaskState.RUNNING:
                began = self._runtime.clock.now()
                moved = await self._move_batch(task, origins, began)
                left = moved.left
                task = await self._record(task, moved.total)
                if not self._tasks.is_ours(task):
                    return  # another node took it up meanwhile, and carries it on
                if left and task.rate_max:
                    await self._runtime.clock.sleep_until(began + moved.total * 1000 // task.rate_max)
            await self._finish(task, TaskState.CANCELLED if left else TaskState.COMPLETED)
        except (NotFound, Refused) as error:
            await self._finish(replace(task, failure=str(error)), TaskState.FAILED)

    async def _origins(self, source: ResourceName) -> list[Queue | Subscription]:
        """The queues and subscriptions whose dead letters come here.

        A subscription's backlog is the same kind of queue: what is redriven into it is pushed again, from its first
        attempt.
        """
        return [
            *await self._queues.sources_of(source),
            *await self._subscriptions.dead_lettering_to(source),
        ]

    async def _standing(self, origins: Sequence[Queue | Subscription]) -> dict[int, Target]:
        """The origins that are still there, by number: one may be deleted in the hours that a task takes."""
        targets = [await self._target(origin) for origin in origins]
        return {target.queue_id: target for target in targets if target is not None}

    async def _target(self, origin: Queue | Subscription) -> Target | None:
        if isinstance(origin, Queue):
            queue = await self._queues.get(origin.name)
            stands = queue is not None and queue.id == origin.id
            return Target(origin.id, origin.ordered) if stands else None
        subscription = await self._subscriptions.get(origin.topic, origin.id)
        topic = await self._topics.get(origin.topic)
        if subscription is None or topic is None or subscription.queue_id != origin.queue_id:
            return None
        return Target(origin.queue_id, topic.ordered)

    async def _move_batch(self, task: MoveTask, origins: Sequence[Queue | Subscription], now: int) -> Moved:
        if now >= task.started_at + TASK_MS_MAX:
            raise Refused("the task ran for 36 hours")
        source = await self._queues.get(task.source)
        if source is None:
            raise NotFound("source")
        limit = min(BATCH_MAX, task.rate_max or BATCH_MAX)
        moved = await self._store.move(
            MoveRequest(
                queue_id=source.id,
                ordered=source.ordered,
                limit=limit,
                now=now,
                seq_max=task.last_seq,
                message_ids=[self._runtime.message_id() for _ in range(limit)],
                destination=await self._destination(task),
                origins=await self._standing(origins),
            )
        )
        return self._moved(source, moved)

    async def _destination(self, task: MoveTask) -> Target | None:
        if task.destination is None:
            return None
        queue = await self._queues.get(task.destination)
        if queue is None:
            raise NotFound("destination")
        return Target(queue.id, queue.ordered)

    async def _record(self, task: MoveTask, moved: int) -> MoveTask:
        def counted(current: MoveTask) -> MoveTask:
            current = self._tasks.leased(current) if self._tasks.is_ours(current) else current
            return current.counting(moved, self._runtime.clock.now())

        return await self._documents.update(TASK, task.key, counted)

    async def _finish(self, task: MoveTask, state: TaskState) -> None:
        """End the task, unless another node that worked at it did: what ended stays as it ended."""
        logger.info("redrive.%s source=%s moved=%d", state, task.source.key, task.moved)

        def finished(current: MoveTask) -> MoveTask:
            return replace(current, state=state, failure=task.failure) if current.state.active else current

        await self._documents.update(TASK, task.key, finished)
