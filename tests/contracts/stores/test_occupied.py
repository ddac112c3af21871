"""The numbers under which anything is kept: a sweep visits no queue where there is nothing."""

import pytest

from redrive.engine.ports import NOTES_KEPT_MS, OLDEST_AMONG, AttemptNote, Occupied, Store
from redrive.model.claiming import Pace
from redrive.model.delivery import Outcome
from tests.contracts.stores.bench import FIVE_MINUTES_MS, NOON, Bench
from tests.contracts.stores.homes import Home

BROKEN = AttemptNote(1, NOON, 5, "server_error", 503, "")


async def all_occupied(store: Store, limit: int = 100) -> list[Occupied]:
    """Page by page, as the sweep reads them."""
    found: list[Occupied] = []
    while page := await store.occupied(found[-1].queue_id if found else 0, limit):
        found += page
    return found


async def test_an_empty_queue_is_not_listed_as_occupied(store: Store, plain: Bench, fifo: Bench) -> None:
    assert await all_occupied(store) == []
    await plain.send("a", now=NOON + 1)
    await plain.send("b", now=NOON + 2)
    await fifo.send("c", now=NOON, group="g")
    assert await all_occupied(store) == [Occupied(plain.id, NOON + 1, None), Occupied(fifo.id, NOON, None)]
    await store.purge(plain.id, await store.last_seq(), 10)
    assert await all_occupied(store) == [Occupied(fifo.id, NOON, None)]


async def test_a_claimed_delivery_is_kept_too(store: Store, plain: Bench) -> None:
    await plain.send("a")
    await plain.claim_one()
    assert await all_occupied(store) == [Occupied(plain.id, NOON, None)]


async def test_a_dead_letter_brings_its_age_along(store: Store, plain: Bench) -> None:
    await plain.send("younger", now=NOON + 5)
    await plain.send("a dead letter", now=NOON)
    assert await all_occupied(store) == [Occupied(plain.id, NOON, None)]


async def test_the_oldest_is_looked_for_among_the_first(home: Home, store: Store, plain: Bench) -> None:
    await plain.send(*map(str, range(OLDEST_AMONG)), now=NOON + 5)
    await plain.send("a dead letter behind them", now=NOON)
    oldest_at = NOON if home.kind == "citus" else NOON + 5  # each shard looks at all that it has
    assert await all_occupied(store) == [Occupied(plain.id, oldest_at, None)]


async def test_memories_are_there_until_they_are_of_no_use(store: Store, fifo: Bench) -> None:
    for moment in (NOON + 9, NOON + 7):
        await fifo.send("a", group="g", deduplication_key=f"{moment}", deduplicate_until=moment)
    await store.purge(fifo.id, await store.last_seq(), 10)
    assert await all_occupied(store) == [Occupied(fifo.id, None, NOON + 7)]
    await store.sweep(fifo.id, 0, NOON + 7, 10)
    assert await all_occupied(store) == [Occupied(fifo.id, None, NOON + 9)]
    await store.sweep(fifo.id, 0, NOON + 9, 10)
    assert await all_occupied(store) == []


async def test_a_repeated_claim_is_remembered(store: Store, fifo: Bench) -> None:
    await fifo.send("a", group="g")
    await fifo.claim(attempt_id="x")
    assert await all_occupied(store) == [Occupied(fifo.id, NOON, NOON + FIVE_MINUTES_MS)]


async def test_a_failed_attempt_is_remembered(store: Store, plain: Bench) -> None:
    await plain.send("a")
    delivery = await plain.claim_one()
    await plain.settle(delivery, outcome=Outcome.RETRY, available_at=NOON, note=BROKEN)
    assert await all_occupied(store) == [Occupied(plain.id, NOON, NOON + NOTES_KEPT_MS)]


async def test_a_pace_is_remembered_as_long_as_a_sweep_leaves_it(store: Store, plain: Bench) -> None:
    await plain.send("a")
    await plain.claim(rate_max=10)
    await store.purge(plain.id, await store.last_seq(), 10)
    (kept,) = await all_occupied(store)
    assert kept.memories_end_at is not None
    await store.sweep(plain.id, 0, kept.memories_end_at - 1, 10)
    assert await all_occupied(store) == [kept]
    await store.sweep(plain.id, 0, kept.memories_end_at, 10)
    assert await all_occupied(store) == []


@pytest.mark.parametrize("next_us", [0, 1, 999, 1000, 1001, 1_700_000_000_123_456])
def test_a_pace_ends_when_a_sweep_takes_it(next_us: int) -> None:
    ends_at = Pace.ends_at(next_us)
    assert Pace.over_us(ends_at - 1) < next_us <= Pace.over_us(ends_at)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_many_are_read_page_by_page(store: Store, limit: int) -> None:
    expected = []
    for number in range(7):
        queue = Bench(store, await store.new_id(), ordered=True)
        key = {"deduplication_key": "k", "deduplicate_until": NOON + 7} if number % 3 else {}
        await queue.send("a", group="g", **key)
        if number % 2:
            await store.purge(queue.id, await store.last_seq(), 10)
        occupied = Occupied(queue.id, None if number % 2 else NOON, NOON + 7 if number % 3 else None)
        if occupied != (queue.id, None, None):
            expected.append(occupied)
    assert await all_occupied(store, limit) == expected
    assert len(expected) == 6
