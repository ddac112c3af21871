from redrive.engine.ports import Counts
from redrive.model.delivery import Outcome
from tests.contracts.stores.bench import LEASE_MS, NOON, Bench, bodies, fresh_id


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


async def test_a_message_is_located_by_its_id_and_by_what_its_headers_say(plain: Bench) -> None:
    first = plain.new_delivery("a")
    first.headers = b'{"id":"6f1c"}'
    second, third = plain.new_delivery("b"), plain.new_delivery('"6f1c" in the body is not looked at')
    await plain.store.enqueue([first, second, third])
    locate = plain.store.locate
    assert bodies(await locate(plain.id, second.message_id, b'"6f1c"', 10)) == ["a", "b"]
    assert bodies(await locate(plain.id, fresh_id(), b'"6f1c"', 10)) == ["a"]
    assert bodies(await locate(plain.id, second.message_id, b"else", 10)) == ["b"]
    assert await locate(plain.id + 1, second.message_id, b'"6f1c"', 10) == []


async def test_a_message_is_looked_for_among_those_that_came_first(plain: Bench) -> None:
    new_deliveries = [plain.new_delivery(body) for body in "abc"]
    await plain.store.enqueue(new_deliveries)
    assert bodies(await plain.store.locate(plain.id, new_deliveries[1].message_id, b"-", 2)) == ["b"]
    assert await plain.store.locate(plain.id, new_deliveries[2].message_id, b"-", 2) == []


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
