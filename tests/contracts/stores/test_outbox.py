"""Publications to several queues of a cluster: acknowledged by the coordinator, moved to their queues once each."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from redrive.engine.ports import NewDelivery
from redrive.model.errors import StoreUnavailable
from redrive.runtime.simulated import SimulatedClock
from redrive.stores.postgres import contents, outbox
from redrive.stores.postgres.connections import Connections
from redrive.stores.postgres.outbox import LOOK_MS, Outbox
from redrive.stores.postgres.store import PostgresStore
from tests.contracts.stores.bench import NOON, Bench, bodies
from tests.contracts.stores.homes import Home

IN_OUTBOX = "SELECT queue_id, seq FROM outbox ORDER BY seq"


class Node:
    """A node's outbox, which moves only after `open`.

    Attributes:
        clock: Its seconds pass when a test says so.
        entered: The queues that it tells of.
    """

    def __init__(self, url: str, name: str) -> None:
        self.clock = SimulatedClock(NOON)
        self.entered: asyncio.Queue[int] = asyncio.Queue()
        self._connections = Connections(url, self.clock, name, 4)
        self.outbox = Outbox(self._connections, self.clock, self.entered.put_nowait)

    async def close(self) -> None:
        await self.outbox.close()
        await self._connections.close()


@pytest.fixture
async def store(shared_database: str) -> AsyncIterator[PostgresStore]:
    """A store that has moved what there was, and looks no more: its clock stands still."""
    store = PostgresStore(shared_database, SimulatedClock(NOON), "store")
    await store.open()
    await store.flush()
    yield store
    await store.close()


@pytest.fixture
async def node(store: PostgresStore, shared_database: str) -> AsyncIterator[Callable[[str], Node]]:
    """Makes nodes beside the store, which has made the schema."""
    nodes: list[Node] = []

    def make(name: str) -> Node:
        nodes.append(Node(shared_database, name))
        return nodes[-1]

    yield make
    for one in nodes:
        await one.close()


@pytest.fixture
async def queues(store: PostgresStore) -> list[Bench]:
    return [Bench(store, await store.new_id()) for _ in range(3)]


def publication(queues: list[Bench], body: str = "news") -> list[NewDelivery]:
    return [queue.new_delivery(body, sealed=body.encode()) for queue in queues]


async def test_a_publication_is_on_disk_before_it_enters_and_another_node_moves_it(
    node: Callable[[str], Node], queues: list[Bench], shared_home: Home
) -> None:
    answers = await node("lost").outbox.add(publication(queues))
    assert await shared_home.query(IN_OUTBOX) == [
        (queue.id, answer.seq) for queue, answer in zip(queues, answers, strict=True)
    ]
    assert [await queue.peek() for queue in queues] == [[], [], []]

    other = node("other")
    other.outbox.open()
    assert {await other.entered.get() for _ in queues} == {queue.id for queue in queues}
    assert [[d.seq for d in await queue.peek()] for queue in queues] == [[answer.seq] for answer in answers]
    claimed = [await queue.claim_one() for queue in queues]
    assert [(delivery.body, delivery.sealed) for delivery in claimed] == [("news", b"news")] * 3
    assert await shared_home.query(IN_OUTBOX) == []


async def test_each_delivery_enters_once_though_two_nodes_move(
    node: Callable[[str], Node], queues: list[Bench], shared_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_ROWS_MAX", 16)
    one, other = node("one"), node("other")
    for each in (one, other):
        each.outbox.open()
    await asyncio.gather(
        *(each.outbox.add(publication(queues, str(number))) for number in range(30) for each in (one, other))
    )
    await asyncio.gather(one.outbox.idle(), other.outbox.idle())
    while await shared_home.query(IN_OUTBOX):
        pass  # the last statement of the other node
    for queue in queues:
        assert sorted(bodies(await queue.peek(limit=100))) == sorted([str(n) for n in range(30)] * 2)


async def test_a_queue_that_cannot_be_moved_to_holds_up_no_other(
    node: Callable[[str], Node], queues: list[Bench], shared_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_WAITING_MAX", 1)
    first = node("first")
    answers = await first.outbox.add(publication(queues))
    refused = (queues[1].id, answers[1].seq)
    await shared_home.query(
        "INSERT INTO deliveries (queue_id, seq, available_at, enqueued_at, sent_at, attempts, place, message_id, body)"
        " VALUES ({}, {}, 0, 0, 0, 0, 1, '', 'in the way')".format(*refused)
    )
    first.outbox.open()
    assert {await first.entered.get() for _ in range(2)} == {queues[0].id, queues[2].id}
    await first.outbox.idle()
    assert await shared_home.query(IN_OUTBOX) == [refused]
    with pytest.raises(StoreUnavailable, match="1 deliveries wait for nodes"):
        await first.outbox.add(publication(queues))

    await shared_home.query("DELETE FROM deliveries WHERE queue_id = {} AND seq = {}".format(*refused))
    await first.clock.advance(LOOK_MS, first.outbox.idle)
    assert await first.entered.get() == queues[1].id
    assert bodies(await queues[1].peek()) == ["news"]


async def test_purging_a_queue_removes_its_deliveries_from_the_outbox(
    node: Callable[[str], Node], queues: list[Bench], shared_home: Home, store: PostgresStore
) -> None:
    unmoved = node("unmoved").outbox
    answers = await unmoved.add(publication(queues))
    await unmoved.add(publication(queues[:1], "later"))
    await store.purge(queues[0].id, answers[0].seq, 100)
    assert [queue_id for queue_id, _ in await shared_home.query(IN_OUTBOX)] == [
        q.id for q in [*queues[1:], queues[0]]
    ]


async def test_deliveries_in_the_outbox_are_counted_as_deliveries(
    node: Callable[[str], Node], queues: list[Bench], shared_database: str
) -> None:
    await node("unmoved").outbox.add(publication(queues))
    seen = await contents.look_through(shared_database)
    assert {table.name: table.rows for table in seen.tables}["deliveries"] == 3
    assert (seen.queues, seen.faults) == (3, [])


async def test_a_store_on_a_cluster_publishes_by_its_outbox(
    store: PostgresStore, queues: list[Bench]
) -> None:
    arrivals: list[int] = []
    store.listen(arrivals.append, lambda *_: None)
    enqueued = await store.enqueue(publication(queues))
    await store.flush()
    assert [[delivery.seq for delivery in await queue.peek()] for queue in queues] == [
        [each.seq] for each in enqueued
    ]
    assert set(arrivals) == ({queue.id for queue in queues} if store.connections.is_citus else set())
