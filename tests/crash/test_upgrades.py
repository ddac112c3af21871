from pathlib import Path

from tests.crash.upgrades import Upgrades
from tests.services.postgres import PostgresServer

TREE = Path(__file__).parents[2]


async def test_a_node_is_exchanged_under_load_without_a_failed_call(durable_postgres: PostgresServer) -> None:
    """`python -m tests.crash upgrade --old TREE` does it with an older version, and more nodes."""
    done = await Upgrades(durable_postgres, TREE, nodes=1, rows=100, calls=10).run(0)
    assert done.calls
    assert not any(stage.failed for stage in done.stages), done.stages
