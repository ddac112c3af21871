"""Lock waits among nodes on PostgreSQL: another connection holds a lock, and each verb waits for it or not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from redrive.engine.ports import Swept
from redrive.model.delivery import Delivery, Limits, Outcome
from redrive.stores.postgres import rows
from tests.contracts.stores.bench import DONE, LEASE_MS, NOON, Bench, bodies
from tests.contracts.stores.homes import Home

LAPSE = NOON + LEASE_MS
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
# A shard's rows are waited for on its node.
WAITING_ANYWHERE = f"SELECT sum(result::bigint) FROM run_command_on_all_nodes($${WAITING}$$)"
# A transaction keeps these of each table that it has read.
READ_BY_WAITERS = """
    SELECT count(*) FROM pg_locks w JOIN pg_locks r USING (pid) JOIN pg_class c ON c.oid = r.relation
    WHERE w.locktype = 'advisory' AND NOT w.granted AND c.relnamespace = 'public'::regnamespace
"""


class OtherHand:
    """A transaction that does part of what a node does, and stays open."""

    def __init__(
        self, connection: asyncpg.Connection, watcher: asyncpg.Connection, waiting: str = WAITING
    ) -> None:
        self.connection = connection
        self._watcher = watcher
        self._waiting = waiting

    async def lock(self, queue: Bench, *names: str) -> None:
        """Take groups' locks."""
        await rows.lock_groups(self.connection, [(queue.id, name) for name in names])

    async def lock_all(self) -> None:
        """Take the locks of all the groups there may be."""
        names = {f"{number}" for number in range(100_000)}
        await rows.lock_groups(self.connection, [(0, name) for name in names])

    async def hold(self, delivery: Delivery) -> None:
        """Lock a delivery as one who is about to change it."""
        await self.connection.execute(
            "SELECT 1 FROM deliveries WHERE queue_id = $1 AND seq = $2 FOR UPDATE",
            delivery.queue_id,
            delivery.seq,
        )

    async def is_waited_for(self) -> None:
        """Return when somebody waits for a lock."""
        while not await self._watcher.fetchval(self._waiting):
            pass

    async def tables_read_by_waiters(self) -> int:
        """The number of tables that transactions have read which wait for a group's lock now."""
        number: int = await self._watcher.fetchval(READ_BY_WAITERS)
        return number


@pytest.fixture
async def queues(shared_home: Home) -> dict[str, Bench]:
    store = await shared_home.open()
    return {
        name: Bench(store, await store.new_id(), ordered="fifo" in name)
        for name in ("plain", "fifo", "fifo dead", "plain dead")
    }


@pytest.fixture
async def other(
    queues: dict[str, Bench], shared_home: Home, shared_database: str
) -> AsyncIterator[OtherHand]:
    connection, watcher = await asyncpg.connect(shared_database), await asyncpg.connect(shared_database)
    await connection.execute("BEGIN")
    yield OtherHand(connection, watcher, WAITING_ANYWHERE if shared_home.kind == "citus" else WAITING)
    await connection.close()
    await watcher.close()


@asynccontextmanager
async def waited_for(other: OtherHand, call: Awaitable[Any]) -> AsyncIterator[asyncio.Future[Any]]:
    """The call waits for the other hand; after the block, in which it may change things, it goes on."""
    future = asyncio.ensure_future(call)
    async with asyncio.timeout(20):
        await other.is_waited_for()
        assert not future.done()
        yield future
        await other.connection.execute("COMMIT")
        await future


Verb = Callable[[dict[str, Bench]], Awaitable[Any]]


async def claimed(queue: Bench) -> Delivery:
    (delivery,) = [one for one in await queue.peek() if one.token is not None]
    return delivery


async def settle_fifo(queues: dict[str, Bench]) -> None:
    await queues["fifo"].settle(await claimed(queues["fifo"]))


async def extend_fifo(queues: dict[str, Bench]) -> None:
    await queues["fifo"].extend(await claimed(queues["fifo"]), LAPSE + 1)


async def repeat_attempt(queues: dict[str, Bench]) -> None:
    assert await queues["fifo"].claim(NOON + 1, attempt_id="t")


WAITING_VERBS: dict[str, Verb] = {
    "send to an ordered group": lambda queues: queues["fifo"].send("b", group="g"),
    "send to a fair group": lambda queues: queues["plain"].send("b", group="g"),
    "claim an ordered group": lambda queues: queues["fifo"].claim(LAPSE),
    "claim a fair group's turn": lambda queues: queues["plain"].claim(),
    "claim at a pace": lambda queues: queues["fifo"].claim(LAPSE, rate_max=10),
    "settle in order": settle_fifo,
    "extend in order": extend_fifo,
    "repeat an attempt": repeat_attempt,
    "purge a group": lambda queues: queues["fifo"].store.purge(queues["fifo"].id, 10**9, 10),
    "sweep a group": lambda queues: queues["fifo"].store.sweep(queues["fifo"].id, NOON, NOON, 10),
    "move a group": lambda queues: queues["fifo"].move(LAPSE, destination=queues["fifo dead"].target),
}


@pytest.mark.parametrize("name", WAITING_VERBS)
async def test_every_verb_that_touches_a_group_waits_for_its_lock(
    queues: dict[str, Bench], other: OtherHand, name: str
) -> None:
    await queues["fifo"].send("a", "b", group="g")
    await queues["plain"].send("a", "b", group="g")
    await queues["fifo"].claim(limit=1, attempt_id="t")
    for queue in queues.values():
        await other.lock(queue, "g")
    async with waited_for(other, WAITING_VERBS[name](queues)):
        assert await other.tables_read_by_waiters() == 0  # it begins with its locks


@pytest.mark.parametrize("how", ["claim", "settle", "lead to", "move"])
async def test_entering_a_group_of_another_queue_waits_for_its_lock(
    queues: dict[str, Bench], other: OtherHand, how: str
) -> None:
    fifo, dead = queues["fifo"], queues["fifo dead"]
    await fifo.send("a", group="g")
    claim = await fifo.claim_one()
    await other.lock(dead, "g")
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "claim": lambda: fifo.request(LAPSE, **fifo.dying(1, dead)),
        "settle": lambda: fifo.settle(claim, target=dead.target),
        "lead to": lambda: fifo.settle(claim, follow_ups=[dead.new_delivery("a", group="g")]),
        "move": lambda: fifo.move(LAPSE, destination=dead.target),
    }
    async with waited_for(other, calls[how]()):
        assert await other.tables_read_by_waiters() == 0
    assert bodies(await dead.peek()) == ["a"]


async def test_verbs_on_messages_without_groups_wait_for_no_lock(
    queues: dict[str, Bench], other: OtherHand
) -> None:
    plain, dead = queues["plain"], queues["plain dead"]
    await plain.send("fair 1", "fair 2", group="g")
    fair = await plain.claim()
    await other.lock_all()
    async with asyncio.timeout(20):
        for claim in fair:  # a claim of a fair queue has no turn any more
            assert await plain.settle(claim) == DONE
        await plain.send("a", "b", "c")
        a, b, _ = await plain.claim()
        await plain.extend(a, NOON + 1)
        await plain.settle(b, follow_ups=[dead.new_delivery("about b")])
        await plain.request(LAPSE, **plain.dying(1, dead))
        await dead.move(LAPSE, destination=plain.target)
        await plain.store.sweep(plain.id, 0, NOON, 10)
        assert await plain.store.purge(plain.id, 10**9, 10) == 3


async def test_after_its_first_pass_a_claim_waits_for_no_lock(
    queues: dict[str, Bench], other: OtherHand
) -> None:
    fifo = queues["fifo"]
    await fifo.send("expired", group="a")
    await fifo.send("locked", now=NOON + 1, group="b")
    await fifo.send("free", now=NOON + 2, group="c")
    await other.lock(fifo, "b")
    claimed = await fifo.request(NOON + 1000, 1, limits=Limits(retention_ms=1000))
    assert (claimed.expired, bodies(claimed.deliveries)) == (1, ["free"])


@pytest.mark.parametrize("group", [None, "g"])
async def test_a_claim_passes_over_what_another_is_about_to_take(
    queues: dict[str, Bench], other: OtherHand, group: str | None
) -> None:
    plain = queues["plain"]
    await plain.send("held", "free", group=group)
    first = (await plain.claim(lease_ms=1))[0]  # in a fair queue, both now stand in line for themselves
    await other.hold(first)
    async with asyncio.timeout(20):
        assert bodies(await plain.claim(NOON + 1)) == ["free"]


async def test_a_claim_that_meets_only_locked_deliveries_is_due_at_once(
    queues: dict[str, Bench], other: OtherHand
) -> None:
    plain = queues["plain"]
    (seq,) = await plain.send("held")
    await other.hold((await plain.peek())[0])
    claimed = await plain.request(NOON + 1)
    assert (claimed.deliveries, claimed.next_at) == ([], NOON)
    assert seq


@pytest.mark.parametrize("outcome", [Outcome.DELIVERED, Outcome.RETRY, Outcome.DEAD_LETTERED])
async def test_a_settlement_is_met_though_the_claim_was_just_extended(
    queues: dict[str, Bench], other: OtherHand, outcome: Outcome
) -> None:
    plain = queues["plain"]
    await plain.send("a", "b")
    claim, _ = await plain.claim()
    await other.connection.execute(
        "UPDATE deliveries SET available_at = available_at + 1 WHERE seq = $1", claim.seq
    )
    target = queues["plain dead"].target if outcome is Outcome.DEAD_LETTERED else None
    async with waited_for(
        other, plain.settle(claim, NOON, outcome, available_at=NOON, target=target)
    ) as settled:
        pass
    assert settled.result() == DONE
    assert bodies(await plain.claim()) == (["a"] if outcome is Outcome.RETRY else [])


async def test_an_extension_is_met_though_the_claim_was_just_extended(
    queues: dict[str, Bench], other: OtherHand
) -> None:
    plain = queues["plain"]
    await plain.send("a")
    claim = await plain.claim_one()
    await other.connection.execute("UPDATE deliveries SET available_at = available_at + 1")
    async with waited_for(other, plain.extend(claim, NOON + 7)) as extended:
        pass
    assert extended.result() == DONE
    assert (await plain.peek())[0].available_at == NOON + 7


@pytest.mark.parametrize("verb", ["purge", "sweep"])
async def test_a_delivery_extended_concurrently_is_removed_by_purge_and_sweep(
    queues: dict[str, Bench], other: OtherHand, verb: str
) -> None:
    plain = queues["plain"]
    await plain.send("a", "b")
    await other.connection.execute("UPDATE deliveries SET available_at = available_at + 1")
    store, queue_id = plain.store, plain.id
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "purge": lambda: store.purge(queue_id, 10**9, 10),
        "sweep": lambda: store.sweep(queue_id, NOON, NOON, 10),
    }
    async with waited_for(other, calls[verb]()) as removed:
        pass
    assert removed.result() == {"purge": 2, "sweep": Swept(2, has_more=False)}[verb]


async def test_a_settlement_is_refused_when_another_claimed_meanwhile(
    queues: dict[str, Bench], other: OtherHand
) -> None:
    plain = queues["plain"]
    await plain.send("a")
    claim = await plain.claim_one()
    await other.connection.execute("UPDATE deliveries SET token = token + 1 WHERE queue_id = $1", plain.id)
    async with waited_for(other, plain.settle(claim)) as settled:
        pass
    assert settled.result().reason == "superseded"
    assert len(await plain.peek()) == 1


async def test_keys_are_remembered_in_one_order_by_all(
    queues: dict[str, Bench], other: OtherHand, caplog: pytest.LogCaptureFixture
) -> None:
    fifo = queues["fifo"]
    remember = "INSERT INTO deduplication VALUES ($1, $2, 'other', 7, 0, $3)"
    new_deliveries = [
        fifo.new_delivery(key, group="g", deduplication_key=key, deduplicate_until=NOON + 1) for key in "zma"
    ]
    await other.connection.execute(remember, fifo.id, "m", NOON + 1)
    async with waited_for(other, fifo.store.enqueue(new_deliveries)) as answers:
        await other.connection.execute(
            remember, fifo.id, "z", NOON + 1
        )  # not remembered yet: "m" comes before
    assert [answer.repeated for answer in answers.result()] == [True, True, False]
    assert caplog.messages == []  # nobody had to be rolled back


async def test_locks_are_taken_in_one_order_by_all() -> None:
    class Recorder:
        async def fetch(self, _statement: str, _locks: int, keys: list[int]) -> list[Any]:
            taken.append(keys)
            return []

    taken: list[list[int]] = []
    await rows.lock_groups(Recorder(), [(1, f"g{number}") for number in range(500)])
    assert taken == [sorted(set(taken[0]))]
