"""Moving what was chosen: by place, by cause, with another body, or aside."""

from typing import Any

from redrive.engine.ports import AttemptNote, Cause
from redrive.model.delivery import Outcome
from tests.contracts.stores.bench import NOON, Bench, bodies

BUSY = AttemptNote(1, NOON, 20, "server_error", 503, "busy")
DENIED = AttemptNote(1, NOON, 20, "client_error", 400, "no")
LATER = NOON + 5000


async def die(queue: Bench, note: AttemptNote, *texts: str, into: Bench, group: str | None = None) -> None:
    await queue.send(*texts, group=group)
    for delivery in await queue.claim(limit=len(texts)):
        await queue.settle(delivery, NOON, Outcome.DEAD_LETTERED, target=into.target, note=note)


def home(queue: Bench) -> dict[str, Any]:
    return {"origins": {queue.id: queue.target}}


async def test_only_the_chosen_move(plain: Bench, dead_letters: Bench) -> None:
    await die(plain, BUSY, "a", "b", "c", "d", into=dead_letters)
    letters = await dead_letters.peek()
    moved, _ = await dead_letters.move(seqs=[letters[1].seq, letters[3].seq, 10**9], **home(plain))
    assert moved.total == 2
    assert bodies(await plain.claim()) == ["b", "d"]
    assert bodies(await dead_letters.peek()) == ["a", "c"]


async def test_the_chosen_move_from_behind_others_of_their_group(
    fifo: Bench, fifo_dead_letters: Bench
) -> None:
    await fifo_dead_letters.send("a", "b", "c", group="g")
    letters = await fifo_dead_letters.peek()
    moved, _ = await fifo_dead_letters.move(seqs=[letters[1].seq], destination=fifo.target)
    assert moved.total == 1
    assert bodies(await fifo.claim()) == ["b"]
    assert bodies(await fifo_dead_letters.claim()) == ["a", "c"]


async def test_the_chosen_that_are_in_flight_or_of_unknown_origin_stay(
    plain: Bench, dead_letters: Bench
) -> None:
    await die(plain, BUSY, "a", "b", into=dead_letters)
    await dead_letters.send("sent here")
    await dead_letters.claim_one()
    seqs = [letter.seq for letter in await dead_letters.peek()]
    moved, _ = await dead_letters.move(seqs=seqs, **home(plain))
    assert moved.total == 1
    assert bodies(await dead_letters.peek()) == ["a", "sent here"]


async def test_a_move_tells_the_new_place_of_each_message(plain: Bench, dead_letters: Bench) -> None:
    await die(plain, BUSY, "a", "b", into=dead_letters)
    before = {letter.body: letter.seq for letter in await dead_letters.peek()}
    moved, _ = await dead_letters.move(**home(plain))
    now = {delivery.body: delivery for delivery in await plain.peek()}
    for body, seq in before.items():
        place = moved.became[seq]
        assert (place.queue_id, place.seq, place.message_id) == (
            plain.id,
            now[body].seq,
            now[body].message_id,
        )


async def test_a_cause_moves_alone_and_in_batches(plain: Bench, dead_letters: Bench) -> None:
    for body, note in (("a", BUSY), ("b", DENIED), ("c", BUSY), ("d", BUSY), ("e", BUSY)):
        await die(plain, note, body, into=dead_letters)
    spared = (await dead_letters.peek())[2].seq
    cause = Cause(plain.id, "server_error 503")
    totals = []
    for _ in range(3):
        moved, _ = await dead_letters.move(limit=2, cause=cause, excepted=[spared], **home(plain))
        totals.append((moved.total, moved.has_more))
    assert totals == [(2, True), (1, False), (0, False)]
    assert bodies(await plain.claim()) == ["a", "d", "e"]
    assert bodies(await dead_letters.peek()) == ["b", "c"]


async def test_of_a_cause_what_came_later_is_in_flight_or_has_no_home_stays(
    plain: Bench, dead_letters: Bench
) -> None:
    await die(plain, BUSY, "flying", "a", into=dead_letters)
    await dead_letters.claim_one()
    last = await dead_letters.store.last_seq()
    await die(plain, BUSY, "late", into=dead_letters)
    cause = Cause(plain.id, "server_error 503")
    moved, _ = await dead_letters.move(cause=cause, seq_max=last)
    assert (moved.total, moved.has_more) == (0, False)
    moved, _ = await dead_letters.move(cause=cause, seq_max=last, **home(plain))
    assert (moved.total, moved.has_more) == (1, False)
    assert bodies(await dead_letters.peek()) == ["flying", "late"]


async def test_a_cause_in_an_ordered_queue_moves_in_order_from_behind_others(
    fifo: Bench, fifo_dead_letters: Bench
) -> None:
    for body, note in (("a1", DENIED), ("a2", BUSY), ("b1", BUSY), ("a3", BUSY)):
        await die(fifo, note, body, into=fifo_dead_letters, group=body[0])
    cause = Cause(fifo.id, "server_error 503")
    moved, _ = await fifo_dead_letters.move(cause=cause, **home(fifo))
    assert moved.total == 3
    assert [body for body in bodies(await fifo.claim()) if body[0] == "a"] == ["a2", "a3"]
    assert bodies(await fifo_dead_letters.claim()) == ["a1"]


async def test_an_edited_body_goes_back_alone(plain: Bench, dead_letters: Bench) -> None:
    await die(plain, DENIED, "wrong", "other", into=dead_letters)
    wrong = (await dead_letters.peek())[0]
    moved, ids = await dead_letters.move(LATER, seqs=[wrong.seq], bodies={wrong.seq: "right"}, **home(plain))
    assert moved.total == 1
    (again,) = await plain.peek()
    assert (again.body, again.message_id, again.failure, again.origin) == ("right", ids[0], None, None)
    assert bodies(await dead_letters.peek()) == ["other"]


async def test_a_message_set_aside_stays_a_dead_letter_and_can_be_redriven(
    plain: Bench, dead_letters: Bench
) -> None:
    await die(plain, DENIED, "a", into=dead_letters)
    beside = Bench(plain.store, await plain.store.new_id())
    (letter,) = await dead_letters.peek()
    moved, _ = await dead_letters.move(LATER, seqs=[letter.seq], destination=beside.target, keeps_origin=True)
    assert moved.became[letter.seq].message_id == letter.message_id
    (aside,) = await beside.peek()
    assert (aside.message_id, aside.failure, aside.origin) == (
        letter.message_id,
        "client_error 400",
        plain.id,
    )
    assert (aside.sent_at, aside.attempts, aside.enqueued_at) == (letter.sent_at, letter.attempts, LATER)
    assert await plain.store.notes(plain.id, aside.message_id) == [DENIED]
    moved, _ = await beside.move(LATER, seqs=[aside.seq], **home(plain))
    assert moved.total == 1
    assert bodies(await plain.claim(LATER)) == ["a"]
