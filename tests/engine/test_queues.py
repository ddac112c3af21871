import asyncio
from collections.abc import Callable

import pytest

from redrive.engine.configuration.kinds import DUE, QUEUE, QUEUE_RECORD, TOMBSTONE, TOMBSTONE_MS
from redrive.engine.engine import ROUND_MS, Engine
from redrive.engine.ports import MoveTarget
from redrive.model.errors import AlreadyExists, NotFound, StoreUnavailable
from redrive.model.queue import Queue
from redrive.testing import VirtualClock
from tests.engine.held_store import HeldStore
from tests.engine.samples import bodies, make_queue, named, send


async def documents(engine: Engine, kind: str) -> int:
    return len(await engine.parts.store.find(kind, ""))


async def test_a_queue_gets_a_number_and_its_times(engine: Engine, clock: VirtualClock) -> None:
    first, second = await make_queue(engine, "first"), await make_queue(engine, "second")
    assert first.id != second.id
    assert (first.created_at, first.modified_at) == (clock.now(), clock.now())
    assert engine.resources.queues.known(first.name) == await engine.resources.queues.get(first.name) == first
    assert await engine.resources.queues.name_of(second.id) == second.name


async def test_a_name_is_taken_once(engine: Engine, nodes: Callable[[str], Engine]) -> None:
    made = await asyncio.gather(
        make_queue(engine, "q"), make_queue(nodes("two"), "q"), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in made) == [AlreadyExists.__name__, Queue.__name__]
    assert await documents(engine, QUEUE_RECORD.name) == 1


async def deleted_unheard(engine: Engine, deaf: Engine) -> Queue:
    """A queue that one node has deleted, and another still remembers."""
    queue = await make_queue(engine, "q")
    assert await deaf.resources.queues.get(queue.name) == queue
    await engine.resources.queues.delete(queue)
    assert deaf.resources.queues.known(queue.name) == queue
    return queue


async def test_a_name_is_free_again_on_a_node_that_has_not_heard_of_the_deletion(
    engine: Engine, nodes: Callable[[str], Engine]
) -> None:
    deaf = nodes("two")
    queue = await deleted_unheard(engine, deaf)
    assert await deaf.resources.queues.get_stored(queue.name) is None
    again = await make_queue(deaf, "q")
    assert await engine.resources.queues.get(queue.name) == again


async def test_a_queue_made_again_is_not_deleted_in_the_place_of_the_one_before(
    engine: Engine, nodes: Callable[[str], Engine]
) -> None:
    deaf = nodes("two")
    before = await deleted_unheard(engine, deaf)
    again = await make_queue(engine, "q")
    assert not await deaf.resources.queues.delete(before)
    assert await deaf.resources.queues.get(before.name) == again


async def test_queues_are_found_by_the_beginning_of_their_name(engine: Engine) -> None:
    for text in ("b", "a2", "a1"):
        await make_queue(engine, text)
    assert [one.name.name for one in await engine.resources.queues.find(named("a"))] == ["a1", "a2"]
    assert [one.name.name for one in await engine.resources.queues.find(named(""), named("a1").key, 1)] == [
        "a2"
    ]


async def test_a_change_of_attributes_is_dated_and_tags_are_no_change(
    engine: Engine, clock: VirtualClock
) -> None:
    queue = await make_queue(engine, "q")
    began = clock.now()
    await clock.sleep_until(began + 1000)
    await engine.resources.queues.label(queue.name, lambda tags: {**tags, "team": "a"})
    await engine.resources.queues.update(queue.name, lambda same: same)
    unchanged = await engine.resources.queues.get(queue.name)
    assert unchanged is not None
    assert (unchanged.modified_at, unchanged.tags) == (began, {"team": "a"})
    changed = await engine.resources.queues.update(
        queue.name, lambda one: Queue(one.id, one.name, delay_ms=5)
    )
    assert (changed.modified_at, changed.delay_ms) == (began + 1000, 5)
    with pytest.raises(NotFound):
        await engine.resources.queues.update(named("no such queue"), lambda one: one)


async def test_dead_letters_go_to_a_queue_that_stands(engine: Engine) -> None:
    dead = await make_queue(engine, "dead", ordered=True)
    queue = await make_queue(engine, "q", dead_letters=dead)
    assert await engine.resources.queues.dead_letters_to(dead) is None
    assert await engine.resources.queues.dead_letters_to(queue) == MoveTarget(dead.id, ordered=True)
    assert await engine.resources.queues.sources_of(dead.name) == [queue]
    await engine.resources.queues.delete(dead)
    assert await engine.resources.queues.dead_letters_to(queue) is None


# ---- the end of a queue


async def test_a_deleted_queue_is_not_found_at_once_and_its_messages_go_with_the_next_sweep(
    engine: Engine, clock: VirtualClock
) -> None:
    queue = await make_queue(engine, "q")
    await send(engine, queue, "a", "b")
    began = clock.now()
    assert await engine.resources.queues.delete(queue)
    assert await engine.resources.queues.get(queue.name) is None
    assert await engine.resources.queues.deleted_at(queue.name) == began
    assert await engine.operations.sweep() == 2
    assert await bodies(engine, queue) == []
    assert (
        await engine.resources.queues.name_of(queue.id) == queue.name
    )  # dead letters that came from it still say so


async def test_a_name_can_be_used_again_and_its_old_messages_do_not_come_back(engine: Engine) -> None:
    queue = await make_queue(engine, "q")
    await send(engine, queue, "old")
    await engine.resources.queues.delete(queue)
    again = await make_queue(engine, "q")
    await send(engine, again, "new")
    assert again.id != queue.id
    await engine.operations.sweep()
    assert await bodies(engine, again) == ["new"]
    assert await engine.resources.queues.get(again.name) == again


async def test_a_tombstone_is_kept_as_long_as_a_dead_letter_may_name_its_queue(
    engine: Engine, clock: VirtualClock
) -> None:
    queue = await make_queue(engine, "q")
    await engine.resources.queues.delete(queue)
    began = clock.now()
    await engine.operations.sweep()
    await send(engine, queue, "from a node that had not heard yet")
    await clock.sleep_until(began + TOMBSTONE_MS - 1)
    assert await engine.operations.sweep() == 0
    assert await engine.resources.queues.name_of(queue.id) == queue.name
    await clock.sleep_until(began + TOMBSTONE_MS)
    assert await engine.operations.sweep() == 1
    assert await engine.resources.queues.name_of(queue.id) is None
    assert await documents(engine, TOMBSTONE.name) == await documents(engine, QUEUE_RECORD.name) == 0
    assert await documents(engine, DUE.name) == 0


async def test_two_may_delete_the_same_queue(engine: Engine, nodes: Callable[[str], Engine]) -> None:
    queue = await make_queue(engine, "q")
    gone = await asyncio.gather(
        engine.resources.queues.delete(queue), nodes("two").resources.queues.delete(queue)
    )
    assert sorted(gone) == [False, True]
    assert len(await engine.resources.queues.tombstones()) == 1


@pytest.mark.parametrize("verb", ["put", "remove"])
@pytest.mark.parametrize("lost", ["on its way", "on its way back"])
async def test_a_deletion_that_was_cut_short_can_be_repeated(
    engine: Engine, store: HeldStore, verb: str, lost: str
) -> None:
    queue = await make_queue(engine, "q")
    held = store.hold(verb) if lost == "on its way" else store.hold_answer(verb)
    deleting = asyncio.create_task(engine.resources.queues.delete(queue))
    await held.reached
    held.lose()
    with pytest.raises(StoreUnavailable):
        await deleting
    await engine.resources.queues.delete(queue)
    assert await engine.resources.queues.get(queue.name) is None
    assert len(await engine.resources.queues.tombstones()) == 1


async def test_a_deletion_that_was_cut_short_leaves_the_queue_as_it_was(
    engine: Engine, nodes: Callable[[str], Engine], store: HeldStore
) -> None:
    queue = await make_queue(engine, "q")
    await send(engine, queue, "a")
    held = store.hold("remove")
    deleting = asyncio.create_task(engine.resources.queues.delete(queue))
    await held.reached
    held.lose()
    with pytest.raises(StoreUnavailable):
        await deleting
    await nodes("two").operations.sweep()
    assert await documents(engine, QUEUE.name) == 1
    assert await documents(engine, TOMBSTONE.name) == await documents(engine, DUE.name) == 0
    assert await bodies(engine, queue) == ["a"]


async def test_deleting_a_queue_again_spares_a_new_queue_of_the_same_name(engine: Engine) -> None:
    gone = await make_queue(engine, "q")
    await engine.resources.queues.delete(gone)
    again = await make_queue(engine, "q")
    assert not await engine.resources.queues.delete(gone)
    assert await engine.resources.queues.get(again.name) == again


async def test_a_reset_during_a_round_harms_neither(
    engine: Engine, store: HeldStore, clock: VirtualClock
) -> None:
    queue = await make_queue(engine, "q")
    await send(engine, queue, "a")
    await engine.resources.queues.delete(queue)
    held = store.hold("purge")
    upkeep = asyncio.create_task(engine.run())
    await held.reached
    await engine.reset()
    held.let_go()
    await clock.sleep_until(clock.now() + 2 * ROUND_MS)
    assert not upkeep.done()
    assert await documents(engine, TOMBSTONE.name) == 0
    upkeep.cancel()
