import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from redrive.engine.engine import Engine
from redrive.engine.ports import Runtime
from redrive.engine.receive.notifier import Cancellation
from redrive.engine.receive.receiver import COUNT_EVERY_MS, InFlightEstimate
from redrive.model.delivery import Delivery
from redrive.model.errors import InFlightLimit, StoreUnavailable
from redrive.model.queue import Queue
from redrive.stores.sqlite.store import SqliteStore
from redrive.testing import VirtualClock
from tests.engine.held_store import HeldStore
from tests.engine.samples import bodies, make_queue, mark_deleted, numbered, send

SECOND = 1_000
WAIT_MS = 20 * SECOND
Receiving = asyncio.Task[list[Delivery]]


@pytest.fixture
async def queue(engine: Engine) -> Queue:
    return await make_queue(engine, "q")


def receiving(engine: Engine, queue: Queue, wait_ms: int = WAIT_MS, **how: Any) -> Receiving:
    return asyncio.create_task(engine.messages.receive(queue, 1, wait_ms=wait_ms, **how))


async def waiting(*tasks: Receiving) -> None:
    """Everybody has claimed in vain and stands in line."""
    for _ in range(20):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


async def result(task: Receiving) -> list[str]:
    return [delivery.body for delivery in await task]


# ---- waiting


async def test_waiting_messages_are_received_at_once(
    engine: Engine, clock: VirtualClock, queue: Queue
) -> None:
    began = clock.now()
    await send(engine, queue, "a", "b", "c")
    claimed = await engine.messages.receive(queue, 2, wait_ms=WAIT_MS)
    assert [(one.body, one.attempts, one.available_at) for one in claimed] == [
        ("a", 1, began + queue.lease_ms),
        ("b", 1, began + queue.lease_ms),
    ]
    assert clock.now() == began


@pytest.mark.parametrize("wait_ms", [0, 1, WAIT_MS])
async def test_an_empty_receive_waits_as_long_as_asked(
    engine: Engine, clock: VirtualClock, queue: Queue, wait_ms: int
) -> None:
    began = clock.now()
    assert await engine.messages.receive(queue, 1, wait_ms=wait_ms) == []
    assert clock.now() == began + wait_ms
    assert engine.operations.counts(queue).empty_receives == 1


async def test_a_receive_without_arguments_takes_the_queues_wait_and_lease(
    engine: Engine, clock: VirtualClock
) -> None:
    queue = await make_queue(engine, "slow", wait_ms=3 * SECOND, lease_ms=7 * SECOND)
    began = clock.now()
    assert await engine.messages.receive(queue, 1) == []
    assert clock.now() == began + 3 * SECOND
    await send(engine, queue, "a")
    (delivery,) = await engine.messages.receive(queue, 1)
    assert delivery.available_at == clock.now() + 7 * SECOND


async def test_a_new_message_ends_a_long_poll(engine: Engine, clock: VirtualClock, queue: Queue) -> None:
    task = receiving(engine, queue)
    await clock.sleep_until(clock.now() + 5 * SECOND)
    began = clock.now()
    await send(engine, queue, "a")
    assert await result(task) == ["a"]
    assert clock.now() == began


async def test_a_delayed_message_comes_in_its_time(engine: Engine, clock: VirtualClock, queue: Queue) -> None:
    began = clock.now()
    task = receiving(engine, queue)
    await waiting(task)
    await send(engine, queue, "late", delay_ms=9 * SECOND)
    await send(engine, queue, "soon", delay_ms=4 * SECOND)
    assert await result(task) == ["soon"]
    assert clock.now() == began + 4 * SECOND
    assert await result(receiving(engine, queue)) == ["late"]
    assert clock.now() == began + 9 * SECOND


async def test_a_claim_that_runs_out_comes_to_who_waits(
    engine: Engine, clock: VirtualClock, queue: Queue
) -> None:
    began = clock.now()
    await send(engine, queue, "a")
    await engine.messages.receive(queue, 1, wait_ms=0, lease_ms=6 * SECOND)
    assert await result(receiving(engine, queue)) == ["a"]
    assert clock.now() == began + 6 * SECOND


async def test_a_claim_given_back_or_shortened_comes_to_who_waits(
    engine: Engine, clock: VirtualClock, queue: Queue
) -> None:
    await send(engine, queue, "a")
    for lease_ms in (2 * SECOND, 0):
        (claimed,) = await engine.messages.receive(queue, 1, wait_ms=0)
        began = clock.now()
        task = receiving(engine, queue)
        await waiting(task)
        await engine.messages.extend(queue, [(claimed.seq, claimed.token or 0, lease_ms)])
        (again,) = await task
        assert (again.body, clock.now()) == ("a", began + lease_ms)
        await engine.messages.extend(queue, [(again.seq, again.token or 0, 0)])


async def test_the_next_of_a_group_comes_when_the_one_before_is_settled(
    engine: Engine, clock: VirtualClock
) -> None:
    queue = await make_queue(engine, "fifo", ordered=True)
    await send(engine, queue, "a", "b", group_id="g")
    (first,) = await engine.messages.receive(queue, 1, wait_ms=0)
    began = clock.now()
    task = receiving(engine, queue)
    await waiting(task)
    await engine.messages.delete(queue, [(first.seq, first.token or 0)])
    assert await result(task) == ["b"]
    assert clock.now() == began


async def test_a_dead_letter_wakes_a_receiver_of_its_queue(engine: Engine, clock: VirtualClock) -> None:
    dead = await make_queue(engine, "dead")
    queue = await make_queue(engine, "q1", dead_letters=dead)
    await send(engine, queue, "a")
    await engine.messages.receive(queue, 1, wait_ms=0, lease_ms=SECOND)
    task = receiving(engine, dead)
    await waiting(task)
    await clock.sleep_until(clock.now() + SECOND)
    assert await engine.messages.receive(queue, 1, wait_ms=0) == []
    assert await result(task) == ["a"]


async def test_a_hundred_messages_wake_a_hundred_receivers(engine: Engine, queue: Queue) -> None:
    tasks = [receiving(engine, queue) for _ in range(100)]
    await waiting(*tasks)
    began = engine.clock.now()
    await send(engine, queue, *numbered(100))
    came = [await result(task) for task in tasks]
    assert sorted(came) == sorted([one] for one in numbered(100))
    assert engine.clock.now() == began


async def test_a_new_delivery_costs_the_same_with_two_or_a_thousand_receivers(
    engine: Engine, store: HeldStore, queue: Queue
) -> None:
    tasks = [receiving(engine, queue) for _ in range(1000)]
    await waiting(*tasks)
    assert store.calls.count("claim") == 1000
    store.calls.clear()
    for number in range(10):
        await send(engine, queue, str(number))
        for _ in range(30):
            await asyncio.sleep(0)
    assert sum(task.done() for task in tasks) == 10
    assert store.calls.count("claim") <= 20  # who takes it, and the next, who learns when its claim runs out
    store.calls.clear()
    engine.stop_receiving()
    assert sum(bool(came) for came in await asyncio.gather(*tasks)) == 10
    assert store.calls.count("claim") == 990


# ---- news from other nodes


async def test_a_new_delivery_on_another_node_wakes_a_receiver(
    engine: Engine, nodes: Callable[[str], Engine], store: HeldStore, queue: Queue
) -> None:
    for news in (queue.id, 0):
        task = receiving(engine, queue)
        await waiting(task)
        await send(nodes("two"), queue, "a")
        began = engine.clock.now()
        store.arrived(news)
        assert await result(task) == ["a"]
        assert engine.clock.now() == began


# ---- callers who go away


async def test_a_caller_who_goes_away_while_waiting_takes_nothing(engine: Engine, queue: Queue) -> None:
    gone = Cancellation()
    task = receiving(engine, queue, cancellation=gone)
    await waiting(task)
    began = engine.clock.now()
    gone.happen()
    assert await task == []
    await send(engine, queue, "a")
    assert await result(receiving(engine, queue)) == ["a"]
    assert engine.clock.now() == began


async def test_messages_claimed_for_a_cancelled_caller_go_to_the_next(
    engine: Engine, store: HeldStore, queue: Queue
) -> None:
    await send(engine, queue, "a")
    gone = Cancellation()
    held = store.hold_answer("claim")
    task = receiving(engine, queue, cancellation=gone)
    await held.reached
    other = receiving(engine, queue)
    await waiting(other)
    began = engine.clock.now()
    gone.happen()
    held.let_go()
    assert await task == []
    assert await result(other) == ["a"]
    assert engine.clock.now() == began


# ---- a store that is away


async def test_a_woken_receiver_that_fails_wakes_the_next(
    engine: Engine, store: HeldStore, queue: Queue
) -> None:
    first, second = receiving(engine, queue), receiving(engine, queue)
    await waiting(first, second)
    began = engine.clock.now()
    held = store.hold("claim")
    await send(engine, queue, "a")
    await held.reached
    held.lose()
    with pytest.raises(StoreUnavailable):
        await first
    assert await result(second) == ["a"]
    assert engine.clock.now() == began


async def test_a_claim_whose_answer_is_lost_comes_again_to_who_waits(
    engine: Engine, store: HeldStore, clock: VirtualClock, queue: Queue
) -> None:
    first = receiving(engine, queue, lease_ms=5 * SECOND)
    second = receiving(engine, queue)
    await waiting(first, second)
    began = clock.now()
    held = store.hold_answer("claim")
    await send(engine, queue, "a")
    await held.reached
    held.lose()
    with pytest.raises(StoreUnavailable):
        await first
    (again,) = await second
    assert (again.body, again.attempts, clock.now()) == ("a", 2, began + 5 * SECOND)


@pytest.mark.parametrize("seed", range(40))
async def test_no_new_delivery_is_missed_in_any_order_of_answers(clock: VirtualClock, seed: int) -> None:
    rng = random.Random(seed)
    engine = Engine(SlowStore(clock, rng), Runtime(clock, rng, "one"))
    await engine.open()
    queue = await make_queue(engine, "q", wait_ms=WAIT_MS)
    due: dict[str, int] = {}
    late: dict[str, int] = {}

    async def consume() -> None:
        while len(late) < 60:
            for one in await engine.messages.receive(queue, 1):
                late[one.body] = clock.now() - due[one.body]
                await engine.messages.delete(queue, [(one.seq, one.token or 0)])

    async def produce() -> None:
        for number in range(60):
            delay_ms = rng.choice((0, 0, 1, 50, 700))
            sending = asyncio.create_task(send(engine, queue, str(number), delay_ms=delay_ms))
            due[str(number)] = clock.now() + delay_ms
            await clock.sleep_until(clock.now() + rng.choice((0, 1, 30, 900)))
            await sending

    await asyncio.gather(produce(), *(consume() for _ in range(3)))
    # A call takes 40 ms at most. Who is slowest to hear claims in vain once, and there is somebody before.
    assert max(late.values()) <= 6 * 40, late


class SlowStore(HeldStore):
    """Each call takes up to 20 ms on its way and up to 20 ms back, so that answers come in any order."""

    def __init__(self, clock: VirtualClock, rng: random.Random) -> None:
        super().__init__(SqliteStore(None))
        self._clock = clock
        self._rng = rng

    async def _call(self, verb: str, *args: Any, **named: Any) -> Any:
        await self._clock.sleep_until(self._clock.now() + self._rng.randint(0, 20))
        answer = await super()._call(verb, *args, **named)
        await self._clock.sleep_until(self._clock.now() + self._rng.randint(0, 20))
        return answer


# ---- how many may be in flight


@pytest.fixture
def small(engine: Engine) -> int:
    """A limit that a test can reach."""
    engine.parts.receiver._flights = engine.parts.settler._flights = InFlightEstimate(
        engine.parts.store, engine.runtime, limit=3
    )
    return 3


async def test_a_full_queue_refuses_who_does_not_wait(engine: Engine, queue: Queue, small: int) -> None:
    await send(engine, queue, *numbered(small + 1))
    claimed = await engine.messages.receive(queue, small, wait_ms=0)
    with pytest.raises(InFlightLimit):
        await engine.messages.receive(queue, 1, wait_ms=0)
    await engine.messages.delete(queue, [(one.seq, one.token or 0) for one in claimed])
    assert len(await engine.messages.receive(queue, 1, wait_ms=0)) == 1


async def test_a_full_queue_lets_who_waits_wait(
    engine: Engine, clock: VirtualClock, queue: Queue, small: int
) -> None:
    await send(engine, queue, *numbered(small + 1))
    (first, *_) = await engine.messages.receive(queue, small, wait_ms=0)
    began = clock.now()
    assert await engine.messages.receive(queue, 1, wait_ms=5 * SECOND) == []
    assert clock.now() == began + 5 * SECOND
    task = receiving(engine, queue)
    await waiting(task)
    began = clock.now()
    await engine.messages.delete(queue, [(first.seq, first.token or 0)])
    assert await result(task) == [f"m{small}"]
    assert clock.now() <= began + COUNT_EVERY_MS


async def test_a_full_ordered_queue_says_that_there_is_nothing(engine: Engine, small: int) -> None:
    queue = await make_queue(engine, "fifo", ordered=True)
    await send(engine, queue, *numbered(small + 1), group_id="g")
    await engine.messages.receive(queue, small, wait_ms=0)
    assert await engine.messages.receive(queue, 1, wait_ms=0) == []


async def test_the_store_is_asked_how_many_at_most_once_a_second(
    engine: Engine, store: HeldStore, clock: VirtualClock, queue: Queue, small: int
) -> None:
    await send(engine, queue, *numbered(small))
    await engine.messages.receive(queue, small, wait_ms=0, lease_ms=4 * SECOND)
    for _ in range(50):
        with pytest.raises(InFlightLimit):
            await engine.messages.receive(queue, 1, wait_ms=0)
        await clock.sleep_until(clock.now() + SECOND // 25)
    assert store.calls.count("count") <= 3


async def test_claims_that_ran_out_count_no_more(
    engine: Engine, clock: VirtualClock, queue: Queue, small: int
) -> None:
    await send(engine, queue, *numbered(small))
    await engine.messages.receive(queue, small, wait_ms=0, lease_ms=2 * SECOND)
    began = clock.now()
    assert await result(receiving(engine, queue)) == ["m0"]
    assert clock.now() <= began + 2 * SECOND + COUNT_EVERY_MS


# ---- attempts


async def test_the_same_attempt_gets_the_same_claim(engine: Engine) -> None:
    queue = await make_queue(engine, "fifo", ordered=True)
    await send(engine, queue, "a", "b", group_id="g")
    first = await engine.messages.receive(queue, 1, wait_ms=0, attempt_id="once")
    again = await engine.messages.receive(queue, 1, wait_ms=0, attempt_id="once")
    assert [(one.body, one.token, one.attempts) for one in again] == [
        (one.body, one.token, one.attempts) for one in first
    ]
    assert await engine.messages.receive(queue, 1, wait_ms=0, attempt_id="twice") == []


async def test_a_queue_without_its_dead_letter_queue_keeps_offering_deliveries(
    engine: Engine, clock: VirtualClock
) -> None:
    dead = await make_queue(engine, "dead")
    queue = await make_queue(engine, "q1", dead_letters=dead)
    await mark_deleted(engine, queue, dead, "x")
    await engine.resources.queues.delete(dead)
    await send(engine, queue, "a")
    for attempt in (1, 2, 3):
        (one,) = await engine.messages.receive(queue, 1, wait_ms=WAIT_MS, lease_ms=SECOND)
        assert one.attempts == attempt
    assert await bodies(engine, queue) == ["a"]
