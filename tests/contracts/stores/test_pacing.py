from redrive.engine.ports import ClaimResult
from redrive.model.delivery import Outcome
from tests.contracts.stores.bench import LEASE_MS, NOON, Bench, bodies
from tests.contracts.stores.homes import Home


async def test_deliveries_come_one_at_a_time_and_at_their_pace(plain: Bench) -> None:
    await plain.send("a", "b", "c")
    assert bodies(await plain.claim(rate_max=2)) == ["a"]
    assert await plain.request(rate_max=2) == ClaimResult(next_at=NOON + 500)
    assert await plain.request(NOON + 499, rate_max=2) == ClaimResult(next_at=NOON + 500)
    assert bodies(await plain.claim(NOON + 500, rate_max=2)) == ["b"]
    assert bodies(await plain.claim(NOON + 1000, rate_max=2)) == ["c"]


async def test_a_pause_is_not_made_up_for(plain: Bench) -> None:
    await plain.send("a", "b", "c")
    await plain.claim(rate_max=2, lease_ms=120_000)
    assert bodies(await plain.claim(NOON + 60_000, rate_max=2)) == ["b"]
    assert await plain.request(NOON + 60_000, rate_max=2) == ClaimResult(next_at=NOON + 60_500)


async def test_an_empty_claim_costs_nothing(plain: Bench) -> None:
    assert await plain.request(rate_max=1) == ClaimResult()
    await plain.send("a")
    assert bodies(await plain.claim(rate_max=1)) == ["a"]


async def test_a_pace_that_does_not_fit_in_milliseconds_is_kept_on_average(plain: Bench) -> None:
    await plain.send(*(str(number) for number in range(700)))
    now, came = NOON, 0
    while now < NOON + 1000:
        claimed = await plain.request(now, rate_max=300)
        came += len(claimed.deliveries)
        now = claimed.next_at or now
    assert 290 <= came <= 301  # the first at once, then 300 in the second


async def test_queues_have_each_their_own_pace(plain: Bench, dead_letters: Bench) -> None:
    await plain.send("a", "b")
    await dead_letters.send("c")
    await plain.claim(rate_max=1)
    assert bodies(await dead_letters.claim(rate_max=1)) == ["c"]


async def test_a_pace_holds_over_all_nodes(shared_home: Home) -> None:
    one, two = await shared_home.open("one"), await shared_home.open("two")
    queue_id = await one.new_id()
    await Bench(one, queue_id).send("a", "b")
    assert bodies(await Bench(one, queue_id).claim(rate_max=2)) == ["a"]
    assert await Bench(two, queue_id).request(rate_max=2) == ClaimResult(next_at=NOON + 500)


# ---- attempts that nobody ended ----------------------------------------------------------------------------


async def test_a_resumed_claim_is_the_same_attempt(plain: Bench) -> None:
    await plain.send("a")
    first = await plain.claim_one(resumes=True)
    again = await plain.claim_one(NOON + LEASE_MS, resumes=True)
    assert (first.attempts, again.attempts) == (1, 1)
    assert again.token != first.token
    assert await plain.peek() == [again]


async def test_after_a_retry_the_next_attempt_counts(plain: Bench) -> None:
    await plain.send("a")
    first = await plain.claim_one(resumes=True)
    await plain.settle(first, NOON, Outcome.RETRY, available_at=NOON)
    assert (await plain.claim_one(resumes=True)).attempts == 2


async def test_without_resuming_every_claim_counts(fifo: Bench) -> None:
    await fifo.send("a", group="g")
    await fifo.claim_one()
    assert (await fifo.claim_one(NOON + LEASE_MS)).attempts == 2
    assert (await fifo.claim_one(NOON + 2 * LEASE_MS, resumes=True)).attempts == 2
