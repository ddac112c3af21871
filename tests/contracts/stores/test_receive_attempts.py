from tests.contracts.stores.bench import FIVE_MINUTES_MS, LEASE_MS, NOON, Bench, bodies

SOON = NOON + 10


async def test_the_same_attempt_gets_the_same_claim_again(fifo: Bench) -> None:
    await fifo.send("a", "b", group="g")
    await fifo.send("c", group="h")
    first = await fifo.claim(limit=2, attempt_id="t")
    again = await fifo.claim(SOON, limit=2, attempt_id="t")
    assert bodies(again) == ["a", "b"]
    assert [delivery.token for delivery in again] == [delivery.token for delivery in first]
    assert [delivery.attempts for delivery in again] == [1, 1]


async def test_a_repeated_attempt_begins_its_lease_anew(fifo: Bench) -> None:
    await fifo.send("a", group="g")
    await fifo.claim(attempt_id="t")
    (again,) = await fifo.claim(SOON, attempt_id="t")
    assert again.available_at == SOON + LEASE_MS
    assert await fifo.peek() == [again]
    (third,) = await fifo.claim(SOON + 5, attempt_id="t")
    assert third.available_at == SOON + 5 + LEASE_MS


async def test_another_attempt_and_another_queue_get_nothing(fifo: Bench, fifo_dead_letters: Bench) -> None:
    await fifo.send("a", group="g")
    await fifo.claim(attempt_id="t")
    assert await fifo.claim(SOON, attempt_id="u") == []
    assert await fifo.claim(SOON) == []
    assert await fifo_dead_letters.claim(SOON, attempt_id="t") == []


async def test_an_attempt_that_got_nothing_may_get_something_later(fifo: Bench) -> None:
    assert await fifo.claim(attempt_id="t") == []
    await fifo.send("a", group="g")
    assert bodies(await fifo.claim(SOON, attempt_id="t")) == ["a"]


async def test_an_attempt_is_void_when_one_of_its_deliveries_was_settled(fifo: Bench) -> None:
    await fifo.send("a", "b", group="g")
    await fifo.send("c", group="h")
    first, _ = await fifo.claim(limit=2, attempt_id="t")
    await fifo.settle(first)
    assert bodies(await fifo.claim(SOON, attempt_id="t")) == ["c"]


async def test_an_attempt_is_void_when_one_of_its_deliveries_was_extended(fifo: Bench) -> None:
    await fifo.send("a", "b", group="g")
    first, _ = await fifo.claim(attempt_id="t")
    await fifo.extend(first, NOON + LEASE_MS + 1)
    assert await fifo.claim(SOON, attempt_id="t") == []


async def test_an_attempt_is_void_when_its_claim_ran_out(fifo: Bench) -> None:
    await fifo.send("a", group="g")
    first = await fifo.claim_one(attempt_id="t")
    (again,) = await fifo.claim(NOON + LEASE_MS, attempt_id="t")
    assert (again.token != first.token, again.attempts) == (True, 2)


async def test_an_attempt_is_remembered_for_five_minutes(fifo: Bench) -> None:
    await fifo.send("a", group="g")
    await fifo.claim(attempt_id="t", lease_ms=2 * FIVE_MINUTES_MS)
    assert bodies(await fifo.claim(NOON + FIVE_MINUTES_MS - 1, attempt_id="t", lease_ms=1)) == ["a"]


async def test_an_attempt_is_forgotten_after_five_minutes(fifo: Bench) -> None:
    await fifo.send("a", group="g")
    await fifo.claim(attempt_id="t", lease_ms=2 * FIVE_MINUTES_MS)
    assert await fifo.claim(NOON + FIVE_MINUTES_MS, attempt_id="t") == []


async def test_an_attempt_id_may_be_used_without_order(plain: Bench) -> None:
    await plain.send("a", "b")
    first = await plain.claim(limit=1, attempt_id="t")
    again = await plain.claim(SOON, limit=1, attempt_id="t")
    assert [(one.body, one.token) for one in again] == [(one.body, one.token) for one in first]
