"""The rate on a Citus cluster beside that on one PostgreSQL: its coordinator's server, so the same disk and settings."""

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Final

from tests.services.citus import CITUS_VARIABLE, blocking, named_cluster

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.publish import new_topic
from benchmarks.rounds import Lane, compared, in_turn
from benchmarks.servers import Redrive, redrive
from redrive.stores.postgres.distributing import distribute

_LOADS: Final = ("send", "send_batch", "cycle", "publish")
_PLACES: Final = {"publish": new_topic}


def counters(bench: Bench) -> Iterator[Figure]:
    """One figure for each load and number of connections: the cluster's rate as a multiple of the one database's."""
    if CITUS_VARIABLE not in os.environ:
        yield Figure(f"not asked: {CITUS_VARIABLE} names no cluster", 0, "x", "")
        return
    cluster = named_cluster("redrive_bench")
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(cluster.database())
        blocking(distribute(url))
        urls = {"citus": url, "one PostgreSQL": stack.enter_context(cluster.plain_database())}
        servers = {name: stack.enter_context(redrive(_on(bench, name, url))) for name, url in urls.items()}
        for load in _LOADS:
            place = _PLACES.get(load, Redrive.new_queue)
            lanes = [Lane(name, server, functools.partial(place, server)) for name, server in servers.items()]
            for connections in bench.scale.connections:
                runs = in_turn(bench.scale, lanes, load, connections)
                yield compared(f"{load}, {connections} connections, citus", runs)


def _on(bench: Bench, name: str, url: str) -> Bench:
    return Bench(bench.scale, bench.directory, name, lambda: contextlib.nullcontext(url))
