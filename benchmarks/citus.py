"""The rate on a Citus cluster beside that on one PostgreSQL: its coordinator's server, so the same disk and settings."""

import os
from collections.abc import Iterator

from tests.services.citus import CITUS_VARIABLE, blocking, named_cluster

from benchmarks import beside
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from redrive.stores.postgres.distributing import distribute


def counters(bench: Bench) -> Iterator[Figure]:
    """One figure for each load and number of connections: the cluster's rate as a multiple of the one database's."""
    if CITUS_VARIABLE not in os.environ:
        yield Figure(f"not asked: {CITUS_VARIABLE} names no cluster", 0, "x", "")
        return
    cluster = named_cluster("redrive_bench")
    with cluster.database() as distributed, cluster.plain_database() as plain:
        blocking(distribute(distributed))
        yield from beside.stores(bench, {"citus": distributed, "one PostgreSQL": plain})
