"""A store is spread over a Citus cluster once, whole or not at all, with what is in it."""

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from redrive.model.errors import StoreUnavailable
from redrive.runtime.machine import SystemClock
from redrive.stores.postgres import distributing
from redrive.stores.postgres.connections import PLANNER
from redrive.stores.postgres.distributing import COPIED, DISTRIBUTED, distribute
from redrive.stores.postgres.store import PostgresStore
from tests.contracts.stores.bench import NOON, Bench, bodies
from tests.contracts.stores.homes import in_postgres
from tests.contracts.stores.test_statements import DISTRIBUTED as WATCHED
from tests.services.citus import CitusCluster

LAID_OUT = "SELECT count(*) FROM pg_dist_partition"
SEPARATELY = "create_distributed_table('paces', 'queue_id', colocate_with => 'none')"
TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"


@pytest.fixture
def undistributed(citus_cluster: CitusCluster) -> Iterator[str]:
    """The URL of an empty database with the extension, on every node."""
    with citus_cluster.database() as url:
        yield url


async def ask(url: str, statement: str) -> object:
    ((answer,),) = await in_postgres(url).query(statement)
    return answer


def test_the_statements_of_each_distributed_table_are_watched() -> None:
    assert set(DISTRIBUTED) == WATCHED


async def test_a_database_without_the_extension_is_refused_and_left_alone(postgres_database: str) -> None:
    with pytest.raises(StoreUnavailable, match="no extension citus: CREATE EXTENSION citus"):
        await distribute(postgres_database)
    assert await ask(postgres_database, TABLES) == 0


async def test_the_schema_is_made_and_spread_and_a_second_time_nothing_changes(undistributed: str) -> None:
    first = await distribute(undistributed)
    assert [table.name for table in first.tables] == [*DISTRIBUTED, *COPIED]
    assert {table.column for table in first.tables} == {"queue_id", None}
    assert all(table.changed and not table.rows_moved for table in first.tables)
    store = PostgresStore(undistributed, SystemClock(), "one")
    await store.open()  # a server that runs is no reason to refuse what is done already
    second = await distribute(undistributed)
    await store.close()
    assert not any(table.changed for table in second.tables)
    assert [(table.name, table.shards) for table in second.tables] == [
        (table.name, table.shards) for table in first.tables
    ]


async def test_each_node_plans_as_the_statements_are_written_for(
    citus_cluster: CitusCluster, undistributed: str
) -> None:
    await distribute(undistributed)
    for node in citus_cluster.urls(undistributed):
        assert {name: await ask(node, f"SHOW {name}") for name in PLANNER} == PLANNER


async def test_a_session_plans_with_the_values_and_sees_the_shards(
    citus_database: str,
) -> None:
    store = PostgresStore(citus_database, SystemClock(), "one")
    await store.open()
    shown = [
        await store.connections.run(lambda connection, name=name: connection.fetchval(f"SHOW {name}"))
        for name in ("plan_cache_mode", "citus.override_table_visibility")
    ]
    await store.close()
    assert shown == ["auto", "off"]


@pytest.mark.parametrize("ordered", [False, True])
async def test_messages_of_a_queue_are_committed_on_its_node_in_one_phase(
    citus_database: str, *, ordered: bool
) -> None:
    """In two, a message could come to be seen after the next of its group, where the node was lost between them."""
    store = PostgresStore(citus_database, SystemClock(), "one", connections=1)
    await store.open()
    queues = [Bench(store, await store.new_id(), ordered=ordered) for _ in range(4)]
    told: list[str] = []

    async def listen(connection: asyncpg.Connection) -> None:
        await connection.execute("SET citus.log_remote_commands = on; SET client_min_messages = notice")
        connection.add_log_listener(lambda _, message: told.append(message.message))

    await store.connections.run(listen)
    once = [{"group": "g", "deduplication_key": "k", "deduplicate_until": NOON}, {"group": "g"}]
    for more in once if ordered else [{}]:
        messages = [[queue.new_delivery(f"{number}", **more) for number in range(3)] for queue in queues]
        await asyncio.gather(*map(store.enqueue, messages))
    assert any(command.startswith("issuing INSERT INTO public.deliveries") for command in told)
    assert not [command for command in told if "PREPARE" in command or "COPY" in command]
    assert [bodies(await queue.peek())[0] for queue in queues] == ["0"] * 4
    await store.close()


async def test_rows_written_before_the_distribution_are_moved(undistributed: str) -> None:
    store = PostgresStore(undistributed, SystemClock(), "one")
    await store.open()
    queues = [Bench(store, await store.new_id()) for _ in range(20)]
    for queue in queues:
        await queue.send("a", "b")
    (claim, _) = await queues[0].claim()
    await store.close()
    moved = {table.name: table.rows_moved for table in (await distribute(undistributed)).tables}
    assert moved == dict.fromkeys((*DISTRIBUTED, *COPIED), 0) | {"deliveries": 40}
    assert await ask(undistributed, "SELECT pg_relation_size('deliveries')") == 0
    store = PostgresStore(undistributed, SystemClock(), "two")
    await store.open()
    there = [Bench(store, queue.id) for queue in queues]
    assert [bodies(await queue.peek()) for queue in there] == [["a", "b"]] * 20
    assert (await there[0].settle(claim)).done
    assert bodies(await there[0].peek()) == ["b"]
    await store.close()


async def test_tables_that_servers_use_are_not_moved(undistributed: str) -> None:
    store = PostgresStore(undistributed, SystemClock(), "one")
    await store.open()
    with pytest.raises(StoreUnavailable, match=r"in use by redrive schema-\d+ one: stop the servers"):
        await distribute(undistributed)
    await store.close()
    assert await ask(undistributed, LAID_OUT) == 0


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ("create_distributed_table('deliveries', 'seq')", "deliveries is distributed by seq already"),
        ("create_distributed_table('resources', 'kind')", "resources is distributed by kind already"),
        ("create_reference_table('paces')", "paces is not distributed by a column already"),
        (
            "create_distributed_table('deliveries', 'queue_id', colocate_with => 'none'), " + SEPARATELY,
            "a queue's rows in them are on different nodes",
        ),
    ],
)
async def test_tables_that_are_laid_out_in_another_way_are_left_so(
    before: str, why: str, undistributed: str
) -> None:
    store = PostgresStore(undistributed, SystemClock(), "one")
    await store.open()
    await store.close()
    connection = await asyncpg.connect(undistributed)
    await connection.execute("ALTER TABLE deliveries DROP CONSTRAINT deliveries_pkey")
    await connection.execute(f"SELECT {before}")
    laid_out = await connection.fetchval(LAID_OUT)
    with pytest.raises(StoreUnavailable, match=why):
        await distribute(undistributed)
    assert await connection.fetchval(LAID_OUT) == laid_out
    await connection.close()


async def test_the_distribution_moves_all_tables_or_none(undistributed: str) -> None:
    store = PostgresStore(undistributed, SystemClock(), "one")
    await store.open()
    await store.close()
    connection = await asyncpg.connect(undistributed)
    await connection.execute(
        "CREATE TRIGGER kept BEFORE UPDATE ON resources FOR EACH ROW"
        " EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    )
    with pytest.raises(StoreUnavailable, match="the database could not be distributed"):
        await distribute(undistributed)
    assert await connection.fetchval(LAID_OUT) == 0
    await connection.close()


async def test_two_at_once_both_succeed_and_one_spreads(undistributed: str) -> None:
    answers = await asyncio.gather(*(distribute(undistributed) for _ in range(2)))
    changed = [[table.changed for table in answer.tables] for answer in answers]
    assert sorted(changed) == [[False] * 6, [True] * 6]


async def test_a_table_that_a_session_has_locked_is_not_waited_for_without_end(
    undistributed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributing, "PATIENCE_SECONDS", 3)
    store = PostgresStore(undistributed, SystemClock(), "one")
    await store.open()
    await store.close()
    connection = await asyncpg.connect(undistributed)
    await connection.execute("BEGIN; LOCK TABLE deliveries IN ROW EXCLUSIVE MODE")
    with pytest.raises(StoreUnavailable, match="lock timeout"):
        await distribute(undistributed)
    await connection.execute("COMMIT")
    assert await connection.fetchval(LAID_OUT) == 0
    await connection.close()


async def test_a_worker_is_not_a_coordinator(citus_cluster: CitusCluster, undistributed: str) -> None:
    _, worker, *_ = citus_cluster.urls(undistributed)
    with pytest.raises(StoreUnavailable, match="on a worker of its Citus cluster"):
        await distribute(worker)
    assert await ask(worker, TABLES) == 0
