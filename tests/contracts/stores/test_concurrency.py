"""Several nodes on one database at the same time; what the locks are for."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from redrive.engine.ports import Put, Store
from redrive.model.delivery import Delivery
from redrive.model.errors import Conflict
from redrive.stores.sqlite.store import SqliteStore
from tests.contracts.stores.bench import DONE, FIVE_MINUTES_MS, LEASE_MS, NOON, Bench, bodies
from tests.contracts.stores.homes import Home

GROUPS = ("a", "b", "c")


@pytest.fixture(autouse=True)
def nobody_waits_in_a_circle(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A deadlock would be survived, after a second: here it is a failure."""
    with caplog.at_level(logging.WARNING, "redrive.stores.postgres"):
        yield
    assert [record.getMessage() for record in (*caplog.get_records("call"), *caplog.records)] == []


@pytest.fixture
async def stores(shared_home: Home) -> list[Store]:
    return [await shared_home.open(str(number)) for number in range(3)]


async def benches(stores: list[Store], *, ordered: bool = False) -> list[Bench]:
    """One queue, as each node sees it."""
    queue_id = await stores[0].new_id()
    return [Bench(store, queue_id, ordered) for store in stores]


async def test_nodes_claiming_together_share_nothing(stores: list[Store]) -> None:
    nodes = await benches(stores)
    await nodes[0].send(*(str(number) for number in range(300)))

    async def drain(node: Bench) -> list[Delivery]:
        claimed: list[Delivery] = []
        while len(claims := await node.claim(limit=7)) or (await node.count()).available:
            claimed += claims
        return claimed

    answers = await asyncio.gather(*(drain(node) for node in nodes for _ in range(3)))
    numbers = sorted(int(delivery.body) for answer in answers for delivery in answer)
    assert numbers == list(range(300))


async def test_numbers_of_queues_are_never_given_twice(stores: list[Store]) -> None:
    given = await asyncio.gather(*(store.new_id() for store in stores for _ in range(20)))
    assert len(set(given)) == 60


async def test_of_nodes_that_change_the_same_document_one_is_refused(stores: list[Store]) -> None:
    await stores[0].write([Put("queue", "a", {})])
    changes = [store.write([Put("queue", "a", {"node": number}, 1)]) for number, store in enumerate(stores)]
    answers = await asyncio.gather(*changes, return_exceptions=True)
    assert sorted(str(type(answer)) for answer in answers if answer != [2]) == [str(Conflict)] * 2


async def test_of_repetitions_sent_to_different_nodes_one_is_kept(stores: list[Store]) -> None:
    nodes = await benches(stores, ordered=True)
    for round_number in range(10):
        calls = [node.send_once(f"{round_number}", f"{round_number}", group="g") for node in nodes * 2]
        answers = await asyncio.gather(*calls)
        assert sorted(answer.repeated for answer in answers) == [False, *[True] * 5]
        assert len({(answer.message_id, answer.seq) for answer in answers}) == 1
    assert len(await nodes[0].peek()) == 10


async def test_a_key_whose_time_is_over_is_taken_by_one_of_the_nodes(stores: list[Store]) -> None:
    nodes = await benches(stores, ordered=True)
    for round_number in range(5):
        now = NOON + round_number * FIVE_MINUTES_MS
        answers = await asyncio.gather(*(node.send_once("a", "k", now, group="g") for node in nodes))
        assert sorted(answer.repeated for answer in answers) == [False, True, True]
    assert len(await nodes[0].peek()) == 5


async def test_messages_keep_their_sending_order_across_nodes(stores: list[Store]) -> None:
    nodes = await benches(stores, ordered=True)
    sent = [str(number) for number in range(30)]
    for number, body in enumerate(sent):
        await nodes[number % 3].send(body, group="g")
    assert bodies(await nodes[0].claim(limit=30)) == sent


@dataclass
class Receivers:
    """Consumers on all nodes, and what they saw."""

    nodes: list[Bench]
    expected: int
    in_flight: set[str] = field(default_factory=set)
    came: dict[str, list[int]] = field(default_factory=dict)
    settled: int = 0
    given_back: int = 0

    async def receive(self, node: Bench) -> None:
        while self.settled < self.expected:
            claims = await node.claim(limit=3)
            await self._work(node, claims)

    async def _work(self, node: Bench, claims: list[Delivery]) -> None:
        groups = {claim.group_id or "" for claim in claims}
        if node.ordered:
            assert not groups & self.in_flight, "a group was claimed twice"
            self.in_flight |= groups
        gives_back = bool(claims) and claims[0].seq % 5 == 0 and claims[0].attempts == 1
        for claim in claims:
            if not gives_back:
                self.came.setdefault(claim.group_id or "", []).append(claim.seq)
        self.in_flight -= groups  # what follows frees them before it is answered
        for claim in reversed(claims) if gives_back else claims:
            if gives_back:
                self.given_back += 1
                assert await node.extend(claim, NOON) == DONE
            else:
                assert await node.settle(claim) == DONE
                self.settled += 1


@pytest.mark.parametrize("ordered", [True, False])
async def test_few_groups_hammered_by_all_nodes_lose_and_overtake_nothing(
    stores: list[Store], shared_home: Home, ordered: bool
) -> None:
    nodes = await benches(stores, ordered=ordered)
    senders, each = 6, 40

    async def send(number: int) -> None:
        for index in range(each):
            await nodes[number % 3].send(f"{number} {index}", group=GROUPS[(number + index) % 3])

    receivers = Receivers(nodes, senders * each)
    await asyncio.gather(
        *(send(number) for number in range(senders)),
        *(receivers.receive(node) for node in nodes for _ in range(2)),
    )
    assert await nodes[0].peek() == []
    assert receivers.given_back > 0
    if ordered:
        assert all(seqs == sorted(seqs) for seqs in receivers.came.values())
    await shared_home.check_turns()


@pytest.mark.parametrize("ordered", [True, False])
async def test_deaths_and_returns_on_all_nodes_lose_nothing(
    stores: list[Store], shared_home: Home, ordered: bool
) -> None:
    async def live_and_die(node: Bench, dead: Bench) -> None:
        for _ in range(8):
            await node.claim(lease_ms=0)
            await node.request(limit=4, lease_ms=0, **node.dying(1, dead))
            await dead.move(limit=3, destination=node.target)

    async def sweep(node: Bench, dead: Bench) -> None:
        for _ in range(8):
            await node.store.sweep(node.id, NOON - 1, NOON, 50)
            await dead.store.purge(dead.id, 0, 50)

    nodes, dead_letters = await benches(stores, ordered=ordered), await benches(stores, ordered=ordered)
    sent = [f"{group}{number}" for group in GROUPS for number in range(15)]
    for body in sent:
        await nodes[0].send(body, group=body[0])
    pairs = list(zip(nodes, dead_letters, strict=True))
    await asyncio.gather(*(live_and_die(*pair) for pair in pairs), *(sweep(*pair) for pair in pairs))
    left = [*await nodes[0].peek(), *await dead_letters[0].peek()]
    assert sorted(bodies(left)) == sorted(sent)
    await shared_home.check_turns()


@pytest.mark.parametrize("ordered", [True, False])
async def test_purging_what_others_send_and_claim_leaves_turns_right(
    stores: list[Store], shared_home: Home, ordered: bool
) -> None:
    async def send(node: Bench) -> None:
        for number in range(40):
            await node.send(str(number), group=GROUPS[number % 3])

    async def purge(node: Bench) -> None:
        for _ in range(30):
            await node.store.purge(node.id, await node.store.last_seq(), 3)

    async def claim(node: Bench) -> None:
        for _ in range(20):
            for delivery in await node.claim(limit=2):
                await node.settle(delivery)

    nodes = await benches(stores, ordered=ordered)
    await asyncio.gather(*(verb(node) for verb in (send, purge, claim) for node in nodes))
    await shared_home.check_turns()
    while claims := await nodes[0].claim(NOON + LEASE_MS, 100):
        for delivery in claims:
            await nodes[0].settle(delivery, NOON + LEASE_MS)
    assert await nodes[0].peek() == []


async def test_a_store_is_not_idle_while_a_call_is_under_way(store: Store, plain: Bench) -> None:
    for work in (plain.send("a"), store.count(plain.id, NOON), store.get("kind", "key")):
        calling = asyncio.ensure_future(work)
        await asyncio.sleep(0)
        assert not store.is_idle
        await calling
    if isinstance(store, SqliteStore):
        await store.flush()
        assert store.is_idle
