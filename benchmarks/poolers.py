"""The rate behind PgBouncer in session mode beside that on the PostgreSQL behind it: the same server and disk."""

from collections.abc import Iterator

from tests.services.postgres import DatabaseMaker

from benchmarks import beside
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.stores import pooled_server


def counters(bench: Bench) -> Iterator[Figure]:
    """One figure for each load and number of connections: the pooled rate as a multiple of the direct one."""
    with pooled_server(bench.directory) as (server, pooler):
        maker = DatabaseMaker(server, "pooled")
        try:
            with maker.database() as direct, maker.database() as other:
                pooled = pooler.url(other.rpartition("/")[2])
                yield from beside.stores(bench, {"pgbouncer": pooled, "direct": direct})
        finally:
            maker.close()
