"""Deliveries of a queue end: given back, rejected, exhausted, kept too long; and the queue with what it serves."""

import asyncio
from dataclasses import replace

import pytest

from redrive.engine.engine import Engine
from redrive.engine.ports import AttemptNote
from redrive.model.queue import CopyTarget, DeadLetterTarget, Queue
from redrive.model.topic import Subscription, Topic
from redrive.testing import VirtualClock
from tests.engine.samples import bodies, make_queue, named, send

MINUTE_MS = 60_000
NOTE = AttemptNote(1, 0, 0, "rejected", 0, "")


@pytest.fixture
async def letters(engine: Engine) -> Queue:
    return await make_queue(engine, "letters")


@pytest.fixture
async def queue(engine: Engine, letters: Queue) -> Queue:
    """Deliveries have two claims of a minute, and ten minutes in all."""
    return await engine.resources.queues.create(
        Queue(
            0,
            named("q"),
            lease_ms=MINUTE_MS,
            retention_ms=10 * MINUTE_MS,
            dead_letter=DeadLetterTarget(letters.name, 2),
            drops_after=2,
            buries_expired=True,
        )
    )


async def claim(engine: Engine, queue: Queue) -> tuple[int, int]:
    (delivery,) = await engine.messages.receive(queue, 1, wait_ms=0)
    return delivery.seq, delivery.token or 0


# ---- given back ----------------------------------------------------------------------------------------------------


async def test_a_delivery_released_with_a_delay_wakes_a_waiting_receiver_when_due(
    engine: Engine, queue: Queue, clock: VirtualClock
) -> None:
    await send(engine, queue, "a")
    claimed = await claim(engine, queue)
    waiting = asyncio.ensure_future(engine.messages.receive(queue, 1, wait_ms=MINUTE_MS))
    began = clock.now()
    await clock.sleep_until(began + 5)
    assert (await engine.messages.release(queue, [claimed], 1000))[0].done
    (again,) = await waiting
    assert (again.attempts, clock.now()) == (2, began + 1005)


async def test_a_delivery_released_without_a_delay_wakes_a_waiting_receiver_at_once(
    engine: Engine, queue: Queue, clock: VirtualClock
) -> None:
    await send(engine, queue, "a")
    claimed = await claim(engine, queue)
    waiting = asyncio.ensure_future(engine.messages.receive(queue, 1, wait_ms=MINUTE_MS))
    began = clock.now()
    await clock.sleep_until(began + 5)
    await engine.messages.release(queue, [claimed], 0)
    assert [one.body for one in await waiting] == ["a"]
    assert clock.now() == began + 5


@pytest.mark.parametrize(("strict_lease", "done"), [(False, True), (True, False)])
async def test_a_claim_that_ran_out_is_honoured_unless_it_had_to_hold(
    engine: Engine, queue: Queue, clock: VirtualClock, strict_lease: bool, done: bool
) -> None:
    await send(engine, queue, "a")
    claimed = await claim(engine, queue)
    await clock.sleep_until(clock.now() + MINUTE_MS)
    (settled,) = await engine.messages.delete(queue, [claimed], strict_lease=strict_lease)
    assert (settled.done, settled.reason) == (done, "" if done else "lapsed")


# ---- rejected ------------------------------------------------------------------------------------------------------


async def test_a_rejected_delivery_is_dead_lettered_with_its_note(
    engine: Engine, queue: Queue, letters: Queue
) -> None:
    await send(engine, queue, "a")
    await engine.messages.reject(queue, [(*await claim(engine, queue), NOTE)])
    (letter,) = await engine.operations.dead_letters.letters(letters, 0, 10)
    assert (letter.from_queue, letter.notes) == (queue.name, [NOTE])
    assert engine.operations.counts(queue).messages_dead_lettered == 1


async def test_a_rejected_delivery_without_a_dead_letter_queue_is_dropped(
    engine: Engine, queue: Queue, letters: Queue
) -> None:
    await engine.resources.queues.delete(letters)
    await send(engine, queue, "a")
    await engine.messages.reject(queue, [(*await claim(engine, queue), NOTE)])
    assert await bodies(engine, queue) == []
    assert engine.operations.counts(queue).messages_dropped == 1


async def test_a_dead_letter_wakes_the_receivers_of_its_queue_and_of_its_copy(
    engine: Engine, queue: Queue, letters: Queue, clock: VirtualClock
) -> None:
    backlog = await make_queue(engine, "backlog")
    queue = await engine.resources.queues.update(
        queue.name, lambda one: replace(one, copies=CopyTarget(backlog.id, 3000))
    )
    await send(engine, queue, "a")
    waiting = [
        asyncio.ensure_future(engine.messages.receive(one, 1, wait_ms=MINUTE_MS))
        for one in (letters, backlog)
    ]
    began = clock.now()
    await clock.sleep_until(began + 5)
    await engine.messages.reject(queue, [(*await claim(engine, queue), NOTE)])
    assert [one.body for one in await waiting[0]] == ["a"]
    assert clock.now() == began + 5
    assert [one.body for one in await waiting[1]] == ["a"]
    assert clock.now() == began + 3005


# ---- though nobody asks --------------------------------------------------------------------------------------------


async def test_an_exhausted_delivery_is_found_by_the_sweep(
    engine: Engine, queue: Queue, letters: Queue, clock: VirtualClock
) -> None:
    await send(engine, queue, "a")
    for _ in range(2):
        await engine.operations.sweep()
        await claim(engine, queue)
        await clock.sleep_until(clock.now() + MINUTE_MS)
    assert await bodies(engine, letters) == []
    await engine.operations.sweep()
    assert (await bodies(engine, queue), await bodies(engine, letters)) == ([], ["a"])


async def test_without_a_dead_letter_queue_the_sweep_drops_expired_deliveries(
    engine: Engine, queue: Queue, letters: Queue, clock: VirtualClock
) -> None:
    await engine.resources.queues.delete(letters)
    await send(engine, queue, "a")
    for _ in range(2):
        await claim(engine, queue)
        await clock.sleep_until(clock.now() + MINUTE_MS)
    await engine.operations.sweep()
    assert await bodies(engine, queue) == []
    assert engine.operations.counts(queue).messages_dropped == 1


async def test_the_sweep_dead_letters_expired_deliveries_that_are_not_in_flight(
    engine: Engine, queue: Queue, letters: Queue, clock: VirtualClock
) -> None:
    began = clock.now()
    await send(engine, queue, "held", "waiting")
    await clock.sleep_until(began + 9 * MINUTE_MS + 30_000)
    held = await claim(engine, queue)
    await clock.sleep_until(began + 10 * MINUTE_MS)
    await engine.operations.sweep()
    assert (await bodies(engine, queue), await bodies(engine, letters)) == (["held"], ["waiting"])
    assert (await engine.messages.delete(queue, [held], strict_lease=True))[0].done


# ---- the queue of a subscription -----------------------------------------------------------------------------------


async def test_a_queue_goes_with_the_subscription_it_serves(engine: Engine) -> None:
    topics, subscriptions, queues = (
        engine.resources.topics,
        engine.resources.subscriptions,
        engine.resources.queues,
    )
    topic = await topics.create(Topic(0, named("t"), "plain"))
    wanted = [Subscription(one, topic.name, 0, "1", "pull", "") for one in ("left", "swept along")]
    served = [await make_queue(engine, f"serves {one.id}", serves=one.key) for one in wanted]
    left, _ = [await subscriptions.create(one) for one in wanted]
    assert await queues.find(named("")) == served
    await subscriptions.delete(left)
    assert await queues.find(named("")) == served[1:]
    await topics.delete(topic)
    assert await queues.find(named("")) == []


async def test_a_queue_goes_with_the_subscription_it_serves_when_the_time_of_that_is_over(
    engine: Engine, clock: VirtualClock
) -> None:
    topic = await engine.resources.topics.create(Topic(0, named("t"), "plain"))
    wanted = Subscription("s", topic.name, 0, "1", "pull", "", expires_at=clock.now() + MINUTE_MS)
    queue = await make_queue(engine, "served", serves=wanted.key)
    await engine.resources.subscriptions.create(wanted)
    await clock.sleep_until(clock.now() + MINUTE_MS)
    await engine.operations.sweep()
    assert await engine.resources.queues.get(queue.name) is None
