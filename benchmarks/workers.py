"""The rate of one, two and four workers on one PostgreSQL, beside SQLite's single process, and who has the processors."""

import contextlib
from collections.abc import Iterator
from typing import Final

from benchmarks import stores
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.load import Run, put_load
from benchmarks.processes import Process, descendants
from benchmarks.publish import new_topic
from benchmarks.servers import Redrive, redrive

_WORKERS: Final = (1, 2, 4)
_LOADS: Final = ("send", "cycle", "publish")
_PLACES: Final = {"publish": new_topic}


def counters(bench: Bench) -> Iterator[Figure]:
    """Figures of each load, all servers in turn in every round."""
    connections = bench.scale.connections[-1]
    with contextlib.ExitStack() as stack:
        lanes = _lanes(bench, stack)
        for load in _LOADS:
            runs: dict[str, list[tuple[Run, float, float]]] = {name: [] for name in lanes}
            for _ in range(bench.scale.rounds):
                for name, (server, databases) in lanes.items():
                    runs[name].append(_run(bench, server, databases, load, connections))
            single = None
            for name, found in runs.items():
                run, ours, theirs = sorted(found, key=lambda each: each[0].per_second)[len(found) // 2]
                single = single or run.per_second
                yield Figure(
                    f"{load}, {connections} connections, {name}",
                    run.per_second / single,
                    "x",
                    f"{run.per_second:,.0f}/s; processors: Redrive {ours:.2f}, PostgreSQL {theirs:.2f}",
                )


def _lanes(bench: Bench, stack: contextlib.ExitStack) -> dict[str, tuple[Redrive, int]]:
    """Servers by name, each with the process of its database, or 0."""
    directory = bench.directory / "workers"
    directory.mkdir()
    bench.directory.chmod(0o755)
    files = stack.enter_context(stores.sqlite(bench.directory))
    lanes = {"SQLite": (stack.enter_context(redrive(_on(bench, "sqlite", files))), 0)}
    databases = stack.enter_context(stores.postgresql(directory))
    postmaster = int(next(directory.glob("*/data/postmaster.pid")).read_text().partition("\n")[0])
    for workers in _WORKERS:
        flags = ("--workers", str(workers))
        server = stack.enter_context(redrive(_on(bench, "postgresql", databases), flags=flags))
        lanes[f"{workers} on PostgreSQL"] = (server, postmaster)
    return lanes


def _on(bench: Bench, name: str, new_store: stores.NewStore) -> Bench:
    return Bench(bench.scale, bench.directory, name, new_store)


def _run(
    bench: Bench, server: Redrive, database: int, load: str, connections: int
) -> tuple[Run, float, float]:
    """A run, and the processors that the server's processes and its database's had meanwhile."""
    place = _PLACES.get(load, Redrive.new_queue)(server)
    before = _cpu_seconds(server.process.pid), _cpu_seconds(database)
    run = put_load(server, load, place, connections, bench.scale.seconds)
    after = _cpu_seconds(server.process.pid), _cpu_seconds(database)
    ours, theirs = ((end - begin) / bench.scale.seconds for begin, end in zip(before, after, strict=True))
    return run, ours, theirs


def _cpu_seconds(pid: int) -> float:
    if not pid:
        return 0.0
    return sum(process.cpu_seconds() for process in (Process(pid), *descendants(pid)))
