import pytest

from tests.contracts.stores.bench import NOON, Bench, bodies

LATER = NOON + 5000


async def test_moving_from_an_empty_queue_moves_nothing(dead_letters: Bench, plain: Bench) -> None:
    moved, _ = await dead_letters.move(destination=plain.target)
    assert (moved.total, moved.has_more) == (0, False)


async def test_a_moved_dead_letter_is_a_new_message_with_the_old_content(
    plain: Bench, dead_letters: Bench
) -> None:
    new_delivery = plain.new_delivery("a", group="g", deduplication_id="d")
    new_delivery.headers = b"h"
    await plain.store.enqueue([new_delivery])
    await exhaust_into(plain, dead_letters)
    last = await plain.store.last_seq()
    moved, ids = await dead_letters.move(LATER, destination=plain.target)
    assert (moved.per_queue, moved.has_more) == ({plain.id: 1}, False)
    assert await dead_letters.peek() == []
    (again,) = await plain.peek()
    assert again.seq > last
    assert (again.message_id, again.body, again.headers) == (ids[0], "a", b"h")
    assert (again.sent_at, again.enqueued_at, again.available_at) == (LATER, LATER, LATER)
    assert (again.attempts, again.token, again.first_claimed_at, again.origin) == (0, None, None, None)
    assert (again.group_id, again.deduplication_id) == ("g", "d")


async def exhaust_into(queue: Bench, dead_letters: Bench) -> None:
    await queue.claim(lease_ms=1)
    assert (await queue.request(NOON + 1, **queue.dying(1, dead_letters))).dead_lettered


async def test_a_batch_takes_the_oldest_and_says_that_more_is_left(plain: Bench, dead_letters: Bench) -> None:
    await dead_letters.send("a", "b", "c", "d", "e")
    moves = [(await dead_letters.move(limit=2, destination=plain.target))[0] for _ in range(3)]
    assert [(moved.total, moved.has_more) for moved in moves[:2]] == [(2, True), (2, True)]
    assert (moves[2].total, moves[2].has_more) == (1, False)
    assert bodies(await plain.claim()) == ["a", "b", "c", "d", "e"]


async def test_claimed_and_delayed_ones_stay(plain: Bench, dead_letters: Bench) -> None:
    await dead_letters.send("claimed")
    claim = await dead_letters.claim_one()
    await dead_letters.send("delayed", delay_ms=1)
    await dead_letters.send("a")
    moved, _ = await dead_letters.move(destination=plain.target)
    assert (moved.total, moved.has_more) == (1, False)
    assert bodies(await dead_letters.peek()) == ["claimed", "delayed"]
    assert (await dead_letters.peek())[0] == claim
    moved, _ = await dead_letters.move(LATER * 2, destination=plain.target)
    assert moved.total == 2


async def test_dead_letters_that_arrived_later_are_not_moved(plain: Bench, dead_letters: Bench) -> None:
    _, last = await dead_letters.send("a", "b")
    await dead_letters.send("late")
    moved, _ = await dead_letters.move(seq_max=last, destination=plain.target)
    assert (moved.total, moved.has_more) == (2, False)
    assert bodies(await dead_letters.peek()) == ["late"]


async def test_a_queue_moved_into_itself_comes_to_an_end(dead_letters: Bench) -> None:
    await dead_letters.send("a", "b", "c")
    last = await dead_letters.store.last_seq()
    moved, _ = await dead_letters.move(seq_max=last, destination=dead_letters.target)
    assert (moved.total, moved.has_more) == (3, False)
    assert bodies(await dead_letters.claim()) == ["a", "b", "c"]


async def test_each_goes_back_where_it_came_from(plain: Bench, fifo: Bench, dead_letters: Bench) -> None:
    await plain.bury("a", "b", into=dead_letters)
    await fifo.bury("c", into=dead_letters, group="g")
    moved, _ = await dead_letters.move(origins={plain.id: plain.target, fifo.id: fifo.target})
    assert (moved.per_queue, moved.has_more) == ({plain.id: 2, fifo.id: 1}, False)
    assert bodies(await plain.claim()) == ["a", "b"]
    assert bodies(await fifo.claim()) == ["c"]


@pytest.mark.parametrize("limit", [2, 10])
async def test_dead_letters_of_unknown_origin_stay_without_blocking_others(
    plain: Bench, fifo: Bench, dead_letters: Bench, limit: int
) -> None:
    await dead_letters.send("sent here 1", "sent here 2", "sent here 3")
    await fifo.bury("stranger", into=dead_letters, group="g")
    await plain.bury("a", "b", into=dead_letters)
    moved, _ = await dead_letters.move(limit=limit, origins={plain.id: plain.target})
    assert moved.per_queue == {plain.id: 2}
    moved, _ = await dead_letters.move(limit=limit, origins={plain.id: plain.target})
    assert (moved.total, moved.has_more) == (0, False)
    assert bodies(await plain.claim()) == ["a", "b"]
    assert len(await dead_letters.peek()) == 4


async def test_groups_keep_their_order(fifo: Bench, fifo_dead_letters: Bench) -> None:
    for body in ("a1", "b1", "a2", "b2", "a3"):
        await fifo.bury(body, into=fifo_dead_letters, group=body[0])
    batches = 0
    while (await fifo_dead_letters.move(limit=2, destination=fifo.target))[0].total:
        batches += 1
    assert batches == 3
    came = bodies(await fifo.claim())
    assert [body for body in came if body[0] == "a"] == ["a1", "a2", "a3"]
    assert [body for body in came if body[0] == "b"] == ["b1", "b2"]


async def test_a_group_in_flight_stays_together(fifo: Bench, fifo_dead_letters: Bench) -> None:
    await fifo_dead_letters.send("a1", "a2", group="a")
    await fifo_dead_letters.send("b1", group="b")
    await fifo_dead_letters.claim_one()
    moved, _ = await fifo_dead_letters.move(destination=fifo.target)
    assert (moved.total, moved.has_more) == (1, False)
    assert bodies(await fifo_dead_letters.peek()) == ["a1", "a2"]


async def test_a_fair_group_moves_as_a_whole(plain: Bench, dead_letters: Bench) -> None:
    await dead_letters.send(*(str(number) for number in range(30)), group="g")
    moved, _ = await dead_letters.move(limit=50, destination=plain.target)
    assert (moved.total, moved.has_more) == (30, False)
    assert bodies(await plain.claim(limit=30)) == [str(number) for number in range(30)]


async def test_a_moved_dead_letter_joins_the_end_of_its_group(fifo: Bench, fifo_dead_letters: Bench) -> None:
    await fifo.bury("a1", into=fifo_dead_letters, group="a")
    await fifo.send("a2", group="a")
    await fifo_dead_letters.move(destination=fifo.target)
    assert bodies(await fifo.claim(limit=5)) == ["a2", "a1"]
