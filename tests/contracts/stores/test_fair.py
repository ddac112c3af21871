from redrive.engine.ports import ClaimResult
from redrive.model.delivery import Limits, Outcome
from tests.contracts.stores.bench import LEASE_MS, NOON, Bench, bodies

LAPSE = NOON + LEASE_MS


async def send_long_group(queue: Bench, number: int, group: str = "long") -> None:
    await queue.send(*(f"{group} {one}" for one in range(number)), group=group)


async def test_a_long_group_does_not_hold_up_one_that_comes_later(plain: Bench) -> None:
    await send_long_group(plain, 1000)
    await plain.send("b1", "b2", now=NOON + 1, group="b")
    claimed = [await plain.claim_one(NOON + 2 + turn) for turn in range(4)]
    assert bodies(claimed) == ["long 0", "b1", "long 1", "b2"]


async def test_a_long_group_does_not_hold_up_messages_without_a_group(plain: Bench) -> None:
    await send_long_group(plain, 1000)
    await plain.send("alone", now=NOON + 1)
    assert bodies([await plain.claim_one(NOON + 2 + turn) for turn in range(2)]) == ["long 0", "alone"]


async def test_groups_take_turns_in_one_claim(plain: Bench) -> None:
    for group in ("a", "b", "c"):
        await plain.send(*(f"{group}{number}" for number in range(5)), group=group)
    claimed = bodies(await plain.claim(limit=9))
    assert [sorted(claimed[turn : turn + 3]) for turn in (0, 3, 6)] == [
        ["a0", "b0", "c0"],
        ["a1", "b1", "c1"],
        ["a2", "b2", "c2"],
    ]


async def test_a_group_in_flight_does_not_block_itself(plain: Bench) -> None:
    await send_long_group(plain, 25)
    claims = [*await plain.claim(), *await plain.claim(), *await plain.claim()]
    assert bodies(claims) == [f"long {number}" for number in range(25)]
    assert await plain.request() == ClaimResult(next_at=LAPSE)


async def test_a_message_of_a_group_in_flight_can_be_claimed(plain: Bench) -> None:
    await plain.send("a1", group="a")
    await plain.claim_one()
    await plain.send("a2", group="a")
    assert bodies(await plain.claim()) == ["a2"]


async def test_a_delayed_member_does_not_block_the_others(plain: Bench) -> None:
    await plain.send("delayed", group="a", delay_ms=1000)
    await plain.send("a1", "a2", group="a")
    await plain.send("delayed too", group="a", delay_ms=900)
    await plain.send("a3", group="a")
    assert bodies(await plain.claim()) == ["a1", "a2", "a3"]
    assert bodies(await plain.claim(NOON + 1000)) == ["delayed too", "delayed"]


async def test_a_retried_member_does_not_block_the_others(plain: Bench) -> None:
    await plain.send("a1", "a2", "a3", group="a")
    await plain.settle(await plain.claim_one(), NOON, Outcome.RETRY, available_at=NOON + 500)
    assert bodies(await plain.claim()) == ["a2", "a3"]
    assert bodies(await plain.claim(NOON + 500)) == ["a1"]


async def test_lapsed_claims_come_again(plain: Bench) -> None:
    await plain.send("a1", "a2", "a3", group="a")
    await plain.claim(limit=2)
    assert sorted(bodies(await plain.claim(LAPSE))) == ["a1", "a2", "a3"]


async def test_expired_members_give_way(plain: Bench) -> None:
    await send_long_group(plain, 30, "a")
    await plain.send("a young", "a younger", now=NOON + 1, group="a")
    await plain.send("b", now=NOON + 1, group="b")
    claimed = await plain.request(NOON + 1000, limits=Limits(retention_ms=1000))
    assert (sorted(bodies(claimed.deliveries)), claimed.expired) == (["a young", "a younger", "b"], 30)


async def test_after_everything_was_settled_nothing_is_left_behind(plain: Bench) -> None:
    for group in ("a", "b", None, "c"):
        await plain.send(*(f"{group}{number}" for number in range(13)), group=group)
    came: list[str] = []
    while claims := await plain.claim(limit=4):
        came += bodies(claims)
        for claim in claims[::2]:
            await plain.settle(claim)
    assert len(came) == len(set(came)) == 52
    again = await plain.claim(LAPSE, 100)
    assert len(again) == 26
    for claim in again:
        await plain.settle(claim, LAPSE)
    assert await plain.peek() == []


async def test_the_next_message_of_a_group_is_due_by_its_senders_clock(plain: Bench) -> None:
    await plain.send("a1", group="a")
    await plain.send("a2", now=NOON + 5000, group="a")  # at a node whose clock is ahead
    assert bodies(await plain.claim()) == ["a1"]
    assert (await plain.request(NOON + 4999)).next_at == NOON + 5000
    assert bodies(await plain.claim(NOON + 5000)) == ["a2"]
