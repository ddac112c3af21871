"""The rate at which an event source mapping drains a queue, and the proof that each message got what it was owed.

Ten messages a batch, of which one in seven fails by `batchItemFailures`. On a simulated clock, so that only the messages
that are due count, and the visibility timeouts of those that failed take no time.
"""

import time
from collections.abc import Iterator
from typing import Final

from tests.contracts.aws.lambda_.draining import Draining
from tests.contracts.aws.lambda_.workshop import Workshop

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.servers import redrive

_FLAGS: Final = ("--functions", "on", "--clock", "simulated")

_PROVEN: Final = {
    False: "each processed, or a dead letter after 3 receives",
    True: "each processed, in the order of its group",
}


def counters(bench: Bench) -> Iterator[Figure]:
    """Receives a second of a standard and a FIFO queue; an error ends the run where one was lost or came too often."""
    for ordered in (False, True):
        with redrive(bench, flags=_FLAGS) as server:
            draining = Draining(Workshop(server.server), bench.scale.drained, ordered=ordered)
            cpu_seconds, began = server.process.cpu_seconds(), time.perf_counter()
            draining.begin()
            received = draining.end()
            seconds = time.perf_counter() - began
            cpu_us = (server.process.cpu_seconds() - cpu_seconds) / received * 1e6
        yield Figure(
            f"{bench.scale.drained:,} messages, {'FIFO' if ordered else 'standard'}",
            received / seconds,
            "/s",
            f"{received:,} receives, {cpu_us:.0f} us CPU of the server each; {_PROVEN[ordered]}",
        )
