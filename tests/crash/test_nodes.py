from collections.abc import Iterator

import pytest

from tests.crash.nodes import NodeRounds
from tests.crash.pair import PairBacking, run_directory
from tests.services.postgres import end_run
from tests.services.postgres_pair import PostgresPair


@pytest.fixture
def pair() -> Iterator[PostgresPair]:
    directory = run_directory()
    yield PostgresPair(directory)
    end_run(directory)


async def test_a_promoted_standby_has_everything_that_was_acknowledged(pair: PostgresPair) -> None:
    """`python -m tests.crash nodes` loses nodes and lines besides, in as many rounds as one likes."""
    rounds, load = await NodeRounds(PairBacking(pair), nodes=2, only=["primary"]).once(1)
    assert [done.lost for done in rounds] == ["primary"]
    assert load.published
