import asyncio
from uuid import UUID

import pytest

from redrive.model.delivery import Limits, Outcome
from tests.contracts.stores.bench import DONE, NOON, Bench, bodies, refused

LATER = NOON + 5000


async def exhaust(queue: Bench, claims: int) -> None:
    """Claim everything so many times, and let each claim lapse within a millisecond of noon."""
    for number in range(claims):
        await queue.claim(NOON + number, 100, lease_ms=1)


async def test_the_claim_that_would_be_one_too_many_moves_it(plain: Bench, dead_letters: Bench) -> None:
    await plain.send("a")
    dying = plain.dying(2, dead_letters)
    for number in (1, 2):
        assert (await plain.claim_one(NOON + number, lease_ms=1, **dying)).attempts == number
    claimed = await plain.request(LATER, **dying)
    assert (claimed.deliveries, claimed.dead_lettered, claimed.expired) == ([], 1, 0)
    assert await plain.peek() == []
    assert bodies(await dead_letters.claim(LATER)) == ["a"]


async def test_a_dead_letter_keeps_what_it_was_and_says_where_it_died(
    plain: Bench, dead_letters: Bench
) -> None:
    new_delivery = plain.new_delivery("a", deduplication_id="d")
    new_delivery.headers = b"h"
    (enqueued,) = await plain.store.enqueue([new_delivery])
    await exhaust(plain, 2)
    await plain.request(LATER, **plain.dying(2, dead_letters))
    (dead,) = await dead_letters.peek()
    assert dead.seq > enqueued.seq
    assert (dead.message_id, dead.body, dead.headers) == (new_delivery.message_id, "a", b"h")
    assert (dead.sent_at, dead.enqueued_at, dead.available_at) == (NOON, NOON, LATER)
    assert (dead.attempts, dead.token, dead.first_claimed_at) == (2, None, NOON)
    assert (dead.origin, dead.deduplication_id) == (plain.id, "d")
    assert (await dead_letters.claim_one(LATER)).attempts == 3


async def test_in_an_ordered_queue_its_age_begins_anew_and_its_id_tells_it_apart(
    fifo: Bench, fifo_dead_letters: Bench
) -> None:
    first = await fifo.send_once("a", "k")
    await exhaust(fifo, 1)
    await fifo.request(LATER, **fifo.dying(1, fifo_dead_letters))
    (dead,) = await fifo_dead_letters.peek()
    assert (dead.sent_at, dead.enqueued_at) == (NOON, LATER)
    assert dead.deduplication_id == str(UUID(bytes=first.message_id))
    assert (dead.group_id, dead.message_id) == ("g", first.message_id)


async def test_a_dead_letter_and_a_message_of_the_same_moment_are_claimed_in_order(
    fifo: Bench, fifo_dead_letters: Bench
) -> None:
    await fifo.send("dead", group="g")
    dying = await fifo.claim_one()
    await asyncio.gather(
        fifo_dead_letters.send("sent", group="g"),
        fifo.settle(dying, NOON, Outcome.DEAD_LETTERED, target=fifo_dead_letters.target),
    )
    arrived = await fifo_dead_letters.peek()
    assert bodies(await fifo_dead_letters.claim(LATER, 1)) == bodies(arrived[:1])


async def test_equal_contents_do_not_swallow_each_other(fifo: Bench, fifo_dead_letters: Bench) -> None:
    for group in ("g", "h"):
        await fifo.send_once("equal", group, group=group)
    await exhaust(fifo, 1)
    await fifo.request(LATER, **fifo.dying(1, fifo_dead_letters))
    assert bodies(await fifo_dead_letters.peek()) == ["equal", "equal"]


async def test_a_claim_is_filled_behind_the_dead_lettered_deliveries(
    plain: Bench, dead_letters: Bench
) -> None:
    await plain.send("a", "b", "c")
    await exhaust(plain, 3)
    await plain.send("d", "e", now=NOON + 50)
    claimed = await plain.request(LATER, 2, **plain.dying(3, dead_letters))
    assert (bodies(claimed.deliveries), claimed.dead_lettered) == (["d", "e"], 3)
    assert sorted(bodies(await dead_letters.peek())) == ["a", "b", "c"]


async def test_a_group_goes_on_behind_its_dead(fifo: Bench, fifo_dead_letters: Bench) -> None:
    await fifo.send("a1", "a2", group="a")
    await exhaust(fifo, 1)
    await fifo.send("a3", "a4", now=NOON + 50, group="a")
    claimed = await fifo.request(LATER, **fifo.dying(1, fifo_dead_letters))
    assert (bodies(claimed.deliveries), claimed.dead_lettered) == (["a3", "a4"], 2)
    assert bodies(await fifo_dead_letters.claim(LATER)) == ["a1", "a2"]


async def test_a_fair_group_goes_on_behind_its_dead(plain: Bench, dead_letters: Bench) -> None:
    await plain.send("a1", "a2", group="a")
    await exhaust(plain, 1)
    await plain.send("a3", "a4", now=NOON + 50, group="a")
    claimed = await plain.request(LATER, **plain.dying(1, dead_letters))
    assert (sorted(bodies(claimed.deliveries)), claimed.dead_lettered) == (["a3", "a4"], 2)
    assert sorted(bodies(await dead_letters.claim(LATER))) == ["a1", "a2"]


async def test_without_a_dead_letter_queue_a_delivery_is_offered_for_ever(plain: Bench) -> None:
    await plain.send("a")
    for number in range(1, 6):
        claimed = await plain.request(NOON + number, lease_ms=1, limits=Limits(attempts_max=1))
        assert [delivery.attempts for delivery in claimed.deliveries] == [number]


async def test_an_expired_delivery_is_removed_and_not_dead_lettered(
    plain: Bench, dead_letters: Bench
) -> None:
    await plain.send("a")
    await exhaust(plain, 1)
    limits = Limits(retention_ms=1000, attempts_max=1, dead_letters=True)
    claimed = await plain.request(NOON + 1000, limits=limits, dead_letters_to=dead_letters.target)
    assert (claimed.expired, claimed.dead_lettered) == (1, 0)
    assert await dead_letters.peek() == []


@pytest.mark.parametrize("group", [None, "g"])
async def test_settling_as_dead_moves_it_at_once(
    plain: Bench, dead_letters: Bench, group: str | None
) -> None:
    await plain.send("a", "b", group=group)
    a, b = await plain.claim()
    assert await plain.settle(a, NOON + 7, Outcome.DEAD_LETTERED, target=dead_letters.target) == DONE
    assert await plain.peek() == [b]
    (dead,) = await dead_letters.peek()
    assert (dead.body, dead.origin, dead.attempts, dead.token) == ("a", plain.id, 1, None)
    assert dead.available_at == NOON + 7


async def test_settling_the_first_as_dead_frees_its_group(fifo: Bench, fifo_dead_letters: Bench) -> None:
    await fifo.send("a1", "a2", group="a")
    a1 = await fifo.claim_one()
    assert await fifo.settle(a1, NOON, Outcome.DEAD_LETTERED, target=fifo_dead_letters.target) == DONE
    assert bodies(await fifo.claim()) == ["a2"]
    assert bodies(await fifo_dead_letters.claim()) == ["a1"]


async def test_a_late_claimer_cannot_dead_letter_a_delivery_that_another_holds(
    plain: Bench, dead_letters: Bench
) -> None:
    await plain.send("a")
    late = await plain.claim_one(lease_ms=1)
    latest = await plain.claim_one(NOON + 1)
    answer = await plain.settle(late, NOON + 1, Outcome.DEAD_LETTERED, target=dead_letters.target)
    assert answer == refused("superseded")
    assert (await plain.peek(), await dead_letters.peek()) == ([latest], [])


async def test_dead_letters_stand_in_order_behind_those_before(fifo: Bench, fifo_dead_letters: Bench) -> None:
    for body in ("a1", "a2", "a3"):
        await fifo.bury(body, into=fifo_dead_letters, group="a")
    assert bodies(await fifo_dead_letters.claim(limit=2)) == ["a1", "a2"]
    assert await fifo_dead_letters.claim() == []


async def test_each_delivery_is_dead_lettered_once(plain: Bench, dead_letters: Bench) -> None:
    await plain.send(*(str(number) for number in range(30)))
    await exhaust(plain, 1)
    dying = plain.dying(1, dead_letters)
    answers = await asyncio.gather(*(plain.request(LATER, 10, **dying) for _ in range(8)))
    assert sum(answer.dead_lettered for answer in answers) == 30
    assert sorted(map(int, bodies(await dead_letters.peek()))) == list(range(30))


@pytest.mark.parametrize("group", [None, "g"])
async def test_a_dead_letter_sent_as_new_is_new_in_its_queue(
    plain: Bench, dead_letters: Bench, group: str | None
) -> None:
    await plain.send("a", group=group)
    await plain.settle(await plain.claim_one(), NOON, Outcome.RETRY, available_at=NOON)
    last = await plain.claim_one()
    target = dead_letters.target
    assert await plain.settle(last, LATER, Outcome.DEAD_LETTERED, target=target, as_new=True) == DONE
    (letter,) = await dead_letters.peek()
    assert (letter.body, letter.origin, letter.attempts, letter.token) == ("a", plain.id, 0, None)
    assert (letter.sent_at, letter.enqueued_at, letter.available_at) == (LATER, LATER, LATER)
    assert (letter.first_claimed_at, letter.message_id) == (None, last.message_id)


async def test_a_dead_letter_sent_as_new_in_order_keeps_its_group(
    fifo: Bench, fifo_dead_letters: Bench
) -> None:
    await fifo.send("a1", "a2", group="a")
    for _ in range(2):
        held = await fifo.claim_one()
        target = fifo_dead_letters.target
        await fifo.settle(held, NOON, Outcome.DEAD_LETTERED, target=target, as_new=True)
    letters = await fifo_dead_letters.peek()
    assert bodies(letters) == ["a1", "a2"]
    assert [letter.deduplication_id for letter in letters] == [None, None]
    assert bodies(await fifo_dead_letters.claim(limit=1)) == ["a1"]
    assert await fifo_dead_letters.claim(limit=1) == []
