"""Deliveries that end without a consumer's word: dropped after their claims, buried when they are kept too long.

And what a dead letter leaves for who wants to be told of it.
"""

import asyncio
import json

import pytest

from redrive.engine.ports import ClaimResult, MoveTarget, Store
from redrive.model.delivery import Limits, Outcome
from redrive.model.queue import CopyTarget
from tests.contracts.stores.bench import DONE, NOON, Bench, bodies

LATER = NOON + 5000
DROPPED_AFTER_TWO = Limits(attempts_max=2, drops_exhausted=True)
BURIED_AFTER_A_SECOND = Limits(1000, dead_letters=True, buries_expired=True)


async def exhaust(queue: Bench, claims: int) -> None:
    for number in range(claims):
        await queue.claim(NOON + number, 100, lease_ms=1)


async def test_without_a_dead_letter_queue_exhausted_deliveries_are_dropped_if_set_so(plain: Bench) -> None:
    await plain.send("a")
    for number in (1, 2):
        claimed = await plain.request(NOON + number, lease_ms=1, limits=DROPPED_AFTER_TWO)
        assert [delivery.attempts for delivery in claimed.deliveries] == [number]
    assert await plain.request(LATER, limits=DROPPED_AFTER_TWO) == ClaimResult(dropped=1)
    assert await plain.peek() == []


async def test_with_a_dead_letter_queue_exhausted_deliveries_are_dead_lettered_not_dropped(
    plain: Bench, dead_letters: Bench
) -> None:
    await plain.send("a")
    await exhaust(plain, 2)
    limits = Limits(attempts_max=2, dead_letters=True, drops_exhausted=True)
    claimed = await plain.request(LATER, limits=limits, dead_letters_to=dead_letters.target)
    assert (claimed.dead_lettered, claimed.dropped) == (1, 0)
    assert bodies(await dead_letters.peek()) == ["a"]


@pytest.mark.parametrize("group", [None, "g"])
async def test_a_claim_takes_the_next_behind_the_dropped(plain: Bench, group: str | None) -> None:
    await plain.send("a", "b", group=group)
    await exhaust(plain, 2 if group is None else 4)
    await plain.send("c", now=NOON + 50, group=group)
    claimed = await plain.request(LATER, limits=DROPPED_AFTER_TWO)
    assert (bodies(claimed.deliveries), claimed.dropped) == (["c"], 2)


async def test_expired_deliveries_are_dead_lettered_if_the_queue_is_set_so(
    plain: Bench, dead_letters: Bench
) -> None:
    await plain.send("a")
    await exhaust(plain, 1)
    claimed = await plain.request(
        NOON + 1000, limits=BURIED_AFTER_A_SECOND, dead_letters_to=dead_letters.target
    )
    assert (claimed.deliveries, claimed.dead_lettered, claimed.expired) == ([], 1, 0)
    (dead,) = await dead_letters.peek()
    assert (dead.body, dead.origin, dead.attempts, dead.enqueued_at) == ("a", plain.id, 1, NOON)


async def test_without_a_dead_letter_queue_expired_deliveries_are_removed(plain: Bench) -> None:
    await plain.send("a")
    assert await plain.request(LATER, limits=Limits(1000, buries_expired=True)) == ClaimResult(expired=1)


@pytest.mark.parametrize("group", [None, "g"])
async def test_expired_and_exhausted_deliveries_end_without_a_claim(
    plain: Bench, dead_letters: Bench, group: str | None
) -> None:
    await plain.send("old", now=NOON - 1000, group=group)
    await plain.send("new", group=group)
    ended = await plain.request(
        limits=BURIED_AFTER_A_SECOND, dead_letters_to=dead_letters.target, claims_nothing=True
    )
    assert (ended.deliveries, ended.dead_lettered) == ([], 1)
    assert bodies(await dead_letters.peek()) == ["old"]
    (new,) = await plain.peek()
    assert (new.body, new.attempts, new.token) == ("new", 0, None)
    assert bodies(await plain.claim(limits=BURIED_AFTER_A_SECOND)) == ["new"]


async def test_a_held_delivery_neither_expires_nor_exhausts(plain: Bench) -> None:
    await plain.send("a")
    held = await plain.claim_one()
    limits = Limits(1000, attempts_max=1, drops_exhausted=True)
    for now in (NOON + 1000, held.available_at - 1):
        assert (await plain.request(now, limits=limits, claims_nothing=True)).dropped == 0
    assert (await plain.request(held.available_at, limits=limits, claims_nothing=True)).expired == 1


async def test_exhausted_deliveries_are_dropped_without_a_claim(plain: Bench) -> None:
    await plain.send("a", "b")
    await exhaust(plain, 2)
    await plain.send("c", now=NOON + 50)
    assert (await plain.request(LATER, limits=DROPPED_AFTER_TWO, claims_nothing=True)).dropped == 2
    assert bodies(await plain.peek()) == ["c"]


async def test_only_the_front_of_the_line_is_looked_at(plain: Bench) -> None:
    await plain.send(*"abcde")
    limits = Limits(1000)
    assert (await plain.request(LATER, 2, limits=limits, claims_nothing=True)).expired == 2
    assert bodies(await plain.peek()) == ["c", "d", "e"]


async def test_each_is_ended_once(plain: Bench, dead_letters: Bench) -> None:
    await plain.send(*(str(number) for number in range(30)))
    requests = (
        plain.request(
            LATER, 30, limits=BURIED_AFTER_A_SECOND, dead_letters_to=dead_letters.target, claims_nothing=bare
        )
        for bare in (True, False) * 4
    )
    answers = await asyncio.gather(*requests)
    assert sum(answer.dead_lettered for answer in answers) == 30
    assert sorted(map(int, bodies(await dead_letters.peek()))) == list(range(30))


# ---- copies of dead letters --------------------------------------------------------------------------------------


def copying(target: Bench, backlog: Bench) -> MoveTarget:
    return MoveTarget(target.id, target.ordered, CopyTarget(backlog.id, 300))


async def test_a_dead_letter_leaves_a_copy_that_says_how_it_ended(
    plain: Bench, dead_letters: Bench, store: Store
) -> None:
    backlog = Bench(store, await store.new_id())
    new_delivery = plain.new_delivery("a", group="g")
    new_delivery.headers = b'{"k":1}'
    await store.enqueue([new_delivery])
    await exhaust(plain, 2)
    limits = Limits(attempts_max=2, dead_letters=True)
    await plain.request(LATER, limits=limits, dead_letters_to=copying(dead_letters, backlog))
    (dead,), (copy,) = await dead_letters.peek(), await backlog.peek()
    assert (copy.body, copy.message_id, copy.origin) == ("a", dead.message_id, None)
    assert (copy.available_at, copy.attempts, copy.token, copy.group_id) == (LATER + 300, 0, None, None)
    assert json.loads(copy.headers or b"") == {
        "ended": {"how": "exhausted", "attempts": 2, "at": NOON + 2},
        "k": 1,
    }
    assert dead.headers == b'{"k":1}'


async def test_a_copy_says_when_it_was_had_last_or_published(
    plain: Bench, dead_letters: Bench, store: Store
) -> None:
    backlog = Bench(store, await store.new_id())
    await plain.send("claimed")
    await plain.claim(NOON + 7, lease_ms=1)
    await plain.send("never claimed", now=NOON + 8)
    ended = await plain.request(
        LATER,
        limits=BURIED_AFTER_A_SECOND,
        dead_letters_to=copying(dead_letters, backlog),
        claims_nothing=True,
    )
    assert ended.dead_lettered == 2
    said = {one.body: json.loads(one.headers or b"")["ended"] for one in await backlog.peek()}
    assert said == {
        "claimed": {"how": "expired", "attempts": 1, "at": NOON + 7},
        "never claimed": {"how": "expired", "attempts": 0, "at": NOON + 8},
    }


async def test_a_delivery_settled_as_dead_lettered_leaves_a_copy(
    plain: Bench, dead_letters: Bench, store: Store
) -> None:
    backlog = Bench(store, await store.new_id())
    await plain.send("a")
    delivery = await plain.claim_one()
    target = copying(dead_letters, backlog)
    assert await plain.settle(delivery, LATER, Outcome.DEAD_LETTERED, target=target) == DONE
    assert not (await plain.settle(delivery, LATER, Outcome.DEAD_LETTERED, target=target)).done
    (copy,) = await backlog.peek()
    assert json.loads(copy.headers or b"") == {"ended": {"how": "rejected", "attempts": 1, "at": NOON}}
