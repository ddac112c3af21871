"""`python -m tests.fuzz --store sqlite|postgres --requests 300000 --seed 1`: bent requests to servers of their own.

SQLite has one node, PostgreSQL two on one database, of `--workers` processes each. Run it where loopback is the only
network: `unshare -n sh -c 'ip link set lo up; python -m tests.fuzz'`.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from redrive.app import assembled
from redrive.settings import Settings
from tests.fuzz.asking import PROTOCOLS, Asking
from tests.fuzz.grid_requests import arm_routes
from tests.fuzz.test_all_services import offered
from tests.fuzz.wire import Faults, ask_all
from tests.services.postgres import DatabaseMaker, end_run, new_run_directory, own_server
from tests.services.server import Server, serving

_FLAGS: Final = ("--functions", "on", "--log-level", "warning")


def main() -> int:
    """Ask, and say what was found: 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--workers", type=int, default=1, help="processes of a node; several need PostgreSQL")
    parser.add_argument("--requests", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--round", type=int, default=10_000, help="requests between two lines of the report")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="redrive-fuzz-") as directory,
        _servers(chosen.store, chosen.workers, Path(directory)) as servers,
    ):
        return asyncio.run(_rounds(chosen, servers))


async def _rounds(chosen: argparse.Namespace, servers: list[Server]) -> int:
    async with assembled(Settings(store="sqlite://:memory:", functions="on"), "http://127.0.0.1:1") as whole:
        await whole.parts.open_all()
        operations = offered(whole)
    asking, bad, unavailable, done = Asking(chosen.seed, operations, arm_routes()), 0, 0, 0
    while done < chosen.requests and bad < 50:
        number, began = min(chosen.round, chosen.requests - done), time.monotonic()
        faults = await ask_all(asking, [server.url for server in servers], number, chosen.connections)
        done += number
        unavailable += faults.unavailable
        tracebacks = sum(_traces(server) for server in servers)
        _tell(faults)
        bad += faults.number
        memory = ", ".join(f"{_resident_mb(server)} MB" for server in servers)
        _say(
            f"{done} requests ({number / (time.monotonic() - began):.0f}/s), {faults.number} faults, {tracebacks}"
            f" tracebacks, {unavailable} unavailable, {len(asking.operations_carried_out)} operations, {memory}"
        )
    for kind, asked in sorted(asking.asked.items()):
        _say(f"{kind}: {asked} asked, {asking.carried_out[kind]} carried out")
    offered_number = sum(len(operations[name]) for name in PROTOCOLS)
    _say(f"{asking.operations} of {offered_number} operations asked")
    for server in servers:
        log = server.log.read_text(errors="replace")
        if _traces(server):
            _say(log[max(0, log.index("Traceback") - 2000) :][:20_000])
    return int(bad > 0 or any(_traces(server) for server in servers))


def _tell(faults: Faults) -> None:
    for name in ("failed", "silent", "cut"):
        for told in getattr(faults, name)[:20]:
            _say(f"{name}: {told}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _traces(server: Server) -> int:
    return server.log.read_text(errors="replace").count("Traceback (most recent call last)")


def _resident_mb(server: Server) -> int:
    pages = Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
    return int(pages) * 4 // 1024


@contextlib.contextmanager
def _servers(store: str, workers: int, directory: Path) -> Iterator[list[Server]]:
    if store == "sqlite":
        with serving(f"sqlite:///{directory}/redrive.db", *_FLAGS, directory=directory) as server:
            yield [server]
        return
    run = new_run_directory()
    try:
        maker = DatabaseMaker(own_server(run), "fuzz")
        with maker.database() as url, contextlib.ExitStack() as nodes:
            started = []
            shared = ("--blob-store", str(directory / "blobs"), "--workers", str(workers))
            for name in ("one", "two"):
                (directory / name).mkdir()
                started.append(
                    nodes.enter_context(serving(url, *_FLAGS, *shared, directory=directory / name))
                )
            yield started
        maker.close()
    finally:
        end_run(run)


if __name__ == "__main__":
    sys.exit(main())
