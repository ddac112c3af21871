"""Run one seed with all that happened, or many and how fast: `python -m tests.simulation --seed 7`."""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields

from tests.simulation.mutants import MUTANTS
from tests.simulation.options import draw
from tests.simulation.run import Broken, Result, simulate
from tests.simulation.world import InMemory

CHUNK = 25  # seeds that a process takes at a time
TOLD_MAX = 20  # broken seeds that are named


def main() -> int:
    """Run what the command line asks for; 1 if a rule was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one, and print everything that happened")
    parser.add_argument("--seeds", type=int, default=300, help="run so many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="beginning with this one (default: %(default)s)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: %(default)s)"
    )
    parser.add_argument("--mutant", choices=sorted(_STORES), default=InMemory.__name__, help="the store")
    asked = parser.parse_args()
    if asked.seed is not None:
        return _one(asked.seed, asked.mutant)
    return _many(range(asked.first, asked.first + asked.seeds), asked.jobs, asked.mutant)


_ALL: list[type[InMemory]] = [InMemory, *MUTANTS]
_STORES = {store.__name__: store for store in _ALL}


def _one(seed: int, store: str) -> int:
    options = draw(seed)
    _say(*(f"{field.name:13} {getattr(options, field.name)}" for field in fields(options)))
    result = _run(seed, store, lines=True)
    _say(*result.lines, "")
    if isinstance(result, Broken):
        _say(f"BROKEN  {result}")
        return 1
    _say(
        f"every rule held: {result.calls} calls of the store in {result.virtual_ms / 1000:.0f} virtual seconds"
    )
    return 0


def _many(seeds: range, jobs: int, store: str) -> int:
    began = time.perf_counter()
    broken: list[Broken] = []
    marks: Counter[str] = Counter()
    virtual_ms = calls = 0
    for result in _outcomes(seeds, jobs, store):
        if isinstance(result, Broken):
            broken.append(result)
        else:
            marks.update(result.marks)
            virtual_ms += result.virtual_ms
            calls += result.calls
    seconds = time.perf_counter() - began
    _say(*(f"{number:10,}  {mark}" for mark, number in sorted(marks.items())))
    _say(*(f"BROKEN  {str(one)[:500]}" for one in broken[:TOLD_MAX]))
    _say(
        f"{len(seeds):,} seeds, {len(broken)} broken; {len(seeds) / seconds:.0f} seeds a second: {calls:,} calls and"
        f" {virtual_ms / 3_600_000:,.0f} virtual hours in {seconds:.0f} s"
    )
    return 1 if broken else 0


def _say(*lines: str) -> None:
    if lines:
        print(*lines, sep="\n")  # noqa: T201 - a command speaks


def _outcomes(seeds: range, jobs: int, store: str) -> Iterator[Result | Broken]:
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    with ProcessPoolExecutor(jobs) as processes:
        for outcomes in processes.map(_run_all, chunks, [store] * len(chunks)):
            yield from outcomes


def _run_all(seeds: Iterable[int], store: str) -> list[Result | Broken]:
    return [_run(seed, store) for seed in seeds]


def _run(seed: int, store: str, *, lines: bool = False) -> Result | Broken:
    try:
        return simulate(seed, _STORES[store], lines=lines)
    except Broken as broken:
        return broken


if __name__ == "__main__":
    sys.exit(main())
