"""The rate of send, batch and the whole life of a message, beside the least that a durable queue can do."""

from collections.abc import Iterator
from typing import Final

from benchmarks.bench import Bench
from benchmarks.figures import Bound, Figure, at_least
from benchmarks.rounds import Lane, compared, in_turn
from benchmarks.servers import ceiling, redrive

SEND_MIN: Final = 0.5
"""Of the ceiling, for sends to the embedded store; decision 0002 says what the other half is spent on."""

_LOADS: Final = ("send", "send_batch", "cycle")


def counters(bench: Bench) -> Iterator[Figure]:
    """One figure for each load and number of connections; every load gets fresh servers."""
    for load in _LOADS:
        with redrive(bench) as ours, ceiling(bench) as least:
            lanes = Lane("redrive", ours, ours.new_queue), Lane("ceiling", least, least.new_queue)
            for connections in bench.scale.connections:
                runs = in_turn(bench.scale, lanes, load, connections)
                what = f"{load}, {connections} connections, {bench.store_name}"
                yield compared(what, runs, _bound(bench, load))


def _bound(bench: Bench, load: str) -> Bound | None:
    return at_least(SEND_MIN) if (load, bench.store_name) == ("send", "sqlite") else None
