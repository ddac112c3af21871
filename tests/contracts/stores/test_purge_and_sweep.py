from typing import Any

import pytest

from redrive.engine.ports import AttemptNote, Swept
from redrive.model.delivery import Outcome
from redrive.model.queue import DAY_MS
from tests.contracts.stores.bench import FIVE_MINUTES_MS, NOON, Bench, bodies
from tests.contracts.stores.homes import Home

LATER = NOON + 5000


async def purge(queue: Bench, seq_max: int | None = None, limit: int = 1000) -> int:
    last = await queue.store.last_seq() if seq_max is None else seq_max
    return await queue.store.purge(queue.id, last, limit)


async def sweep(queue: Bench, before: int, now: int = LATER, limit: int = 1000) -> int:
    return (await queue.store.sweep(queue.id, before, now, limit)).deliveries


async def test_purging_removes_all_that_is_there_claimed_or_not(plain: Bench, fifo: Bench) -> None:
    await plain.send("a", "b", "c", group="g")
    await plain.send("delayed", delay_ms=5)
    await plain.claim_one()
    await fifo.send("other", group="g")
    assert await purge(plain) == 4
    assert await plain.peek() == []
    assert bodies(await fifo.peek()) == ["other"]
    assert await purge(plain) == 0


async def test_purging_spares_what_arrived_later(plain: Bench) -> None:
    _, last = await plain.send("a", "b")
    await plain.send("c")
    assert await purge(plain, last) == 2
    assert bodies(await plain.claim()) == ["c"]


async def test_purging_goes_piece_by_piece(plain: Bench) -> None:
    await plain.send(*"abcdefg")
    assert [await purge(plain, limit=3) for _ in range(4)] == [3, 3, 1, 0]


async def test_purging_passes_the_turn_of_an_ordered_group(fifo: Bench) -> None:
    _, second, _ = await fifo.send("a1", "a2", "a3", group="a")
    await fifo.claim_one()
    assert await purge(fifo, second) == 2
    assert bodies(await fifo.claim()) == ["a3"]


async def test_purging_passes_the_turn_of_a_fair_group(plain: Bench) -> None:
    _, second, _, _ = await plain.send("a1", "a2", "a3", "a4", group="a")
    assert await purge(plain, second) == 2
    assert bodies(await plain.claim()) == ["a3", "a4"]


async def test_sweeping_removes_what_is_out_of_its_retention_period(plain: Bench) -> None:
    await plain.send("a", "b", now=NOON)
    await plain.send("c", now=NOON + 1)
    assert await sweep(plain, NOON - 1) == 0
    assert await sweep(plain, NOON) == 2
    assert bodies(await plain.peek()) == ["c"]


async def test_sweeping_removes_what_is_claimed_too(plain: Bench) -> None:
    await plain.send("a")
    await plain.claim_one()
    assert await sweep(plain, NOON) == 1


async def test_sweeping_goes_piece_by_piece(plain: Bench) -> None:
    await plain.send(*"abcdefg")
    await plain.send("young", now=LATER)
    assert [await sweep(plain, NOON, limit=3) for _ in range(4)] == [3, 3, 1, 0]


async def test_sweeping_passes_turns(fifo: Bench) -> None:
    await fifo.send("a1", "a2", group="a")
    await fifo.send("a3", now=NOON + 1, group="a")
    assert await sweep(fifo, NOON) == 2
    assert bodies(await fifo.claim(LATER)) == ["a3"]


async def test_sweeping_passes_the_turn_of_a_fair_group(plain: Bench) -> None:
    await plain.send("a1", "a2", group="a")
    await plain.send("a3", "a4", now=NOON + 1, group="a")
    assert await sweep(plain, NOON) == 2
    assert bodies(await plain.claim(LATER)) == ["a3", "a4"]


async def test_sweeping_forgets_what_deduplication_need_not_remember(home: Home) -> None:
    store = await home.open()
    fifo = Bench(store, await store.new_id(), ordered=True)
    other = Bench(store, await store.new_id(), ordered=True)
    for number in range(5):
        await fifo.send_once(str(number), f"k{number}")
    await fifo.send_once("late", "late", NOON + 1)
    await other.send_once("other", "k0")
    await sweep(fifo, 0, NOON + FIVE_MINUTES_MS - 1)
    assert await remembered(home, "deduplication", "key") == ["k0", "k0", "k1", "k2", "k3", "k4", "late"]
    await sweep(fifo, 0, NOON + FIVE_MINUTES_MS)
    assert await remembered(home, "deduplication", "key") == ["k0", "late"]


async def test_sweeping_forgets_old_claim_attempts(home: Home) -> None:
    store = await home.open()
    fifo = Bench(store, await store.new_id(), ordered=True)
    await fifo.send("a", group="g")
    await fifo.claim(attempt_id="t")
    await sweep(fifo, 0, NOON + FIVE_MINUTES_MS - 1)
    assert await remembered(home, "claim_attempts", "attempt_id") == ["t"]
    await sweep(fifo, 0, NOON + FIVE_MINUTES_MS)
    assert await remembered(home, "claim_attempts", "attempt_id") == []


async def test_sweeping_forgets_a_pace_that_is_over(home: Home) -> None:
    store = await home.open()
    queue, other = Bench(store, await store.new_id()), Bench(store, await store.new_id())
    for one in (queue, other):
        await one.send("a", "b")
        await one.claim(rate_max=2, lease_ms=120_000)
    minute_ms = 60_000
    await sweep(queue, 0, NOON + minute_ms + 499)
    assert len(await remembered(home, "paces", "queue_id")) == 2
    assert (await queue.request(rate_max=2)).next_at == NOON + 500  # by a clock that is a minute behind
    await sweep(queue, 0, NOON + minute_ms + 500)
    assert await remembered(home, "paces", "queue_id") == [other.id]
    assert bodies(await queue.claim(NOON + minute_ms + 500, rate_max=2)) == ["b"]


async def test_sweeping_says_whether_deliveries_are_left(plain: Bench) -> None:
    await plain.send(*"abcde")
    answers = [await plain.store.sweep(plain.id, NOON, NOON, limit=2) for _ in range(3)]
    assert answers == [Swept(2, has_more=True), Swept(2, has_more=True), Swept(1, has_more=False)]


@pytest.mark.parametrize(
    ("table", "column"),
    [("deduplication", "key"), ("claim_attempts", "attempt_id"), ("attempts", "number")],
)
async def test_sweeping_says_whether_memories_are_left(home: Home, table: str, column: str) -> None:
    store = await home.open()
    fifo = Bench(store, await store.new_id(), ordered=True)
    for number in range(5):
        await fifo.send_once("a", f"k{number}", group=f"{number}")
        (delivery,) = await fifo.claim(limit=1, attempt_id=f"t{number}")
        note = AttemptNote(number, NOON, duration_ms=7, reason="status", status=503, response="")
        await fifo.settle(delivery, outcome=Outcome.RETRY, available_at=LATER, note=note)
    numbers = []
    for left in (True, True, False):
        assert await store.sweep(fifo.id, 0, NOON + 15 * DAY_MS, limit=2) == Swept(0, has_more=left)
        numbers.append(len(await remembered(home, table, column)))
    assert numbers == [3, 1, 0]


async def remembered(home: Home, table: str, column: str) -> list[Any]:
    rows = await home.query(f"SELECT {column} FROM {table} ORDER BY {column}")
    return [value for (value,) in rows]
