import asyncio
from pathlib import Path

import apsw
import pytest

from redrive.engine.ports import ClaimRequest, ClaimResult
from redrive.model.delivery import Limits
from redrive.model.errors import StoreUnavailable
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.bench import LEASE_MS, NOON, Bench, bodies

HOUR = Limits(retention_ms=3_600_000)
HOUR_MS = 3_600_000


async def test_an_empty_queue_has_nothing_and_expects_nothing(plain: Bench) -> None:
    assert await plain.request() == ClaimResult()


async def test_the_oldest_come_first(plain: Bench) -> None:
    await plain.send("a", "b")
    await plain.send("c")
    assert bodies(await plain.claim(limit=2)) == ["a", "b"]
    assert bodies(await plain.claim(limit=2)) == ["c"]
    assert await plain.claim() == []


async def test_queues_are_kept_apart(plain: Bench, fifo: Bench) -> None:
    await plain.send("a")
    await fifo.send("b", group="g")
    assert bodies(await fifo.claim()) == ["b"]
    assert bodies(await plain.claim()) == ["a"]


async def test_a_delivery_says_who_claimed_it_and_how_often(plain: Bench) -> None:
    (seq,) = await plain.send("a")
    request = ClaimRequest(plain.id, ordered=False, limit=10, now=NOON, lease_ms=LEASE_MS, token=2**63 - 1)
    (first,) = (await plain.store.claim(request)).deliveries
    assert (first.seq, first.token, first.attempts) == (seq, 2**63 - 1, 1)
    assert (first.available_at, first.first_claimed_at) == (NOON + LEASE_MS, NOON)
    assert await plain.peek() == [first]
    second = await plain.claim_one(NOON + LEASE_MS)
    assert second.token != first.token
    assert (second.attempts, second.first_claimed_at, second.sent_at) == (2, NOON, NOON)


async def test_a_claim_holds_until_its_end_and_not_a_moment_longer(plain: Bench) -> None:
    await plain.send("a")
    await plain.claim_one(lease_ms=1000)
    assert await plain.request(NOON + 999) == ClaimResult(next_at=NOON + 1000)
    assert bodies(await plain.claim(NOON + 1000)) == ["a"]


async def test_a_delayed_delivery_comes_at_its_time(plain: Bench) -> None:
    await plain.send("late", delay_ms=1000)
    await plain.send("later", delay_ms=2000)
    assert await plain.request(NOON + 999) == ClaimResult(next_at=NOON + 1000)
    assert bodies(await plain.claim(NOON + 1000)) == ["late"]


async def test_the_delivery_due_first_is_claimed_first_whenever_it_arrived(plain: Bench) -> None:
    await plain.send("delayed", delay_ms=1000)
    await plain.send("at once")
    await plain.send("delayed less", delay_ms=500)
    assert bodies(await plain.claim(NOON + 5000)) == ["at once", "delayed less", "delayed"]


async def test_deliveries_whose_claims_ran_out_come_before_younger_ones(plain: Bench) -> None:
    await plain.send(*"abc")
    await plain.claim(limit=1, lease_ms=2000)
    await plain.claim(limit=1, lease_ms=1000)
    await plain.send("d", now=NOON + 1)
    assert bodies(await plain.claim(NOON + 2000)) == ["a", "b", "c", "d"]


async def test_a_delivery_that_comes_back_is_found_among_those_that_do_not(plain: Bench) -> None:
    await plain.send(*"abc")
    (first,) = await plain.claim(limit=1, lease_ms=1000)
    for now in (NOON, NOON + 500):
        assert bodies(await plain.claim(now, 1)) == ["b" if now == NOON else "c"]
    await plain.send("d", now=NOON + 600)
    await plain.extend(first, NOON + 2000, NOON + 900)
    assert bodies(await plain.claim(NOON + 1000, 1)) == ["d"]
    await plain.send("e", now=NOON + 1500)
    assert bodies(await plain.claim(NOON + 2000)) == ["a", "e"]


async def test_of_very_many_that_came_back_none_is_passed_over(plain: Bench) -> None:
    await plain.send(*(f"{number}" for number in range(250)))
    await plain.claim(limit=250, lease_ms=1000)
    await plain.send("young", now=NOON + 1000)
    again = [await plain.claim(NOON + 1000, limit=limit) for limit in (10, 200, 100)]
    assert [delivery.body for each in again for delivery in each] == [*(f"{n}" for n in range(250)), "young"]


async def test_failures_of_a_group_do_not_keep_other_groups_waiting(plain: Bench) -> None:
    await plain.send("loud 1", "loud 2", group="loud")
    await plain.claim(limit=1, lease_ms=1000)
    await plain.claim(limit=1, lease_ms=1000)
    await plain.send("quiet", now=NOON + 1, group="quiet")
    assert bodies(await plain.claim(NOON + 1000, 1)) == ["quiet"]


async def test_only_an_empty_answer_says_when_to_come_again(plain: Bench) -> None:
    await plain.send("a")
    await plain.send("b", delay_ms=1)
    assert (await plain.request()).next_at is None
    assert (await plain.request()).next_at == NOON + 1


async def test_a_claim_that_looks_ahead_says_when_the_next_delivery_falls_due(queue: Bench) -> None:
    await queue.send("a", group="g")
    assert (await queue.request(looks_ahead=True)).next_at == NOON + LEASE_MS  # of what was just claimed
    await queue.send("b", delay_ms=1, group="h")
    await queue.send("c", group="i")
    ahead = await queue.request(looks_ahead=True)
    assert (bodies(ahead.deliveries), ahead.next_at) == (["c"], NOON + 1)
    assert (
        await queue.request(NOON + 1, limit=1, looks_ahead=True)
    ).next_at is None  # there may be more at once


async def test_claims_that_look_ahead_and_others_share_a_line(plain: Bench) -> None:
    await plain.send(*"abc")
    requests = [
        plain.request(limit=1),
        plain.request(limit=2, looks_ahead=True),
        plain.request(looks_ahead=True),
    ]
    answers = await asyncio.gather(*requests)
    assert sorted(body for answer in answers for body in bodies(answer.deliveries)) == ["a", "b", "c"]
    assert [answer.next_at for answer in answers] == [None, None, NOON + LEASE_MS]


async def test_a_claim_of_no_duration_is_due_again_at_once(plain: Bench) -> None:
    await plain.send("a", "b")
    assert bodies(await plain.claim(lease_ms=0)) == ["a", "b"]
    again = await plain.claim(lease_ms=0)
    assert sorted(bodies(again)) == ["a", "b"]
    assert [delivery.attempts for delivery in again] == [2, 2]


@pytest.mark.parametrize("group", [None, "g"])
async def test_claiming_removes_deliveries_past_their_retention_period(
    plain: Bench, group: str | None
) -> None:
    await plain.send("old", "older", group=group)
    await plain.send("young", now=NOON + 1, group=group)
    assert (await plain.request(NOON + HOUR_MS - 1, 1, limits=HOUR, lease_ms=0)).expired == 0
    claimed = await plain.request(NOON + HOUR_MS, limits=HOUR)
    assert (bodies(claimed.deliveries), claimed.expired) == (["young"], 2)
    assert bodies(await plain.peek()) == ["young"]


async def test_an_order_is_filled_though_expired_ones_stand_before(plain: Bench) -> None:
    await plain.send(*(f"old {number}" for number in range(25)))
    await plain.send("a", "b", "c", now=NOON + 1)
    claimed = await plain.request(NOON + HOUR_MS, 2, limits=HOUR)
    assert (bodies(claimed.deliveries), claimed.expired) == (["a", "b"], 25)


async def test_a_claim_ends_though_very_many_have_expired(plain: Bench) -> None:
    for _ in range(6):
        await plain.send(*(f"old {number}" for number in range(500)))
    await plain.send("young", now=NOON + 1)
    expired = 0
    for _ in range(10):
        claimed = await plain.request(NOON + HOUR_MS, 1, limits=HOUR)
        assert claimed.expired <= 2000
        expired += claimed.expired
        if claimed.deliveries:
            break
        assert claimed.next_at is not None
        assert claimed.next_at <= NOON + HOUR_MS  # there is more: ask again at once
    assert (bodies(claimed.deliveries), expired) == (["young"], 3000)


async def test_a_claim_of_expired_deliveries_alone_is_empty(plain: Bench) -> None:
    await plain.send("a", "b")
    assert await plain.request(NOON + HOUR_MS, limits=HOUR) == ClaimResult(expired=2)
    assert await plain.peek() == []


async def test_claims_made_together_share_nothing(plain: Bench) -> None:
    await plain.send(*(str(number) for number in range(100)))
    answers = await asyncio.gather(*(plain.claim(limit=7) for _ in range(20)))
    claimed = [delivery for answer in answers for delivery in answer]
    assert sorted(int(delivery.body) for delivery in claimed) == list(range(100))
    assert all(len({delivery.token for delivery in answer}) == 1 for answer in answers if answer)
    tokens = [answer[0].token for answer in answers if answer]
    assert len(set(tokens)) == len(tokens)
    assert max(len(answer) for answer in answers) == 7


async def test_claims_made_together_hold_each_as_long_as_it_asked(plain: Bench) -> None:
    await plain.send("a", "b", "c")
    leases = [1000, 2000, 3000]
    answers = await asyncio.gather(*(plain.claim_one(lease_ms=lease_ms) for lease_ms in leases))
    assert [answer.available_at - NOON for answer in answers] == leases
    peeked = {delivery.seq: delivery for delivery in await plain.peek()}
    assert [peeked[answer.seq] for answer in answers] == answers


async def test_a_look_at_claims_is_not_trusted_once_its_transaction_was_undone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "redrive.db")
    await store.open()
    queue = Bench(store, await store.new_id())
    await queue.send("a")
    held = await queue.claim_one(lease_ms=1000)
    store.connection.set_commit_hook(lambda: True)  # the commit is turned into a rollback
    answers = await asyncio.gather(queue.settle(held), queue.claim(NOON + 1000), return_exceptions=True)
    assert isinstance(answers[0], StoreUnavailable)
    async with store.deferring():
        await queue.settle(held)
        assert await queue.claim(NOON + 1000) == []
        with pytest.raises(apsw.Error):
            store._commit.deferral.commit()
        store.connection.set_commit_hook(None)
    assert bodies(await queue.claim(NOON + 1000)) == ["a"]
    await store.close()
