import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from redrive.engine.engine import ROUND_MS, Engine
from redrive.engine.tasks.leased_tasks import LEASE_MS
from redrive.engine.tasks.redrive import TASK_MS_MAX, TASKS_KEPT
from redrive.model.errors import NotFound, Refused, TaskActive
from redrive.model.queue import DeadLetterTarget, Queue
from redrive.model.task import MoveTask, TaskState
from redrive.testing import VirtualClock
from tests.engine.held_store import HeldStore
from tests.engine.samples import bodies, make_queue, mark_deleted, named, numbered, send

SECOND = 1_000
MakeNode = Callable[[str], Engine]


@pytest.fixture
async def dead(engine: Engine) -> Queue:
    return await make_queue(engine, "dead")


@pytest.fixture
async def origin(engine: Engine, dead: Queue) -> Queue:
    return await make_queue(engine, "origin", dead_letters=dead)


async def the_task(engine: Engine, dead: Queue) -> MoveTask:
    """The only task of the source, as the store has it."""
    (task,) = await engine.operations.redrives.tasks_of(dead.name)
    return task


async def passes(clock: VirtualClock, milliseconds: int) -> None:
    await clock.sleep_until(clock.now() + milliseconds)


# ---- where to, what, how many


async def test_dead_letters_of_several_queues_return_in_their_order(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    other = await make_queue(engine, "other", dead_letters=dead)
    await mark_deleted(engine, origin, dead, "a1", "a2")
    await mark_deleted(engine, other, dead, "b1")
    await mark_deleted(engine, origin, dead, "a3")
    old = {one.message_id for one in await engine.parts.store.peek(dead.id, 10)}
    task = await engine.operations.redrives.start(dead, None, None)
    await passes(clock, 1)
    assert await bodies(engine, origin) == ["a1", "a2", "a3"]
    assert await bodies(engine, other) == ["b1"]
    assert old.isdisjoint(one.message_id for one in await engine.parts.store.peek(origin.id, 10))
    assert (task.to_move, (await the_task(engine, dead)).moved) == (4, 4)
    assert (await the_task(engine, dead)).state is TaskState.COMPLETED
    assert engine.operations.counts(dead).messages_redriven == 4


async def test_dead_letters_return_though_their_origin_has_another_dead_letter_queue_by_now(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, "a")
    other = await make_queue(engine, "other dead")
    target = DeadLetterTarget(other.name, 1)
    await engine.resources.queues.update(origin.name, lambda queue: replace(queue, dead_letter=target))
    await engine.operations.redrives.start(dead, None, None)
    await passes(clock, 1)
    assert await bodies(engine, origin) == ["a"]
    assert (await the_task(engine, dead)).moved == 1


async def test_no_more_letters_stay_in_a_plan_than_would_move(engine: Engine, dead: Queue) -> None:
    for body in ("a", "b", "c"):
        await send(engine, dead, body)
    await engine.messages.receive(dead, 1, wait_ms=0)
    plan = await engine.operations.redrives.plan(dead)
    assert (plan.number, plan.in_flight, plan.without_origin) == (2, 1, 2)


async def test_a_plan_says_how_many_stay_since_nobody_knows_where_they_came_from(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    gone = await make_queue(engine, "gone", dead_letters=dead)
    await mark_deleted(engine, origin, dead, "a", "b")
    await mark_deleted(engine, gone, dead, "c")
    await engine.resources.queues.delete(gone)
    await send(engine, dead, "sent here by hand")
    await engine.messages.receive(dead, 1, wait_ms=0)
    plan = await engine.operations.redrives.plan(dead)
    assert (plan.number, plan.in_flight, plan.without_origin) == (3, 1, 2)
    await engine.operations.redrives.start(dead, None, None)
    await passes(clock, 1)
    assert await bodies(engine, origin) == ["b"]
    assert await bodies(engine, dead) == ["a", "c", "sent here by hand"]


async def test_a_redrive_to_another_queue_moves_dead_letters_of_every_origin(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    elsewhere = await make_queue(engine, "elsewhere")
    await mark_deleted(engine, origin, dead, "a")
    await send(engine, dead, "sent here by hand")
    await engine.operations.redrives.start(dead, elsewhere, None)
    await passes(clock, 1)
    assert await bodies(engine, elsewhere) == ["a", "sent here by hand"]


async def test_a_redriven_message_wakes_a_receiver_of_its_origin(
    engine: Engine, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, "a")
    waiting = asyncio.create_task(engine.messages.receive(origin, 1, wait_ms=20 * SECOND))
    await asyncio.sleep(0)
    began = engine.clock.now()
    await engine.operations.redrives.start(dead, None, None)
    assert [one.body for one in await waiting] == ["a"]
    assert engine.clock.now() == began


async def test_messages_dead_lettered_during_a_redrive_are_not_redriven_by_it(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(3))
    await engine.operations.redrives.start(dead, None, 1)
    await mark_deleted(engine, origin, dead, "late")
    await passes(clock, 10 * SECOND)
    assert await bodies(engine, dead) == ["late"]
    assert (await the_task(engine, dead)).moved == 3


async def test_chosen_ones_go_at_once_and_only_if_they_are_there(
    engine: Engine, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(3))
    first, _, third = [one.seq for one in await engine.parts.store.peek(dead.id, 3)]
    assert (await engine.operations.moves.move(dead, [third, first, 999_999], None)).total == 2
    assert await bodies(engine, dead) == ["m1"]
    assert sorted(await bodies(engine, origin)) == ["m0", "m2"]


# ---- how fast


@pytest.mark.parametrize(("rate_max", "expected"), [(1, [1, 2, 3]), (5, [5, 10, 15]), (500, [250, 250, 250])])
async def test_a_rate_is_kept_on_virtual_time(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue, rate_max: int, expected: list[int]
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(250))
    await engine.operations.redrives.start(dead, None, rate_max)
    arrived = []
    for _ in expected:
        await passes(clock, SECOND - 1)
        arrived.append(len(await bodies(engine, origin)))
        await passes(clock, 1)
    assert arrived == expected


async def test_within_a_second_a_high_rate_is_spread_over_batches(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(250))
    await engine.operations.redrives.start(dead, None, 500)
    for expected in (100, 200, 250):
        await passes(clock, 199)
        assert len(await bodies(engine, origin)) == expected
        await passes(clock, 1)


# ---- one at a time, and its end


async def test_a_source_has_one_active_redrive_task(engine: Engine, dead: Queue, origin: Queue) -> None:
    await mark_deleted(engine, origin, dead, *numbered(5))
    await engine.operations.redrives.start(dead, None, 1)
    with pytest.raises(TaskActive):
        await engine.operations.redrives.start(dead, None, None)
    assert await engine.operations.redrives.active_tasks("1") == 1


async def test_of_redrives_started_at_once_on_several_nodes_at_most_one_begins(
    engine: Engine, nodes: MakeNode, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(5))
    started = await asyncio.gather(
        *(node.parts.redriver.start(dead, None, 1) for node in (engine, engine, nodes("two"))),
        return_exceptions=True,
    )
    tasks = [one for one in started if isinstance(one, MoveTask)]
    assert len(tasks) <= 1
    assert all(isinstance(one, MoveTask | TaskActive) for one in started)
    assert [task.id for task in await engine.operations.redrives.tasks_of(dead.name)] == [
        task.id for task in tasks
    ]
    await passes(clock, 2 * LEASE_MS)
    await engine.parts.redriver.take_up()
    assert len(await bodies(engine, origin)) == (5 if tasks else 0)


async def test_of_two_redrives_started_at_once_one_is_refused(
    engine: Engine, nodes: MakeNode, store: HeldStore, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(5))
    held = store.hold("put")
    starting = asyncio.create_task(engine.operations.redrives.start(dead, None, 1))
    await held.reached
    await nodes("two").operations.redrives.start(dead, None, 1)
    held.let_go()
    with pytest.raises(TaskActive):
        await starting
    assert await engine.operations.redrives.active_tasks("1") == 1


async def test_a_task_that_is_cancelled_stops_and_what_it_moved_stays_moved(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(5))
    task = await engine.operations.redrives.start(dead, None, 1)
    await passes(clock, SECOND + 1)
    assert (await engine.operations.redrives.cancel(dead.name, task.id)).state is TaskState.CANCELLING
    with pytest.raises(TaskActive):
        await engine.operations.redrives.start(dead, None, None)
    await passes(clock, 5 * SECOND)
    task = await the_task(engine, dead)
    assert (task.state, task.moved) == (TaskState.CANCELLED, 2)
    assert await bodies(engine, dead) == ["m2", "m3", "m4"]
    with pytest.raises(Refused):
        await engine.operations.redrives.cancel(dead.name, task.id)
    await engine.operations.redrives.start(dead, None, None)


async def test_no_other_task_can_be_cancelled(engine: Engine, dead: Queue) -> None:
    with pytest.raises(NotFound):
        await engine.operations.redrives.cancel(dead.name, "no such task")


async def test_a_queue_that_goes_while_its_task_runs_fails_it(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    elsewhere = await make_queue(engine, "elsewhere")
    for gone, failure in ((elsewhere, "destination"), (dead, "source")):
        await mark_deleted(engine, origin, dead, *numbered(3))
        await engine.operations.redrives.start(dead, elsewhere if gone is elsewhere else None, 1)
        await passes(clock, 500)
        await engine.resources.queues.delete(gone)
        await passes(clock, 5 * SECOND)
        task = (await engine.operations.redrives.tasks_of(dead.name))[0]
        assert (task.state, task.failure, task.moved) == (TaskState.FAILED, failure, 1)


async def test_a_task_that_failed_is_current_for_a_while_until_another_begins_or_its_source_goes(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    async def current(failed_since: int = 0) -> list[TaskState]:
        return [task.state for task in await engine.operations.redrives.current(failed_since)]

    async def fail() -> None:
        elsewhere = await make_queue(engine, "elsewhere")
        await mark_deleted(engine, origin, dead, *numbered(3))
        await engine.operations.redrives.start(dead, elsewhere, 1)
        assert await current() == [TaskState.RUNNING]
        await passes(clock, 500)
        await engine.resources.queues.delete(elsewhere)
        await passes(clock, 5 * SECOND)

    assert await current() == []
    await fail()
    assert await current(clock.now()) == [TaskState.FAILED]
    assert await current(clock.now() + LEASE_MS) == []
    await engine.operations.redrives.start(dead, None, None)
    await passes(clock, 1)
    assert await current() == []
    await fail()
    await engine.resources.queues.delete(dead)
    assert await current() == []


async def test_dead_letters_of_a_queue_deleted_during_their_redrive_stay(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    other = await make_queue(engine, "other", dead_letters=dead)
    await mark_deleted(engine, origin, dead, "a1", "a2", "a3")
    await mark_deleted(engine, other, dead, "b1")
    await engine.operations.redrives.start(dead, None, 1)
    await passes(clock, 500)
    await engine.resources.queues.delete(origin)
    await make_queue(engine, "origin", dead_letters=dead)
    await passes(clock, 5 * SECOND)
    assert await bodies(engine, dead) == ["a2", "a3"]
    assert await bodies(engine, other) == ["b1"]
    assert (await the_task(engine, dead)).state is TaskState.COMPLETED


async def test_after_36_hours_a_task_is_over(
    engine: Engine, nodes: MakeNode, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(3))
    began = clock.now()
    await engine.operations.redrives.start(dead, None, 1)
    await engine.parts.redriver.stop()
    await clock.sleep_until(began + TASK_MS_MAX)
    await nodes("two").parts.redriver.take_up()
    await passes(clock, 1)
    task = await the_task(engine, dead)
    assert (task.state, task.failure) == (TaskState.FAILED, "the task ran for 36 hours")


async def test_the_last_ten_tasks_are_remembered(engine: Engine, clock: VirtualClock, dead: Queue) -> None:
    ids = []
    for _ in range(TASKS_KEPT + 3):
        ids.append((await engine.operations.redrives.start(dead, None, None)).id)
        await passes(clock, 1)
    kept = [task.id for task in await engine.operations.redrives.tasks_of(dead.name)]
    assert kept == ids[::-1][:TASKS_KEPT]


# ---- when its node dies


async def test_a_dead_nodes_task_waits_for_its_lease_and_for_no_round_besides(
    engine: Engine, nodes: MakeNode, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(6))
    upkeep = asyncio.create_task(nodes("two").run())
    await passes(clock, ROUND_MS // 2)
    began = clock.now()
    await engine.operations.redrives.start(dead, None, 2)
    await passes(clock, 1)
    await engine.parts.redriver.stop()
    await clock.sleep_until(began + LEASE_MS - 1)
    assert len(await bodies(engine, origin)) == 2
    await passes(clock, 11)
    assert len(await bodies(engine, origin)) == 4
    upkeep.cancel()


async def test_a_dead_nodes_task_goes_on_when_its_lease_has_run_out(
    engine: Engine, nodes: MakeNode, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(6))
    two = nodes("two")
    await engine.operations.redrives.start(dead, None, 2)
    await passes(clock, 10)
    await engine.parts.redriver.stop()
    await passes(clock, LEASE_MS - 20)
    await two.parts.redriver.take_up()
    await passes(clock, 9)
    assert len(await bodies(engine, origin)) == 2
    await passes(clock, 1)
    await two.parts.redriver.take_up()
    await passes(clock, 5 * SECOND)
    assert await bodies(engine, origin) == list(numbered(6))
    task = await the_task(engine, dead)
    assert (task.state, task.moved, task.node) == (TaskState.COMPLETED, 6, "two")


async def test_of_two_nodes_that_find_it_one_takes_it_up_and_the_rate_is_kept(
    engine: Engine, nodes: MakeNode, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(20))
    await engine.operations.redrives.start(dead, None, 1)
    await engine.parts.redriver.stop()
    await passes(clock, LEASE_MS)
    await asyncio.gather(*(nodes(name).parts.redriver.take_up() for name in ("two", "three", "four")))
    before = len(await bodies(engine, origin))
    await passes(clock, 5 * SECOND)
    assert len(await bodies(engine, origin)) - before == 5


async def test_a_node_that_was_away_too_long_leaves_its_task_to_the_one_that_took_it_up(
    engine: Engine, nodes: MakeNode, store: HeldStore, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(6))
    held = store.hold_answer("move")
    await engine.operations.redrives.start(dead, None, 2)
    await held.reached
    await passes(clock, LEASE_MS)
    await nodes("two").parts.redriver.take_up()
    await passes(clock, 1)
    held.let_go()
    await passes(clock, 10 * SECOND)
    task = await the_task(engine, dead)
    assert (task.state, task.moved, task.node) == (TaskState.COMPLETED, 6, "two")


async def test_a_task_that_ended_stays_as_it_ended(
    engine: Engine, nodes: MakeNode, store: HeldStore, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(6))
    held = store.hold_answer("move")
    await engine.operations.redrives.start(dead, None, 2)
    await held.reached
    await passes(clock, LEASE_MS)
    await nodes("two").parts.redriver.take_up()
    await passes(clock, 10 * SECOND)
    assert (await the_task(engine, dead)).state is TaskState.COMPLETED
    held.let_go()
    await passes(clock, SECOND)
    task = await the_task(engine, dead)
    assert (task.state, task.moved) == (TaskState.COMPLETED, 6)


async def test_a_redrive_resumes_on_its_node_after_an_outage_of_the_store(
    engine: Engine, store: HeldStore, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(3))
    await engine.operations.redrives.start(dead, None, 1)
    await passes(clock, 500)
    store.away = True
    await passes(clock, SECOND)
    store.away = False
    await engine.parts.redriver.take_up()
    await engine.parts.redriver.take_up()
    await passes(clock, 5 * SECOND)
    assert (await the_task(engine, dead)).state is TaskState.COMPLETED
    assert await bodies(engine, origin) == list(numbered(3))


async def test_reset_stops_and_forgets_every_task(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await mark_deleted(engine, origin, dead, *numbered(3))
    await engine.operations.redrives.start(dead, None, 1)
    await engine.parts.redriver.reset()
    await passes(clock, 5 * SECOND)
    assert await engine.operations.redrives.tasks_of(named("dead")) == []
    assert len(await bodies(engine, dead)) == 3
