"""Looking as people do: pages both ways, causes of death, notes of many, a message in many queues, bounded counts."""

import pytest

from redrive.engine.ports import AttemptNote, Cause, Counts, LookRequest
from redrive.model.delivery import Outcome
from tests.contracts.stores.bench import NOON, Bench, bodies, fresh_id

BUSY = AttemptNote(1, NOON, 20, "server_error", 503, "busy")
SILENT = AttemptNote(1, NOON, 15_000, "timed_out", 0, "")


async def die(queue: Bench, *texts: str, into: Bench, note: AttemptNote | None) -> None:
    """Send these bodies here and let each die after one attempt that ended like this."""
    await queue.send(*texts)
    for delivery in await queue.claim(limit=len(texts)):
        await queue.settle(delivery, NOON, Outcome.DEAD_LETTERED, target=into.target, note=note)


async def test_pages_go_both_ways(plain: Bench) -> None:
    seqs = await plain.send("a", "b", "c", "d")
    look = plain.store.look
    assert bodies(await look(LookRequest(plain.id, 2))) == ["a", "b"]
    assert bodies(await look(LookRequest(plain.id, 2, after_seq=seqs[1]))) == ["c", "d"]
    assert bodies(await look(LookRequest(plain.id, 2, newest_first=True))) == ["d", "c"]
    older = LookRequest(plain.id, 9, before_seq=seqs[2], newest_first=True)
    assert bodies(await look(older)) == ["b", "a"]
    assert bodies(await look(LookRequest(plain.id, 9, after_seq=seqs[0], before_seq=seqs[3]))) == ["b", "c"]


async def test_chosen_places_are_looked_at_together(plain: Bench, fifo: Bench) -> None:
    seqs = await plain.send("a", "b", "c", "d")
    (elsewhere,) = await fifo.send("e", group="g")
    chosen = LookRequest(plain.id, 9, seqs=[seqs[3], elsewhere, 10**9, seqs[1]])
    assert bodies(await plain.store.look(chosen)) == ["b", "d"]
    assert bodies(await plain.store.look(LookRequest(plain.id, 1, seqs=seqs))) == ["a"]


async def test_a_dead_letter_says_why_it_died(plain: Bench, fifo: Bench, dead_letters: Bench) -> None:
    await die(plain, "a", into=dead_letters, note=BUSY)
    await die(plain, "b", into=dead_letters, note=SILENT)
    await die(plain, "c", into=dead_letters, note=None)
    await plain.send("d")
    await plain.claim(lease_ms=1)
    await plain.request(NOON + 1, **plain.dying(1, dead_letters))
    letters = await dead_letters.peek()
    assert [letter.failure for letter in letters] == [
        "server_error 503",
        "timed_out",
        "rejected",
        "exhausted",
    ]
    await dead_letters.send("sent here")
    assert (await dead_letters.peek())[-1].failure is None


async def test_a_dead_letter_that_was_never_tried_says_why(plain: Bench, dead_letters: Bench) -> None:
    letter = dead_letters.new_delivery("a", origin=plain.id, attempts=1, note=BUSY)
    await dead_letters.store.enqueue([letter])
    ((found),) = await dead_letters.peek()
    assert (found.failure, found.origin) == ("server_error 503", plain.id)


async def test_causes_are_found_and_counted(plain: Bench, fifo: Bench, dead_letters: Bench) -> None:
    await die(plain, "a", "b", "c", into=dead_letters, note=BUSY)
    await die(plain, "d", into=dead_letters, note=SILENT)
    await fifo.bury("e", into=dead_letters, group="g")
    await dead_letters.send("sent here")
    groups = await dead_letters.store.causes(dead_letters.id, 10, 2)
    shown = [(group.cause, group.number, group.capped) for group in groups]
    assert shown == [
        (Cause(plain.id, "server_error 503"), 2, True),
        (Cause(plain.id, "timed_out"), 1, False),
        (Cause(fifo.id, "rejected"), 1, False),
    ]
    places = {letter.body: letter.seq for letter in await dead_letters.peek()}
    assert (groups[0].first_seq, groups[0].last_seq) == (places["a"], places["c"])
    assert groups[1].first_seq == groups[1].last_seq == places["d"]
    assert await dead_letters.store.causes(dead_letters.id, 1, 9) == [
        groups[0]._replace(number=3, capped=False)
    ]
    assert await dead_letters.store.causes(plain.id, 10, 9) == []
    only = await dead_letters.store.causes(dead_letters.id, 10, 9, cause=groups[1].cause)
    assert only == [groups[1]]
    gone = Cause(plain.id, "nothing")
    assert await dead_letters.store.causes(dead_letters.id, 10, 9, cause=gone) == []


async def test_causes_are_counted_as_far_as_their_share(
    plain: Bench, dead_letters: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redrive.engine.ports.store.COUNTED_MIN", 1)
    for note, number in ((BUSY, 5), (SILENT, 2)):
        await die(plain, *(f"{note.reason} {each}" for each in range(number)), into=dead_letters, note=note)
    groups = await dead_letters.store.causes(dead_letters.id, 10, 9, 6)
    assert [(group.number, group.capped) for group in groups] == [(3, True), (2, False)]
    groups = await dead_letters.store.causes(dead_letters.id, 10, 9, 10)
    assert [(group.number, group.capped) for group in groups] == [(5, False), (2, False)]


async def test_a_page_of_one_cause(plain: Bench, dead_letters: Bench) -> None:
    for body, note in (("a", BUSY), ("b", SILENT), ("c", BUSY), ("d", BUSY)):
        await die(plain, body, into=dead_letters, note=note)
    busy = Cause(plain.id, "server_error 503")
    look = dead_letters.store.look
    first = await look(LookRequest(dead_letters.id, 2, cause=busy))
    assert bodies(first) == ["a", "c"]
    assert bodies(await look(LookRequest(dead_letters.id, 2, after_seq=first[1].seq, cause=busy))) == ["d"]
    newest = LookRequest(dead_letters.id, 2, before_seq=None, newest_first=True, cause=busy)
    assert bodies(await look(newest)) == ["d", "c"]


async def test_notes_of_many_messages_are_read_together(
    plain: Bench, fifo: Bench, dead_letters: Bench
) -> None:
    await die(plain, "a", "b", into=dead_letters, note=BUSY)
    await fifo.bury("c", into=dead_letters, group="g")
    a, b, c = await dead_letters.peek()
    keys = [(plain.id, a.message_id), (plain.id, b.message_id), (fifo.id, c.message_id), (1, fresh_id())]
    found = await dead_letters.store.notes_of_each(keys)
    assert found == {keys[0]: [BUSY], keys[1]: [BUSY]}
    assert await dead_letters.store.notes_of_each([]) == {}


async def test_a_message_is_located_by_its_id_and_by_what_its_headers_say(plain: Bench, fifo: Bench) -> None:
    first = plain.new_delivery("a")
    first.headers = b'{"id":"6f1c"}'
    second, third = plain.new_delivery("b"), plain.new_delivery('"6f1c" in the body is not looked at')
    await plain.store.enqueue([first, second, third])
    elsewhere = fifo.new_delivery("c", group="g")
    elsewhere.headers = first.headers
    await fifo.store.enqueue([elsewhere])

    async def located(queues: list[Bench], message_id: bytes, text: bytes) -> list[str]:
        found, partial = await plain.store.locate([queue.id for queue in queues], message_id, text, 10)
        assert not partial
        return bodies(found)

    assert await located([plain], second.message_id, b'"6f1c"') == ["a", "b"]
    assert await located([plain, fifo], fresh_id(), b'"6f1c"') == ["a", "c"]
    assert await located([plain], second.message_id, b"else") == ["b"]
    assert await located([fifo], second.message_id, b"else") == []
    assert await located([], second.message_id, b"else") == []


async def test_a_message_is_looked_for_among_those_that_came_first(plain: Bench) -> None:
    new_deliveries = [plain.new_delivery(body) for body in "abc"]
    await plain.store.enqueue(new_deliveries)
    found, partial = await plain.store.locate([plain.id], new_deliveries[1].message_id, b"-", 2)
    assert (bodies(found), partial) == (["b"], True)
    assert await plain.store.locate([plain.id], new_deliveries[2].message_id, b"-", 2) == ([], True)
    found, partial = await plain.store.locate([plain.id], new_deliveries[2].message_id, b"-", 3)
    assert (bodies(found), partial) == (["c"], False)


async def test_counting_ends_where_it_was_told_to(plain: Bench, fifo: Bench) -> None:
    await plain.send("a", "b", "c", "d")
    await plain.send("e", "f", delay_ms=5)
    await plain.claim(limit=2)
    assert await plain.store.count(plain.id, NOON, 1) == Counts(1, 1, 1)
    assert await plain.store.count(plain.id, NOON, 9) == await plain.count() == Counts(2, 2, 2)
    await fifo.send("a", "b", "c", group="g")
    await fifo.send("delayed", group="g", delay_ms=5)
    assert await fifo.store.count(fifo.id, NOON, 9) == await fifo.count() == Counts(3, 0, 1)
    await fifo.claim(limit=2)
    assert await fifo.store.count(fifo.id, NOON, 9) == await fifo.count() == Counts(1, 2, 1)


async def test_the_first_of_several_queues_are_found_together(
    plain: Bench, fifo: Bench, dead_letters: Bench
) -> None:
    await plain.send("a", "b")
    await fifo.send("c", group="g")
    found = await plain.store.first_of_each([plain.id, dead_letters.id, fifo.id])
    assert {queue_id: delivery.body for queue_id, delivery in found.items()} == {plain.id: "a", fifo.id: "c"}


async def test_several_queues_are_counted_together(plain: Bench, fifo: Bench) -> None:
    await plain.send("a", "b")
    await fifo.send("c", group="g")
    found = await plain.store.count_each([plain.id, fifo.id], NOON, 9)
    assert found == {plain.id: Counts(2, 0, 0), fifo.id: Counts(1, 0, 0)}
