import asyncio

from redrive.engine.ports import ClaimResult
from tests.contracts.stores.bench import DONE, LEASE_MS, NOON, Bench, bodies, refused

LAPSE = NOON + LEASE_MS


async def test_a_claim_holds_as_long_as_it_was_extended(queue: Bench) -> None:
    await queue.send("a", group="g")
    claim = await queue.claim_one()
    assert await queue.extend(claim, LAPSE + 500, LAPSE - 1) == DONE
    assert await queue.request(LAPSE + 499) == ClaimResult(next_at=LAPSE + 500)
    assert await queue.settle(claim, LAPSE + 499) == DONE


async def test_a_claim_may_be_shortened(queue: Bench) -> None:
    await queue.send("a", group="g")
    claim = await queue.claim_one()
    assert await queue.extend(claim, NOON + 10) == DONE
    assert bodies(await queue.claim(NOON + 10)) == ["a"]


async def test_a_claim_given_back_is_free_at_once_and_counts(queue: Bench) -> None:
    await queue.send("a", group="g")
    claim = await queue.claim_one()
    assert await queue.extend(claim, NOON + 5, NOON + 5) == DONE
    again = await queue.claim_one(NOON + 5)
    assert (again.body, again.attempts) == ("a", 2)
    assert await queue.extend(claim, LAPSE, NOON + 5) == refused("superseded")


async def test_a_delivery_given_back_comes_before_younger_ones_and_an_ordered_group_behind(
    queue: Bench,
) -> None:
    await queue.send("a", group="g")
    claim = await queue.claim_one()
    await queue.send("b", now=NOON + 1, group="h")
    assert await queue.extend(claim, NOON + 5, NOON + 5) == DONE
    expected = ["b", "a"] if queue.ordered else ["a", "b"]  # as recorded of both
    assert bodies(await queue.claim(NOON + 5)) == expected


async def test_deliveries_given_back_together_keep_their_order(plain: Bench) -> None:
    await plain.send("a")
    await plain.send("b", now=NOON + 1)
    await plain.send("c", now=NOON + 2)
    first, second = await plain.claim(NOON + 3, limit=2)
    for claim in (second, first):
        assert await plain.extend(claim, NOON + 5, NOON + 5) == DONE
    assert bodies(await plain.claim(NOON + 5)) == ["a", "b", "c"]


async def test_a_claim_extended_by_two_at_once_is_extended_for_both(queue: Bench) -> None:
    await queue.send("a", group="g")
    claim = await queue.claim_one()
    calls = [queue.extend(claim, NOON + 7), queue.extend(claim, NOON + 7)]
    assert await asyncio.gather(*calls) == [DONE, DONE]
    assert (await queue.peek())[0].available_at == NOON + 7


async def test_extending_is_not_remembered(queue: Bench) -> None:
    await queue.send("a", group="g")
    await queue.extend(await queue.claim_one(), LAPSE + 500)
    again = await queue.claim_one(LAPSE + 500)
    assert again.available_at == LAPSE + 500 + LEASE_MS


async def test_a_claim_in_order_that_ran_out_cannot_be_extended(fifo: Bench) -> None:
    await fifo.send("a", group="g")
    claim = await fifo.claim_one()
    assert await fifo.extend(claim, LAPSE + 500, LAPSE) == refused("lapsed")
    assert await fifo.extend(claim, LAPSE, LAPSE) == refused("lapsed")
    assert bodies(await fifo.claim(LAPSE)) == ["a"]


async def test_a_claim_without_order_is_extended_until_another_claims(plain: Bench) -> None:
    await plain.send("a")
    claim = await plain.claim_one()
    assert await plain.extend(claim, LAPSE + 500, LAPSE + 1) == DONE
    assert await plain.claim(LAPSE + 499) == []
    latest = await plain.claim_one(LAPSE + 500)
    assert await plain.extend(claim, LAPSE + 999, LAPSE + 500) == refused("superseded")
    assert await plain.peek() == [latest]


async def test_a_settled_delivery_cannot_be_extended(queue: Bench) -> None:
    await queue.send("a", group="g")
    claim = await queue.claim_one()
    await queue.settle(claim)
    assert await queue.extend(claim, LAPSE + 500) == refused("gone")


async def test_each_of_many_is_answered_for_itself(queue: Bench) -> None:
    await queue.send("a", "b", "c", group="g")
    a, b, c = await queue.claim()
    token = a.token or 0
    claims = [(c.seq, token, NOON + 7), (b.seq, token + 1, NOON + 7), (a.seq, token, NOON + 9)]
    answers = await queue.store.extend(queue.id, claims, NOON, ordered=queue.ordered)
    assert answers == [DONE, refused("superseded"), DONE]
    assert [delivery.available_at - NOON for delivery in await queue.peek()] == [9, LEASE_MS, 7]
