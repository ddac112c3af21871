"""`python -m benchmarks [NAME …]`: ask the questions named, or all of them; one line for each figure.

Everything stays on loopback. The exit status is 1 where a figure misses what it is held to. A new question is a file
with a function `counters(bench)` that yields figures, and its name in QUESTIONS. `stories 1 7` asks for two
stories by number, `brokers NAME=URL` for another server that speaks Amazon SQS.
"""

import argparse
import contextlib
import dataclasses
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from benchmarks import (
    alarms,
    backlog,
    citus,
    console,
    encryption,
    event_grid,
    filters,
    first_paint,
    functions,
    gateways,
    hanging,
    hostile,
    long_polls,
    machine,
    mapping,
    overhead,
    poolers,
    publish,
    searching,
    throughput,
    transfer,
    upgrade,
    webhooks,
    workers,
)
from benchmarks.bench import SMALL, Bench, Scale
from benchmarks.brokers import brokers
from benchmarks.figures import Figure
from benchmarks.load import LoadFailedError
from benchmarks.stores import KINDS
from benchmarks.stories import stories

QUESTIONS: Final[dict[str, Callable[[Bench], Iterator[Figure]]]] = {
    "throughput": throughput.counters,
    "publish": publish.counters,
    "gateways": gateways.counters,
    "filters": filters.counters,
    "webhooks": webhooks.counters,
    "hanging": hanging.counters,
    "backlog": backlog.counters,
    "long_polls": long_polls.counters,
    "overhead": overhead.counters,
    "event_grid": event_grid.counters,
    "hostile": hostile.counters,
    "functions": functions.counters,
    "mapping": mapping.counters,
    "alarms": alarms.counters,
    "encryption": encryption.counters,
    "workers": workers.counters,
    "transfer": transfer.counters,
    "upgrade": upgrade.counters,
    "console": console.counters,
    "paint": first_paint.counters,
    "citus": citus.counters,
    "poolers": poolers.counters,
    "search": searching.counters,
    "stories": stories.counters,
    "brokers": brokers.counters,
}


def main() -> int:
    """Ask, print, and say whether every bound was kept."""
    wanted = _arguments()
    missed = 0
    with _bench(wanted) as bench:
        print(machine.describe(bench.directory), flush=True)
        for name in wanted.names or QUESTIONS:
            for figure in QUESTIONS[name](bench):
                missed += figure.is_missed
                print(figure.line(name), flush=True)
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(QUESTIONS))
    parser.add_argument(
        "--store", choices=KINDS, default="sqlite", help="what to measure on (default: sqlite)"
    )
    parser.add_argument("--directory", type=Path, help="on the disk to measure (default: the temporary one)")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    parser.add_argument("--seconds", type=int, help="length of a run under load")
    parser.add_argument("--rounds", type=int, help="runs of each server, of which the median counts")
    wanted = parser.parse_intermixed_args()
    wanted.stories = tuple(int(name) for name in wanted.names if name.isdecimal())
    wanted.others = dict(name.split("=", 1) for name in wanted.names if "=" in name)
    wanted.names = [name for name in wanted.names if not name.isdecimal() and "=" not in name]
    if strange := set(wanted.stories) - stories.STORIES.keys():
        parser.error(
            f"no story {', '.join(map(str, sorted(strange)))} is measured here; 5 is the question search"
        )
    if unknown := set(wanted.names) - QUESTIONS.keys():
        parser.error(f"no question is called {', '.join(sorted(unknown))}")
    return wanted


@contextlib.contextmanager
def _bench(wanted: argparse.Namespace) -> Iterator[Bench]:
    chosen = {name: getattr(wanted, name) for name in ("seconds", "rounds") if getattr(wanted, name)}
    scale = dataclasses.replace(SMALL if wanted.small else Scale(), **chosen)
    with tempfile.TemporaryDirectory(prefix="redrive-bench-", dir=wanted.directory) as name:
        directory = Path(name)
        with KINDS[wanted.store](directory) as new_store:
            yield Bench(scale, directory, wanted.store, new_store, wanted.stories, wanted.others)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LoadFailedError as error:
        sys.exit(str(error))
