import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from redrive.engine.ports import Enqueued
from redrive.model.delivery import Delivery
from redrive.model.errors import StoreUnavailable
from redrive.stores.sqlite.transaction import IdSequences
from tests.contracts.stores.bench import NOON, Bench, bodies
from tests.contracts.stores.homes import Home, in_file


async def test_enqueuing_nothing_does_nothing(plain: Bench) -> None:
    assert await plain.store.enqueue([]) == []
    assert await plain.peek() == []


@pytest.mark.parametrize("group", [None, "g"])
async def test_everything_about_a_message_is_kept(plain: Bench, group: str | None) -> None:
    new_delivery = plain.new_delivery("body é\u20ac\U0001d11e", delay_ms=5, group=group, deduplication_id="d")
    new_delivery.headers = new_delivery.sealed = bytes(range(256))
    (enqueued,) = await plain.store.enqueue([new_delivery])
    assert enqueued == Enqueued(new_delivery.message_id, enqueued.seq, repeated=False)
    assert await plain.peek() == [
        Delivery(
            queue_id=plain.id,
            seq=enqueued.seq,
            available_at=NOON + 5,
            attempts=0,
            token=None,
            enqueued_at=NOON,
            sent_at=NOON,
            first_claimed_at=None,
            message_id=new_delivery.message_id,
            group_id=group,
            deduplication_id="d",
            origin=None,
            headers=new_delivery.headers,
            body=new_delivery.body,
            sealed=new_delivery.sealed,
        )
    ]


async def test_answers_come_in_the_order_of_the_question(plain: Bench, fifo: Bench) -> None:
    new_deliveries = [
        fifo.new_delivery("a", group="g"),
        plain.new_delivery("b"),
        fifo.new_delivery("c", group="g"),
        plain.new_delivery("d", group="g"),
        fifo.new_delivery("e", group="h", deduplication_key="k", deduplicate_until=NOON + 1),
    ]
    answers = await plain.store.enqueue(new_deliveries)
    assert [answer.message_id for answer in answers] == [
        new_delivery.message_id for new_delivery in new_deliveries
    ]
    assert [answer.seq for answer in answers] == sorted({answer.seq for answer in answers})
    assert bodies(await plain.peek()) == ["b", "d"]
    assert bodies(await fifo.peek()) == ["a", "c", "e"]


async def test_later_calls_get_later_places(plain: Bench, fifo: Bench) -> None:
    places = [*await plain.send("a", "b"), *await fifo.send("c", group="g"), *await plain.send("d")]
    assert places == sorted(set(places))
    assert await plain.store.last_seq() >= places[-1]


@pytest.mark.parametrize("group", [None, "g"])
async def test_calls_made_together_are_answered_each_for_itself(plain: Bench, group: str | None) -> None:
    calls = [plain.send(f"{number}a", f"{number}b", group=group) for number in range(50)]
    answers = await asyncio.gather(*calls)
    by_place = {delivery.seq: delivery.body for delivery in await plain.peek()}
    expected = [[f"{number}a", f"{number}b"] for number in range(50)]
    assert [[by_place[seq] for seq in answer] for answer in answers] == expected


@pytest.mark.parametrize("group", [None, "g"])
async def test_all_of_a_call_or_none_and_its_neighbours_do_not_suffer(
    plain: Bench, group: str | None
) -> None:
    impossible = plain.new_delivery("impossible", group=group)
    impossible.message_id = None  # type: ignore[assignment]  # what no store takes
    answers = await asyncio.gather(
        plain.send("a", group=group),
        plain.store.enqueue([plain.new_delivery("half", group=group), impossible]),
        plain.send("b", group=group),
        return_exceptions=True,
    )
    assert [isinstance(answer, StoreUnavailable) for answer in answers] == [False, True, False]
    assert sorted(bodies(await plain.peek())) == ["a", "b"]


async def test_a_call_for_several_queues_is_written_whole_or_not_at_all(plain: Bench, fifo: Bench) -> None:
    impossible = replace(fifo.new_delivery("impossible", group="g"), message_id=None)  # type: ignore[arg-type]  # see above
    with pytest.raises(StoreUnavailable):
        await plain.store.enqueue([plain.new_delivery("a"), impossible])
    assert await plain.peek() == []


async def test_the_largest_message_is_kept_whole(plain: Bench) -> None:
    body = "\U0001d11e" * (256 * 1024)  # 1 MiB in UTF-8
    await plain.send(body)
    assert (await plain.claim_one()).body == body


async def test_places_grow_over_restarts_though_everything_was_deleted(lasting_home: Home) -> None:
    places: list[int] = []
    queue_id = 0
    for _ in range(3):
        store = await lasting_home.open()
        queue_id = queue_id or await store.new_id()
        queue = Bench(store, queue_id)
        places += await queue.send("a", "b")
        for delivery in await queue.claim():
            await queue.settle(delivery)
        assert await queue.peek() == []
        await lasting_home.close(store)
    assert places == sorted(set(places))


async def test_places_go_on_where_a_closed_store_stopped(lasting_home: Home) -> None:
    """Their numbers are the ids of dead letters, which people type."""
    places: list[int] = []
    queue_id = 0
    for _ in range(3):
        store = await lasting_home.open()
        queue_id = queue_id or await store.new_id()
        places += await Bench(store, queue_id).send("a", "b")
        await lasting_home.close(store)
    assert places[-1] - places[0] <= 10


async def test_places_grow_after_a_crash_with_a_gap_that_can_still_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = in_file(tmp_path / "redrive.db")
    store = await home.open()
    queue_id = await store.new_id()
    (before,) = await Bench(store, queue_id).send("a")
    monkeypatch.setattr(IdSequences, "give_back_unused", lambda *_: None)  # as if the process had ended here
    await home.close(store)
    (after,) = await Bench(await home.open(), queue_id).send("b")
    assert before < after <= before + 10_000
    await home.leave()


async def test_acknowledged_messages_survive_a_restart_of_the_store(lasting_home: Home) -> None:
    store = await lasting_home.open()
    queue_id = await store.new_id()
    await Bench(store, queue_id).send("a", "b")
    await lasting_home.close(store)
    assert bodies(await Bench(await lasting_home.open(), queue_id).peek()) == ["a", "b"]


async def test_a_closed_store_refuses(lasting_home: Home) -> None:
    store = await lasting_home.open()
    queue = Bench(store, await store.new_id())
    await lasting_home.close(store)
    with pytest.raises(StoreUnavailable):
        await queue.send("a")
