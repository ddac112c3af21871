"""A few of the seeds on a real PostgreSQL; each passed on SQLite, so what breaks here is the PostgreSQL store's."""

import pytest

from tests.services.postgres import DatabaseMaker
from tests.simulation.postgres import OnPostgres
from tests.simulation.run import simulate

# Short runs that meet much: both dialects, both kinds of queues.
SEEDS = (1, 6, 11, 16)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_rule_holds(seed: int, database_maker: DatabaseMaker) -> None:
    with database_maker.database() as url:
        world = OnPostgres(url)
        try:
            simulate(seed, lambda: world)
        finally:
            world.leave()
