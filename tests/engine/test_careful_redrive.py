"""Redrive tasks that take a choice, begin later, go carefully, pause and go on."""

from collections.abc import Callable

import pytest

from redrive.engine.engine import Engine
from redrive.engine.operations import RedriveOptions
from redrive.engine.ports import AttemptNote, MoveTarget, NewDelivery, Settlement
from redrive.model.delivery import Outcome
from redrive.model.errors import Refused, TaskActive
from redrive.model.queue import Queue
from redrive.model.task import CarefulPace, MoveChoice, MoveTask, TaskState
from redrive.testing import VirtualClock
from tests.engine.samples import bodies, make_queue, numbered, send

BUSY = AttemptNote(1, 0, 20, "server_error", 503, "busy")
DENIED = AttemptNote(1, 0, 20, "client_error", 400, "no")
SECOND = 1_000
CAREFUL = RedriveOptions(careful=CarefulPace())


@pytest.fixture
async def dead(engine: Engine) -> Queue:
    return await make_queue(engine, "dead")


@pytest.fixture
async def origin(engine: Engine, dead: Queue) -> Queue:
    return await make_queue(engine, "origin", dead_letters=dead)


async def die(engine: Engine, origin: Queue, dead: Queue, note: AttemptNote, *texts: str) -> None:
    await send(engine, origin, *texts)
    left = len(texts)
    while left:
        claimed = await engine.messages.receive(origin, left, wait_ms=0)
        left -= len(claimed)
        target = MoveTarget(dead.id, dead.ordered)
        ends = [
            Settlement(one.seq, one.token or 0, Outcome.DEAD_LETTERED, target=target, note=note)
            for one in claimed
        ]
        await engine.parts.store.settle(origin.id, ends, engine.clock.now(), ordered=origin.ordered)


async def consume(
    engine: Engine, queue: Queue, outcome: Outcome, note: AttemptNote | None = None, limit: int = 100
) -> int:
    """Claim what waits, and let every attempt end like this; the number."""
    claimed = await engine.messages.receive(queue, limit, wait_ms=0)
    later = engine.clock.now() + 3600 * SECOND
    ends = [
        Settlement(one.seq, one.token or 0, outcome, available_at=later if note else 0, note=note)
        for one in claimed
    ]
    await engine.parts.store.settle(queue.id, ends, engine.clock.now(), ordered=queue.ordered)
    return len(claimed)


async def the_task(engine: Engine, dead: Queue) -> MoveTask:
    (task,) = await engine.operations.redrives.tasks_of(dead.name)
    return task


async def passes(clock: VirtualClock, milliseconds: int) -> None:
    await clock.sleep_until(clock.now() + milliseconds)


async def test_one_cause_goes_back_but_for_a_few(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, BUSY, "a", "b", "c")
    await die(engine, origin, dead, DENIED, "d")
    spared = (await engine.operations.dead_letters.letters(dead, 0, 9))[1].delivery.seq
    choice = MoveChoice(origin.id, "server_error 503", [spared])
    plan = await engine.operations.redrives.plan(dead, choice)
    assert plan.number == 2
    task = await engine.operations.redrives.start(dead, None, None, RedriveOptions(choice, plan.last_seq))
    assert task.to_move == 2
    await die(engine, origin, dead, BUSY, "later")
    await passes(clock, SECOND)
    assert await bodies(engine, origin) == ["a", "c"]
    assert await bodies(engine, dead) == ["b", "d", "later"]
    assert (await the_task(engine, dead)).state is TaskState.COMPLETED


async def test_causes_are_told_with_their_origin_and_the_last_answer(
    engine: Engine, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, DENIED, "a")
    await die(engine, origin, dead, BUSY, "b", "c")
    busy, denied = await engine.operations.dead_letters.causes(dead, 10, 1000)
    assert (busy.count.number, busy.count.cause.failure, busy.from_queue) == (
        2,
        "server_error 503",
        origin.name,
    )
    assert busy.last is not None
    assert (busy.last.delivery.body, busy.last.notes[-1].response) == ("c", "busy")
    assert denied.first == denied.last


async def test_a_task_that_waits_to_begin_can_be_undone(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, BUSY, "a")
    task = await engine.operations.redrives.start(dead, None, None, RedriveOptions(delay_ms=5 * SECOND))
    assert task.state is TaskState.WAITING
    await passes(clock, 4 * SECOND)
    await engine.operations.redrives.cancel(dead.name, task.id)
    await passes(clock, 10 * SECOND)
    assert (await the_task(engine, dead)).state is TaskState.CANCELLED
    assert await bodies(engine, dead) == ["a"]
    await engine.operations.redrives.start(dead, None, None, RedriveOptions(delay_ms=5 * SECOND))
    await passes(clock, 6 * SECOND)
    assert await bodies(engine, origin) == ["a"]


async def test_a_careful_task_stops_itself_where_the_first_fail(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, BUSY, *numbered(40))
    await engine.operations.redrives.start(dead, None, None, CAREFUL)
    await passes(clock, SECOND)
    assert await consume(engine, origin, Outcome.RETRY, BUSY) == 10
    await passes(clock, SECOND)
    task = await the_task(engine, dead)
    assert task.state is TaskState.PAUSED
    assert task.stopped_why == "10 of 10 failed their first attempt: server_error 503"
    assert await bodies(engine, dead) == numbered(40)[10:]
    with pytest.raises(TaskActive):
        await engine.operations.redrives.start(dead, None, None)


@pytest.mark.parametrize(("tried_later", "told"), [(2, 10), (0, 8)])
async def test_a_task_that_stops_itself_waits_a_moment_for_attempts_under_way(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue, tried_later: int, told: int
) -> None:
    await die(engine, origin, dead, BUSY, *numbered(40))
    await engine.operations.redrives.start(dead, None, None, CAREFUL)
    await passes(clock, SECOND)
    assert await consume(engine, origin, Outcome.RETRY, BUSY, 8) == 8
    await passes(clock, SECOND)
    assert await consume(engine, origin, Outcome.RETRY, BUSY, tried_later) == tried_later
    await passes(clock, 2 * SECOND)
    task = await the_task(engine, dead)
    assert task.stopped_why == f"{told} of 10 failed their first attempt: server_error 503"
    assert (task.state, task.fares.failed) == (TaskState.PAUSED, told)
    assert await bodies(engine, dead) == numbered(40)[10:]


async def test_a_careful_task_waits_until_somebody_tried_the_first(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, BUSY, *numbered(40))
    await engine.operations.redrives.start(dead, None, None, CAREFUL)
    await passes(clock, 600 * SECOND)
    assert (await the_task(engine, dead)).moved == 10


async def test_a_careful_task_hastens_while_its_messages_are_taken(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, BUSY, *numbered(500))
    await engine.operations.redrives.start(dead, None, None, CAREFUL)
    per_ten_seconds = []
    while (await the_task(engine, dead)).state is TaskState.RUNNING:
        before = (await the_task(engine, dead)).moved
        for _ in range(100):
            await passes(clock, SECOND // 10)
            await consume(engine, origin, Outcome.DELIVERED)
        per_ten_seconds.append((await the_task(engine, dead)).moved - before)
    assert (await the_task(engine, dead)).moved == 500
    assert per_ten_seconds[0] < 70
    assert per_ten_seconds[1] > per_ten_seconds[0]
    assert await bodies(engine, dead) == []


async def test_a_message_that_a_consumer_lets_come_back_counts_as_failed(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, BUSY, *numbered(30))
    await engine.operations.redrives.start(dead, None, None, CAREFUL)
    await passes(clock, SECOND)
    assert len(await engine.messages.receive(origin, 10, wait_ms=0)) == 10
    await passes(clock, origin.lease_ms + SECOND)
    task = await the_task(engine, dead)
    assert (task.state, task.stopped_why) == (TaskState.PAUSED, "10 of 10 failed their first attempt")


async def test_a_paused_task_goes_on_where_it_was_at_another_pace(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, BUSY, *numbered(40))
    task = await engine.operations.redrives.start(dead, None, 5)
    await passes(clock, 2 * SECOND + 500)
    await engine.operations.redrives.pause(dead.name, task.id)
    await passes(clock, 60 * SECOND)
    paused = await the_task(engine, dead)
    assert (paused.state, paused.moved) == (TaskState.PAUSED, 15)
    with pytest.raises(Refused):
        await engine.operations.redrives.pause(dead.name, task.id)
    await engine.operations.redrives.resume(dead.name, task.id, 0)
    await passes(clock, SECOND)
    assert (await the_task(engine, dead)).state is TaskState.COMPLETED
    assert await bodies(engine, origin) == numbered(40)


async def test_a_paused_task_is_cancelled_at_once(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, BUSY, *numbered(10))
    task = await engine.operations.redrives.start(dead, None, 1)
    await engine.operations.redrives.pause(dead.name, task.id)
    await passes(clock, 2 * SECOND)
    await engine.operations.redrives.cancel(dead.name, task.id)
    assert (await the_task(engine, dead)).state is TaskState.CANCELLED


async def test_no_node_takes_up_a_paused_task(
    engine: Engine, nodes: Callable[[str], Engine], clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, BUSY, *numbered(10))
    task = await engine.operations.redrives.start(dead, None, 1)
    await engine.operations.redrives.pause(dead.name, task.id)
    await passes(clock, 120 * SECOND)
    other = nodes("two")
    await other.parts.redriver.take_up()
    await passes(clock, 5 * SECOND)
    assert (await the_task(engine, dead)).state is TaskState.PAUSED
    resumed = await other.operations.redrives.resume(dead.name, task.id, 0)
    assert resumed.node == "two"
    await passes(clock, SECOND)
    assert await bodies(engine, origin) == numbered(10)


async def test_messages_set_aside_come_back_to_their_dead_letter_queue(
    engine: Engine, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, DENIED, "a", "b")
    letters = await engine.operations.dead_letters.letters(dead, 0, 9)
    assert (await engine.operations.moves.set_aside(dead, [letters[0].delivery.seq])).total == 1
    aside = await engine.operations.moves.aside_of(dead.name)
    (beside,) = await engine.operations.dead_letters.letters(aside, 0, 9)
    assert (beside.delivery.body, beside.from_queue, beside.notes) == ("a", origin.name, [DENIED])
    assert (await engine.operations.moves.bring_back(aside, [beside.delivery.seq])).total == 1
    assert await bodies(engine, dead) == ["b", "a"]


async def test_a_message_goes_home_from_aside_with_another_body(
    engine: Engine, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, DENIED, "wrong")
    (letter,) = await engine.operations.dead_letters.letters(dead, 0, 9)
    await engine.operations.moves.set_aside(dead, [letter.delivery.seq])
    aside = await engine.operations.moves.aside_of(dead.name)
    (beside,) = await engine.operations.dead_letters.letters(aside, 0, 9)
    seq = beside.delivery.seq
    assert (await engine.operations.moves.move(aside, [seq], None, {seq: "right"})).total == 1
    assert await bodies(engine, origin) == ["right"]


async def test_an_encrypted_message_keeps_its_body(engine: Engine, dead: Queue, origin: Queue) -> None:
    sealed = NewDelivery(dead.id, bytes(16), "\x02x", b'{"sealed":{}}', 0, 0, origin=origin.id, note=DENIED)
    await engine.parts.store.enqueue([sealed])
    (letter,) = await engine.operations.dead_letters.letters(dead, 0, 9)
    seq = letter.delivery.seq
    with pytest.raises(Refused, match="encrypted"):
        await engine.operations.moves.move(dead, [seq], None, {seq: "clear"})
    assert (await engine.operations.moves.move(dead, [seq], None)).total == 1
    assert await bodies(engine, origin) == ["\x02x"]


async def test_the_finds_of_a_search_go_back_slice_by_slice_and_the_rest_stays(
    engine: Engine,
    clock: VirtualClock,
    dead: Queue,
    origin: Queue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("redrive.engine.tasks.redrive_plan.SLICE", 3)
    texts = [f'{{"order": {each}, "currency": "{"EUR" if each % 4 else "USD"}"}}' for each in range(20)]
    await die(engine, origin, dead, BUSY, *texts)
    await die(engine, origin, dead, DENIED, '{"order": 20, "currency": "USD"}')
    found = MoveChoice(0, "", (), "body.currency:USD", engine.clock.now())
    plan = await engine.operations.redrives.plan(dead, found)
    assert (plan.number, plan.looked_at) == (6, 0)
    of_cause = MoveChoice(origin.id, "server_error 503", (), "body.currency:USD", engine.clock.now())
    assert (await engine.operations.redrives.plan(dead, of_cause)).number == 5
    await engine.operations.redrives.start(dead, None, None, RedriveOptions(found, plan.last_seq))
    await passes(clock, SECOND)
    task = await the_task(engine, dead)
    assert (task.state, task.moved, task.to_move) == (TaskState.COMPLETED, 6, 6)
    left = await engine.operations.dead_letters.letters(dead, 0, 100)
    assert [letter.delivery.body for letter in left] == [text for text in texts if "EUR" in text]


async def test_a_search_that_was_stopped_moves_nothing_older_than_it_came_to(
    engine: Engine, clock: VirtualClock, dead: Queue, origin: Queue
) -> None:
    await die(engine, origin, dead, BUSY, "x 1", "x 2", "x 3")
    first, second, _ = [
        each.delivery.seq for each in await engine.operations.dead_letters.letters(dead, 0, 9)
    ]
    choice = MoveChoice(0, "", (), "x", engine.clock.now(), second)
    assert (await engine.operations.redrives.plan(dead, choice)).number == 2
    await engine.operations.redrives.start(dead, None, None, RedriveOptions(choice))
    await passes(clock, SECOND)
    assert [each.delivery.seq for each in await engine.operations.dead_letters.letters(dead, 0, 9)] == [first]
