"""A database that goes away, falls silent or comes back, and what nodes tell each other meanwhile."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from redrive.composition.store import open_store
from redrive.engine.ports import Put, Remove, Runtime, Store
from redrive.model.delivery import Outcome
from redrive.model.errors import Conflict, StoreUnavailable
from redrive.runtime.machine import SystemClock
from redrive.runtime.simulated import SimulatedClock
from redrive.settings import Settings
from redrive.stores.postgres import connecting, inspection, listening
from redrive.stores.postgres.connections import Connections
from redrive.stores.postgres.pooling import session_of
from redrive.stores.postgres.store import PostgresStore
from tests.contracts.stores.bench import NOON, Bench, bodies
from tests.contracts.stores.homes import Home
from tests.contracts.stores.wire import Wire
from tests.services.postgres import PostgresServer

PATIENCE_SECONDS = 30  # a test's own: only a broken store is waited for so long


class Ears:
    """Collects the notices that a store gives its engine."""

    def __init__(self, store: Store) -> None:
        self._arrived: asyncio.Queue[int] = asyncio.Queue()
        self._changed: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        store.listen(self._arrived.put_nowait, lambda kind, key: self._changed.put_nowait((kind, key)))

    async def arrived(self) -> int:
        return await asyncio.wait_for(self._arrived.get(), PATIENCE_SECONDS)

    async def changed(self) -> tuple[str, str]:
        return await asyncio.wait_for(self._changed.get(), PATIENCE_SECONDS)

    @property
    def heard_nothing(self) -> bool:
        return self._arrived.empty() and self._changed.empty()


async def works_again(queue: Bench) -> None:
    """Send until the store takes it: a connection that died unnoticed may cost the first calls."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await queue.send("again")
            except StoreUnavailable:
                continue
            return


@pytest.fixture
async def wire(shared_database: str) -> AsyncIterator[Wire]:
    async with Wire(shared_database) as wire:
        yield wire


@pytest.fixture
async def store(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresStore]:
    """A store at the end of the wire, that loses patience soon."""
    monkeypatch.setattr(connecting, "PATIENCE_SECONDS", 0.5)
    store = PostgresStore(wire.url, SystemClock(), "one")
    await store.open()
    yield store
    wire.cut()
    await store.close()


@pytest.fixture
async def queue(store: PostgresStore) -> Bench:
    return Bench(store, await store.new_id())


# ---- outages -----------------------------------------------------------------------------------------------


async def test_acknowledged_messages_survive_a_crash_of_the_database(
    durable_postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    store = PostgresStore(durable_postgres.url(), SystemClock(), "one")
    await store.open()
    queue = Bench(store, await store.new_id())
    acknowledged: list[str] = []
    under_way = asyncio.Event()

    async def send(sender: int) -> None:
        for number in range(1_000_000):
            body = f"{sender} {number}"
            try:
                await queue.send(body)
            except StoreUnavailable:
                return
            acknowledged.append(body)
            if len(acknowledged) == 200:
                under_way.set()

    senders = asyncio.gather(*(send(number) for number in range(16)))
    await under_way.wait()
    await asyncio.to_thread(durable_postgres.crash)
    await asyncio.wait_for(senders, PATIENCE_SECONDS)  # each was told
    assert [record.getMessage().split()[0] for record in caplog.records if "lost" in record.getMessage()] == [
        "store.lost"
    ]
    await asyncio.to_thread(durable_postgres.start)
    await works_again(queue)
    kept = bodies(await queue.peek(1_000_000))
    assert set(acknowledged) <= set(kept)
    assert len(set(kept) - {"again"}) == len([body for body in kept if body != "again"])  # and nothing twice
    assert "store.back" in caplog.text
    await store.close()


@pytest.mark.parametrize("verb", ["send", "claim", "settle", "write", "count"])
async def test_each_call_ends_though_the_database_says_nothing(wire: Wire, queue: Bench, verb: str) -> None:
    await queue.send("a")
    claim = await queue.claim_one()
    wire.silence()
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "send": lambda: queue.send("b"),
        "claim": queue.claim,
        "settle": lambda: queue.settle(claim),
        "write": lambda: queue.store.write([Put("queue", "a", {})]),
        "count": queue.count,
    }
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(calls[verb](), PATIENCE_SECONDS)
    wire.cut()
    await works_again(queue)


WORKER_AWAY = """
    DO $$ BEGIN
        RAISE EXCEPTION 'connection to the remote node worker:5432 failed' USING ERRCODE = 'connection_failure';
    END $$
"""


async def test_a_worker_of_the_cluster_that_is_away_costs_no_session(
    shared_home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """As Citus says it: the statement fails, and the session on the coordinator goes on."""
    store = await shared_home.open()
    assert isinstance(store, PostgresStore)
    before = await store.connections.run(lambda connection: connection.fetchval("SELECT pg_backend_pid()"))
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="a node of the database's cluster did not answer"):
            await store.connections.run(lambda connection: connection.execute(WORKER_AWAY))
    after = await store.connections.run(lambda connection: connection.fetchval("SELECT pg_backend_pid()"))
    assert after == before
    assert [message.split()[0] for message in caplog.messages] == ["store.node_lost"]


async def test_a_queue_too_long_to_be_counted_costs_no_session(
    store: PostgresStore, queue: Bench, shared_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await store.connections.run(session_of)
    other = await asyncpg.connect(shared_database)
    try:
        async with other.transaction():
            await other.execute("LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE")
            with monkeypatch.context() as patched:
                patched.setattr(inspection, "COUNTING_MS", 20)
                with pytest.raises(StoreUnavailable, match="too many"):
                    await store.count(queue.id, NOON)
    finally:
        await other.close()
    assert await store.connections.run(session_of) == session
    assert await store.count(queue.id, NOON) == (0, 0, 0)


async def test_a_statement_that_may_have_committed_is_not_repeated(wire: Wire, queue: Bench) -> None:
    await queue.send("answered")  # the next statement is known to the connection, and needs one message
    wire.silence()
    with pytest.raises(StoreUnavailable):
        await queue.send("heard by the database")
    wire.cut()
    await works_again(queue)
    assert bodies(await queue.peek()) == ["answered", "heard by the database", "again"]


async def test_more_callers_than_connections_are_all_told(wire: Wire, queue: Bench) -> None:
    wire.silence()
    calls = [queue.peek() for _ in range(40)]
    answers = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), PATIENCE_SECONDS)
    assert all(isinstance(answer, StoreUnavailable) for answer in answers)


async def test_a_database_that_is_not_there_is_named_at_the_start(shared_database: str) -> None:
    async with Wire(shared_database) as wire:
        store = PostgresStore(wire.url, SystemClock(), "one")
    with pytest.raises(StoreUnavailable):
        await store.open()


async def test_a_store_closed_while_it_listens_again_leaves_no_connection(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[asyncpg.Connection] = []
    listens_again = asyncio.Event()

    async def listen_never(connection: asyncpg.Connection, *_: object) -> None:
        made.append(connection)
        listens_again.set()
        await asyncio.Event().wait()

    store = PostgresStore(wire.url, SystemClock(), "one")
    await store.open()
    monkeypatch.setattr(asyncpg.Connection, "add_listener", listen_never)
    wire.cut()
    await asyncio.wait_for(listens_again.wait(), PATIENCE_SECONDS)
    await store.close()
    assert [one.is_closed() for one in made] == [True]


async def test_messages_do_not_get_into_the_log(queue: Bench, caplog: pytest.LogCaptureFixture) -> None:
    impossible = queue.new_delivery("secret")
    impossible.message_id = None  # type: ignore[assignment]  # what no store takes
    with pytest.raises(StoreUnavailable, match="message_id") as refused:
        await queue.store.enqueue([impossible])
    assert "secret" not in caplog.text
    assert "secret" not in str(refused.value)


# ---- news ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def two(shared_home: Home) -> tuple[Bench, Bench, Ears, Ears]:
    """A queue and its dead letters on one node, and what both nodes hear."""
    one, other = shared_home.make("one"), shared_home.make("two")
    ears, other_ears = Ears(one), Ears(other)
    for store in (one, other):
        await store.open()
        shared_home.opened.append(store)
    queue, dead_letters = [Bench(one, await one.new_id(), ordered=True) for _ in range(2)]
    return queue, dead_letters, ears, other_ears


async def test_other_nodes_hear_what_they_may_wait_for(two: tuple[Bench, Bench, Ears, Ears]) -> None:
    queue, dead_letters, own, other = two
    await queue.send("a", "b", group="g")
    assert await other.arrived() == queue.id
    claim = await queue.claim_one()
    await queue.settle(claim, NOON, Outcome.RETRY, available_at=NOON + 5)
    assert await other.arrived() == queue.id
    claim = await queue.claim_one(NOON + 5)
    await queue.extend(claim, NOON + 6, NOON + 6)  # given back
    assert await other.arrived() == queue.id
    claim = await queue.claim_one(NOON + 6)
    await queue.settle(claim, NOON + 6)  # the group's next may be claimed
    assert await other.arrived() == queue.id
    await queue.claim_one(NOON + 6, lease_ms=1)
    await queue.request(NOON + 7, **queue.dying(1, dead_letters))
    assert await other.arrived() == dead_letters.id
    await dead_letters.move(NOON + 7, destination=queue.target)
    assert await other.arrived() == queue.id
    assert own.heard_nothing


async def test_other_nodes_hear_of_changed_documents(two: tuple[Bench, Bench, Ears, Ears]) -> None:
    queue, _, own, other = two
    await queue.store.write([Put("queue", "é", {})])
    assert await other.changed() == ("queue", "é")
    await queue.store.write([Put("queue", "é", {}, 1)])
    assert await other.changed() == ("queue", "é")
    await queue.store.write([Remove("queue", "é")])
    assert await other.changed() == ("queue", "é")
    for key in ("k" * 9000, '"' * 4000):  # more than a notice holds
        await queue.store.write([Put("queue", key, {})])
        assert await other.changed() == ("queue", "")
    assert own.heard_nothing


async def test_a_changed_document_is_told_though_its_node_died_at_the_commit(
    two: tuple[Bench, Bench, Ears, Ears], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> None:
        """Lose the notices that are sent after a commit."""

    queue, _, _, other = two
    assert isinstance(queue.store, PostgresStore)
    monkeypatch.setattr(queue.store._notices, "_send", die)
    await queue.store.write([Put("queue", "a", {})])
    assert await other.changed() == ("queue", "a")
    await queue.store.write([Remove("queue", "a")])
    assert await other.changed() == ("queue", "a")


async def test_unchanged_documents_are_not_announced(two: tuple[Bench, Bench, Ears, Ears]) -> None:
    queue, _, _, other = two
    with pytest.raises(Conflict):
        await queue.store.write([Put("queue", "a", {}, 7)])
    assert await queue.store.write([Remove("queue", "b")]) == [0]
    await queue.store.write([Put("queue", "c", {})])
    assert await other.changed() == ("queue", "c")


async def test_news_of_very_many_queues_is_heard(two: tuple[Bench, Bench, Ears, Ears]) -> None:
    queue, _, _, other = two
    queues = [Bench(queue.store, 10**18 + number) for number in range(1000)]
    await queue.store.enqueue([one.new_delivery("a") for one in queues])
    assert {await other.arrived() for _ in queues} == {one.id for one in queues}


async def test_after_a_lost_connection_listeners_hear_that_anything_may_have_changed(wire: Wire) -> None:
    store = PostgresStore(wire.url, SystemClock(), "one")
    ears = Ears(store)
    await store.open()
    for _ in range(2):
        wire.cut()
        assert (await ears.arrived(), await ears.changed()) == (0, ("", ""))
    await works_again(Bench(store, await store.new_id()))
    await store.close()


async def test_a_node_that_cannot_listen_again_is_told_again_and_again_that_anything_may_have_changed(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database answers calls, and has no session to spare for one that listens."""

    async def refuse(*_: object, **__: object) -> None:
        raise asyncpg.TooManyConnectionsError("sorry, too many clients already")

    monkeypatch.setattr(listening, "DOUBT_MS", 5)
    store = PostgresStore(wire.url, SystemClock(), "one")
    ears = Ears(store)
    await store.open()
    monkeypatch.setattr(listening, "connect", refuse)
    wire.cut()
    for _ in range(4):
        assert (await ears.arrived(), await ears.changed()) == (0, ("", ""))
    await works_again(Bench(store, await store.new_id()))
    await store.close()


async def test_a_listener_whose_database_says_nothing_is_found_out(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection stands, and nothing comes through it: neither news nor the end."""
    monkeypatch.setattr(listening, "PING_MS", 50)
    monkeypatch.setattr(connecting, "PATIENCE_SECONDS", 0.5)
    store = PostgresStore(wire.url, SystemClock(), "one")
    ears = Ears(store)
    await store.open()
    wire.silence()
    assert (await ears.arrived(), await ears.changed()) == (0, ("", ""))
    wire.cut()
    await store.close()


async def test_a_node_listens_again_though_its_own_clock_stands_still(wire: Wire) -> None:
    runtime = Runtime(SimulatedClock(), random.Random(7), "one")
    store = open_store(Settings(store=wire.url, clock="simulated"), runtime)
    ears = Ears(store)
    await store.open()
    for _ in range(3):  # before and after it has listened again
        wire.cut()
        assert (await ears.arrived(), await ears.changed()) == (0, ("", ""))
        assert (await ears.arrived(), await ears.changed()) == (0, ("", ""))
    await store.close()


async def test_news_that_could_not_be_told_is_told_later(wire: Wire, shared_database: str) -> None:
    one = PostgresStore(wire.url, SystemClock(), "one")
    other = PostgresStore(shared_database, SystemClock(), "two")
    ears = Ears(other)
    await one.open()
    await other.open()
    wire.cut()
    one._notices.arrived(7)
    assert await ears.arrived() == 7
    await one.close()
    await other.close()


async def test_a_call_that_is_cancelled_while_its_connection_is_lost_is_cancelled(
    shared_database: str,
) -> None:
    """The driver tells of the connection alone; a task that tries again after an outage would never end."""
    connections, begun = Connections(shared_database, SystemClock(), "test", 1), asyncio.Event()

    async def work(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                connection.terminate()

    call = asyncio.create_task(connections.run(work))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await connections.close()
