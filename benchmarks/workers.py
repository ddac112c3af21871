"""The rate of one, two and four workers on one PostgreSQL, beside SQLite's single process, and who has the processors."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import uvloop

from benchmarks import stores
from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.load import put_load
from benchmarks.processes import Process, descendants
from benchmarks.publish import new_topic
from benchmarks.servers import Redrive, redrive
from benchmarks.topics import webhook
from benchmarks.webhooks import drain, fill

_WORKERS: Final = (1, 2, 4)
_LOADS: Final = ("send", "cycle", "publish", "webhooks")
_PLACES: Final = {"publish": new_topic}


class _Run(NamedTuple):
    """A median is that of the rates, the first of these."""

    per_second: float
    ours: float
    theirs: float


def counters(bench: Bench) -> Iterator[Figure]:
    """Figures of each load, all servers in turn in every round."""
    connections = bench.scale.connections[-1]
    with contextlib.ExitStack() as stack:
        lanes = _lanes(bench, stack)
        for load in _LOADS:
            of = (
                f"{bench.scale.pushes:,} pushed"
                if load == "webhooks"
                else f"{load}, {connections} connections"
            )
            runs: dict[str, list[_Run]] = {name: [] for name in lanes}
            for _ in range(bench.scale.rounds):
                for name, lane in lanes.items():
                    runs[name].append(
                        _pushed(bench, *lane) if load == "webhooks" else _run(bench, *lane, load, connections)
                    )
            single = None
            for name, found in runs.items():
                run = sorted(found)[len(found) // 2]
                single = single or run.per_second
                yield Figure(
                    f"{of}, {name}",
                    run.per_second / single,
                    "x",
                    f"{run.per_second:,.0f}/s; processors: Redrive {run.ours:.2f}, PostgreSQL {run.theirs:.2f}",
                )


def _lanes(bench: Bench, stack: contextlib.ExitStack) -> dict[str, tuple[Redrive, int]]:
    """Servers by name, each with the process of its database, or 0."""
    directory = bench.directory / "workers"
    directory.mkdir()
    bench.directory.chmod(0o755)
    files = stack.enter_context(stores.sqlite(bench.directory))
    lanes = {
        "SQLite": (stack.enter_context(redrive(replace(bench, store_name="sqlite", new_store=files))), 0)
    }
    databases = stack.enter_context(stores.postgresql(directory))
    postmaster = int(next(directory.glob("*/data/postmaster.pid")).read_text().partition("\n")[0])
    for workers in _WORKERS:
        flags = ("--workers", str(workers))
        server = stack.enter_context(
            redrive(replace(bench, store_name="postgresql", new_store=databases), flags=flags)
        )
        lanes[f"{workers} on PostgreSQL"] = (server, postmaster)
    return lanes


def _run(bench: Bench, server: Redrive, database: int, load: str, connections: int) -> _Run:
    """Messages a second of a load that lasts."""
    place = _PLACES.get(load, Redrive.new_queue)(server)
    before = _cpu_seconds(server, database)
    run = put_load(server, load, place, connections, bench.scale.seconds)
    return _Run(run.per_second, *_processors(server, database, before, bench.scale.seconds))


def _pushed(bench: Bench, server: Redrive, database: int) -> _Run:
    """Signed notifications a second, from a backlog to a webhook that answers at once."""
    messages = bench.scale.pushes
    with webhook() as hook:
        uvloop.run(fill(server, hook, messages, {}))
        before = _cpu_seconds(server, database)
        seconds = uvloop.run(drain(hook, messages))
        return _Run(messages / seconds, *_processors(server, database, before, seconds))


def _processors(
    server: Redrive, database: int, before: tuple[float, float], seconds: float
) -> tuple[float, float]:
    """The processors that the server's processes and its database's had in so many seconds."""
    after = _cpu_seconds(server, database)
    ours, theirs = ((end - begin) / seconds for begin, end in zip(before, after, strict=True))
    return ours, theirs


def _cpu_seconds(server: Redrive, database: int) -> tuple[float, float]:
    return _of_family(server.process.pid), _of_family(database)


def _of_family(pid: int) -> float:
    if not pid:
        return 0.0
    return sum(process.cpu_seconds() for process in (Process(pid), *descendants(pid)))
