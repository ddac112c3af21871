import asyncio
from dataclasses import replace

from redrive.engine.ports import Enqueued
from tests.contracts.stores.bench import FIVE_MINUTES_MS, NOON, Bench, bodies
from tests.contracts.stores.homes import Home

FORGOTTEN = NOON + FIVE_MINUTES_MS  # when a key of noon is no longer remembered


async def test_a_repetition_is_answered_with_the_original_and_not_kept(fifo: Bench) -> None:
    first = await fifo.send_once("a", "k")
    again = await fifo.send_once("another body", "k", FORGOTTEN - 1)
    assert not first.repeated
    assert again == Enqueued(first.message_id, first.seq, repeated=True)
    assert bodies(await fifo.peek()) == ["a"]


async def test_a_key_is_remembered_though_its_message_was_deleted(fifo: Bench) -> None:
    first = await fifo.send_once("a", "k")
    await fifo.settle(await fifo.claim_one())
    assert await fifo.send_once("a", "k", FORGOTTEN - 1) == replace(first, repeated=True)
    assert await fifo.peek() == []


async def test_after_its_time_a_key_is_new_again(fifo: Bench) -> None:
    first = await fifo.send_once("a", "k")
    second = await fifo.send_once("a", "k", FORGOTTEN)
    assert not second.repeated
    assert second.seq > first.seq
    assert await fifo.send_once("a", "k", FORGOTTEN + 1) == replace(second, repeated=True)
    assert bodies(await fifo.peek()) == ["a", "a"]


async def test_a_repetition_does_not_prolong_the_memory(fifo: Bench) -> None:
    await fifo.send_once("a", "k")
    await fifo.send_once("a", "k", FORGOTTEN - 1)
    assert not (await fifo.send_once("a", "k", FORGOTTEN)).repeated


async def test_a_key_holds_for_its_queue_whatever_the_group(fifo: Bench, fifo_dead_letters: Bench) -> None:
    await fifo.send_once("a", "k", group="g")
    assert (await fifo.send_once("b", "k", group="h")).repeated
    assert not (await fifo_dead_letters.send_once("c", "k")).repeated


async def test_a_key_counts_without_order_and_without_a_group(plain: Bench) -> None:
    new_deliveries = [
        plain.new_delivery(body, deduplication_key="k", deduplicate_until=FORGOTTEN) for body in ("a", "b")
    ]
    first, second = await plain.store.enqueue(new_deliveries)
    assert second == replace(first, repeated=True)
    assert bodies(await plain.peek()) == ["a"]


async def test_repetitions_within_one_call_are_found(fifo: Bench) -> None:
    new_deliveries = [
        fifo.new_delivery(f"{number}", group="g", deduplication_key=key, deduplicate_until=FORGOTTEN)
        for number, key in enumerate("zazaab")
    ]
    answers = await fifo.store.enqueue(new_deliveries)
    assert [answer.repeated for answer in answers] == [False, False, True, True, True, False]
    assert answers[2] == replace(answers[0], repeated=True)
    assert answers[3] == answers[4] == replace(answers[1], repeated=True)
    assert answers[0].seq < answers[1].seq < answers[5].seq
    assert bodies(await fifo.claim()) == ["0", "1", "5"]


async def test_of_repetitions_sent_together_one_is_kept(fifo: Bench) -> None:
    answers = await asyncio.gather(*(fifo.send_once(str(number), "k") for number in range(20)))
    (original,) = [answer for answer in answers if not answer.repeated]
    repetitions = [answer for answer in answers if answer.repeated]
    assert repetitions == [replace(original, repeated=True)] * 19
    assert len(await fifo.peek()) == 1


async def test_an_abandoned_call_is_not_remembered(fifo: Bench) -> None:
    impossible = fifo.new_delivery("a", group="g", deduplication_key="k", deduplicate_until=FORGOTTEN)
    impossible.message_id = None  # type: ignore[assignment]  # what no store takes
    await asyncio.gather(fifo.store.enqueue([impossible]), return_exceptions=True)
    assert not (await fifo.send_once("a", "k")).repeated


async def test_keys_outlive_the_store(lasting_home: Home) -> None:
    store = await lasting_home.open()
    queue_id = await store.new_id()
    first = await Bench(store, queue_id, ordered=True).send_once("a", "k")
    await lasting_home.close(store)
    fifo = Bench(await lasting_home.open(), queue_id, ordered=True)
    assert await fifo.send_once("a", "k", NOON + 1) == replace(first, repeated=True)
