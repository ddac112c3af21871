from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.nodes import NodeRounds
from tests.crash.pooled import PooledBacking
from tests.services.postgres import end_run, new_run_directory


@pytest.fixture
def run() -> Iterator[Path]:
    directory = new_run_directory()
    yield directory
    end_run(directory)


async def test_nodes_outlive_their_pooler(run: Path) -> None:
    """`python -m tests.crash pooled` loses nodes and the database besides, in as many rounds as one likes."""
    rounds, load = await NodeRounds(PooledBacking(run), nodes=2, only=["pooler"]).once(1)
    assert [done.lost for done in rounds] == ["pooler"]
    assert load.published
