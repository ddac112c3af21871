import asyncio

import pytest

from redrive.engine.ports import ClaimResult
from redrive.model.delivery import Limits, Outcome
from tests.contracts.stores.bench import DONE, LEASE_MS, NOON, Bench, bodies, refused

LAPSE = NOON + LEASE_MS


async def test_as_many_of_a_group_as_possible_then_of_the_next(fifo: Bench) -> None:
    await fifo.send("a1", group="a")
    await fifo.send("b1", "b2", group="b")
    await fifo.send("a2", "a3", group="a")
    assert bodies(await fifo.claim(limit=4)) == ["a1", "a2", "a3", "b1"]


async def test_a_message_in_flight_blocks_later_messages_of_its_group_alone(fifo: Bench) -> None:
    await fifo.send("a1", "a2", group="a")
    await fifo.send("b1", group="b")
    await fifo.claim_one()
    await fifo.send("a3", group="a")
    assert bodies(await fifo.claim()) == ["b1"]
    assert await fifo.request() == ClaimResult(next_at=LAPSE)


async def test_the_next_follows_when_the_first_is_settled(fifo: Bench) -> None:
    await fifo.send("a1", "a2", "a3", group="a")
    for body in ("a1", "a2", "a3"):
        claim = await fifo.claim_one()
        assert claim.body == body
        assert await fifo.claim() == []
        await fifo.settle(claim)
    assert await fifo.claim() == []


async def test_a_group_claimed_together_is_free_when_all_are_settled(fifo: Bench) -> None:
    await fifo.send("a1", "a2", "a3", "a4", group="a")
    first, second, third = await fifo.claim(limit=3)
    for claim in (second, first):
        await fifo.settle(claim)
        assert await fifo.claim() == []
    await fifo.settle(third)
    assert bodies(await fifo.claim()) == ["a4"]


async def test_a_group_comes_again_in_its_order_when_the_claim_lapses(fifo: Bench) -> None:
    await fifo.send("a1", "a2", "a3", group="a")
    await fifo.claim(limit=2)
    again = await fifo.claim(LAPSE)
    assert bodies(again) == ["a1", "a2", "a3"]
    assert [delivery.attempts for delivery in again] == [2, 2, 1]


async def test_an_extended_follower_blocks_itself_and_later_ones_alone(fifo: Bench) -> None:
    await fifo.send("a1", "a2", "a3", "a4", "a5", group="a")
    claims = await fifo.claim(limit=4)
    assert await fifo.extend(claims[2], LAPSE + 500) == DONE
    assert bodies(await fifo.claim(LAPSE)) == ["a1", "a2"]
    assert bodies(await fifo.claim(LAPSE + LEASE_MS)) == ["a1", "a2", "a3", "a4", "a5"]


async def test_an_extended_follower_blocks_its_group_after_those_before_are_settled(fifo: Bench) -> None:
    await fifo.send("a1", "a2", "a3", group="a")
    a1, a2 = await fifo.claim(limit=2)
    await fifo.extend(a2, LAPSE + 500)
    await fifo.settle(a1)
    assert await fifo.request(LAPSE) == ClaimResult(next_at=LAPSE + 500)
    assert await fifo.settle(a2, LAPSE + 499) == DONE
    assert bodies(await fifo.claim(LAPSE + 499)) == ["a3"]


async def test_a_first_one_given_back_comes_before_its_claimed_followers(fifo: Bench) -> None:
    await fifo.send("a1", "a2", "a3", group="a")
    a1, _ = await fifo.claim(limit=2)
    await fifo.extend(a1, NOON)
    assert bodies(await fifo.claim()) == ["a1"]


async def test_a_claim_renewed_in_part_leaves_the_other_part_to_its_own_token(fifo: Bench) -> None:
    await fifo.send("a1", "a2", group="a")
    a1, a2 = await fifo.claim()
    await fifo.extend(a2, LAPSE + LEASE_MS)
    (again,) = await fifo.claim(LAPSE)
    assert await fifo.settle(a1, LAPSE) == refused("superseded")
    assert await fifo.settle(a2, LAPSE) == DONE
    assert await fifo.settle(again, LAPSE) == DONE


async def test_a_delayed_first_one_holds_its_group(fifo: Bench) -> None:
    await fifo.send("a1", group="a", delay_ms=1000)
    await fifo.send("a2", group="a")
    assert await fifo.request() == ClaimResult(next_at=NOON + 1000)
    assert bodies(await fifo.claim(NOON + 1000)) == ["a1", "a2"]


async def test_a_delayed_follower_ends_the_claim_of_its_group(fifo: Bench) -> None:
    await fifo.send("a1", group="a")
    await fifo.send("a2", group="a", delay_ms=1000)
    await fifo.send("a3", group="a")
    (a1,) = await fifo.claim()
    await fifo.settle(a1)
    assert await fifo.request() == ClaimResult(next_at=NOON + 1000)
    assert bodies(await fifo.claim(NOON + 1000)) == ["a2", "a3"]


async def test_a_retried_one_holds_its_group_until_its_time(fifo: Bench) -> None:
    await fifo.send("a1", "a2", group="a")
    a1 = await fifo.claim_one()
    await fifo.settle(a1, NOON, Outcome.RETRY, available_at=NOON + 700)
    assert await fifo.request(NOON + 699) == ClaimResult(next_at=NOON + 700)
    assert bodies(await fifo.claim(NOON + 700)) == ["a1", "a2"]


async def test_a_dropped_first_one_frees_its_group(fifo: Bench) -> None:
    await fifo.send("a1", "a2", group="a")
    await fifo.settle(await fifo.claim_one(), NOON, Outcome.DROPPED)
    assert bodies(await fifo.claim()) == ["a2"]


async def test_an_expired_first_one_gives_way(fifo: Bench) -> None:
    await fifo.send("a1", group="a")
    await fifo.send("a2", "a3", now=NOON + 1, group="a")
    await fifo.send("b1", now=NOON + 1, group="b")
    claimed = await fifo.request(NOON + 1000, limits=Limits(retention_ms=1000))
    assert claimed.expired == 1
    assert sorted(bodies(claimed.deliveries)) == ["a2", "a3", "b1"]
    assert await fifo.claim(NOON + 1000) == []


async def test_many_groups_take_turns_by_age(fifo: Bench) -> None:
    for number in range(30):
        await fifo.send(f"{number}", now=NOON + number, group=f"g{number}")
    assert bodies(await fifo.claim(NOON + 50)) == [str(number) for number in range(10)]
    assert bodies(await fifo.claim(NOON + 50)) == [str(number) for number in range(10, 20)]


async def test_claims_made_together_share_no_group(fifo: Bench) -> None:
    for group in ("a", "b", "c"):
        await fifo.send(f"{group}1", f"{group}2", f"{group}3", group=group)
    answers = await asyncio.gather(*(fifo.claim(limit=2) for _ in range(5)))
    assert sorted(bodies(answer) for answer in answers) == [[], [], ["a1", "a2"], ["b1", "b2"], ["c1", "c2"]]
    assert len({answer[0].token for answer in answers if answer}) == 3


async def test_claims_of_several_sizes_made_together_get_groups_from_their_first_on(fifo: Bench) -> None:
    sent = [f"{group}{number}" for group in "abcdef" for number in range(4)]
    for body in sent:
        await fifo.send(body, group=body[0])
    answers = await asyncio.gather(*(fifo.claim(limit=limit) for limit in (1, 6, 2, 1)))
    groups = [group for answer in answers for group in sorted({body[0] for body in bodies(answer)})]
    assert len(groups) == len(set(groups))
    for group in groups:
        came = [body for answer in answers for body in bodies(answer) if body[0] == group]
        assert came == [body for body in sent if body[0] == group][: len(came)]


@pytest.mark.parametrize("limit", [1, 3, 7])
async def test_a_long_group_comes_out_in_order(fifo: Bench, limit: int) -> None:
    sent = [str(number) for number in range(40)]
    for body in sent:
        await fifo.send(body, group="g")
    came: list[str] = []
    while claims := await fifo.claim(limit=limit):
        came += bodies(claims)
        for claim in claims:
            await fifo.settle(claim)
    assert came == sent
