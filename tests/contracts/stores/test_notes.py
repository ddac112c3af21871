import pytest

from redrive.engine.ports import AttemptNote, Settlement
from redrive.model.delivery import Delivery, Outcome
from redrive.model.queue import DAY_MS
from tests.contracts.stores.bench import DONE, NOON, Bench, bodies, refused


def note(number: int, at: int = NOON) -> AttemptNote:
    return AttemptNote(number, at, duration_ms=7, reason="status", status=503, response="come later é")


async def retry(queue: Bench, number: int, now: int = NOON) -> Delivery:
    """Let one attempt fail, and note it."""
    claim = await queue.claim_one(now)
    await queue.settle(claim, now, Outcome.RETRY, available_at=now, note=note(number, now))
    return claim


async def notes_of(queue: Bench, delivery: Delivery) -> list[AttemptNote]:
    return await queue.store.notes(queue.id, delivery.message_id)


async def test_attempts_are_noted_in_their_order(plain: Bench) -> None:
    await plain.send("a")
    for number in (1, 2, 3):
        delivery = await retry(plain, number)
    assert await notes_of(plain, delivery) == [note(1), note(2), note(3)]


async def test_each_message_has_its_own_notes(plain: Bench, fifo: Bench) -> None:
    await plain.send("a")
    await fifo.send("b", group="g")
    a, b = await retry(plain, 1), await retry(fifo, 5)
    assert await notes_of(plain, a) == [note(1)]
    assert await notes_of(fifo, b) == [note(5)]
    assert await plain.store.notes(plain.id, b.message_id) == []


async def test_a_retry_without_a_note_leaves_none(plain: Bench) -> None:
    await plain.send("a")
    claim = await plain.claim_one()
    await plain.settle(claim, NOON, Outcome.RETRY, available_at=NOON)
    assert await notes_of(plain, claim) == []


async def test_a_note_of_a_superseded_claim_is_not_taken(plain: Bench) -> None:
    await plain.send("a")
    late = await plain.claim_one(lease_ms=1)
    latest = await plain.claim_one(NOON + 1)
    answer = await plain.settle(late, NOON + 1, Outcome.RETRY, available_at=NOON, note=note(1))
    assert answer == refused("superseded")
    assert await notes_of(plain, latest) == []


async def test_of_the_same_attempt_noted_twice_the_last_note_holds(plain: Bench) -> None:
    """Two deliveries of one message in one queue: nobody makes them, and no store may stumble over them."""
    new_deliveries = [plain.new_delivery(text) for text in "ab"]
    new_deliveries[1].message_id = new_deliveries[0].message_id
    await plain.store.enqueue(new_deliveries)
    retries = [
        Settlement(one.seq, one.token or 0, Outcome.RETRY, NOON, note=note(1, NOON + number))
        for number, one in enumerate(await plain.claim())
    ]
    assert await plain.store.settle(plain.id, retries, NOON, ordered=False) == [DONE, DONE]
    assert await plain.store.notes(plain.id, new_deliveries[0].message_id) == [note(1, NOON + 1)]


async def test_of_very_many_attempts_the_first_and_the_last_are_kept(plain: Bench) -> None:
    await plain.send("a")
    for number in range(1, 131):
        delivery = await retry(plain, number)
    kept = [one.number for one in await notes_of(plain, delivery)]
    assert kept == [*range(1, 11), *range(41, 131)]


@pytest.mark.parametrize("outcome", [Outcome.DELIVERED, Outcome.DROPPED, Outcome.EXPIRED])
@pytest.mark.parametrize("kind", ["plain", "fifo"])
async def test_notes_go_with_their_message(plain: Bench, fifo: Bench, outcome: Outcome, kind: str) -> None:
    queue = plain if kind == "plain" else fifo
    await queue.send("a", "b", group="g")
    a = await retry(queue, 1)
    (claim,) = [one for one in await queue.claim() if one.body == "a"]
    assert await queue.settle(claim, NOON, outcome) == DONE
    assert await notes_of(queue, a) == []


async def test_the_notes_of_a_dead_letters_attempts_can_be_read(plain: Bench, dead_letters: Bench) -> None:
    await plain.send("a")
    await retry(plain, 1)
    claim = await plain.claim_one()
    await plain.settle(claim, NOON, Outcome.DEAD_LETTERED, target=dead_letters.target, note=note(2))
    (dead,) = await dead_letters.peek()
    assert dead.origin == plain.id
    assert await plain.store.notes(plain.id, dead.message_id) == [note(1), note(2)]


async def test_a_delivery_enqueued_without_an_attempt_brings_its_note(
    plain: Bench, dead_letters: Bench
) -> None:
    new_delivery = dead_letters.new_delivery("a", origin=plain.id, attempts=1, note=note(1))
    await plain.store.enqueue([new_delivery])
    (dead,) = await dead_letters.peek()
    assert (dead.origin, dead.attempts) == (plain.id, 1)
    assert await plain.store.notes(plain.id, dead.message_id) == [note(1)]


async def test_old_notes_are_swept(plain: Bench) -> None:
    await plain.send("a")
    delivery = await retry(plain, 1)
    await retry(plain, 2, NOON + 1)
    await plain.store.sweep(plain.id, 0, NOON + 14 * DAY_MS, 1000)
    assert await notes_of(plain, delivery) == [note(2, NOON + 1)]


# ---- handing over ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_delivery_handed_over_to_a_queue_is_new_there(fifo: Bench, ordered: bool) -> None:
    await fifo.send("a1", "a2", group="a")
    await retry(fifo, 1)
    a1 = await fifo.claim_one()
    queue = Bench(fifo.store, await fifo.store.new_id(), ordered)
    assert await fifo.settle(a1, NOON + 9, target=queue.target) == DONE
    (there,) = await queue.peek()
    assert (there.body, there.message_id, there.group_id) == ("a1", a1.message_id, "a")
    assert (there.attempts, there.token, there.first_claimed_at, there.origin) == (0, None, None, None)
    assert (there.sent_at, there.enqueued_at, there.available_at) == (NOON + 9, NOON + 9, NOON + 9)
    assert await notes_of(fifo, a1) == []
    assert bodies(await fifo.claim(NOON + 9)) == ["a2"]


async def test_a_superseded_claim_hands_nothing_over(plain: Bench, dead_letters: Bench) -> None:
    await plain.send("a")
    late = await plain.claim_one(lease_ms=1)
    latest = await plain.claim_one(NOON + 1)
    assert await plain.settle(late, NOON + 1, target=dead_letters.target) == refused("superseded")
    assert (await plain.peek(), await dead_letters.peek()) == ([latest], [])
