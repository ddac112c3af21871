import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest

from redrive.engine.ports import Enqueued, OrderedPublication, Store
from redrive.model.errors import StoreUnavailable
from tests.contracts.stores.bench import FIVE_MINUTES_MS, NOON, Bench, bodies, fresh_id
from tests.contracts.stores.homes import Home

FORGOTTEN = NOON + FIVE_MINUTES_MS


@pytest.fixture
async def topic_id(store: Store) -> int:
    return await store.new_id()


def publication(
    topic_id: int,
    key: str,
    *queues: Bench,
    body: str = "a",
    now: int = NOON,
    headers: bytes | None = b'{"n":1}',
) -> OrderedPublication:
    new_deliveries = [queue.new_delivery(body, now, group="g") for queue in queues]
    for new_delivery in new_deliveries:
        new_delivery.headers = headers
    return OrderedPublication(topic_id, key, now, now + FIVE_MINUTES_MS, fresh_id(), new_deliveries)


async def headers_in(queue: Bench) -> list[list[tuple[str, Any]]]:
    """The members of each message's headers, in their order."""
    return [list(orjson.loads(delivery.headers or b"null").items()) for delivery in await queue.peek()]


async def test_a_publication_enters_all_its_queues_and_says_which_it_was(
    topic_id: int, fifo: Bench, fifo_dead_letters: Bench
) -> None:
    one = publication(topic_id, "k", fifo, fifo_dead_letters)
    (answer,) = await fifo.store.publish([one])
    assert answer == Enqueued(one.message_id, answer.seq, repeated=False)
    assert await headers_in(fifo) == [[("sequence", answer.seq), ("n", 1)]]
    assert await headers_in(fifo_dead_letters) == [[("sequence", answer.seq), ("n", 1)]]


@pytest.mark.parametrize("headers", [None, b"{}"])
async def test_a_publication_without_headers_gets_some(
    topic_id: int, fifo: Bench, headers: bytes | None
) -> None:
    (answer,) = await fifo.store.publish([publication(topic_id, "k", fifo, headers=headers)])
    assert await headers_in(fifo) == [[("sequence", answer.seq)]]


async def test_publications_are_numbered_in_order(topic_id: int, fifo: Bench) -> None:
    publications = [publication(topic_id, key, fifo, body=key) for key in "zab"]
    seqs = [answer.seq for answer in await fifo.store.publish(publications)]
    assert seqs == sorted(set(seqs))
    assert bodies(await fifo.claim()) == ["z", "a", "b"]


async def test_a_repetition_is_answered_with_the_original(topic_id: int, fifo: Bench) -> None:
    (first,) = await fifo.store.publish([publication(topic_id, "k", fifo)])
    (again,) = await fifo.store.publish([publication(topic_id, "k", fifo, now=FORGOTTEN - 1)])
    assert again == replace(first, repeated=True)
    assert len(await fifo.peek()) == 1
    (as_new,) = await fifo.store.publish([publication(topic_id, "k", fifo, now=FORGOTTEN)])
    assert not as_new.repeated
    assert len(await fifo.peek()) == 2


async def test_repetitions_within_one_call_are_found(topic_id: int, fifo: Bench) -> None:
    first, other, again = await fifo.store.publish(
        [publication(topic_id, key, fifo, body=key) for key in "klk"]
    )
    assert (other.repeated, again) == (False, replace(first, repeated=True))
    assert bodies(await fifo.peek()) == ["k", "l"]


async def test_a_key_holds_for_its_topic_alone(topic_id: int, fifo: Bench) -> None:
    other_topic = await fifo.store.new_id()
    answers = await fifo.store.publish(
        [publication(topic_id, "k", fifo), publication(other_topic, "k", fifo)]
    )
    assert [answer.repeated for answer in answers] == [False, False]


async def test_a_topic_without_queues_remembers_too(topic_id: int, store: Store) -> None:
    (first,) = await store.publish([publication(topic_id, "k")])
    assert await store.publish([publication(topic_id, "k")]) == [replace(first, repeated=True)]


async def test_of_repetitions_published_together_one_is_kept(topic_id: int, fifo: Bench) -> None:
    calls = [fifo.store.publish([publication(topic_id, "k", fifo)]) for _ in range(10)]
    answers = [answer for (answer,) in await asyncio.gather(*calls)]
    assert sorted(answer.repeated for answer in answers) == [False, *[True] * 9]
    assert len({answer.seq for answer in answers}) == 1
    assert len(await fifo.peek()) == 1


async def test_a_failed_neighbour_changes_nothing(topic_id: int, fifo: Bench) -> None:
    impossible = publication(topic_id, "k", fifo)
    impossible.new_deliveries[0].message_id = None  # type: ignore[assignment]  # what no store takes
    good = publication(topic_id, "l", fifo)
    answers, refused = await asyncio.gather(
        fifo.store.publish([good]), fifo.store.publish([impossible]), return_exceptions=True
    )
    assert isinstance(refused, StoreUnavailable)
    assert not isinstance(answers, BaseException)
    (delivery,) = await fifo.peek()
    assert delivery.headers == b'{"sequence":%d,"n":1}' % answers[0].seq
    (again,) = await fifo.store.publish([publication(topic_id, "k", fifo)])
    assert not again.repeated


async def test_publications_outlive_the_store(lasting_home: Home) -> None:
    store = await lasting_home.open()
    topic_id, queue_id = await store.new_id(), await store.new_id()
    (first,) = await store.publish([publication(topic_id, "k", Bench(store, queue_id, ordered=True))])
    await lasting_home.close(store)
    fifo = Bench(await lasting_home.open(), queue_id, ordered=True)
    assert await fifo.store.publish([publication(topic_id, "k", fifo)]) == [replace(first, repeated=True)]
    assert len(await fifo.peek()) == 1
