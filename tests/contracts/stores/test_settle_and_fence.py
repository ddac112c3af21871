import asyncio

import pytest

from redrive.engine.ports import Claim, Settlement
from redrive.model.delivery import Outcome
from tests.contracts.stores.bench import DONE, LEASE_MS, NOON, Bench, bodies, fresh_token, refused

LAPSE = NOON + LEASE_MS  # when a claim of noon has run out


@pytest.fixture(params=["plain", "fifo"])
def queue(request: pytest.FixtureRequest, plain: Bench, fifo: Bench) -> Bench:
    return plain if request.param == "plain" else fifo


@pytest.mark.parametrize("outcome", [Outcome.DELIVERED, Outcome.EXPIRED, Outcome.DROPPED])
async def test_a_settled_delivery_is_removed(queue: Bench, outcome: Outcome) -> None:
    await queue.send("a", "b", group="g")
    a, b = await queue.claim()
    assert await queue.settle(a, LAPSE - 1, outcome) == DONE
    assert await queue.settle(a, LAPSE - 1, outcome) == refused("gone")
    assert await queue.peek() == [b]


async def test_a_superseded_claim_is_refused(queue: Bench) -> None:
    await queue.send("a", group="g")
    late = await queue.claim_one()
    latest = await queue.claim_one(LAPSE)
    for outcome in (Outcome.DELIVERED, Outcome.RETRY):
        assert await queue.settle(late, LAPSE, outcome) == refused("superseded")
    assert await queue.peek() == [latest]
    assert await queue.settle(latest, LAPSE) == DONE


async def test_a_claim_in_order_that_ran_out_is_refused(fifo: Bench) -> None:
    await fifo.send("a", group="g")
    claim = await fifo.claim_one()
    for outcome in (Outcome.DELIVERED, Outcome.RETRY):
        assert await fifo.settle(claim, LAPSE, outcome) == refused("lapsed")
    assert await fifo.peek() == [claim]


async def test_a_claim_without_order_counts_until_another_claims(plain: Bench) -> None:
    await plain.send("a", "b")
    a, b = await plain.claim()
    assert await plain.settle(a, LAPSE + 1) == DONE
    assert await plain.settle(b, LAPSE + 1, Outcome.RETRY, available_at=LAPSE + 2) == DONE
    assert bodies(await plain.claim(LAPSE + 2)) == ["b"]


async def test_an_unclaimed_delivery_cannot_be_settled(queue: Bench) -> None:
    (seq,) = await queue.send("a", group="g")
    settlement = Settlement(seq, fresh_token())
    assert await queue.store.settle(queue.id, [settlement], NOON, ordered=queue.ordered) == [
        refused("superseded")
    ]
    assert bodies(await queue.peek()) == ["a"]


async def test_a_delivery_is_settled_in_its_own_queue_alone(queue: Bench, dead_letters: Bench) -> None:
    await queue.send("a", group="g")
    claim = await queue.claim_one()
    assert await dead_letters.settle(claim) == refused("gone")
    assert await queue.peek() == [claim]


async def test_a_retry_waits_for_its_time_and_keeps_its_count(queue: Bench) -> None:
    await queue.send("a", group="g")
    claim = await queue.claim_one()
    assert await queue.settle(claim, NOON + 10, Outcome.RETRY, available_at=NOON + 500) == DONE
    assert (await queue.request(NOON + 499)).next_at == NOON + 500
    again = await queue.claim_one(NOON + 500)
    assert (again.body, again.attempts, again.first_claimed_at) == ("a", 2, NOON)


async def test_after_a_retry_the_old_claim_counts_for_nothing(queue: Bench) -> None:
    await queue.send("a", group="g")
    claim = await queue.claim_one()
    await queue.settle(claim, NOON, Outcome.RETRY, available_at=NOON + 500)
    assert await queue.settle(claim) == refused("superseded")
    assert await queue.extend(claim, NOON + 999) == refused("superseded")
    assert (await queue.peek())[0].available_at == NOON + 500


async def test_each_of_many_is_answered_for_itself(queue: Bench) -> None:
    seqs = await queue.send("a", "b", "c", "d", group="g")
    token = (await queue.claim())[0].token or 0
    settlements = [
        Settlement(seqs[3], token),
        Settlement(seqs[1], token + 1),
        Settlement(seqs[0], token),
        Settlement(seqs[-1] + 1_000_000_000, token),
        Settlement(seqs[2], token, Outcome.RETRY, NOON + 5),
    ]
    answers = await queue.store.settle(queue.id, settlements, NOON, ordered=queue.ordered)
    assert answers == [DONE, refused("superseded"), DONE, refused("gone"), DONE]
    assert bodies(await queue.peek()) == ["b", "c"]


async def test_settling_and_extending_nothing_does_nothing(queue: Bench) -> None:
    assert await queue.store.settle(queue.id, [], NOON, ordered=queue.ordered) == []
    assert await queue.store.extend(queue.id, [], NOON, ordered=queue.ordered) == []


async def test_settlements_made_together_are_answered_each_for_itself(queue: Bench) -> None:
    await queue.send(*(str(number) for number in range(20)), group="g")
    claims = await queue.claim(limit=20)
    answers = await asyncio.gather(*(queue.settle(claim) for claim in [*claims[:10], *claims[:10]]))
    assert sorted(answers) == [*[refused("gone")] * 10, *[DONE] * 10]
    assert await queue.peek() == claims[10:]


@pytest.mark.parametrize("group", [None, "g"])
async def test_a_claim_of_a_queue_without_order_may_run_out_unless_the_lease_is_strict(
    plain: Bench, group: str | None
) -> None:
    await plain.send("a", group=group)
    one = await plain.claim_one(lease_ms=10)
    late, claims = NOON + 10, [Claim(one.seq, one.token or 0, NOON + 50)]
    settlements = [Settlement(one.seq, one.token or 0)]
    strict = {"ordered": False, "strict_lease": True}
    assert await plain.store.settle(plain.id, settlements, late, **strict) == [refused("lapsed")]
    assert await plain.store.extend(plain.id, claims, late, **strict) == [refused("lapsed")]
    assert await plain.store.extend(plain.id, claims, late, ordered=False) == [DONE]
    assert await plain.store.settle(plain.id, settlements, late, **strict) == [DONE]
