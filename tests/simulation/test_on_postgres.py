"""A few of the seeds on a real PostgreSQL and on Citus; each passed on SQLite: what breaks here is the other store's."""

import pytest

from tests.simulation.postgres import OnPostgres
from tests.simulation.run import simulate

# Short runs that meet much: both dialects, both kinds of queues.
SEEDS = (1, 6, 11, 16)
SEEDS_ON_CITUS = (1, 6, 11)  # the fourth takes a minute and a half there


@pytest.mark.parametrize(
    ("kind", "seed"),
    [*(("postgres", seed) for seed in SEEDS), *(("citus", seed) for seed in SEEDS_ON_CITUS)],
)
def test_every_rule_holds(kind: str, seed: int, request: pytest.FixtureRequest) -> None:
    world = OnPostgres(request.getfixturevalue(f"{kind}_database"))
    try:
        simulate(seed, lambda: world)
    finally:
        world.leave()
