"""`redrive doctor` on a cluster that is whole, not distributed over, or without one of its nodes."""

from collections.abc import Iterator

import asyncpg
import pytest

from redrive.runtime.machine import SystemClock, monotonic
from redrive.stores.postgres.distributing import distribute
from redrive.stores.postgres.examining import examine
from tests.services.citus import CitusCluster


@pytest.fixture
def own_database(citus_cluster: CitusCluster) -> Iterator[str]:
    """The URL of an empty database with the extension, on every node, that only this test has."""
    with citus_cluster.database() as url:
        yield url


async def wrong(url: str) -> dict[str, str]:
    """The checks of the cluster, by name, with what is wrong."""
    found = [each async for each in examine(url, SystemClock().now, monotonic)]
    return {check: wrong for check, _, wrong in found if check.startswith("cluster")}


async def test_a_database_without_the_extension_is_no_cluster(postgres_database: str) -> None:
    assert await wrong(postgres_database) == {}


async def test_tables_that_are_not_distributed_are_told_of_and_distributed_ones_are_well(
    own_database: str,
) -> None:
    before = await wrong(own_database)
    assert before["cluster"].startswith("on the coordinator alone: deliveries, ")
    assert "redrive store distribute" in before["cluster planner"]
    await distribute(own_database)
    after = await wrong(own_database)
    assert [after[check] for check in ("cluster", "cluster nodes", "cluster planner")] == ["", "", ""]


async def test_a_worker_that_is_away_is_named(own_database: str) -> None:
    await distribute(own_database)
    connection = await asyncpg.connect(own_database)
    await connection.execute(
        "UPDATE pg_dist_node SET nodeport = 1 WHERE nodeid = (SELECT max(nodeid) FROM pg_dist_node)"
    )
    await connection.close()
    assert (await wrong(own_database))["cluster nodes"].startswith("127.0.0.1:1 is unavailable")


async def test_a_cluster_without_workers_is_not_distributed_over(citus_cluster: CitusCluster) -> None:
    with citus_cluster.plain_database() as url:
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE EXTENSION citus")
        await connection.close()
        assert (await wrong(url))["cluster"].startswith("no node holds shards: SELECT citus_add_node")
