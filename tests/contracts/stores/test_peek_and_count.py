from redrive.engine.ports import Counts
from redrive.model.delivery import Outcome
from tests.contracts.stores.bench import LEASE_MS, NOON, Bench, bodies


async def test_peeking_shows_all_in_order_of_arrival_and_touches_nothing(plain: Bench) -> None:
    await plain.send("delayed", delay_ms=5)
    await plain.send("a", "b", group="g")
    await plain.claim_one()
    before = await plain.peek()
    assert bodies(before) == ["delayed", "a", "b"]
    assert await plain.peek() == before
    assert [delivery.attempts for delivery in before] == [0, 1, 0]


async def test_peeking_goes_page_by_page(plain: Bench) -> None:
    seqs = await plain.send("a", "b", "c")
    assert bodies(await plain.peek(limit=2)) == ["a", "b"]
    assert bodies(await plain.peek(limit=2, after_seq=seqs[1])) == ["c"]
    assert await plain.peek(limit=2, after_seq=seqs[2]) == []


async def test_the_oldest_is_the_first_that_arrived(plain: Bench) -> None:
    assert await plain.store.oldest(plain.id) is None
    await plain.send("a", delay_ms=5)
    await plain.send("b")
    oldest = await plain.store.oldest(plain.id)
    assert oldest is not None
    assert oldest.body == "a"


async def test_a_message_is_counted_once_wherever_it_stands(plain: Bench) -> None:
    await plain.send("a", "b", "c")
    await plain.send("delayed", delay_ms=1000)
    assert await plain.count() == Counts(available=3, claimed=0, delayed=1)
    await plain.claim(limit=2)
    assert await plain.count() == Counts(available=1, claimed=2, delayed=1)
    assert await plain.count(NOON + 1000) == Counts(available=2, claimed=2, delayed=0)
    assert await plain.count(NOON + LEASE_MS) == Counts(available=4, claimed=0, delayed=0)


async def test_a_retry_to_come_is_delayed_and_one_given_back_available(plain: Bench) -> None:
    await plain.send("a", "b")
    a, b = await plain.claim()
    await plain.settle(a, NOON, Outcome.RETRY, available_at=NOON + 50)
    await plain.extend(b, NOON)
    assert await plain.count() == Counts(available=1, claimed=0, delayed=1)


async def test_fair_groups_are_counted_whole(plain: Bench) -> None:
    await plain.send("a", "b", "c", group="g")
    await plain.send("delayed", group="g", delay_ms=5)
    assert await plain.count() == Counts(available=3, claimed=0, delayed=1)
    await plain.claim(limit=2)
    assert await plain.count() == Counts(available=1, claimed=2, delayed=1)


async def test_ordered_groups_are_counted_whole(fifo: Bench) -> None:
    await fifo.send("a", "b", "c", group="g")
    await fifo.send("delayed", group="g", delay_ms=5)
    await fifo.send("h", group="h", delay_ms=10)
    assert await fifo.count() == Counts(available=3, claimed=0, delayed=2)
    claims = await fifo.claim(limit=2)
    assert await fifo.count() == Counts(available=1, claimed=2, delayed=2)
    await fifo.settle(claims[0])
    assert await fifo.count(NOON + 5) == Counts(available=2, claimed=1, delayed=1)
    assert await fifo.count(NOON + LEASE_MS) == Counts(available=4, claimed=0, delayed=0)


async def test_other_queues_are_not_counted(plain: Bench, fifo: Bench) -> None:
    await fifo.send("a", group="g")
    assert await plain.count() == Counts(0, 0, 0)
    assert await plain.peek() == []
