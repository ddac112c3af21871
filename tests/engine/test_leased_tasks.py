"""Leased tasks, whatever they do: one node works at one, once at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from redrive.engine.engine import Engine
from redrive.engine.tasks.leased_tasks import LEASE_MS, LeasedTasks
from redrive.engine.tasks.redrive import TASK
from redrive.model.errors import StoreUnavailable
from redrive.model.names import ResourceName
from redrive.model.task import MoveTask, TaskState
from redrive.testing import VirtualClock

SOURCE = ResourceName("1", "here", "dead")


def task_of(node: str = "gone", lease_until: int = 0) -> MoveTask:
    return MoveTask("t", SOURCE, None, None, 0, 0, 0, lease_until=lease_until, node=node)


class Worker:
    """Works at the tasks of a node, for as long as the test says."""

    def __init__(self, engine: Engine) -> None:
        self.tasks = LeasedTasks(engine.runtime, engine.resources.documents, TASK)
        self.begun: list[MoveTask] = []
        self.goes_on = asyncio.Event()

    async def work(self, task: MoveTask) -> None:
        self.begun.append(task)
        await self.goes_on.wait()


@pytest.fixture
def worker(engine: Engine) -> Worker:
    return Worker(engine)


async def test_a_task_whose_lease_ran_out_is_taken_up(
    engine: Engine, worker: Worker, clock: VirtualClock
) -> None:
    task = task_of(lease_until=clock.now() + 1)
    await engine.resources.documents.create(TASK, task.key, task)
    await worker.tasks.take_up([task], worker.work)
    assert worker.begun == []
    await clock.sleep_until(clock.now() + 1)
    await worker.tasks.take_up([task], worker.work)
    worker.goes_on.set()
    await worker.tasks.until_quiet()
    assert [begun.node for begun in worker.begun] == [engine.runtime.node]
    assert worker.begun[0].lease_until == clock.now() + LEASE_MS


async def test_a_task_that_ended_after_it_was_found_is_not_taken_up(engine: Engine, worker: Worker) -> None:
    found = task_of()
    ended = replace(found, state=TaskState.CANCELLED)
    await engine.resources.documents.create(TASK, found.key, ended)
    await worker.tasks.take_up([found], worker.work)
    assert worker.begun == []
    assert await engine.resources.documents.get(TASK, found.key) == ended


async def test_a_task_that_was_removed_after_it_was_found_is_not_taken_up(worker: Worker) -> None:
    await worker.tasks.take_up([task_of()], worker.work)
    assert worker.begun == []


async def test_of_two_nodes_one_takes_a_task_up(
    engine: Engine, nodes: Callable[[str], Engine], worker: Worker
) -> None:
    task = task_of()
    await engine.resources.documents.create(TASK, task.key, task)
    other = Worker(nodes("two"))
    await worker.tasks.take_up([task], worker.work)
    await other.tasks.take_up([task], other.work)
    worker.goes_on.set()
    await worker.tasks.until_quiet()
    assert (len(worker.begun), len(other.begun)) == (1, 0)


async def test_work_at_a_task_that_is_worked_at_comes_after(engine: Engine, worker: Worker) -> None:
    first, second = task_of(), replace(task_of(), moved=1)
    worker.tasks.begin(first, worker.work)
    worker.tasks.begin(second, worker.work)
    await asyncio.sleep(0)
    assert worker.begun == [first]
    worker.goes_on.set()
    await worker.tasks.until_quiet()
    assert worker.begun == [first, second]


@pytest.mark.parametrize(
    ("error", "is_shown"), [(ValueError("out of luck"), True), (StoreUnavailable("away"), False)], ids=repr
)
async def test_a_task_that_failed_is_told_of_and_can_be_begun_again(
    worker: Worker, caplog: pytest.LogCaptureFixture, error: Exception, *, is_shown: bool
) -> None:
    async def fail(_: MoveTask) -> None:
        raise error

    worker.goes_on.set()
    worker.tasks.begin(task_of(), fail)
    await worker.tasks.until_quiet()
    assert "move_task.interrupted task=1/here/dead/000000000000000-t: resumed later" in caplog.text
    assert ("Traceback" in caplog.text) is is_shown
    worker.tasks.begin(task_of(), worker.work)
    await worker.tasks.until_quiet()
    assert len(worker.begun) == 1


async def test_a_stopped_worker_begins_no_queued_task(worker: Worker) -> None:
    worker.tasks.begin(task_of(), worker.work)
    worker.tasks.begin(task_of(), worker.work)
    await asyncio.sleep(0)
    await worker.tasks.stop()
    await worker.tasks.until_quiet()
    assert len(worker.begun) == 1
